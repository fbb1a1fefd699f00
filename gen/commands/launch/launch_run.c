/* Running mpirun: signals that ask to end reach the ranks, and what a refusal of Open MPI asks for is named. */
#include "gen/commands/launch/launch.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/terminal.h"

/* ---- Signals ---- */

static const int asking[] = {SIGTERM, SIGUSR1, SIGHUP, SIGINT};
enum { ASKING = sizeof asking / sizeof *asking };

void launch_catch(void (*handler)(int), int flags) {
  const struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  for (int i = 0; i < ASKING; i++) {
    struct sigaction before;
    sigaction(asking[i], NULL, &before);
    if (before.sa_handler != SIG_IGN) sigaction(asking[i], &action, NULL); /* nohup */
  }
}

static volatile sig_atomic_t asked; /* the signal that came last; 0: none */
static volatile sig_atomic_t pauses;

static void note(int signal) {
  if (signal == SIGTSTP)
    pauses = true;
  else
    asked = signal;
}

/* ---- The ranks of this machine, below mpirun ---- */

/* What the system says of a process; false where there is none, or another system. */
static bool look_at(pid_t process, pid_t *parent, uint64_t *caught) {
  char path[64], line[256];
  snprintf(path, sizeof path, "/proc/%d/status", (int)process);
  FILE *file = fopen(path, "r");
  int found = 0;
  if (file == NULL) return false;
  while (fgets(line, sizeof line, file) != NULL) {
    int number;
    if (sscanf(line, "PPid: %d", &number) == 1) *parent = number, found++;
    if (sscanf(line, "SigCgt: %" SCNx64, caught) == 1) found++;
  }
  fclose(file);
  return found == 2;
}

static bool descends(pid_t process, pid_t from) {
  uint64_t caught;
  pid_t parent = process;
  while (parent > 1 && look_at(parent, &parent, &caught))
    if (parent == from) return true;
  return false;
}

/* Sends a signal to all processes below `from` that wait for it, and gives their number. */
static int send_below(pid_t from, int signal) {
  DIR *processes = opendir("/proc");
  int count = 0;
  if (processes == NULL) return 0;
  for (struct dirent *entry; (entry = readdir(processes)) != NULL;) {
    uint64_t caught;
    pid_t process = atoi(entry->d_name), parent;
    bool waits = process > 0 && look_at(process, &parent, &caught) && (caught >> (signal - 1) & 1) != 0;
    if (waits && descends(process, from)) count += kill(process, signal) == 0;
  }
  closedir(processes);
  return count;
}

/* ---- mpirun ---- */

/* An mpirun that runs. */
struct running {
  pid_t mpirun;
  bool saves;    /* ranks save on SIGUSR1 */
  int got;       /* the signal that was passed on first; 0: none */
  double asked;  /* when it was asked to pass SIGUSR1 on; 0: not yet */
  bool directly; /* the ranks of this machine got it from here, too */
};

/* To save: once, as a launcher that is done dies of the signal, and its ranks were not to. Who asks by a keyboard again
 * does not want to wait. */
static void pass_on(struct running *running, int signal) {
  bool again = running->asked > 0;
  if (again && signal != SIGINT) return;
  if (running->got == 0) running->got = signal;
  kill(running->mpirun, running->saves && !again ? SIGUSR1 : signal);
  if (running->saves && !again) running->asked = rt_now();
}

/* A library within mpirun may have taken the signal. Ranks agree on one that any of them gets, so those of this machine
 * are enough. */
static void see_to_it(struct running *running) {
  enum { PATIENCE = 5 }; /* of the 30 s that Slurm and Kubernetes leave */
  if (running->asked == 0 || running->directly || rt_now() < running->asked + PATIENCE) return;
  running->directly = true;
  int reached = send_below(running->mpirun, SIGUSR1);
  char what[128] = "none of them runs on this machine, so where they do not save, send SIGUSR1 to one of them";
  if (reached > 0)
    snprintf(what, sizeof what, "sent it to %d process%s of this machine", reached, reached > 1 ? "es" : "");
  rt_print(stderr, "accel-gen launch: the ranks run %d s after mpirun got SIGUSR1 to pass on; %s\n", PATIENCE, what);
}

