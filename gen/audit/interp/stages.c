/* Stages of a pipeline. The program is followed once for each stage, as that stage, and what it exchanges with others
 * is listed. The lists are then run against each other: a message is sent when one stage is at its sending, or has
 * started it, and the other at its receipt, what stages do together when all are there. A stage continues after a
 * sending, a receipt or a wait when what it has started is gone. That is the least that a channel between them can do,
 * so what ends this way ends with any buffers. Ranks that differ in what is no stage run equal lists, and are at equal
 * positions of them. */
#include <string.h>

#include "gen/audit/interp/interp.h"

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
  if (strcmp(function, "accel_start_send") == 0) return MESSAGE_START;
  if (strcmp(function, "accel_wait_sends") == 0) return MESSAGE_WAIT;
  if (strcmp(function, "accel_wait_send") == 0) return MESSAGE_WAIT_ONE;
  if (strcmp(function, "accel_receive") == 0) return MESSAGE_RECEIVE;
  if (strcmp(function, "accel_take") == 0) return MESSAGE_TAKE;
  return strcmp(function, "accel_add_other") == 0 ? MESSAGE_EXCHANGE : MESSAGE_TOGETHER;
}

/* Whether the stages and the size of a message or of a sum are known. */
static bool read_message(struct interp *interp, const struct value *arguments, int count,
                         struct stage_message *message) {
  const struct syntax *node = message->node;
  bool pairs = message->kind != MESSAGE_TOGETHER;
  if (interp->n_stages == 0 || count < (pairs ? 3 : 1) || !interp_is_stage_axis(node->parts[1], arguments[0])) {
    if (pairs)
      interp_fail(interp, FAILURE_DEADLOCK, VERDICT_BROKEN, node, 0, "%s is not along ACCEL_PP, with stages",
                  node->function->name);
    return false;
  }
  const struct value size = count > 1 ? arguments[count - 1] : value_integer(0, 0);
  if (!value_is_one(size) || (pairs && !value_is_one(arguments[1]))) {
    interp_fail(interp, FAILURE_DEADLOCK, VERDICT_CANNOT_TELL, node, 0, "an argument of %s is not one number",
                node->function->name);
    return false;
  }
  message->size = size.low;
  if (pairs) message->peer = arguments[1].low;
  if (pairs) message->memory = arguments[2];
  return true;
}

static bool is_exact_address(struct value value) {
  return value.kind == VALUE_POINTER && value.object >= 0 && value.base_width == 0 && value.low == value.high;
}

/* Whether two messages are of the same memory, as far as that is known. */
static bool is_same_address(struct value a, struct value b) {
  return is_exact_address(a) && is_exact_address(b) && a.object == b.object && a.base + a.low == b.base + b.low;
}

/* A wait is for one address. */
static bool read_wait(struct interp *interp, const struct value *arguments, int count, struct stage_message *message) {
  if (count < 1 || !is_exact_address(arguments[0])) {
    interp_fail(interp, FAILURE_DEADLOCK, VERDICT_CANNOT_TELL, message->node, 0,
                "the argument of %s is not one address", message->node->function->name);
    return false;
  }
  message->memory = arguments[0];
  return true;
}

void interp_message(struct interp *interp, const struct syntax *node, const struct value *arguments, int count) {
  struct stage_message message = {.kind = kind_of(node->function->name), .node = node};
  if (message.kind == MESSAGE_WAIT_ONE && !read_wait(interp, arguments, count, &message)) return;
  if (message.kind != MESSAGE_WAIT && message.kind != MESSAGE_WAIT_ONE &&
      !read_message(interp, arguments, count, &message))
    return;
  if (interp->n_loops > 0)
    interp_fail(interp, FAILURE_DEADLOCK, VERDICT_CANNOT_TELL, node, 0,
                "%s is in a loop whose iterations are not followed one by one", node->function->name);
  bool pairs = message.kind != MESSAGE_TOGETHER && message.kind != MESSAGE_WAIT && message.kind != MESSAGE_WAIT_ONE;
  if (pairs && (message.peer < 0 || message.peer >= interp->n_stages || message.peer == interp->stage)) {
    interp_fail(interp, FAILURE_DEADLOCK, VERDICT_BROKEN, node, 0, "stage %lld is no other stage for stage %d",
                (long long)message.peer, interp->stage);
    return;
  }
  ARENA_PUSH(interp->memory, interp->messages[interp->stage], message);
}

