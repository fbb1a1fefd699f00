#include "gen/commands/launch/engine.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "gen/base/diag.h"
#include "gen/base/embedded.h"
#include "gen/base/path.h"
#include "gen/commands/cli/files.h"
#include "gen/jinja/jinja.h"
#include "gen/program/target.h"
#include "runtime/base/terminal.h"

/* What a value of --with may hold besides letters and digits. */
#define OF_NAMES "._-"
#define OF_TIMES ":-"
#define OF_PATHS "./_-+@=:"

enum { SETTINGS = 8 };

struct setting {
  const char *name;
  const char *otherwise; /* without it; NULL: it must be given; "": it is left out */
  const char *takes;     /* of OF_NAMES and others; NULL: digits alone */
};

static const struct engine {
  const char *name, *template;
  bool by_env; /* a process for each node, which `launch --by env` makes the node's ranks */
  struct setting settings[SETTINGS];
} engines[] = {
    {"slurm",
     "launch/slurm.sh.j2",
     false,
     {{"partition", "", OF_NAMES ","}, {"account", "", OF_NAMES}, {"time", "", OF_TIMES}}},
    {"kubernetes",
     "launch/kubernetes.yaml.j2",
     false,
     {{"image", NULL, OF_PATHS}, {"directory", "/work", OF_PATHS}, {"namespace", "", "-"}}},
    {"kubeflow",
     "launch/kubeflow.yaml.j2",
     true,
     {{"image", NULL, OF_PATHS},
      {"directory", "/work", OF_PATHS},
      {"namespace", "", "-"},
      {"runtime", "torch-distributed", ".-"}}},
    {"sagemaker",
     "launch/sagemaker.json.j2",
     true,
     {{"image", NULL, OF_PATHS},
      {"role", NULL, OF_PATHS ","},
      {"instance_type", NULL, "."},
      {"output", NULL, OF_PATHS},
      {"directory", "/opt/ml/code", OF_PATHS},
      {"data", "", OF_PATHS},
      {"volume", "30", NULL},
      {"time", "86400", NULL}}},
};

static const struct engine *engine_named(const char *name) {
  int i = 0;
  while (strcmp(engines[i].name, name) != 0) i++; /* the table of options has no other names */
  return &engines[i];
}

/* ---- Parameters ---- */

static const char *names_of(struct arena *arena, const struct engine *engine) {
  const char *names = "";
  for (int i = 0; i < SETTINGS && engine->settings[i].name != NULL; i++)
    names = arena_printf(arena, "%s%s%s", names, i > 0 ? ", " : "", engine->settings[i].name);
  return names;
}

static const struct setting *setting_named(const struct engine *engine, const char *name) {
  for (int i = 0; i < SETTINGS && engine->settings[i].name != NULL; i++)
    if (strcmp(engine->settings[i].name, name) == 0) return &engine->settings[i];
  return NULL;
}

/* Whether the engine's file can hold the value as it is. */
static bool is_plain(const struct setting *setting, const char *value) {
  if (*value == '\0') return false;
  for (const char *at = value; *at != '\0'; at++) {
    bool digit = isdigit((unsigned char)*at) != 0;
    bool other = setting->takes != NULL && (isalpha((unsigned char)*at) || strchr(setting->takes, *at) != NULL);
    if (!digit && !other) return false;
  }
  return true;
}

static bool check_given(const struct options *options, const struct engine *engine) {
  for (int i = 0; i < options->n_with; i++) {
    const struct job_override *given = &options->with[i];
    const struct setting *setting = setting_named(engine, given->key);
    if (setting == NULL) {
      rt_print(stderr, "accel-gen launch: --write %s has no parameter '%s'; it has %s\n", engine->name, given->key,
               names_of(options->arena, engine));
      return false;
    }
    if (!is_plain(setting, given->value)) {
      rt_print(stderr, "accel-gen launch: --with %s: '%s' is not %s\n", given->key, given->value,
               setting->takes == NULL ? "a number" : "a value that can be written without quotes");
      return false;
    }
  }
  return true;
}

static const char *value_of(const struct options *options, const struct setting *setting) {
  const char *value = setting->otherwise;
  for (int i = 0; i < options->n_with; i++)
    if (strcmp(options->with[i].key, setting->name) == 0) value = options->with[i].value;
  return value;
}

/* A map of all parameters of the engine; false after a message. */
static bool settings_of(const struct options *options, const struct engine *engine, struct jinja_value *settings) {
  *settings = jinja_map(options->arena);
  if (!check_given(options, engine)) return false;
  for (int i = 0; i < SETTINGS && engine->settings[i].name != NULL; i++) {
    const char *name = engine->settings[i].name, *value = value_of(options, &engine->settings[i]);
    if (value == NULL) {
      rt_print(stderr, "accel-gen launch: --write %s needs --with %s=VALUE\n", engine->name, name);
      return false;
    }
    jinja_set(options->arena, *settings, name, jinja_string(options->arena, value));
  }
  return true;
}

/* ---- The file ---- */

