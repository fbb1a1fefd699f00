/* accel-gen test: a small job on the available machines, and what that proves. */
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gen/base/file.h"
#include "gen/base/text.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/launch/launch.h"
#include "gen/commands/test/trial.h"
#include "runtime/base/terminal.h"
#include "runtime/weights/shards.h"

enum { STEPS = 6, SAVED = 3 }; /* as share/test/job.yaml has them */

/* ---- The report ---- */

/* A check, as a line; a quiet test prints those that failed. Whether it passed; where it did not, the log of the last
 * command follows. After a signal there is nothing to say. */
static bool report(struct trial *trial, const char *name, bool good, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static bool report(struct trial *trial, const char *name, bool good, const char *format, ...) {
  va_list args;
  if (trial_signal() != 0) return false;
  va_start(args, format);
  const char *text = arena_vprintf(trial->arena, format, args);
  va_end(args);
  if (!good || !trial->options->quiet) rt_print(stdout, "  %-12s %-7s %s\n", name, good ? "ok" : "FAILED", text);
  if (good)
    trial->passed++;
  else
    trial->failed++;
  if (!good && trial->log != NULL) trial_print_log(trial);
  trial->log = NULL;
  fflush(stdout);
  return good;
}

/* ---- The checks ---- */

static bool build(struct trial *trial) {
  struct words ranks = trial_self(trial, "build ranks.yaml -o ranks"), one = trial_self(trial, "build one.yaml -o one");
  bool good = trial_run(trial, "build", &ranks) && (!trial->compares || trial_run(trial, "build", &one));
  return report(trial, "build", good, "a trainer for %d rank%s%s", trial->ranks, trial->ranks == 1 ? "" : "s",
                trial->compares ? ", and one for one process on a processor" : "");
}

/* The program's text without the call of the hook, of which no claim can be made. */
static void audit(struct trial *trial) {
  struct words write = trial_self(trial, "./alone.yaml -o alone.c"), read = trial_self(trial, "audit alone.c");
  bool good = trial_run(trial, "audit", &write) && trial_run(trial, "audit", &read);
  report(trial, "audit", good, "claims about the program's text: %s", trial_last_line(trial->arena, "audit.log"));
}

static struct words launch(const struct trial *trial, const char *flags) {
  struct words command = words_in(trial->arena);
  words_add(&command, trial->self);
  words_add(&command, "launch");
  const char *pairs[][2] = {{"--by", trial->options->by}, {"--hosts", trial->options->hosts}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    if (pairs[i][1] == NULL) continue;
    words_add(&command, pairs[i][0]);
    words_add(&command, pairs[i][1]);
  }
  words_split(&command, "ranks.yaml ./ranks");
  words_split(&command, flags);
  return command;
}

static bool run_ranks(struct trial *trial) {
  struct words command = launch(trial, "--project-dir run");
  double losses[STEPS];
  bool good = trial_run(trial, "run", &command);
  int steps = trial_numbers(trial->arena, "run/metrics.jsonl", "loss", losses, STEPS);
  good = good && steps == STEPS && losses[STEPS - 1] < losses[0];
  if (steps < 2) return report(trial, "run", good, "%d of %d steps", steps, STEPS);
  return report(trial, "run", good, "%d of %d steps, the loss goes from %.4f to %.4f", steps, STEPS, losses[0],
                losses[STEPS - 1]);
}

/* Lines "OPERATION N", with the number of ranks on which it was wrong, and "on MACHINE". */
static void collectives(struct trial *trial) {
  size_t length = 0;
  const char *text = read_bytes(trial->arena, "run/collectives.txt", &length);
  struct text right = text_in(trial->arena), wrong = text_in(trial->arena), machines = text_in(trial->arena);
  int ranks = 0;
  for (const char *at = text; at != NULL && *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n') {
    char word[64];
    int count = 0;
    bool machine = sscanf(at, "on %63s", word) == 1;
    if (!machine && sscanf(at, "%63s %d", word, &count) != 2) continue;
    struct text *list = machine ? &machines : count > 0 ? &wrong : &right;
    ranks += machine;
    if (machine && text_names(arena_printf(trial->arena, " %s ", text_string(list)), word, false)) continue;
    text_printf(list, "%s%s", list->length == 0 ? "" : machine ? " " : ", ", word);
    if (count > 0) text_printf(list, " on %d rank%s", count, count == 1 ? "" : "s");
  }
  report(trial, "ranks", ranks == trial->ranks, "%d of %d, on %s", ranks, trial->ranks, text_string(&machines));
  if (wrong.length > 0 || right.length == 0)
    report(trial, "collectives", false, "wrong: %s", wrong.length > 0 ? text_string(&wrong) : "none was tried");
  else
    report(trial, "collectives", true, "%s: each rank has what it computed by itself", text_string(&right));
}

/* Against a program of one process that takes the samples of all ranks. */
static void losses(struct trial *trial) {
  struct words command = words_in(trial->arena);
  words_split(&command, "./one --project-dir single");
  double got[STEPS], expected[STEPS], most = 0, allowed = trial->gpu ? 1e-3 : 1e-5;
  bool good = trial_run(trial, "single", &command);
  trial_numbers(trial->arena, "run/metrics.jsonl", "loss", got, STEPS);
  int steps = trial_numbers(trial->arena, "single/metrics.jsonl", "loss", expected, STEPS);
  for (int i = 0; i < STEPS; i++) {
    double difference = fabs(got[i] - expected[i]) / fabs(expected[i]);
    if (!(difference <= most)) most = difference; /* NAN, too */
  }
  if (good) trial->log = NULL;
  report(trial, "losses", good && steps == STEPS && most <= allowed,
         "%d steps as in one process with the samples of all ranks: at most %.1e of a loss away, %.0e allowed", steps,
         most, allowed);
}

/* Of the file of weights that a run has left; NULL: it has left none. */
static const char *model_digest(struct arena *arena, const char *folder) {
  char path[4096];
  return rt_shards_of_folder(folder, path, sizeof path) ? file_digest(arena, path) : NULL;
}

static void resume(struct trial *trial) {
  struct words command = launch(trial, "--resume run/checkpoints/checkpoint_0 --project-dir resumed");
  double got[STEPS], expected[STEPS];
  bool good = trial_run(trial, "resume", &command);
  trial_numbers(trial->arena, "run/metrics.jsonl", "loss", expected, STEPS);
  trial_numbers(trial->arena, "resumed/metrics.jsonl", "loss", got, STEPS);
  bool equal = true;
  for (int i = 0; i < STEPS; i++) equal = equal && (i < SAVED ? isnan(got[i]) : got[i] == expected[i]);
  if (!good) {
    report(trial, "resume", false, "from the checkpoint of step %d", SAVED);
    return;
  }
  struct words compare =
      trial_self(trial, "checkpoint diff run/checkpoints/checkpoint_1 resumed/checkpoints/checkpoint_0");
  bool same = trial_run(trial, "compare", &compare);
  const char *own = model_digest(trial->arena, "run"), *its = model_digest(trial->arena, "resumed");
  same = same && own != NULL && its != NULL && strcmp(own, its) == 0;
  report(trial, "resume", same && equal, "steps %d to %d from the checkpoint of step %d: %s", SAVED + 1, STEPS, SAVED,
         same && equal ? "losses, weights and states of the optimizer have the same bits"
         : equal       ? "other weights or states"
                       : "other losses");
}

static void run_all(struct trial *trial) {
  if (!build(trial)) return;
  audit(trial);
  if (!run_ranks(trial)) return;
  collectives(trial);
  if (trial->compares) losses(trial);
  resume(trial);
}

/* ---- The machines ---- */

static int number_of(const char *name) {
  const char *text = getenv(name);
  long number = text != NULL ? strtol(text, NULL, 10) : 0;
  return number > 0 && number < INT_MAX ? (int)number : 0;
}

static int count_hosts(const char *hosts) {
  int count = 1;
  for (; *hosts != '\0'; hosts++) count += *hosts == ',';
  return count;
}

/* GPUs of this machine, at least one: without any, the run says so. */
static int count_gpus(struct arena *arena) {
  struct words words = words_in(arena);
  words_split(&words, "nvidia-smi -L");
  const char *list = process_try(&words);
  int count = 0;
  for (const char *at = list; at != NULL && (at = strstr(at, "GPU ")) != NULL; at++) count++;
  return count > 0 ? count : 1;
}

/* What the options leave open: machines of a Slurm job, two ranks of a machine, or one of each GPU. */
static bool choose_ranks(struct trial *trial) {
  const struct options *options = trial->options;
  bool slurm = getenv("SLURM_JOB_ID") != NULL && (options->by == NULL || strcmp(options->by, "srun") == 0);
  trial->nodes = 1;
  if (options->hosts != NULL) trial->nodes = count_hosts(options->hosts);
  if (options->hosts == NULL && slurm && number_of("SLURM_NNODES") > 0) trial->nodes = number_of("SLURM_NNODES");
  trial->ranks = options->ranks;
  if (trial->ranks == 0 && slurm) trial->ranks = number_of("SLURM_NTASKS");
  if (trial->ranks == 0) trial->ranks = trial->nodes * (trial->gpu ? count_gpus(trial->arena) : 2);
  if (trial->ranks % trial->nodes == 0) return true;
  rt_print(stderr,
           "accel-gen: %d machines have equal numbers of ranks, which %d do not make; give --ranks a multiple\n",
           trial->nodes, trial->ranks);
  return false;
}

/* A folder that all machines see is one below the working folder; one machine alone has its own. */
static const char *make_trial_folder(const struct trial *trial) {
  if (trial->nodes == 1) return make_folder(trial->arena);
  char *here = getcwd(NULL, 0), *folder = here != NULL ? arena_printf(trial->arena, "%s/accel-gen.XXXXXX", here) : NULL;
  free(here);
  if (folder != NULL && mkdtemp(folder) != NULL) return folder;
  perror(folder != NULL ? folder : "accel-gen: the working folder");
  return NULL;
}

static const char *own_path(struct arena *arena) {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  return length > 0 ? arena_copy(arena, path, (size_t)length) : "accel-gen";
}

static int run_in_folder(struct trial *trial) {
  time_t begin = time(NULL);
  const bool is_quiet = trial->options->quiet;
  if (!is_quiet)
    rt_print(stdout, "accel-gen test: %d rank%s on %d machine%s, %s\n", trial->ranks, trial->ranks == 1 ? "" : "s",
             trial->nodes, trial->nodes == 1 ? "" : "s", trial->gpu ? "cuda" : "cpu");
  if (!trial_write(trial)) return STATUS_CANNOT;
  run_all(trial);
  if (trial_signal() != 0) return 128 + trial_signal();
  if (trial->failed == 0 && !is_quiet)
    rt_print(stdout, "all %d checks passed in %ld s\n", trial->passed, (long)(time(NULL) - begin));
  else if (trial->failed > 0)
    rt_print(stdout, "%d of %d checks failed; `accel-gen env` prints what the machine has\n", trial->failed,
             trial->failed + trial->passed);
  return trial->failed == 0 ? STATUS_OK : STATUS_CANNOT;
}

int command_test(const struct options *options) {
  struct trial trial = {.options = options, .arena = options->arena, .self = own_path(options->arena)};
  trial.gpu = strcmp(options->device, "cuda") == 0;
  if (options->by == NULL && launch_is_convention()) {
    fprintf(stderr,
            "accel-gen: `test` starts the ranks itself: run it once, without RANK, WORLD_SIZE and MASTER_ADDR\n");
    return STATUS_CANNOT;
  }
  if (!choose_ranks(&trial)) return STATUS_BAD_JOB;
  trial.compares = trial.ranks > 1 || trial.gpu;
  trial.folder = make_trial_folder(&trial);
  if (trial.folder == NULL || chdir(trial.folder) != 0) return STATUS_CANNOT;
  int status = run_in_folder(&trial);
  if (chdir("/") == 0) remove_folder(trial.folder);
  return status;
}