int interp_round_begins(const struct interp *interp) {
  return interp->messages[interp->stage].count;
}

void interp_round_ends(struct interp *interp, const struct syntax *loop, int first) {
  struct stage_messages *list = &interp->messages[interp->stage];
  struct stage_message round = {.kind = MESSAGE_ROUND, .node = loop};
  if (list->count == first) return;
  ARENA_PUSH(interp->memory, *list, round);
  ARENA_PUSH(interp->memory, *list, round);
  for (int i = list->count - 2; i > first; i--) list->items[i] = list->items[i - 1];
  list->items[first] = round;
}

/* ---- The claim ---- */

struct stage_state {
  int at;                        /* of its list */
  struct stage_messages started; /* of these, what nobody has received */
  bool received;                 /* what it is at the receipt of */
};

struct exchange {
  struct interp *interp;
  struct claim *claim;
  struct stage_state *stages;
  int64_t messages, bytes;
};

/* What a stage is at; NULL: it has ended. */
static const struct stage_message *next_of(const struct exchange *exchange, int64_t stage) {
  const struct stage_messages *list = &exchange->interp->messages[stage];
  const int at = exchange->stages[stage].at;
  return at < list->count ? &list->items[at] : NULL;
}

/* Whether stages come to it all at once. */
static bool is_gathering(const struct stage_message *message) {
  return message->kind == MESSAGE_TOGETHER || message->kind == MESSAGE_ROUND;
}

static bool is_same(const struct stage_message *a, const struct stage_message *b) {
  if (a->kind != b->kind || a->size != b->size) return false;
  return a->kind == MESSAGE_ROUND ? a->node == b->node : strcmp(a->node->function->name, b->node->function->name) == 0;
}

static void fail(struct exchange *exchange, const struct stage_message *message, const char *text) {
  claim_finding(exchange->interp->audit, exchange->claim, VERDICT_BROKEN, message->node->where, "%s", text);
}

static void compare_sizes(struct exchange *exchange, const struct stage_message *own, int stage,
                          const struct stage_message *other) {
  if (other->size == own->size) return;
  fail(exchange, own,
       arena_printf(exchange->interp->memory, "stage %d gives stage %lld %lld, which takes %lld on line %d", stage,
                    (long long)own->peer, (long long)own->size, (long long)other->size, other->node->where.line));
}

/* The first message of a stage to another one that is on its way becomes *message. False: there is none. */
static bool take_message(struct exchange *exchange, int from, int to, struct stage_message *message) {
  struct stage_state *sender = &exchange->stages[from];
  const struct stage_message *at = next_of(exchange, from);
  for (int i = 0; i < sender->started.count; i++) {
    if (sender->started.items[i].peer != to) continue;
    *message = sender->started.items[i];
    sender->started.count--;
    for (int k = i; k < sender->started.count; k++) sender->started.items[k] = sender->started.items[k + 1];
    return true;
  }
  if (at == NULL || at->kind != MESSAGE_SEND || at->peer != to || sender->started.count > 0) return false;
  *message = *at;
  sender->at++;
  return true;
}

static void receive(struct exchange *exchange, int stage, const struct stage_message *own) {
  struct stage_state *state = &exchange->stages[stage];
  struct stage_message message;
  if (state->received || !take_message(exchange, (int)own->peer, stage, &message)) return;
  compare_sizes(exchange, &message, (int)own->peer, own);
  exchange->messages++;
  exchange->bytes += message.size;
  state->received = true;
}

