/* Reading within limits: libclang and the importer run in a fork, which writes the tree into memory that both processes
 * have at the same addresses. A fork has all the addresses of its parent, so that every pointer of the tree is good in
 * both. */
#define _DEFAULT_SOURCE /* wait4 */
#include "gen/c/limit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gen/c/import.h"
#include "gen/c/parse.h"

/* A fuzzer's counters would be the fork's, and it sees no crash but its own. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define READS_HERE 1
#else
#define READS_HERE 0
#endif

/* What the fork leaves in the shared memory. Nothing of it is valid before `done`. */
struct reply {
  struct tree *tree;
  struct diagnostics diags;
  bool done;
};

struct reading {
  const struct parse_request *request;
  struct arena *arena, *shared;
  struct diagnostics *diags;
  struct reply *reply;
};

/* ---- In the fork ---- */

/* An address sanitizer takes terabytes of addresses for itself, and its reports are to be seen. */
#if defined(__SANITIZE_ADDRESS__) /* of gcc, where libclang's headers define a __has_feature that is always 0 */
#define IS_SANITIZED 1
#elif defined(__has_feature)
#define IS_SANITIZED __has_feature(address_sanitizer)
#else
#define IS_SANITIZED 0
#endif

/* The limit that is to hold: a lower one that the caller runs under stays. */
static rlim_t allowed(int resource, rlim_t most) {
  struct rlimit now;
  return getrlimit(resource, &now) == 0 && now.rlim_cur < most ? now.rlim_cur : most;
}

static void limit(int resource, rlim_t most) {
  struct rlimit now;
  if (getrlimit(resource, &now) != 0) return;
  now.rlim_cur = now.rlim_max < most ? now.rlim_max : most;
  setrlimit(resource, &now);
}

/* A handler of the parent's would run the parent's code in the fork. Without the two variables, libclang runs in
 * threads with 8 MiB of stack, and handles crashes by printing its state. */
static void confine(void) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGXCPU};
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) signal(faults[i], SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setenv("LIBCLANG_NOTHREADS", "1", 1);
  setenv("LIBCLANG_DISABLE_CRASH_RECOVERY", "1", 1);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, allowed(RLIMIT_CPU, PARSE_SECONDS));
  limit(RLIMIT_STACK, PARSE_STACK);
  if (IS_SANITIZED) return;
  limit(RLIMIT_DATA, allowed(RLIMIT_DATA, PARSE_MEMORY));
  int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
}

/* Ends with _exit: exit would write once more what the parent has not yet written. */
_Noreturn static void read_and_end(const struct reading *reading) {
  confine();
  reading->reply->tree = tree_read(reading->shared, reading->request, &reading->reply->diags);
  reading->reply->done = true;
  _exit(0);
}

/* ---- In the parent ---- */

