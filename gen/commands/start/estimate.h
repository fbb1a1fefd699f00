/* Estimate: what a model takes to load, and to train in several setups, all by plans. */
#ifndef ACCEL_COMMANDS_START_ESTIMATE_H
#define ACCEL_COMMANDS_START_ESTIMATE_H

#include <stdint.h>

#include "gen/program/program.h"

/* A setup to train, and what one rank takes in it. */
struct training {
  const char *optimizer, *precision; /* "adamw", "bf16" */
  int64_t ranks;
  int zero_stage;
  struct memory_bytes bytes;
  const char *refused; /* why there is no such program; NULL: there is one */
};

struct estimate {
  const char *name;   /* what was asked about */
  const char *source; /* the name of the model's C */
  int64_t elements;   /* of all parameters */
  int tensors;
  int64_t bytes, largest; /* in float32: of all, and of the largest layer */
  const char *layer;      /* that one's name; of several alike the first */
  int64_t batch, tokens;  /* of the batch that activations are of; tokens 0: rows */
  const char *optimizer;  /* of the setups on several ranks */
  int64_t ranks;
  struct {
    struct training *items; /* one rank: each optimizer in each precision; then several ranks by stage and precision */
    int count, capacity;
  } setups;
};

/* The one of these; NULL where there is none. */
const struct training *estimate_find(const struct estimate *estimate, const char *optimizer, const char *precision,
                                     int64_t ranks, int zero_stage);

/* Bytes of a rank without those that depend on the batch: weights, gradients, and states of the optimizer. */
int64_t training_bytes(const struct training *setup);

/* Tables for people; one JSON object. */
const char *estimate_text(struct arena *arena, const struct estimate *estimate);
const char *estimate_json(struct arena *arena, const struct estimate *estimate);

#endif
