#!/bin/sh
# The table of docs/matmul.md: every matrix library that this machine has, in interleaved rounds, medians at the end.
#
# usage: sh tests/bench/matmul.sh [ROUNDS]
#
# A library that is not installed is left out. MKL_LIB names the folder of libmkl_rt (`pip install mkl` brings one).
set -eu
rounds=${1:-3}
cd "$(dirname "$0")/../.."
out=build/bench
mkdir -p "$out"
${CC:-cc} -std=c17 -O2 -fopenmp -o "$out/matmul" tests/bench/matmul.c -ldl
results=$out/matmul.txt
: >"$results"
libraries=/usr/lib/$(${CC:-cc} -print-multiarch 2>/dev/null || echo x86_64-linux-gnu)
mkl=$(ls "${MKL_LIB:-/nowhere}"/libmkl_rt.so* 2>/dev/null | head -1 || true)

# one NAME KIND LIBRARY THREADS MODE [VARIABLE=VALUE]...: all shapes
one() {
  name=$1 kind=$2 library=$3 threads=$4 mode=$5
  shift 5
  own=$threads # threads that the library may start; one when we split
  if [ "$mode" = split ]; then own=1; fi
  for shape in tiny small gpt2; do
    figures=$(env OMP_NUM_THREADS="$threads" OPENBLAS_NUM_THREADS="$own" BLIS_NUM_THREADS="$own" MKL_NUM_THREADS="$own" \
      LD_LIBRARY_PATH="${MKL_LIB:-}" "$@" "$out/matmul" "$kind" "$library" "$threads" "$shape" "$mode" 2>/dev/null) || return 0
    echo "$name $threads $mode $shape $figures" >>"$results"
  done
}

round() {
  for setting in "1 plain" "2 plain" "2 loops" "2 split"; do
    threads=${setting% *} mode=${setting#* }
    one oneDNN dnnl libdnnl.so.3 "$threads" "$mode"
    one oneDNN dnnl libdnnl.so.2 "$threads" "$mode"
    one OpenBLAS-openmp cblas "$libraries/openblas-openmp/libopenblas.so.0" "$threads" "$mode"
    one BLIS-openmp cblas "$libraries/blis-openmp/libblis.so.4" "$threads" "$mode"
    if [ "$mode" != split ]; then
      one OpenBLAS-pthread cblas "$libraries/openblas-pthread/libopenblas.so.0" "$threads" "$mode"
      if [ -n "$mkl" ]; then one MKL cblas "$mkl" "$threads" "$mode" MKL_THREADING_LAYER=GNU; fi
    elif [ -n "$mkl" ]; then
      one MKL cblas "$mkl" "$threads" "$mode" MKL_THREADING_LAYER=SEQUENTIAL
    fi
  done
  # What another processor would get.
  one oneDNN,AVX2 dnnl libdnnl.so.2 2 loops DNNL_MAX_CPU_ISA=AVX2
  one oneDNN,SSE4.1 dnnl libdnnl.so.2 2 loops DNNL_MAX_CPU_ISA=SSE41
  one OpenBLAS-openmp,SKYLAKEX cblas "$libraries/openblas-openmp/libopenblas.so.0" 2 loops OPENBLAS_CORETYPE=SKYLAKEX
  one OpenBLAS-openmp,Haswell cblas "$libraries/openblas-openmp/libopenblas.so.0" 2 loops OPENBLAS_CORETYPE=Haswell
}

for at in $(seq "$rounds"); do
  echo "round $at of $rounds" >&2
  round
done

# The median of column $1 of all rounds, for each line's first four words.
echo "library threads mode shape all forward input-gradient weight-gradient (GFLOP/s, medians of $rounds rounds)"
awk '
  function median(text,    values, n, i, j, t) {
    n = split(text, values, " ")
    for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (values[j] < values[i]) { t = values[i]; values[i] = values[j]; values[j] = t }
    return n % 2 ? values[(n + 1) / 2] : (values[n / 2] + values[n / 2 + 1]) / 2
  }
  { key = $1 " " $2 " " $3 " " $4; if (!(key in seen)) { seen[key] = ++count; keys[count] = key }
    for (c = 5; c <= 8; c++) all[key, c] = all[key, c] " " $c }
  END { for (i = 1; i <= count; i++) { line = keys[i]; for (c = 5; c <= 8; c++) line = line " " sprintf("%.0f", median(all[keys[i], c])); print line } }
' "$results"
