/* Stages of a pipeline. The program is followed once for each stage, as that stage, and what it exchanges with others
 * is listed. The lists are then run against each other: a message goes when one stage is at its sending and the other
 * at its receipt, what stages do together when all are there. That is the least that a channel between them can do, so
 * what ends this way ends with any buffers. Ranks that differ in what is no stage run equal lists, and are at equal
 * places of them. */
#include <string.h>

#include "gen/audit/interp.h"

bool interp_is_stage_axis(const struct syntax *argument, struct value axis) {
  const struct type *type = argument->type;
  if (type == NULL || axis.kind != VALUE_INTEGER || axis.low != axis.high) return false;
  for (int i = 0; i < type->n_enumerators; i++)
    if (type->enumerators[i].value == axis.low) return strcmp(type->enumerators[i].name, "ACCEL_PP") == 0;
  return false;
}

/* ---- Lists ---- */

static enum message_kind kind_of(const char *function) {
  if (strcmp(function, "accel_send") == 0) return MESSAGE_SEND;
  if (strcmp(function, "accel_receive") == 0) return MESSAGE_RECEIVE;
  return strcmp(function, "accel_add_other") == 0 ? MESSAGE_EXCHANGE : MESSAGE_TOGETHER;
}

static bool is_one(struct value value) {
  return value.kind == VALUE_INTEGER && value.low == value.high;
}

void interp_message(struct interp *interp, const struct syntax *node, const struct value *arguments, int count) {
  struct stage_message message = {.kind = kind_of(node->function->name), .node = node};
  bool pairs = message.kind != MESSAGE_TOGETHER;
  if (interp->n_stages == 0 || count < 2 || !interp_is_stage_axis(node->parts[1], arguments[0])) {
    if (pairs)
      interp_fail(interp, FAILURE_DEADLOCK, VERDICT_BROKEN, node, 0, "%s is not along ACCEL_PP, with stages",
                  node->function->name);
    return;
  }
  const struct value size = arguments[count - 1];
  if (!is_one(size) || (pairs && !is_one(arguments[1]))) {
    interp_fail(interp, FAILURE_DEADLOCK, VERDICT_CANNOT_TELL, node, 0, "an argument of %s is not one number",
                node->function->name);
    return;
  }
  message.size = size.low;
  if (pairs) message.peer = arguments[1].low;
  if (interp->n_loops > 0)
    interp_fail(interp, FAILURE_DEADLOCK, VERDICT_CANNOT_TELL, node, 0,
                "%s is in a loop whose iterations are not followed one by one", node->function->name);
  if (pairs && (message.peer < 0 || message.peer >= interp->n_stages || message.peer == interp->stage)) {
    interp_fail(interp, FAILURE_DEADLOCK, VERDICT_BROKEN, node, 0, "stage %lld is no other stage for stage %d",
                (long long)message.peer, interp->stage);
    return;
  }
  ARENA_PUSH(interp->memory, interp->messages[interp->stage], message);
}

/* ---- The claim ---- */

struct exchange {
  struct interp *interp;
  struct claim *claim;
  int *at; /* by stage: of its list */
  int64_t messages, bytes;
};

/* What a stage is at; NULL: it has ended. */
static const struct stage_message *next_of(const struct exchange *exchange, int64_t stage) {
  const struct stage_messages *list = &exchange->interp->messages[stage];
  return exchange->at[stage] < list->count ? &list->items[exchange->at[stage]] : NULL;
}

static void fail(struct exchange *exchange, const struct stage_message *message, const char *text) {
  claim_finding(exchange->interp->audit, exchange->claim, VERDICT_BROKEN, message->node->where, "%s", text);
}

/* Whether a pair of stages exchanges what both are at, and does so. */
static bool pass(struct exchange *exchange, int stage) {
  struct arena *arena = exchange->interp->memory;
  const struct stage_message *own = next_of(exchange, stage);
  if (own == NULL || own->kind == MESSAGE_TOGETHER || own->kind == MESSAGE_RECEIVE) return false;
  const struct stage_message *other = next_of(exchange, own->peer);
  enum message_kind wanted = own->kind == MESSAGE_SEND ? MESSAGE_RECEIVE : MESSAGE_EXCHANGE;
  if (other == NULL || other->kind != wanted || other->peer != stage) return false;
  if (other->size != own->size)
    fail(exchange, own,
         arena_printf(arena, "stage %d gives stage %lld %lld, which takes %lld on line %d", stage, (long long)own->peer,
                      (long long)own->size, (long long)other->size, other->node->where.line));
  exchange->messages++;
  exchange->bytes += own->kind == MESSAGE_SEND ? own->size : 0;
  exchange->at[stage]++;
  exchange->at[own->peer]++;
  return true;
}

/* Whether all stages are at one thing that they do together, and do it. */
static bool pass_together(struct exchange *exchange) {
  const struct stage_message *first = next_of(exchange, 0);
  for (int k = 0; k < exchange->interp->n_stages; k++) {
    const struct stage_message *own = next_of(exchange, k);
    if (own == NULL || own->kind != MESSAGE_TOGETHER) return false;
  }
  for (int k = 1; k < exchange->interp->n_stages; k++) {
    const struct stage_message *own = next_of(exchange, k);
    if (own->size != first->size || strcmp(own->node->function->name, first->node->function->name) != 0)
      fail(exchange, own,
           arena_printf(exchange->interp->memory, "stage %d comes to this, and stage 0 to another one on line %d", k,
                        first->node->where.line));
  }
  for (int k = 0; k < exchange->interp->n_stages; k++) exchange->at[k]++;
  return true;
}

static void report_waiting(struct exchange *exchange) {
  for (int k = 0; k < exchange->interp->n_stages; k++) {
    const struct stage_message *own = next_of(exchange, k);
    if (own == NULL) continue;
    fail(exchange, own,
         own->kind == MESSAGE_TOGETHER
             ? arena_printf(exchange->interp->memory, "stage %d waits here for all others", k)
             : arena_printf(exchange->interp->memory, "stage %d waits here for stage %lld", k, (long long)own->peer));
  }
}

void interp_claim_stages(struct interp *interp) {
  if (interp->n_stages == 0) return;
  struct claim *claim = audit_claim(
      interp->audit, "deadlock-free",
      "Stages of the pipeline exchange all that they send: each message has a receipt of the same size by the stage "
      "that "
      "it is sent to, in the same order, what stages do together all of them come to, and no stage waits for another "
      "forever, with channels that hold no message.");
  struct exchange exchange = {.interp = interp, .claim = claim};
  exchange.at = arena_alloc(interp->memory, (size_t)interp->n_stages * sizeof *exchange.at);
  for (bool passed = true; passed;) {
    passed = pass_together(&exchange);
    for (int k = 0; k < interp->n_stages; k++)
      while (pass(&exchange, k)) passed = true;
  }
  report_waiting(&exchange);
  interp_add_failures(interp, claim, FAILURE_DEADLOCK);
  claim_evidence(interp->audit, claim, "%d stages, %lld messages of %lld bytes in the steps followed", interp->n_stages,
                 (long long)exchange.messages, (long long)exchange.bytes);
}