/* A stop from the keyboard, of mpirun's ranks and of this process. */
static void pause_all(pid_t mpirun) {
  pauses = false;
  kill(mpirun, SIGTSTP);
  raise(SIGSTOP);
  kill(mpirun, SIGCONT);
}

/* In a group of its own, as mpirun ends its ranks on what a terminal sends to a whole group; and not beyond this
 * process. */
static void become_mpirun(const struct words *command, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);
  execvp(command->items[0], command->items);
  rt_print(stderr, "accel-gen launch: %s: %s\n", command->items[0], strerror(errno));
  _exit(127);
}

static int wait_for(struct running *running, const struct watch *watch) {
  const struct timespec pause = {0, 100000000};
  int status = 0;
  for (pid_t ended; (ended = waitpid(running->mpirun, &status, WNOHANG)) != running->mpirun;) {
    if (ended < 0) return 127;
    int signal = asked;
    asked = 0;
    if (signal != 0) pass_on(running, signal);
    if (pauses) pause_all(running->mpirun);
    see_to_it(running);
    if (watch != NULL && !watch->look(watch->of)) kill(running->mpirun, SIGTERM);
    nanosleep(&pause, NULL);
  }
  int ended = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  bool saved = running->got != 0 && ended == 128 + SIGUSR1;
  return saved ? 128 + running->got : ended; /* as if it had gone to the ranks themselves */
}

int launch_run(const struct words *command, bool saves, const struct watch *watch) {
  struct running running = {.saves = saves};
  struct sigaction stop = {.sa_handler = note};
  pid_t parent = getpid();
  fflush(NULL);
  running.mpirun = fork();
  if (running.mpirun == 0) become_mpirun(command, parent);
  if (running.mpirun < 0) return 127;
  launch_catch(note, 0);
  sigaction(SIGTSTP, &stop, NULL);
  return wait_for(&running, watch);
}

/* ---- What Open MPI refuses ---- */

/* The cores of this machine that this process may use: Open MPI gives a rank to each. */
static int own_cores(void) {
  int cores = 0;
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  for (long i = 0; i < processors; i++) {
    char path[96];
    long first = i;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%ld/topology/thread_siblings_list", i);
    FILE *file = fopen(path, "r");
    if (file != NULL && fscanf(file, "%ld", &first) != 1) first = i;
    if (file != NULL) fclose(file);
    cores += first == i;
  }
  return cores > 0 ? cores : 1;
}

static bool is_set(const char *name) {
  return environment(name, NULL) != NULL;
}

void launch_explain(int status, const struct launched *ranks, const char *hosts) {
  int cores = own_cores();
  if (status == 127)
    fputs("    help: Open MPI has mpirun: on Debian openmpi-bin\n", stderr);
  else if (status == 1 && geteuid() == 0 &&
           (!is_set("OMPI_ALLOW_RUN_AS_ROOT") || !is_set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")))
    fputs("    help: Open MPI starts nothing as root until both OMPI_ALLOW_RUN_AS_ROOT=1 and\n"
          "          OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 are set, as in a container that has no other user\n",
          stderr);
  else if (status == 1 && hosts == NULL && ranks->count > cores && !is_set("OMPI_MCA_rmaps_base_oversubscribe"))
    fprintf(stderr,
            "    help: Open MPI starts as many ranks as a machine has cores, here %d, and the job has %lld; lower\n"
            "          devices.per_node, or set OMPI_MCA_rmaps_base_oversubscribe=1 (mpirun's --oversubscribe)\n",
            cores, (long long)ranks->count);
}
