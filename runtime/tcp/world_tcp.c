/* The processes of a run over TCP, where there is no MPI: all messages between steps go through rank 0. A thread
 * watches the connections on which ends are announced, so that a rank that fails, or is killed, ends all of them. */
#include "runtime/base/clock.h"
#include "runtime/base/terminal.h"
#include "runtime/process/fail.h"
#include "runtime/tcp/peers.h"
#include "runtime/tcp/socket.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct world world = {0, 1, 0, 1};
static struct peers peers;
static double timeout = 600;       /* until a program says another */
static uint64_t numbers[CHANNELS]; /* of operations so far */
static pthread_t watcher;
static atomic_bool is_leaving;
static bool joined;

const struct world *rt_world(void) {
  return &world;
}

/* ---- Ends ---- */

static void send_end(int peer, enum frame_kind kind, int status) {
  uint8_t head[FRAME_HEAD];
  const struct frame frame = {kind, (uint64_t)status, 0};
  rt_frame_write(&frame, head);
  rt_send_all(peers.sockets[peer][CHANNEL_LIFE], head, sizeof head, rt_now() + 1);
}

static void send_end_to_all(enum frame_kind kind, int status, int but) {
  for (int r = world.rank == 0 ? 1 : 0; r < peers.ranks; r++)
    if (r != but) send_end(r, kind, status);
}

/* One thread ends the process: whom it notifies ends too, and the other thread, which then finds that one gone, waits.
 */
static void begin_end(void) {
  static atomic_flag ends = ATOMIC_FLAG_INIT;
  while (atomic_flag_test_and_set(&ends)) pause();
}

/* What came, or did not, on a rank's connection: false: it has left. */
static bool hear(int peer) {
  uint8_t head[FRAME_HEAD];
  struct frame frame;
  struct problem problem;
  bool is_whole = rt_receive_all(peers.sockets[peer][CHANNEL_LIFE], head, sizeof head, rt_now() + 1) &&
                  rt_frame_read(head, &frame, &problem);
  if (is_whole && frame.kind == FRAME_LEAVE) return false;
  if (is_whole && frame.kind == FRAME_ABORT) {
    begin_end();
    if (world.rank == 0) send_end_to_all(FRAME_ABORT, (int)frame.number, peer);
    fflush(stdout);
    _exit((int)frame.number);
  }
  if (atomic_load(&is_leaving) && world.rank != 0) return false;
  begin_end();
  fflush(stdout);
  rt_print(stderr, "rank %d: error: rank %d has ended without a word\n", world.rank, peer);
  if (world.rank == 0) send_end_to_all(FRAME_ABORT, 1, peer);
  _exit(1);
}

static void *watch(void *unused) {
  int left = world.rank == 0 ? world.ranks - 1 : 1;
  struct pollfd *watched = calloc((size_t)peers.ranks, sizeof *watched);
  (void)unused;
  if (watched == NULL) return NULL;
  for (int r = 0; r < peers.ranks; r++) watched[r] = (struct pollfd){peers.sockets[r][CHANNEL_LIFE], POLLIN, 0};
  while (left > 0) {
    if (poll(watched, (nfds_t)peers.ranks, -1) <= 0) continue;
    for (int r = 0; r < peers.ranks; r++) {
      if (watched[r].fd < 0 || watched[r].revents == 0 || hear(r)) continue;
      watched[r].fd = -1;
      left--;
    }
  }
  free(watched);
  return NULL;
}

void rt_world_end(int status) {
  fflush(stdout);
  fflush(stderr);
  if (!joined || world.ranks == 1) exit(status);
  begin_end();
  send_end_to_all(FRAME_ABORT, status, -1);
  _exit(status); /* the device may be busy with what never ends: nothing is waited for */
}

void rt_world_await_end(int status) {
  enum { LONG_ENOUGH = 30 };
  if (joined && world.ranks > 1) sleep(LONG_ENOUGH);
  _exit(status);
}

/* ---- Beginning ---- */

const char *rt_world_engine(void) {
  return "TCP";
}

void rt_world_join(void) {
  struct problem problem;
  if (!rt_peers_identity(&world, &problem)) rt_fail(&problem, 1);
  if (world.ranks == 1) return;
  if (!rt_peers_meet(&peers, &world, &problem)) {
    if (world.local_ranks < 0) world.local_rank = 0, world.local_ranks = 1;
    rt_peers_close(&peers);
    rt_fail(&problem, 1);
  }
  joined = true;
  if (pthread_create(&watcher, NULL, watch, NULL) == 0) return;
  rt_problem(&problem, "no thread to watch the other ranks");
  rt_fail(&problem, 1);
}

bool rt_world_divide(const struct accel_program *program, struct problem *problem) {
  int64_t ranks = rt_mesh_ranks(program);
  if (program->timeout > 0) timeout = program->timeout;
  if (ranks == world.ranks) return true;
  rt_problem(problem, "%d process%s started, but this program is for %lld ranks: devices.nodes times devices.per_node",
             world.ranks, world.ranks > 1 ? "es" : "", (long long)ranks);
  return rt_help(problem, "start %lld, each with its RANK, WORLD_SIZE=%lld, MASTER_ADDR and MASTER_PORT",
                 (long long)ranks, (long long)ranks);
}

void rt_world_open_arena(void *arena, size_t bytes, const struct arena_parts *parts) {
  (void)arena, (void)bytes, (void)parts;
}

void rt_world_wait_at_most(int seconds) {
  timeout = seconds;
}

/* Equal parts, by number alone: which processors are together is what hwloc reports, with MPI. */
bool rt_world_take_processors(bool bind, struct processors *taken, struct problem *problem) {
  long all = sysconf(_SC_NPROCESSORS_ONLN);
  (void)problem;
  *taken = (struct processors){0};
  if (bind && rt_is_main()) rt_warn("devices.numa_affinity is left out: this program is linked without MPI");
  if (world.local_ranks > 1) taken->cores = all > world.local_ranks ? (int)all / world.local_ranks : 1;
  return true;
}

