#define _DEFAULT_SOURCE /* gethostname */
#include "runtime/tcp/peers.h"

#include "runtime/base/clock.h"
#include "runtime/process/fail.h"
#include "runtime/tcp/socket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Who this is ---- */

static const char *first_of(const char *const *names) {
  for (; *names != NULL; names++)
    if (getenv(*names) != NULL) return *names;
  return NULL;
}

/* The number that one of some variables holds; false: what it holds is none. */
static bool number_of(const char *const *names, int *value, struct problem *problem) {
  const char *name = first_of(names);
  char *end;
  if (name == NULL) return true;
  long read = strtol(getenv(name), &end, 10);
  if (end == getenv(name) || *end != '\0' || read < 0 || read > 1 << 20)
    return rt_problem(problem, "%s is '%s', which is no number of a rank", name, getenv(name));
  *value = (int)read;
  return true;
}

bool rt_peers_identity(struct world *world, struct problem *problem) {
  static const char *const ranks[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", NULL};
  static const char *const rank[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", NULL};
  static const char *const local_ranks[] = {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", NULL};
  static const char *const local_rank[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", NULL};
  *world = (struct world){0, 1, -1, -1};
  if (!number_of(ranks, &world->ranks, problem) || !number_of(rank, &world->rank, problem) ||
      !number_of(local_rank, &world->local_rank, problem) || !number_of(local_ranks, &world->local_ranks, problem))
    return false;
  if (world->ranks > 1 && first_of(rank) == NULL)
    return rt_problem(problem, "%s is %d, but RANK is not set", first_of(ranks), world->ranks);
  if (world->ranks < 1 || world->rank >= world->ranks) {
    int read = world->rank, all = world->ranks;
    *world = (struct world){0, 1, 0, 1};
    return rt_problem(problem, "rank %d of %d: RANK must be below WORLD_SIZE", read, all);
  }
  if (world->local_rank < 0 || world->local_ranks <= world->local_rank) world->local_rank = world->local_ranks = -1;
  if (world->ranks == 1) *world = (struct world){0, 1, 0, 1};
  return true;
}

static const char *master(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value != NULL && value[0] != '\0' ? value : otherwise;
}

/* At MASTER_PORT itself torchrun's own server listens. */
static const char *master_port(char text[16]) {
  const char *port = master("MASTER_PORT", "29500"), *torchrun = getenv("TORCHELASTIC_USE_AGENT_STORE");
  if (torchrun == NULL || strcmp(torchrun, "True") != 0) return port;
  snprintf(text, 16, "%d", atoi(port) + 1);
  return text;
}

static double time_to_start(void) {
  double seconds = atof(master("ACCEL_START_TIMEOUT", "300"));
  return seconds > 0 ? seconds : 300;
}

/* ---- Rank 0 ---- */

/* Reads a connection's greeting, which comes at once from whoever is a rank. */
static bool greeted(int socket, struct hello *hello, double deadline, struct problem *problem) {
  uint8_t head[FRAME_HEAD], body[HELLO_SIZE];
  struct frame frame;
  double soon = rt_now() + 5;
  if (soon > deadline) soon = deadline;
  if (!rt_receive_all(socket, head, sizeof head, soon)) return rt_problem(problem, "a connection that says nothing");
  if (!rt_frame_read(head, &frame, problem)) return false;
  if (frame.kind != FRAME_HELLO) return rt_problem(problem, "a connection that does not greet");
  if (!rt_receive_all(socket, body, sizeof body, soon)) return rt_problem(problem, "a greeting that breaks off");
  return rt_hello_read(body, sizeof body, hello, problem);
}

static bool report_missing(const struct peers *peers, struct problem *problem) {
  char missing[128] = "";
  int count = 0;
  for (int r = 1; r < peers->ranks; r++) {
    bool is_there = true;
    for (int c = 0; c < CHANNELS; c++) is_there = is_there && peers->sockets[r][c] >= 0;
    if (is_there) continue;
    size_t length = strlen(missing);
    if (++count <= 8) snprintf(missing + length, sizeof missing - length, "%s%d", length > 0 ? ", " : "", r);
  }
  rt_problem(problem, "%d of %d ranks did not come within %.0f s: %s%s", count, peers->ranks, time_to_start(), missing,
             count > 8 ? ", ..." : "");
  return rt_help(problem,
                 "start all of them with the same WORLD_SIZE, MASTER_ADDR and MASTER_PORT; ACCEL_START_TIMEOUT "
                 "is the number of seconds to wait");
}

static bool seat(struct peers *peers, int socket, const struct hello *hello, struct problem *problem) {
  if (hello->ranks != peers->ranks)
    return rt_problem(problem, "rank %d was started as one of %d ranks, rank 0 as one of %d: WORLD_SIZE", hello->rank,
                      hello->ranks, peers->ranks);
  if (peers->sockets[hello->rank][hello->channel] >= 0)
    return rt_problem(problem, "two processes say that they are rank %d", hello->rank);
  peers->sockets[hello->rank][hello->channel] = socket;
  return true;
}

/* Each rank's number on its machine, by what was given, else by the names of hosts in the order of ranks. */
static void count_locals(const struct hello *hellos, int ranks, int rank, int32_t local[2]) {
  local[0] = hellos[rank].local_rank;
  local[1] = hellos[rank].local_ranks;
  if (local[1] > 0) return;
  local[0] = local[1] = 0;
  for (int r = 0; r < ranks; r++) {
    bool same = strcmp(hellos[r].host, hellos[rank].host) == 0;
    local[1] += same;
    local[0] += same && r < rank;
  }
}

static bool welcome(const struct peers *peers, struct hello *hellos, double deadline, struct problem *problem) {
  const struct frame frame = {FRAME_WELCOME, 0, 8};
  for (int r = 1; r < peers->ranks; r++) {
    uint8_t message[FRAME_HEAD + 8];
    int32_t local[2];
    count_locals(hellos, peers->ranks, r, local);
    rt_frame_write(&frame, message);
    for (int i = 0; i < 8; i++) message[FRAME_HEAD + i] = (uint8_t)((uint32_t)local[i / 4] >> 8 * (i % 4));
    if (!rt_send_all(peers->sockets[r][CHANNEL_TALK], message, sizeof message, deadline))
      return rt_problem(problem, "rank %d has ended while the ranks met", r);
  }
  return true;
}

static bool receive_ranks(struct peers *peers, int listening, struct hello *hellos, struct problem *problem) {
  double deadline = rt_now() + time_to_start();
  for (int left = CHANNELS * (peers->ranks - 1); left > 0;) {
    struct hello hello;
    int socket = rt_accept(listening, deadline);
    if (socket < 0) return report_missing(peers, problem);
    if (!greeted(socket, &hello, deadline, problem)) { /* anyone may knock at a port */
      rt_warn("%s", problem->what);
      close(socket);
      continue;
    }
    if (!seat(peers, socket, &hello, problem)) return false;
    hellos[hello.rank] = hello;
    left--;
  }
  return welcome(peers, hellos, deadline, problem);
}

static struct hello own_hello(const struct world *world) {
  struct hello hello = {
      .rank = world->rank, .ranks = world->ranks, .local_rank = world->local_rank, .local_ranks = world->local_ranks};
  gethostname(hello.host, sizeof hello.host - 1);
  return hello;
}

static bool serve(struct peers *peers, struct world *world, struct problem *problem) {
  struct hello *hellos = calloc((size_t)peers->ranks, sizeof *hellos);
  char port[16];
  int listening = rt_listen(master("MASTER_ADDR", "127.0.0.1"), master_port(port), problem);
  if (hellos == NULL) rt_problem(problem, "no memory for %d ranks", peers->ranks);
  bool good = hellos != NULL && listening >= 0;
  if (good) {
    int32_t local[2];
    hellos[0] = own_hello(world);
    good = receive_ranks(peers, listening, hellos, problem);
    count_locals(hellos, peers->ranks, 0, local);
    world->local_rank = local[0];
    world->local_ranks = local[1];
  }
  if (listening >= 0) close(listening);
  free(hellos);
  return good;
}

/* ---- The others ---- */

static bool greet(struct peers *peers, const struct world *world, enum channel channel, double deadline,
                  struct problem *problem) {
  const struct frame frame = {FRAME_HELLO, 0, HELLO_SIZE};
  struct hello hello = own_hello(world);
  uint8_t message[FRAME_HEAD + HELLO_SIZE];
  char port[16];
  int socket = rt_connect(master("MASTER_ADDR", "127.0.0.1"), master_port(port), deadline, problem);
  if (socket < 0) return false;
  peers->sockets[0][channel] = socket;
  hello.channel = channel;
  rt_frame_write(&frame, message);
  rt_hello_write(&hello, message + FRAME_HEAD);
  if (rt_send_all(socket, message, sizeof message, deadline)) return true;
  return rt_problem(problem, "rank 0 has ended while the ranks met");
}

static bool join(struct peers *peers, struct world *world, struct problem *problem) {
  double deadline = rt_now() + time_to_start();
  uint8_t message[FRAME_HEAD + 8];
  struct frame frame;
  for (int c = 0; c < CHANNELS; c++)
    if (!greet(peers, world, (enum channel)c, deadline, problem)) return false;
  if (!rt_receive_all(peers->sockets[0][CHANNEL_TALK], message, sizeof message, deadline + 1)) {
    rt_problem(problem, "rank 0 did not welcome rank %d", world->rank);
    return rt_help(problem, "rank 0 reports why: another rank may be missing, or be started with another WORLD_SIZE");
  }
  if (!rt_frame_read(message, &frame, problem)) return false;
  if (frame.kind != FRAME_WELCOME) return rt_problem(problem, "rank 0 answers another thing than a welcome");
  int32_t local[2] = {0, 0};
  for (int i = 0; i < 8; i++) local[i / 4] |= (int32_t)((uint32_t)message[FRAME_HEAD + i] << 8 * (i % 4));
  world->local_rank = local[0];
  world->local_ranks = local[1];
  return true;
}

bool rt_peers_meet(struct peers *peers, struct world *world, struct problem *problem) {
  peers->ranks = world->rank == 0 ? world->ranks : 1;
  peers->sockets = malloc((size_t)peers->ranks * sizeof *peers->sockets);
  if (peers->sockets == NULL) return rt_problem(problem, "no memory for %d connections", peers->ranks);
  for (int r = 0; r < peers->ranks; r++)
    for (int c = 0; c < CHANNELS; c++) peers->sockets[r][c] = -1;
  return world->rank == 0 ? serve(peers, world, problem) : join(peers, world, problem);
}

void rt_peers_close(struct peers *peers) {
  for (int r = 0; r < peers->ranks; r++)
    for (int c = 0; c < CHANNELS; c++)
      if (peers->sockets[r][c] >= 0) close(peers->sockets[r][c]);
  free(peers->sockets);
  *peers = (struct peers){0};
}