static bool pass_exchange(struct exchange *exchange, int stage, const struct stage_message *own) {
  const struct stage_message *other = next_of(exchange, own->peer);
  if (other == NULL || other->kind != MESSAGE_EXCHANGE || other->peer != stage) return false;
  compare_sizes(exchange, own, stage, other);
  exchange->messages++;
  exchange->stages[stage].at++;
  exchange->stages[own->peer].at++;
  return true;
}

/* Whether something was started from there that nobody has received. */
static bool is_on_its_way(const struct stage_messages *started, struct value memory) {
  for (int i = 0; i < started->count; i++)
    if (!is_exact_address(started->items[i].memory) || is_same_address(started->items[i].memory, memory)) return true;
  return false;
}

/* Whether a stage continues after what it is at, other than a sending, with which its receipt continues, and what all
 * do together. */
static bool pass(struct exchange *exchange, int stage) {
  const struct stage_message *own = next_of(exchange, stage);
  struct stage_state *state = &exchange->stages[stage];
  if (own == NULL || is_gathering(own) || own->kind == MESSAGE_SEND) return false;
  if (own->kind == MESSAGE_EXCHANGE) return pass_exchange(exchange, stage, own);
  if (own->kind == MESSAGE_START) {
    ARENA_PUSH(exchange->interp->memory, state->started, *own);
  } else if (own->kind == MESSAGE_TAKE) {
    receive(exchange, stage, own);
    if (!state->received) return false;
  } else if (own->kind == MESSAGE_WAIT_ONE) {
    if (is_on_its_way(&state->started, own->memory)) return false;
  } else {
    if (own->kind == MESSAGE_RECEIVE) receive(exchange, stage, own);
    if ((own->kind == MESSAGE_RECEIVE && !state->received) || state->started.count > 0) return false;
  }
  state->received = false;
  state->at++;
  return true;
}

/* Whether all stages are at one thing that they do together, and do it. */
static bool pass_together(struct exchange *exchange) {
  const struct stage_message *first = next_of(exchange, 0);
  for (int k = 0; k < exchange->interp->n_stages; k++) {
    const struct stage_message *own = next_of(exchange, k);
    if (own == NULL || !is_gathering(own) || exchange->stages[k].started.count > 0) return false;
  }
  for (int k = 1; k < exchange->interp->n_stages; k++) {
    const struct stage_message *own = next_of(exchange, k);
    if (!is_same(own, first))
      fail(exchange, own,
           arena_printf(exchange->interp->memory, "stage %d comes to this, and stage 0 to another one on line %d", k,
                        first->node->where.line));
  }
  for (int k = 0; k < exchange->interp->n_stages; k++) exchange->stages[k].at++;
  return true;
}

/* What started messages wait for, and what stages wait for. */
static void report_waiting(struct exchange *exchange) {
  struct arena *arena = exchange->interp->memory;
  for (int k = 0; k < exchange->interp->n_stages; k++) {
    const struct stage_messages *started = &exchange->stages[k].started;
    const struct stage_message *own = next_of(exchange, k);
    for (int i = 0; i < started->count; i++)
      fail(exchange, &started->items[i],
           arena_printf(arena, "stage %d sends this, and stage %lld does not receive it", k,
                        (long long)started->items[i].peer));
    if (own == NULL) continue;
    if (is_gathering(own) || own->kind == MESSAGE_WAIT || own->kind == MESSAGE_WAIT_ONE || exchange->stages[k].received)
      fail(exchange, own, arena_printf(arena, "stage %d waits here for others", k));
    else
      fail(exchange, own, arena_printf(arena, "stage %d waits here for stage %lld", k, (long long)own->peer));
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
  exchange.stages = arena_alloc(interp->memory, (size_t)interp->n_stages * sizeof *exchange.stages);
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