void rt_world_leave(void) {
  if (!joined) return;
  rt_world_largest(0); /* nobody is left alone in an operation */
  atomic_store(&is_leaving, true);
  send_end_to_all(FRAME_LEAVE, 0, -1);
  pthread_join(watcher, NULL);
  rt_peers_close(&peers);
  joined = false;
}

/* ---- Operations ---- */

/* The messages of a channel: the operations are numbered, and named for messages. */
struct talk {
  enum channel channel;
  const char *what;
};

noreturn static void lost(int peer, const char *what) {
  struct problem problem;
  const struct timespec moment = {2, 0}; /* whoever has failed says so itself, and ends this process */
  nanosleep(&moment, NULL);
  rt_problem(&problem, "%s: rank %d did not come within %.0f s, or has ended", what, peer, timeout);
  rt_help(
      &problem,
      "look at what the other ranks and their machines are doing; devices.timeout is the number of seconds to wait");
  rt_fail(&problem, 1);
}

/* Rank 0 knows who is missing and reports it; those who wait for rank 0 do so a little longer. */
static double patience(void) {
  return rt_now() + timeout + (world.rank > 0 ? 3 : 0);
}

static void say(const struct talk *talk, int peer, enum frame_kind kind, const void *bytes, size_t size) {
  uint8_t head[FRAME_HEAD];
  const struct frame frame = {kind, numbers[talk->channel], size};
  double deadline = patience();
  int socket = peers.sockets[peer][talk->channel];
  rt_frame_write(&frame, head);
  if (!rt_send_all(socket, head, sizeof head, deadline) || !rt_send_all(socket, bytes, size, deadline))
    lost(peer, talk->what);
}

static void hear_of(const struct talk *talk, int peer, enum frame_kind kind, void *bytes, size_t size) {
  uint8_t head[FRAME_HEAD];
  struct frame frame;
  struct problem problem;
  double deadline = patience();
  int socket = peers.sockets[peer][talk->channel];
  if (!rt_receive_all(socket, head, sizeof head, deadline)) lost(peer, talk->what);
  if (!rt_frame_read(head, &frame, &problem)) rt_fail(&problem, 1);
  if (frame.kind != kind || frame.number != numbers[talk->channel] || frame.size != size) {
    rt_problem(&problem, "%s: rank %d is at another point of the program", talk->what, peer);
    rt_fail(&problem, 1);
  }
  if (!rt_receive_all(socket, bytes, size, deadline)) lost(peer, talk->what);
}

/* From `from` to rank 0, and from there to all others. */
static void broadcast(const struct talk *talk, void *bytes, size_t size, int from) {
  if (world.ranks == 1) return;
  if (world.rank != 0 && world.rank == from)
    say(talk, 0, FRAME_SHARE, bytes, size);
  else if (world.rank != 0)
    hear_of(talk, 0, FRAME_SHARE, bytes, size);
  else if (from != 0)
    hear_of(talk, from, FRAME_SHARE, bytes, size);
  for (int r = 1; r < peers.ranks; r++)
    if (r != from) say(talk, r, FRAME_SHARE, bytes, size);
  numbers[talk->channel]++;
}

static void gather(const struct talk *talk, const void *own, void *all, size_t size) {
  size_t whole = size * (size_t)world.ranks;
  memcpy((char *)all + size * (size_t)world.rank, own, size);
  if (world.ranks == 1) return;
  if (world.rank != 0) {
    say(talk, 0, FRAME_GATHER, own, size);
    hear_of(talk, 0, FRAME_GATHER, all, whole);
  }
  for (int r = 1; r < peers.ranks; r++) hear_of(talk, r, FRAME_GATHER, (char *)all + size * (size_t)r, size);
  for (int r = 1; r < peers.ranks; r++) say(talk, r, FRAME_GATHER, all, whole);
  numbers[talk->channel]++;
}

void rt_world_broadcast(void *bytes, size_t size) {
  broadcast(&(struct talk){CHANNEL_TALK, "a broadcast from rank 0"}, bytes, size, 0);
}

void rt_world_gather(const void *own, void *all, size_t size) {
  gather(&(struct talk){CHANNEL_TALK, "what ranks compare"}, own, all, size);
}

void rt_user_broadcast(void *bytes, size_t size, int from, const char *what) {
  broadcast(&(struct talk){CHANNEL_USER, what}, bytes, size, from);
}

void rt_user_gather(const void *own, void *all, size_t size, const char *what) {
  gather(&(struct talk){CHANNEL_USER, what}, own, all, size);
}

/* Not all ranks take part, so it counts for none. */
void rt_world_bring(int from, const void *own, void *there, size_t size) {
  const struct talk talk = {CHANNEL_TALK, "what rank 0 saves"};
  if (world.rank == from && from != 0) say(&talk, 0, FRAME_COLLECT, own, size);
  if (world.rank == 0 && from == 0) memcpy(there, own, size);
  if (world.rank == 0 && from != 0) hear_of(&talk, from, FRAME_COLLECT, there, size);
}

int64_t rt_world_largest(int64_t value) {
  int64_t *all = malloc((size_t)world.ranks * sizeof *all);
  struct problem problem;
  if (all == NULL) {
    rt_problem(&problem, "no memory for what ranks agree on");
    rt_fail(&problem, 1);
  }
  rt_world_gather(&value, all, sizeof value);
  int64_t largest = value;
  for (int r = 0; r < world.ranks; r++) largest = all[r] > largest ? all[r] : largest;
  free(all);
  return largest;
}
