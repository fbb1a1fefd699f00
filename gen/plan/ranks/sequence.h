/* Sequence: the order in which the collectives of a step begin, and what overlaps each of them. */
#ifndef ACCEL_PLAN_RANKS_SEQUENCE_H
#define ACCEL_PLAN_RANKS_SEQUENCE_H

#include "gen/program/program.h"

/* What happens in a micro-batch. */
enum event_kind {
  EVENT_RUN,   /* a statement runs */
  EVENT_BEGIN, /* a collective begins */
  EVENT_AWAIT  /* one that was started is waited for */
};
struct event {
  enum event_kind kind;
  const struct step *step; /* of EVENT_RUN */
  int collective;          /* of the others: which of program->ranks.collectives */
};
struct event_list {
  struct event *items;
  int count, capacity;
};

/* Puts the gathers of layers, which plan_gathers has planned, among program->ranks.collectives, and these in the order
 * in which they start: those of the forward, of the backward, then the others in their order. Reports for each that
 * starts within a micro-batch what runs until it is awaited. Fills program->ranks.events. */
void sequence_collectives(struct program *program);

/* Adds what a statement's kernel exchanges with other ranks while it runs, in a step or in a run forward: along the
 * inner axes first. Nothing of a call. */
void list_kernel_exchanges(const struct program *program, const struct step *step, struct collective_list *list);

/* An iteration of a statement for people: "block_backward of layer 3". */
const char *step_label(const struct program *program, const struct step *step, int iteration);

/* What runs over and over: of a program that writes text the entry over one position. */
const struct function *repeated_entry(const struct program *program);

#endif