/* The job's file without its ending, as a name of DNS (RFC 1123), which all engines take. */
static const char *name_of(struct arena *arena, const char *job) {
  enum { MOST = 50 };
  const char *slash = strrchr(job, '/');
  const char *from = slash != NULL ? slash + 1 : job;
  const char *dot = strrchr(from, '.');
  size_t length = dot != NULL && dot > from ? (size_t)(dot - from) : strlen(from);
  char *name = arena_printf(arena, "%.*s", (int)(length < MOST ? length : MOST), from);
  for (char *at = name; *at != '\0'; at++) *at = isalnum((unsigned char)*at) ? (char)tolower((unsigned char)*at) : '-';
  while (*name == '-') name++;
  for (size_t end = strlen(name); end > 0 && name[end - 1] == '-'; end--) name[end - 1] = '\0';
  return *name != '\0' ? name : "run";
}

static struct jinja_value list_of(struct arena *arena, const struct words *words) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < words->count; i++) jinja_push(arena, list, jinja_string(arena, words->items[i]));
  return list;
}

/* `accel-gen launch JOB PROGRAM FLAG...` as a shell reads it. */
static const char *command_line(struct arena *arena, const struct options *options, const struct launch *launch,
                                bool by_env) {
  const char *line = by_env ? "accel-gen launch --by env" : "accel-gen launch";
  for (int i = 0; i < options->n_overrides; i++) {
    const struct job_override *set = &options->overrides[i];
    line =
        arena_printf(arena, "%s --set %s", line, shell_word(arena, arena_printf(arena, "%s=%s", set->key, set->value)));
  }
  line = arena_printf(arena, "%s %s %s", line, shell_word(arena, launch->job), shell_word(arena, launch->program));
  for (char **flag = launch->flags; *flag != NULL; flag++)
    line = arena_printf(arena, "%s %s", line, shell_word(arena, *flag));
  return line;
}

static bool resumes(const struct job *job) {
  return job->checkpoint.resume != NULL && strcmp(job->checkpoint.resume, "auto") == 0;
}

static struct jinja_value values_of(const struct options *options, const struct launch *launch, const struct job *job,
                                    const struct launched *ranks, const struct engine *engine,
                                    struct jinja_value settings) {
  struct arena *arena = options->arena;
  struct jinja_value values = jinja_map(arena);
  struct words mpirun = launch_by_mpirun(arena, launch, ranks, NULL);
  int64_t each = ranks->count / ranks->nodes;
  jinja_set(arena, values, "settings", settings);
  jinja_set(arena, values, "name", jinja_string(arena, name_of(arena, launch->job)));
  jinja_set(arena, values, "nodes", jinja_int(ranks->nodes));
  jinja_set(arena, values, "per_node", jinja_int(each));
  jinja_set(arena, values, "gpus", jinja_int(target_of(job)->is_host ? 0 : each));
  jinja_set(arena, values, "threads", jinja_int(job->devices.threads));
  jinja_set(arena, values, "resumes", jinja_bool(resumes(job)));
  jinja_set(arena, values, "mpirun", list_of(arena, &mpirun));
  jinja_set(arena, values, "command_line", jinja_string(arena, command_line(arena, options, launch, engine->by_env)));
  struct jinja_value directory = jinja_get(settings, "directory");
  if (directory.kind == JINJA_STRING)
    jinja_set(arena, values, "directory_word", jinja_string(arena, shell_word(arena, jinja_text(directory))));
  return values;
}

static const char *load(void *context, const char *name) {
  (void)context;
  return embedded_template(name);
}

int launch_write(const struct options *options, const struct launch *launch, const struct job *job,
                 const struct launched *ranks) {
  struct arena *arena = options->arena;
  const struct engine *engine = engine_named(options->write);
  struct jinja_value settings;
  if (engine->by_env && ranks->meets_by_environment && ranks->count > ranks->nodes) {
    fprintf(stderr,
            "accel-gen launch: --write %s starts one process on each node, and a program for GPUs needs one for each "
            "GPU: devices.per_node is %lld; use --write kubernetes or slurm\n",
            engine->name, (long long)(ranks->count / ranks->nodes));
    return STATUS_BAD_JOB;
  }
  if (!settings_of(options, engine, &settings)) return STATUS_BAD_JOB;
  struct jinja_options how = {.undefined = JINJA_STRICT,
                              .trim_blocks = true,
                              .lstrip_blocks = true,
                              .keep_trailing_newline = true,
                              .load = load};
  struct jinja_output output;
  struct jinja_error error;
  struct jinja_env *env = jinja_env_new(arena, &how);
  if (!jinja_render(env, engine->template, values_of(options, launch, job, ranks, engine, settings), false, &output,
                    &error)) {
    rt_print(stderr, "accel-gen launch: %s:%d: %s\n", engine->template, error.chain[0].line, error.message);
    return STATUS_CANNOT;
  }
  struct inputs inputs = inputs_in(arena);
  inputs_add(&inputs, "the job", launch->job);
  const char *path = options->output != NULL ? options->output : "-";
  return write_file(&inputs, path, output.text, output.length) ? STATUS_OK : STATUS_CANNOT;
}
