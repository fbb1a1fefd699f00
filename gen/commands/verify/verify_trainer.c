/* The trainer: built with a record of what it asks and reports, and run where it sees no network. */
#define _GNU_SOURCE /* unshare */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gen/audit/program/grammar.h"
#include "gen/base/embedded.h"
#include "gen/base/file.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/cli/process.h"
#include "gen/commands/cli/runtime.h"
#include "gen/commands/generate/compiler.h"
#include "gen/commands/verify/verify.h"
#include "gen/provenance/manifest.h"
#include "runtime/weights/safetensors.h"

/* ---- Its compilation ---- */

static const char wraps[] = "-Wl,--wrap=accel_start,--wrap=accel_first_step,--wrap=accel_micro_batches_of,"
                            "--wrap=accel_load_sequences,--wrap=accel_load_masked,--wrap=accel_load_documents,"
                            "--wrap=accel_load_input,"
                            "--wrap=accel_handle_events";

/* The command that the program is compiled by: of the manifest next to it, or of its first comment. */
static const char *compile_command(const struct verification *verify) {
  struct diagnostics unread = diagnostics_in(verify->arena);
  const char *path = manifest_path(verify->arena, verify->program);
  if (access(path, R_OK) == 0) {
    const struct manifest *manifest = manifest_read(verify->arena, path, &unread);
    if (manifest != NULL) return manifest->compile;
  }
  size_t length;
  const char *text = read_bytes(verify->arena, verify->program, &length);
  const char *build = text != NULL ? strstr(text, "Build: ") : NULL;
  return build != NULL ? arena_copy(verify->arena, build + 7, strcspn(build + 7, "$*\n")) : NULL;
}

/* Its flags, up to the name of a file. */
static bool add_flags(struct verification *verify, struct words *command) {
  const char *text = compile_command(verify);
  struct words words = words_in(verify->arena);
  if (text == NULL) return verify_unknown(verify, "the program does not say how it is compiled");
  words_split(&words, text);
  for (int i = 1; i < words.count && words.items[i][0] == '-' && strcmp(words.items[i], "-o") != 0; i++) {
    if (!grammar_has_flag(words.items[i]))
      return verify_unknown(verify, "the program's command of compilation has '%s'", words.items[i]);
    words_add(command, words.items[i]);
  }
  words_add(command, "-fopenmp");
  return true;
}

/* Compiles `source` and, where it is not NULL, `more` as the program NAME of the folder, by the program's own flags. */
static bool build(struct verification *verify, const char *source, const char *more, const char *flags,
                  const char *name) {
  struct words command = words_in(verify->arena);
  words_split(&command, compiler_name());
  if (!add_flags(verify, &command)) return false;
  words_split(&command, flags);
  words_add(&command, "-o");
  words_add(&command, arena_printf(verify->arena, "%s/%s", verify->folder, name));
  words_add(&command, source);
  if (more != NULL) words_add(&command, more);
  const struct linked linked = {.ranks = verify->job->devices.ranks > 1,
                                .sqlite = verify->job->tracking.sinks[SINK_TRACKIO]};
  if (!runtime_flags(verify->options, "--cflags --libs", linked, &command))
    return verify_unknown(verify, "the runtime is not found");
  if (verify->options->verbose) words_print(stderr, &command);
  return process_run_showing(&command, verify->options->quiet ? NULL : "compiles the program") ||
         verify_unknown(verify, "the program does not compile");
}

bool verify_put(struct verification *verify, const char *name, const char *text) {
  const struct inputs none = {.arena = verify->arena};
  return write_file(&none, arena_printf(verify->arena, "%s/%s", verify->folder, name), text, strlen(text)) ||
         verify_unknown(verify, "the folder %s cannot be written", verify->folder);
}

bool verify_build(struct verification *verify) {
  return verify_put(verify, "draw.h", embedded_source("share/verify/draw.h")) &&
         verify_put(verify, "record.c", embedded_source("share/verify/record.c")) &&
         build(verify, verify->program, arena_printf(verify->arena, "%s/record.c", verify->folder), wraps, "trainer");
}

bool verify_build_probe(struct verification *verify) {
  return build(verify, arena_printf(verify->arena, "%s/probed.c", verify->folder),
               arena_printf(verify->arena, "%s/record.c", verify->folder),
               arena_printf(verify->arena, "-w -D_DEFAULT_SOURCE %s", wraps), "probe");
}

/* ---- Its run ---- */

/* The parameters of the reading as a file to start from. */
static bool write_start(struct verification *verify, const char *folder) {
  struct tensor_view *views = arena_alloc(verify->arena, (size_t)verify->reading.count * sizeof *views);
  struct problem problem;
  int count = 0;
  for (struct stored *at = verify->reading.first; at != NULL; at = at->next) {
    const bool counts = strstr(at->name, "num_batches_tracked") != NULL;
    struct tensor_view view = {
        .name = (char *)at->name, .dtype = counts ? ACCEL_INT64 : ACCEL_FLOAT32, .rank = at->rank};
    view.size = (size_t)at->count * (counts ? 8 : 4);
    view.bytes = arena_alloc(verify->arena, view.size);
    for (int i = 0; i < at->rank; i++) view.shape[i] = at->dim[i];
    for (int64_t i = 0; i < at->count; i++) {
      if (counts)
        ((int64_t *)(void *)view.bytes)[i] = (int64_t)at->values[i];
      else
        ((float *)(void *)view.bytes)[i] = (float)at->values[i];
    }
    views[count++] = view;
  }
  const char *path = arena_printf(verify->arena, "%s/start.safetensors", folder);
  if (rt_safetensors_write(path, IN_PLACE, views, count, NULL, NULL, &problem)) return true;
  return verify_unknown(verify, "%s", problem.what);
}

