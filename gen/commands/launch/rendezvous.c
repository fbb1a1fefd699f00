/* Starting by the convention RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT. MPI has no ranks that are there
 * already, so the processes meet, and mpirun starts the ranks: the process of RANK 0 runs it, and what mpirun would
 * have ssh run on another machine the first process of that machine runs. No machine needs a server for that. */
#include "gen/commands/launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gen/commands/cli/commands.h"
#include "runtime/base/terminal.h"

enum { NAME = 256, COMMAND = 1 << 16 };

/* What one process says of itself, and what all others know of it. */
struct hello {
  int rank;  /* of the process; mpirun's ranks follow its order */
  int ranks; /* that it starts */
  char host[NAME];
};

/* A process that came: connected to the one of RANK 0. */
struct member {
  struct hello hello;
  int socket;  /* -1: RANK 0 itself */
  bool starts; /* it is the first of its machine, which runs mpirun's daemon */
};

struct meeting {
  struct arena *arena;
  struct member *members; /* by rank */
  int size;
  int agents; /* where mpirun's agents come; -1: one machine alone */
  char folder[64];
  bool broken; /* a process has ended */
};

bool launch_is_convention(void) {
  return getenv("RANK") != NULL && getenv("WORLD_SIZE") != NULL && getenv("MASTER_ADDR") != NULL;
}

static int fail(const char *what, const char *why) {
  rt_print(stderr, "accel-gen launch: %s: %s\n", what, why);
  return STATUS_CANNOT;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool all_of(ssize_t (*move)(int, void *, size_t), int socket, void *bytes, size_t size) {
  for (size_t at = 0; at < size;) {
    ssize_t n = move(socket, (char *)bytes + at, size - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += (size_t)n;
  }
  return true;
}

static ssize_t put(int socket, void *bytes, size_t size) {
  return send(socket, bytes, size, MSG_NOSIGNAL);
}

static bool send_all(int socket, const void *bytes, size_t size) {
  return all_of(put, socket, (void *)(size_t)bytes, size);
}

static bool receive_all(int socket, void *bytes, size_t size) {
  return all_of(read, socket, bytes, size);
}

/* ---- The convention ---- */

static bool number_of(const char *name, long *number) {
  const char *text = getenv(name);
  char *end = NULL;
  *number = text != NULL ? strtol(text, &end, 10) : 0;
  return text != NULL && end != text && *end == '\0' && *number >= 0 && *number <= INT_MAX;
}

/* torchrun has a server of its own at MASTER_PORT; then it is the next one. */
static const char *meeting_port(struct arena *arena) {
  const char *taken = getenv("TORCHELASTIC_USE_AGENT_STORE");
  long port;
  if (!number_of("MASTER_PORT", &port)) port = 29500; /* PyTorch's */
  return arena_printf(arena, "%ld", port + (taken != NULL && strcmp(taken, "True") == 0));
}

/* A process is a rank; or, where it has no LOCAL_RANK, a machine with all its ranks. */
static bool read_convention(const struct launched *ranks, struct hello *own, long *size) {
  long rank;
  if (!number_of("RANK", &rank) || !number_of("WORLD_SIZE", size) || rank >= *size)
    return fail("RANK and WORLD_SIZE", "they must be numbers, the first below the second"), false;
  *own = (struct hello){.rank = (int)rank, .ranks = 1};
  if (getenv("LOCAL_RANK") == NULL && *size == ranks->nodes) own->ranks = (int)(ranks->count / ranks->nodes);
  gethostname(own->host, NAME - 1);
  if (*size * own->ranks == ranks->count) return true;
  fprintf(stderr,
          "accel-gen launch: WORLD_SIZE is %ld, but the job has %lld ranks: devices.nodes times devices.per_node\n",
          *size, (long long)ranks->count);
  return false;
}

static struct addrinfo *addresses(const char *host, const char *port) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = host == NULL ? AI_PASSIVE : 0}, *found = NULL;
  return getaddrinfo(host, port, &hints, &found) == 0 ? found : NULL;
}

/* ---- The process of another rank ---- */

/* Until RANK 0 listens. */
static int reach(const char *port, double until) {
  const struct timespec pause = {0, 200000000};
  for (; now() < until; nanosleep(&pause, NULL)) {
    struct addrinfo *found = addresses(getenv("MASTER_ADDR"), port);
    for (struct addrinfo *at = found; at != NULL; at = at->ai_next) {
      int connection = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (connection >= 0 && connect(connection, at->ai_addr, at->ai_addrlen) == 0) {
        freeaddrinfo(found);
        return connection;
      }
      if (connection >= 0) close(connection);
    }
    if (found != NULL) freeaddrinfo(found);
  }
  return -1;
}

/* mpirun's daemon; it ends with this process. */
static pid_t start_daemon(const char *command) {
  pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  execl("/bin/sh", "sh", "-c", command, (char *)NULL);
  _exit(127);
}

