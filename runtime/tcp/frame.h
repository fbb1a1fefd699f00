/* What ranks send each other over a connection: frames of a head of fixed size and a body. Numbers are little-endian.
 * Both readers take bytes from anyone who connects. */
#ifndef RUNTIME_TCP_FRAME_H
#define RUNTIME_TCP_FRAME_H

#include "runtime/base/problem.h"

#include <stddef.h>
#include <stdint.h>

/* HELLO comes first on a connection, from a rank to rank 0; WELCOME answers it once all are there. ABORT and LEAVE are
 * an end, bad and good. The others are the operations of world.h. */
enum frame_kind {
  FRAME_HELLO,
  FRAME_WELCOME,
  FRAME_SHARE,
  FRAME_GATHER,
  FRAME_COLLECT,
  FRAME_ABORT,
  FRAME_LEAVE,
  FRAME_KINDS
};

struct frame {
  enum frame_kind kind;
  uint64_t number; /* of the operation, or the status of ABORT */
  uint64_t size;   /* of the body */
};

enum { FRAME_HEAD = 24 };

void rt_frame_write(const struct frame *frame, uint8_t head[FRAME_HEAD]);

/* Fails on a head that is none, and on a body that its kind does not have. */
bool rt_frame_read(const uint8_t head[FRAME_HEAD], struct frame *frame, struct problem *problem);

/* The connections that each rank makes: for the run's operations, for those of user code, and one on which only its end
 * is reported. */
enum channel { CHANNEL_TALK, CHANNEL_USER, CHANNEL_LIFE, CHANNELS };

/* What HELLO's body says. */
struct hello {
  int32_t rank, ranks;
  enum channel channel;
  int32_t local_rank, local_ranks; /* as its starter says; -1: it does not */
  char host[64];                   /* ends with a NUL */
};

enum { HELLO_SIZE = 20 + 64 };

void rt_hello_write(const struct hello *hello, uint8_t body[HELLO_SIZE]);

/* Fails on anything that no rank would say. */
bool rt_hello_read(const uint8_t *body, size_t size, struct hello *hello, struct problem *problem);

#endif
