/* Messages between two ranks. In a group, all ranks of the communicator send as many, each a number that its receiver
 * asks for. Outside of one, a communicator of two ranks takes messages from one of them to the other, in their order:
 * NCCL lets two messages that meet in one communicator wait for each other. The sender continues, as its stream is of
 * these messages alone; so that streams wait for what they need is for the order of work to find. */
#include "tests/cuda/standin/nccl.h"

#include <stdio.h>
#include <string.h>

struct message {
  bool sends;
  int peer;
  void *at;
  size_t bytes;
};

struct group {
  struct ncclComm *comm;
  int count;
  struct message items[2 * RANKS];
};

static struct group group;
static bool is_open;
static cudaStream_t group_stream;

/* The first message that comes from a rank and was not taken. */
static struct message *awaited(struct group *group, int from) {
  for (int i = 0; i < group->count; i++)
    if (!group->items[i].sends && group->items[i].peer == from && group->items[i].at != NULL) return &group->items[i];
  fault("rank %d sends what ncclRecv of rank %d does not ask for", from, group->comm->rank);
}

/* One message of rank `from`, which is `sent` there; others look on. */
static void pass(struct group *group, int from, const struct message *sent) {
  struct ncclComm *comm = group->comm;
  struct request *request = &comm->shared->requests[from];
  if (sent != NULL) *request = (struct request){"ncclSend", comm->number, sent->bytes, sent->peer, 0};
  nccl_meet(comm, "ncclSend");
  const struct request copy = *request;
  nccl_meet(comm, "ncclSend");
  struct message *taken = copy.type == comm->rank ? awaited(group, from) : NULL;
  if (taken != NULL && taken->bytes != copy.count)
    fault("rank %d sends %llu bytes, and rank %d asks for %zu", from, (unsigned long long)copy.count, comm->rank,
          taken->bytes);
  for (size_t at = 0; at < copy.count; at += CHUNK) {
    size_t n = copy.count - at < CHUNK ? (size_t)copy.count - at : CHUNK;
    if (sent != NULL) memcpy(comm->shared->chunks[from], (const char *)sent->at + at, n);
    nccl_meet(comm, "ncclSend");
    if (taken != NULL) memcpy((char *)taken->at + at, comm->shared->chunks[from], n);
    nccl_meet(comm, "ncclSend");
  }
  if (taken != NULL) taken->at = NULL;
}

static void run_group(const void *arguments) {
  struct group all = *(const struct group *)arguments;
  int sends = 0;
  for (int i = 0; i < all.count; i++) {
    touch(all.items[i].at, all.items[i].bytes, !all.items[i].sends);
    sends += all.items[i].sends;
  }
  nccl_ask(all.comm, "ncclSend", (size_t)sends, 0, 0);
  for (int from = 0; from < all.comm->ranks; from++)
    for (int i = 0, n = 0; n < sends; i++)
      if (from != all.comm->rank || all.items[i].sends) {
        pass(&all, from, from == all.comm->rank ? &all.items[i] : NULL);
        n++;
      }
  for (int i = 0; i < all.count; i++)
    if (!all.items[i].sends && all.items[i].at != NULL)
      fault("rank %d asks for what rank %d does not send", all.comm->rank, all.items[i].peer);
}

/* ---- Outside of groups ---- */

struct mail {
  struct ncclComm *comm;
  void *at;
  size_t bytes;
};

/* A piece of the ring that begins at `from`: no longer than up to its end. */
static size_t piece(unsigned long long from, size_t bytes) {
  const size_t left = MAIL - (size_t)(from % MAIL), most = left < CHUNK ? left : CHUNK;
  return bytes < most ? bytes : most;
}

static void post_bytes(struct ncclComm *comm, const void *bytes, size_t count) {
  struct shared *shared = comm->shared;
  for (size_t at = 0; at < count;) {
    const unsigned long long to = atomic_load(&shared->posted);
    const size_t n = piece(to, count - at);
    if (to + n > MAIL) nccl_await(comm, &shared->taken, to + n - MAIL, "ncclSend");
    memcpy(shared->mail + to % MAIL, (const char *)bytes + at, n);
    atomic_store(&shared->posted, to + n);
    at += n;
  }
}