static double seconds_of(clockid_t clock) {
  struct timespec time = {0};
  clock_gettime(clock, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Whether a process sleeps until something comes, as one that reads a pipe does. One that waits for a processor that
 * others have, or for a disk, does not. Where the system does not say, one that does nothing is taken to sleep. */
static bool sleeps(pid_t process) {
  char path[32], text[64 + 32]; /* "PID (name of 15 bytes) state ..." */
  snprintf(path, sizeof path, "/proc/%ld/stat", (long)process);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  text[length < 0 ? 0 : length] = '\0';
  const char *name_end = strrchr(text, ')');
  return name_end == NULL || strncmp(name_end, ") S", 3) == 0;
}

/* Waits until the fork closes its end of the pipe. A fork that does nothing for two rounds and sleeps at their ends is
 * ended, and the result is true; one round proves nothing, since both processes may have been stopped during it. */
static bool ended_idle(pid_t fork, int pipe) {
  enum { ROUNDS = 2, MILLISECONDS = PARSE_IDLE_SECONDS * 1000 / ROUNDS };
  const double least = 1e-3;
  struct pollfd end = {.fd = pipe, .events = POLLIN};
  clockid_t clock;
  double before = -1;
  if (clock_getcpuclockid(fork, &clock) != 0) return false;
  for (int idle = 0; idle < ROUNDS;) {
    int events = poll(&end, 1, MILLISECONDS);
    if (events > 0) return false;
    if (events < 0) continue; /* a signal came */
    double now = seconds_of(clock);
    idle = now - before < least && sleeps(fork) ? idle + 1 : 0;
    before = now;
  }
  kill(fork, SIGKILL);
  return true;
}

static void report(struct location where, int status, const struct rusage *used, struct diagnostics *diags) {
  int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  /* libclang aborts without memory; an array that grows asks for more than all that there was before. */
  bool refused = signal == SIGABRT && used->ru_maxrss > PARSE_MEMORY / 1024 / 4;
  bool full = WIFEXITED(status) && WEXITSTATUS(status) == ARENA_FULL;
  if (signal == SIGXCPU)
    diag_error(diags, where, "the C parser needs more than %d seconds for this file",
               (int)allowed(RLIMIT_CPU, PARSE_SECONDS));
  else if (signal == SIGSEGV)
    diag_error(diags, where, "an expression of this file is nested too deep for the C parser");
  else if (refused || full || signal == SIGKILL)
    diag_error(diags, where, "the C parser needs more than %d MiB of memory for this file",
               (PARSE_MEMORY + PARSE_TREE) >> 20);
  else
    diag_error(diags, where, "the C parser gave up on this file (status %d)", status);
  diag_help(diags, "what it includes and its macros count, too");
}

/* Takes over what the fork found. */
static struct tree *take(const struct reading *reading) {
  struct diagnostics *diags = reading->diags, *found = &reading->reply->diags;
  arena_join(reading->arena, reading->shared);
  for (int i = 0; i < found->n_sources; i++) diag_add_source(diags, found->sources[i].file, found->sources[i].text);
  for (int i = 0; i < found->count; i++) ARENA_PUSH(diags->arena, *diags, found->items[i]);
  diags->errors += found->errors;
  return reading->reply->tree;
}

static struct tree *wait_for(const struct reading *reading, pid_t fork, int pipe) {
  const struct location where = {.file = reading->request->file};
  int status = 0;
  struct rusage used = {0};
  bool idle = ended_idle(fork, pipe);
  while (wait4(fork, &status, 0, &used) < 0 && errno == EINTR) continue;
  if (reading->reply->done) return take(reading);
  if (idle)
    diag_error(reading->diags, where, "this file, or one that it includes, is a pipe or a device that gives nothing");
  else
    report(where, status, &used, reading->diags);
  arena_free(reading->shared);
  return NULL;
}

static struct tree *read_in_fork(const struct reading *reading, const int ends[2]) {
  pid_t child = fork();
  if (child == 0) read_and_end(reading);
  close(ends[1]);
  if (child > 0) return wait_for(reading, child, ends[0]);
  diag_error(reading->diags, (struct location){.file = reading->request->file},
             "there is no process to read this file in: %s", strerror(errno));
  arena_free(reading->shared);
  return NULL;
}

struct tree *tree_parse(struct arena *arena, const struct parse_request *request, struct diagnostics *diags) {
  if (READS_HERE) return tree_read(arena, request, diags);
  struct reading reading = {request, arena, arena_shared(PARSE_TREE), diags, NULL};
  int ends[2];
  if (reading.shared == NULL || pipe(ends) != 0) {
    diag_error(diags, (struct location){.file = request->file}, "there is no memory to read this file: %s",
               strerror(errno));
    arena_free(reading.shared);
    return NULL;
  }
  reading.reply = arena_alloc(reading.shared, sizeof *reading.reply);
  reading.reply->diags = diagnostics_in(reading.shared);
  struct tree *tree = read_in_fork(&reading, ends);
  close(ends[0]);
  return tree;
}
