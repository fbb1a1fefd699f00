#include "runtime/tcp/frame.h"

#include <inttypes.h>
#include <string.h>

static const uint32_t mark = 0x314c4341; /* "ACL1" */

static void put(uint8_t *to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) to[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *from, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; i++) value |= (uint64_t)from[i] << 8 * i;
  return value;
}

void rt_frame_write(const struct frame *frame, uint8_t head[FRAME_HEAD]) {
  put(head, mark, 4);
  put(head + 4, frame->kind, 4);
  put(head + 8, frame->number, 8);
  put(head + 16, frame->size, 8);
}

/* Bodies of operations are as long as both sides know them to be, and are compared with that before they are read. */
static bool fits(const struct frame *frame) {
  switch (frame->kind) {
  case FRAME_HELLO:
    return frame->size == HELLO_SIZE;
  case FRAME_WELCOME:
    return frame->size == 8;
  case FRAME_ABORT:
    return frame->size == 0 && frame->number <= 255;
  case FRAME_LEAVE:
    return frame->size == 0;
  default:
    return frame->size <= (uint64_t)1 << 40;
  }
}

bool rt_frame_read(const uint8_t head[FRAME_HEAD], struct frame *frame, struct problem *problem) {
  if (get(head, 4) != mark) return rt_problem(problem, "what came is no message of a rank");
  uint64_t kind = get(head + 4, 4);
  if (kind >= FRAME_KINDS) return rt_problem(problem, "a message of an unknown kind, %" PRIu64, kind);
  *frame = (struct frame){(enum frame_kind)kind, get(head + 8, 8), get(head + 16, 8)};
  if (!fits(frame))
    return rt_problem(problem, "a message of kind %" PRIu64 " with %" PRIu64 " bytes", kind, frame->size);
  return true;
}

void rt_hello_write(const struct hello *hello, uint8_t body[HELLO_SIZE]) {
  put(body, (uint32_t)hello->rank, 4);
  put(body + 4, (uint32_t)hello->ranks, 4);
  put(body + 8, hello->channel, 4);
  put(body + 12, (uint32_t)hello->local_rank, 4);
  put(body + 16, (uint32_t)hello->local_ranks, 4);
  memcpy(body + 20, hello->host, sizeof hello->host);
}

bool rt_hello_read(const uint8_t *body, size_t size, struct hello *hello, struct problem *problem) {
  if (size != HELLO_SIZE) return rt_problem(problem, "a greeting of %zu bytes", size);
  hello->rank = (int32_t)get(body, 4);
  hello->ranks = (int32_t)get(body + 4, 4);
  uint64_t channel = get(body + 8, 4);
  hello->local_rank = (int32_t)get(body + 12, 4);
  hello->local_ranks = (int32_t)get(body + 16, 4);
  memcpy(hello->host, body + 20, sizeof hello->host);
  if (hello->ranks < 2 || hello->rank < 1 || hello->rank >= hello->ranks)
    return rt_problem(problem, "a greeting of rank %d of %d", hello->rank, hello->ranks);
  if (channel >= CHANNELS) return rt_problem(problem, "a greeting on channel %" PRIu64, channel);
  hello->channel = (enum channel)channel;
  bool located = hello->local_ranks >= 1 && hello->local_rank >= 0 && hello->local_rank < hello->local_ranks;
  if (!located && (hello->local_rank != -1 || hello->local_ranks != -1))
    return rt_problem(problem, "a greeting of local rank %d of %d on its machine", hello->local_rank,
                      hello->local_ranks);
  if (memchr(hello->host, '\0', sizeof hello->host) == NULL) return rt_problem(problem, "a host's name without an end");
  return true;
}
