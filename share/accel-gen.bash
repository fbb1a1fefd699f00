# Completion of accel-gen for bash.
_accel_gen() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()
  case $before in
  --color) COMPREPLY=($(compgen -W 'auto always never' -- "$word")) && return ;;
  --format) COMPREPLY=($(compgen -W 'text json sarif junit html' -- "$word")) && return ;;
  --fail-on) COMPREPLY=($(compgen -W 'unproved broken never' -- "$word")) && return ;;
  --program) COMPREPLY=($(compgen -W 'train evaluate generate' -- "$word")) && return ;;
  --templates) COMPREPLY=($(compgen -d -- "$word")) && return ;;
  -o | --output | --object | --tuning) COMPREPLY=($(compgen -f -- "$word")) && return ;;
  --set | --config | --dump | --key | --rounds | --nodes | --latency | --bandwidth | --step) return ;;
  help) COMPREPLY=($(compgen -W 'build plan tune check audit explain diff job model data precision accumulation devices optimizer schedule training checkpoint tracking' -- "$word")) && return ;;
  esac
  case $word in
  -*) COMPREPLY=($(compgen -W '-o --bundle --set --config --program --templates --manifest --provenance --key --regenerate --nodes --latency --bandwidth --step --tuning --rounds --measured --dump --json --resolved -v --object --format --fail-on --march --root -I --color --help --version' -- "$word")) ;;
  *)
    COMPREPLY=($(compgen -f -X '!*.@(y?(a)ml|c)' -- "$word") $(compgen -d -- "$word"))
    if [ "$COMP_CWORD" = 1 ]; then COMPREPLY+=($(compgen -W 'build plan tune check model audit explain diff launch render data checkpoint help version' -- "$word")); fi
    ;;
  esac
}
complete -o filenames -F _accel_gen accel-gen