static volatile sig_atomic_t head = -1; /* where a signal is passed on to */

/* All processes may be asked to end at once, as on a preemption: RANK 0 lets the ranks save, and then notifies all. */
static void pass_signal_on(int signal) {
  (void)signal;
  send(head, "s", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Does what RANK 0 says, a number and maybe a command, until that number is the status to end with. */
static int follow(struct arena *arena, int connection) {
  pid_t daemon = 0;
  head = connection;
  launch_catch(pass_signal_on, SA_RESTART);
  for (int32_t word; receive_all(connection, &word, sizeof word);) {
    if (word >= 0) {
      if (daemon > 0) waitpid(daemon, NULL, 0);
      return word;
    }
    char *command = arena_alloc(arena, COMMAND);
    if (!receive_all(connection, command, COMMAND)) break;
    daemon = start_daemon(command);
  }
  if (daemon > 0) kill(daemon, SIGTERM);
  return fail("the process of RANK 0", "it has ended");
}

static int take_part(struct arena *arena, const struct hello *own, const char *port, double until) {
  int connection = reach(port, until);
  if (connection < 0) return fail("the process of RANK 0 is not to be reached at MASTER_ADDR and port", port);
  if (!send_all(connection, own, sizeof *own)) return fail("the process of RANK 0", strerror(errno));
  return follow(arena, connection);
}

/* ---- The process of RANK 0 ---- */

static int listen_at(const char *port) {
  struct addrinfo *found = addresses(NULL, port);
  int listening = -1, yes = 1;
  for (struct addrinfo *at = found; at != NULL && listening < 0; at = at->ai_next) {
    listening = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listening < 0) continue;
    setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listening, at->ai_addr, at->ai_addrlen) == 0 && listen(listening, SOMAXCONN) == 0) continue;
    close(listening);
    listening = -1;
  }
  if (found != NULL) freeaddrinfo(found);
  return listening;
}

static bool admit(struct meeting *meeting, int listening) {
  struct hello hello;
  int connection = accept(listening, NULL, NULL);
  const struct timeval limit = {5, 0}; /* for what is no process of this run */
  if (connection < 0) return false;
  fcntl(connection, F_SETFD, FD_CLOEXEC);
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  bool good = receive_all(connection, &hello, sizeof hello) && hello.rank > 0 && hello.rank < meeting->size &&
              meeting->members[hello.rank].hello.ranks == 0 && memchr(hello.host, '\0', NAME) != NULL;
  if (!good) {
    close(connection);
    return false;
  }
  meeting->members[hello.rank] = (struct member){.hello = hello, .socket = connection};
  return true;
}

/* All of them, or a message that says who did not come. */
static bool gather(struct meeting *meeting, int listening, double until) {
  int missing = meeting->size - 1;
  struct pollfd polled = {.fd = listening, .events = POLLIN};
  while (missing > 0 && now() < until)
    if (poll(&polled, 1, 200) > 0) missing -= admit(meeting, listening);
  close(listening);
  for (int i = 0; i < meeting->size && missing > 0; i++) {
    if (meeting->members[i].hello.ranks > 0) continue;
    rt_print(stderr, "accel-gen launch: the process of RANK %d did not come within devices.timeout%s\n", i,
             missing > 1 ? ", nor did others" : "");
    return false;
  }
  return missing == 0;
}

/* "a:4,b:4" in the order of ranks; NULL with a message where a machine's are not in a row. */
static const char *hosts_of(struct meeting *meeting) {
  const char *text = "";
  struct member *members = meeting->members;
  for (int i = 0, end; i < meeting->size; i = end) {
    int ranks = 0;
    for (end = i; end < meeting->size && strcmp(members[end].hello.host, members[i].hello.host) == 0; end++)
      ranks += members[end].hello.ranks;
    for (int k = end; k < meeting->size; k++)
      if (strcmp(members[k].hello.host, members[i].hello.host) == 0)
        return fail(members[i].hello.host, "the RANKs of a machine must follow each other"), NULL;
    members[i].starts = i > 0;
    text = arena_printf(meeting->arena, "%s%s%s:%d", text, i > 0 ? "," : "", members[i].hello.host, ranks);
  }
  return text;
}

/* Where mpirun's agents come, in a folder of this user alone. */
static bool open_agents(struct meeting *meeting) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(meeting->folder, sizeof meeting->folder, "/tmp/accel-launch.XXXXXX");
  if (mkdtemp(meeting->folder) == NULL) return false;
  snprintf(address.sun_path, sizeof address.sun_path, "%s/agents", meeting->folder);
  meeting->agents = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return meeting->agents >= 0 && bind(meeting->agents, (struct sockaddr *)&address, sizeof address) == 0 &&
         listen(meeting->agents, SOMAXCONN) == 0;
}