static void take_bytes(struct ncclComm *comm, void *bytes, size_t count) {
  struct shared *shared = comm->shared;
  for (size_t at = 0; at < count;) {
    const unsigned long long from = atomic_load(&shared->taken);
    const size_t n = piece(from, count - at);
    nccl_await(comm, &shared->posted, from + n, "ncclRecv");
    memcpy((char *)bytes + at, shared->mail + from % MAIL, n);
    atomic_store(&shared->taken, from + n);
    at += n;
  }
}

static void run_post(const void *arguments) {
  const struct mail *mail = arguments;
  const uint64_t bytes = mail->bytes;
  touch(mail->at, mail->bytes, false);
  post_bytes(mail->comm, &bytes, sizeof bytes);
  post_bytes(mail->comm, mail->at, mail->bytes);
}

static void run_take(const void *arguments) {
  const struct mail *mail = arguments;
  uint64_t bytes;
  touch(mail->at, mail->bytes, true);
  take_bytes(mail->comm, &bytes, sizeof bytes);
  if (bytes != mail->bytes)
    fault("the other rank sends %llu bytes, and rank %d asks for %zu", (unsigned long long)bytes, mail->comm->rank,
          mail->bytes);
  take_bytes(mail->comm, mail->at, mail->bytes);
}

/* A message holds up what is after it in its queue to the GPU until the other rank has it, also of another stream if
 * there are more of these than queues. NCCL has a stream for each communicator. */
static void require_own_queue(const char *what) {
  const long long used = objects_alive(STREAM) + objects_alive(COMM),
                  queues = setting("CUDA_DEVICE_MAX_CONNECTIONS", 8);
  if (used > queues)
    fault("%s outside of a group: %lld streams and NCCL's are in %lld queues, where other work waits for it", what,
          used, queues);
}

static ncclResult_t mail(const char *what, bool sends, struct mail mail, int peer, cudaStream_t stream) {
  const int way = sends ? 1 : -1;
  if (mail.comm->ranks != 2 || peer != 1 - mail.comm->rank) fault("%s to rank %d outside of a group", what, peer);
  if (mail.comm->sends == -way) fault("%s outside of a group: the other rank may be at the same", what);
  mail.comm->sends = way;
  require_own_queue(what);
  memory_require(mail.at, mail.bytes, DEVICE, what);
  if (call(what)) return ncclUnhandledCudaError;
  submit(stream, what, sends ? run_post : run_take, &mail, sizeof mail);
  return ncclSuccess;
}

/* ---- In groups and outside ---- */

static ncclResult_t add(const char *what, bool sends, void *at, size_t bytes, int peer, ncclComm_t comm,
                        cudaStream_t stream) {
  struct ncclComm *own = object_of(comm, COMM, what);
  if (!is_open) return mail(what, sends, (struct mail){own, at, bytes}, peer, stream);
  if (group.count > 0 && (group.comm != own || group_stream != stream)) fault("%s: a group of several streams", what);
  if (peer < 0 || peer >= own->ranks || group.count == 2 * RANKS) fault("%s: no rank %d", what, peer);
  memory_require(at, bytes, DEVICE, what);
  if (call(what)) return ncclUnhandledCudaError;
  group.comm = own;
  group_stream = stream;
  group.items[group.count++] = (struct message){sends, peer, at, bytes};
  return ncclSuccess;
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add("ncclSend", true, (void *)(uintptr_t)send, count * nccl_width(type), peer, comm, stream);
}

ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add("ncclRecv", false, receive, count * nccl_width(type), peer, comm, stream);
}

ncclResult_t ncclGroupStart(void) {
  if (call("ncclGroupStart")) return ncclSystemError;
  if (is_open) fault("ncclGroupStart inside of a group");
  is_open = true;
  group.count = 0;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
  if (call("ncclGroupEnd")) return ncclSystemError;
  if (!is_open) fault("ncclGroupEnd without ncclGroupStart");
  is_open = false;
  if (group.count > 0) submit(group_stream, "ncclSend", run_group, &group, sizeof group);
  return ncclSuccess;
}