/* In the child: what mpirun asks of its own network of one machine. */
static void raise_loopback(void) {
  struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
  const int connection = socket(AF_INET, SOCK_DGRAM, 0);
  if (connection < 0) return;
  ioctl(connection, SIOCSIFFLAGS, &request); /* where it cannot, mpirun says so */
  close(connection);
}

/* In the child: no network where the system allows that, no core file, no run without end. */
static void isolate(int report) {
  const char isolated = (char)(unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0);
  if (write(report, &isolated, 1) != 1) _exit(3);
  if (isolated) raise_loopback();
  setrlimit(RLIMIT_CORE, &(const struct rlimit){0, 0});
  setrlimit(RLIMIT_CPU, &(const struct rlimit){3600, 3600});
}

/* The ranks of a program, on this machine alone, which may have fewer processors. */
static void add_ranks(const struct verification *verify, struct words *command) {
  static const char *const settings[][2] = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                            {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                            {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                            {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
                                            {"HWLOC_COMPONENTS", "-opencl"}};
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) setenv(settings[i][0], settings[i][1], 1);
  words_split(command,
              arena_printf(verify->arena, "mpirun --bind-to none -n %lld", (long long)verify->job->devices.ranks));
}

static void become(const struct verification *verify, const char *folder, const char *name, const char *arguments,
                   int report) {
  struct words command = words_in(verify->arena);
  if (verify->job->devices.ranks > 1 && strcmp(name, "trainer") == 0) add_ranks(verify, &command);
  words_add(&command, arena_printf(verify->arena, "%s/%s", verify->folder, name));
  words_split(&command, arguments);
  const int log = chdir(folder) == 0 ? open("log", O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;
  if (log < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0) _exit(3);
  isolate(report);
  execvp(command.items[0], command.items);
  _exit(3);
}

bool verify_isolated(struct verification *verify, const char *folder, const char *name, const char *arguments,
                     int *status) {
  int report[2];
  if (pipe(report) != 0) return verify_unknown(verify, "there is no pipe: %s", strerror(errno));
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) become(verify, folder, name, arguments, report[1]);
  close(report[1]);
  char isolated = 0;
  if (read(report[0], &isolated, 1) == 1) verify->isolated = isolated != 0;
  close(report[0]);
  *status = -1;
  while (child > 0 && waitpid(child, status, 0) != child)
    if (errno != EINTR) break;
  return child > 0 || verify_unknown(verify, "no process can be started: %s", strerror(errno));
}

static const char *last_line(struct verification *verify, const char *folder) {
  size_t length = 0;
  const char *text = read_bytes(verify->arena, arena_printf(verify->arena, "%s/log", folder), &length);
  const char *error = text != NULL ? strstr(text, "error: ") : NULL;
  return error != NULL ? arena_copy(verify->arena, error + 7, strcspn(error + 7, "\n")) : "it says nothing";
}

int64_t verify_micro_batches(const struct job *job) {
  return job->accumulation.num_steps * job_batch_ranks(job);
}

static void set_number(const struct verification *verify, const char *name, int64_t number) {
  setenv(name, arena_printf(verify->arena, "%lld", (long long)number), 1);
}

/* Samples for three steps and more; where the last batch of an epoch may be short, one after the first step is. */
static int64_t samples_of(const struct job *job) {
  const int64_t batch = job->data.batch_size, micro_batches = verify_micro_batches(job);
  return job->data.keep_last ? micro_batches * batch + (batch + 1) / 2
                             : (3 * micro_batches + job_batch_ranks(job)) * batch;
}

const char *verify_prepare(struct verification *verify, const char *name, int64_t first, int64_t steps) {
  const char *folder = arena_printf(verify->arena, "%s/%s", verify->folder, name);
  if (mkdir(folder, 0777) != 0 || !write_start(verify, folder)) {
    verify_unknown(verify, "the folder %s cannot be written", folder);
    return NULL;
  }
  set_number(verify, "VERIFY_FIRST", first);
  set_number(verify, "VERIFY_STEPS", steps);
  set_number(verify, "VERIFY_SAMPLES", samples_of(verify->job));
  return folder;
}

bool verify_run(struct verification *verify, int64_t first, int64_t steps, const char **folder) {
  int status = 0;
  *folder = verify_prepare(verify, arena_printf(verify->arena, "from_%lld", (long long)first), first, steps);
  if (*folder == NULL) return false;
  if (!verify_isolated(verify, *folder, "trainer", "--quiet", &status)) return false;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  if (WIFSIGNALED(status))
    return verify_unknown(verify, "the program ended by signal %d at step %lld", WTERMSIG(status), (long long)first);
  return verify_unknown(verify, "the program did not run from step %lld: %s", (long long)first,
                        last_line(verify, *folder));
}