static void set_agent(const struct meeting *meeting) {
  char self[PATH_MAX] = "";
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) snprintf(self, sizeof self, "accel-gen");
  setenv("OMPI_MCA_plm", "rsh", 1);
  setenv("OMPI_MCA_plm_rsh_agent", arena_printf(meeting->arena, "%s launch --agent %s/agents", self, meeting->folder),
         1);
  setenv("OMPI_MCA_plm_rsh_no_tree_spawn", "1", 1);       /* only this machine knows the sockets */
  setenv("OMPI_MCA_orte_leave_session_attached", "1", 1); /* daemons end with who started them */
}

/* An agent's machine and command go to the process that waits there. */
static void pass_on(struct meeting *meeting) {
  char host[NAME], *command = arena_alloc(meeting->arena, COMMAND);
  const int32_t run = -1;
  bool good = false;
  int agent = accept(meeting->agents, NULL, NULL);
  if (agent < 0 || !receive_all(agent, host, NAME) || !receive_all(agent, command, COMMAND)) return;
  for (int i = 0; i < meeting->size; i++) {
    const struct member *member = &meeting->members[i];
    if (member->starts && strncmp(member->hello.host, host, NAME) == 0)
      good = send_all(member->socket, &run, sizeof run) && send_all(member->socket, command, COMMAND);
  }
  send_all(agent, good ? "y" : "n", 1);
  close(agent);
}

/* While mpirun runs: its agents, and whether all are still there. */
static bool look(void *of) {
  struct meeting *meeting = of;
  struct pollfd polled = {.fd = meeting->agents, .events = POLLIN};
  while (meeting->agents >= 0 && poll(&polled, 1, 0) > 0) pass_on(meeting);
  for (int i = 0; i < meeting->size && !meeting->broken; i++) {
    char byte;
    int connection = meeting->members[i].socket;
    ssize_t got = connection >= 0 ? recv(connection, &byte, 1, MSG_DONTWAIT) : -1;
    if (got > 0) raise(SIGTERM);
    if (got != 0) continue;
    rt_print(stderr, "accel-gen launch: the process of RANK %d has ended\n", i);
    meeting->broken = true;
    return false;
  }
  return true;
}

static int lead(struct meeting *meeting, const struct launch *launch, const struct launched *ranks) {
  const char *hosts = hosts_of(meeting);
  if (hosts == NULL) return STATUS_CANNOT;
  bool one = strchr(hosts, ',') == NULL;
  if (!one && !open_agents(meeting)) return fail(meeting->folder, strerror(errno));
  if (!one) set_agent(meeting);
  struct words command = launch_by_mpirun(meeting->arena, launch, ranks, one ? NULL : hosts);
  words_print(stdout, &command);
  fflush(stdout);
  int status = launch_run(&command, ranks->saves_on_signal, &(struct watch){look, meeting});
  launch_explain(status, ranks, one ? NULL : hosts);
  if (!one) remove_folder(meeting->folder);
  return status;
}

static int call_together(struct arena *arena, const struct launch *launch, const struct launched *ranks,
                         const struct hello *own, int size, const char *port, double until) {
  struct meeting meeting = {.arena = arena, .size = size, .agents = -1};
  meeting.members = arena_alloc(arena, (size_t)size * sizeof *meeting.members);
  memset(meeting.members, 0, (size_t)size * sizeof *meeting.members);
  meeting.members[0] = (struct member){.hello = *own, .socket = -1};
  int listening = listen_at(port);
  if (listening < 0) return fail(arena_printf(arena, "port %s", port), strerror(errno));
  int32_t status = gather(&meeting, listening, until) ? lead(&meeting, launch, ranks) : STATUS_CANNOT;
  for (int i = 1; i < size; i++)
    if (meeting.members[i].hello.ranks > 0) send_all(meeting.members[i].socket, &status, sizeof status);
  return status;
}

int launch_by_env(struct arena *arena, const struct launch *launch, const struct launched *ranks) {
  struct hello own;
  long size;
  if (!read_convention(ranks, &own, &size)) return STATUS_CANNOT;
  const char *port = meeting_port(arena);
  double until = now() + (double)ranks->timeout;
  if (own.rank > 0) return take_part(arena, &own, port, until);
  return call_together(arena, launch, ranks, &own, (int)size, port, until);
}

/* ---- mpirun's agent ---- */

int launch_agent(const char *path, char **words) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  static char host[NAME], command[COMMAND];
  char answer = 'n';
  size_t at = 0;
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  snprintf(host, sizeof host, "%s", words[0]);
  for (char **word = words + 1; *word != NULL && at < sizeof command; word++)
    at += (size_t)snprintf(command + at, sizeof command - at, "%s%s", at > 0 ? " " : "", *word);
  int to = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (at >= sizeof command || connect(to, (struct sockaddr *)&address, sizeof address) != 0 ||
      !send_all(to, host, NAME) || !send_all(to, command, COMMAND) || !receive_all(to, &answer, 1) || answer != 'y')
    return fail(host, "no process waits there for mpirun's daemon");
  return STATUS_OK;
}
