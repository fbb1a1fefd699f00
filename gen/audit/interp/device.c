/* What the runtime's functions for a GPU do: to the device's memory, to the host's, and with what was recorded. */
#include <string.h>

#include "gen/audit/interp/external.h"
#include "gen/audit/program/device.h"

/* Memory that the runtime owns: bytes, of which all may be read. */
static const struct type memory_type = {.kind = TYPE_OTHER, .name = "memory", .size = -1, .alignment = 64, .count = -1};

static int add_memory(struct interp *interp, const char *name) {
  return interp_object(interp, OBJECT_LOCAL, NULL, name, &memory_type, 0);
}

static struct value give_memory(struct interp *interp, int object, int64_t bytes) {
  interp->objects[object].size = bytes;
  interp->states[object].written = interp_all_bytes(interp, bytes);
  return interp_address(interp, object);
}

struct recording {
  const struct function *function;
  int object;
};

enum { FEED_NONE, FEED_PENDING, FEED_SENT };

struct interp_device {
  int mirror, report;
  const struct object *plan; /* the accel_gpu_plan that the device was opened with; NULL: not seen */
  int feed;                  /* what became of it, as the value of an object, which paths have for themselves */
  struct {
    struct recording *items;
    int count, capacity;
  } recordings;
};

static void set_feed(struct interp *interp, int64_t feed) {
  interp->states[interp->device->feed].value = value_integer(feed, feed);
}

void interp_device_start(struct interp *interp) {
  const struct device *device = interp->audit->device;
  interp->device = arena_alloc(interp->memory, sizeof *interp->device);
  interp->device->mirror = add_memory(interp, "the host's arena");
  interp->device->report = add_memory(interp, "report");
  interp->device->feed = add_memory(interp, "feed");
  set_feed(interp, FEED_NONE);
  for (int i = 0; i < device->captures.count; i++) {
    struct recording recording = {device->captures.items[i].function, add_memory(interp, "graph")};
    ARENA_PUSH(interp->memory, interp->device->recordings, recording);
  }
  for (int i = 0; device->why == NULL && i < INDEX_NAMES; i++)
    for (int axis = 0; axis < INDEX_AXES; axis++)
      interp->objects[interp_variable(interp, device->index[i][axis])].kind = OBJECT_LOCAL;
}

bool interp_starts_launch(const struct interp *interp, const struct variable *counter) {
  return interp->device != NULL && counter == interp->audit->device->index[INDEX_BLOCK][INDEX_AXES - 1];
}

bool interp_is_mirror(const struct interp *interp, int object) {
  return interp->device != NULL && interp->device->mirror == object;
}

struct value interp_mirror(struct interp *interp, int64_t bytes) {
  return give_memory(interp, interp->device->mirror, bytes);
}

/* ---- The host's side and the device's ---- */

static int64_t planned(const struct interp *interp, const char *name) {
  return interp->device->plan == NULL ? -1 : external_member(interp, interp->device->plan, name, 0);
}

/* An argument that must be an address of the device, or one of the host. */
static void check_address_space(const struct call *call, int which, bool device) {
  struct interp *interp = call->interp;
  if (which >= call->count) return;
  struct value at = call->arguments[which];
  if (at.kind != VALUE_POINTER || at.object < 0 || (at.object == interp->arena_object) == device) return;
  interp_fail(interp, FAILURE_ADDRESS_SPACE, VERDICT_BROKEN, call->node, 0,
              "argument %d of %s is an address of the %s: %s", which + 1, call->node->function->name,
              device ? "host" : "device", interp_slot_name(interp, at));
}

void interp_check_address_space(struct interp *interp, struct value at, const struct syntax *node) {
  if (interp->device == NULL || at.object < 0 || (at.origin & ORIGIN_STAGED) != 0) return;
  bool of_device = at.object == interp->arena_object;
  bool of_host = !of_device && interp->objects[at.object].kind == OBJECT_LOCAL && at.object < interp->kernel_base &&
                 interp->objects[at.object].variable != NULL && !interp->objects[at.object].variable->is_static;
  if (interp->kernel_base == 0 ? !of_device : !of_host) return;
  interp_fail(interp, FAILURE_ADDRESS_SPACE, VERDICT_BROKEN, node, 0, "'%s' is memory of the %s: %s",
              interp_spell(interp, node), of_device ? "device, and this is the host" : "host, and this is the device",
              interp_slot_name(interp, at));
}

/* ---- Start ---- */

static struct value open_device(const struct call *call) {
  struct value at = call->arguments[1];
  if (at.kind == VALUE_POINTER && at.object >= 0 && call->interp->objects[at.object].kind == OBJECT_STATIC &&
      call->interp->objects[at.object].type->kind == TYPE_RECORD)
    call->interp->device->plan = &call->interp->objects[at.object];
  return value_number(0);
}

static struct value give_device_arena(const struct call *call) {
  struct interp *interp = call->interp;
  interp->objects[interp->arena_object].size = planned(interp, "arena_bytes");
  return interp_address(interp, interp->arena_object);
}

/* The same memory of the host, of which these bytes are pinned. */
static struct value pin(const struct call *call) {
  struct value at = call->arguments[0];
  const int64_t bytes = external_max(call, 1);
  if (at.kind != VALUE_POINTER || at.object < 0 || at.low != at.high) return value_unknown_pointer(ORIGIN_CONFIG);
  check_address_space(call, 0, false);
  external_touch(call, 0, bytes, false);
  at.base += at.low;
  at.slot_size = bytes;
  at.low = at.high = 0;
  at.path = NULL;
  return at;
}

static struct value give_stream(const struct call *call) {
  (void)call;
  return value_unknown_pointer(0);
}

/* ---- Copies ---- */

static struct value zero_bytes(const struct call *call) {
  check_address_space(call, 1, true);
  external_touch(call, 1, external_max(call, 2), true);
  return value_number(0);
}

static void move(const struct call *call, int to, int from, int bytes) {
  external_touch(call, from, external_max(call, bytes), false);
  external_touch(call, to, external_max(call, bytes), true);
}

static struct value copy_on_device(const struct call *call) {
  check_address_space(call, 1, true);
  check_address_space(call, 2, true);
  move(call, 1, 2, 3);
  return value_number(0);
}

static struct value read_device(const struct call *call) {
  check_address_space(call, 0, false);
  check_address_space(call, 1, true);
  move(call, 0, 1, 2);
  return value_number(0);
}

static struct value write_device(const struct call *call) {
  check_address_space(call, 0, true);
  check_address_space(call, 1, false);
  move(call, 0, 1, 2);
  return value_number(0);
}

static struct value send_states(const struct call *call) {
  struct interp *interp = call->interp;
  struct value at = interp_address(interp, interp->arena_object);
  int64_t bytes = interp->config == NULL ? -1 : external_member(interp, interp->config, "arena_bytes", 0);
  if (bytes > 0 && bytes <= at.slot_size) interp_access(interp, at, bytes, true, call->node);
  return value_number(0);
}

/* ---- The feed and the report ---- */

/* The buffer of a micro-batch: what the host writes to it is on the device, in its slot, once it is sent and taken. */
static struct value begin_feed(const struct call *call) {
  struct interp *interp = call->interp;
  const struct value slot = call->count > 0 ? call->arguments[0] : value_integer(0, 0);
  struct value at = interp_address(interp, interp->arena_object);
  set_feed(interp, FEED_PENDING);
  at.base = planned(interp, "feed_offset");
  at.slot_size = planned(interp, "feed_bytes");
  if (at.base < 0 || at.slot_size < 0 || slot.kind != VALUE_INTEGER || slot.low != slot.high || slot.low < 0)
    return value_unknown_pointer(ORIGIN_CONFIG);
  at.base = bounded_add(at.base, bounded_multiply(slot.low, at.slot_size));
  at.origin = ORIGIN_STAGED;
  return at;
}

static void expect(const struct call *call, int64_t feed, const char *message) {
  struct value is = call->interp->states[call->interp->device->feed].value;
  if (is.kind != VALUE_INTEGER || is.low != feed || is.high != feed)
    interp_fail(call->interp, FAILURE_UNWRITTEN, VERDICT_BROKEN, call->node, 0, "%s", message);
}

static struct value send_feed(const struct call *call) {
  expect(call, FEED_PENDING, "a feed is sent that was not started");
  set_feed(call->interp, FEED_SENT);
  return value_number(0);
}

static struct value take_feed(const struct call *call) {
  expect(call, FEED_SENT, "a feed is taken that was not sent");
  set_feed(call->interp, FEED_NONE);
  return value_number(0);
}

static struct value give_report(const struct call *call) {
  struct value at = give_memory(call->interp, call->interp->device->report, planned(call->interp, "report_bytes"));
  at.origin = ORIGIN_STEP;
  return at;
}

/* ---- Recorded work ---- */

static struct value record_work(const struct call *call) {
  struct interp_device *device = call->interp->device;
  const struct syntax *what = syntax_bare(call->node->parts[2]);
  for (int i = 0; i < device->recordings.count; i++)
    if (device->recordings.items[i].function == what->function)
      return interp_address(call->interp, device->recordings.items[i].object);
  return value_unknown_pointer(ORIGIN_CONFIG);
}

static struct function *recorded_in(const struct call *call) {
  const struct interp_device *device = call->interp->device;
  const struct syntax *argument = syntax_bare(call->node->parts[1]);
  for (int i = 0; i < device->recordings.count; i++)
    if (call->arguments[0].kind == VALUE_POINTER && device->recordings.items[i].object == call->arguments[0].object)
      return (struct function *)device->recordings.items[i].function;
  return argument->kind == SYNTAX_VARIABLE ? device_recorded(call->interp->audit->device, argument->variable) : NULL;
}

/* What a recording starts, it waits for. */
static void run_recorded(const struct call *call, struct function *function) {
  struct interp *interp = call->interp;
  struct in_flight outer = interp->in_flight;
  interp_run(interp, function, NULL);
  const struct transfer *other;
  if (!in_flight_same(&interp->in_flight, &outer, &other))
    interp_require_none_in_flight(interp, call->node->where, "recorded work ends");
}

/* All ranks launch the same work, for it may have any collective. */
static void require_same_work(const struct call *call, bool is_known) {
  const struct syntax *argument = call->node->parts[1];
  if ((call->arguments[0].origin & ORIGIN_RANK) != 0)
    interp_fail(call->interp, FAILURE_COLLECTIVE, VERDICT_BROKEN, argument, 0,
                "which work is launched, '%s', depends on the rank", interp_spell(call->interp, argument));
  else if (!is_known)
    interp_fail(call->interp, FAILURE_COLLECTIVE, VERDICT_CANNOT_TELL, argument, 0,
                "which work is launched, '%s', is not known", interp_spell(call->interp, argument));
}

static struct value launch_work(const struct call *call) {
  struct function *function = recorded_in(call);
  expect(call, FEED_NONE, "a recording is launched before the feed is taken");
  require_same_work(call, function != NULL);
  if (function == NULL || function->body == NULL)
    interp_lose_track(call->interp, call->node, "which recording is launched here");
  else
    run_recorded(call, function);
  return value_number(0);
}

/* ---- Attention ---- */

/* A member of the record that an argument points to. */
static struct value pointed(const struct call *call, int which, const char *name) {
  struct value at = call->arguments[which];
  if (at.kind != VALUE_POINTER || at.object < 0) return value_unknown_pointer(0);
  const struct object *object = &call->interp->objects[at.object];
  int member = object->type->kind == TYPE_RECORD ? type_member(object->type, name) : -1;
  if (member < 0) return value_unknown_pointer(0);
  const struct value *value =
      interp_field(call->interp->states[at.object].value.fields, object->type->members[member].offset,
                   object->type->members[member].type->size);
  return value != NULL ? *value : value_unknown_pointer(0);
}

/* The bytes of [batch][heads][length][head_size] by the steps of a member. */
static int64_t head_bytes(const struct interp *interp, const struct object *attention, const char *steps, bool keys) {
  int64_t step[3], counts[3] = {external_member(interp, attention, "batch", 0),
                                external_member(interp, attention, keys ? "groups" : "heads", 0),
                                external_member(interp, attention, keys ? "keys" : "queries", 0)};
  int64_t last = external_member(interp, attention, "head_size", 0);
  external_members(interp, attention, steps, step, 3);
  for (int i = 0; i < 3; i++) last = bounded_add(last, bounded_multiply(counts[i] - 1, step[i]));
  return bounded_multiply(last, 2);
}

static void touch_head(const struct call *call, const struct object *attention, const char *member, const char *steps,
                       bool keys, bool is_write) {
  struct value arguments[1] = {pointed(call, 2, member)};
  struct syntax *parts[2] = {call->node->parts[0], call->node->parts[3]};
  struct syntax node = *call->node;
  node.parts = parts;
  node.n_parts = 2;
  struct call inner = {call->interp, &node, arguments, 1, call->imprecision};
  int64_t bytes =
      steps != NULL
          ? head_bytes(call->interp, attention, steps, keys)
          : bounded_multiply(
                4, bounded_multiply(external_member(call->interp, attention, "batch", 0),
                                    bounded_multiply(external_member(call->interp, attention, "heads", 0),
                                                     external_member(call->interp, attention, "queries", 0))));
  check_address_space(&inner, 0, true);
  external_touch(&inner, 0, bytes, is_write);
}

static struct value attend(const struct call *call) {
  const struct object *attention = external_described(call);
  if (attention == NULL) return value_number(0);
  bool back = strcmp(call->node->function->name, "accel_gpu_attend_backward") == 0;
  touch_head(call, attention, "q", "q", false, false);
  touch_head(call, attention, "k", "k", true, false);
  touch_head(call, attention, "v", "v", true, false);
  touch_head(call, attention, "y", "y", false, !back);
  touch_head(call, attention, "lse", NULL, false, !back);
  if (!back) return value_number(0);
  touch_head(call, attention, "d_y", "d_y", false, false);
  touch_head(call, attention, "d_q", "d_q", false, true);
  touch_head(call, attention, "d_k", "d_k", true, true);
  touch_head(call, attention, "d_v", "d_v", true, true);
  return value_number(0);
}

static struct value multiply(const struct call *call) {
  for (int i = 2; i < 7; i++) check_address_space(call, i, true);
  return external_multiply_on_device(call);
}

static struct value convolve(const struct call *call) {
  for (int i = 2; i < 5; i++) check_address_space(call, i, true);
  return external_convolve_on_device(call);
}

static const struct {
  const char *name;
  struct value (*run)(const struct call *call);
} models[] = {
    {"accel_gpu_open", open_device},
    {"accel_gpu_arena", give_device_arena},
    {"accel_gpu_pin", pin},
    {"accel_gpu_stream", give_stream},
    {"accel_gpu_zero", zero_bytes},
    {"accel_gpu_copy", copy_on_device},
    {"accel_gpu_read", read_device},
    {"accel_gpu_write", write_device},
    {"accel_gpu_send_states", send_states},
    {"accel_gpu_feed_begin", begin_feed},
    {"accel_gpu_feed_send", send_feed},
    {"accel_gpu_feed_take", take_feed},
    {"accel_gpu_report", give_report},
    {"accel_gpu_feed_begin_for", begin_feed},
    {"accel_gpu_capture", record_work},
    {"accel_gpu_launch", launch_work},
    {"accel_gpu_multiply", multiply},
    {"accel_gpu_attend", attend},
    {"accel_gpu_attend_backward", attend},
    {"accel_gpu_convolve", convolve},
};

bool interp_device_external(const struct call *call, struct value *result) {
  for (size_t i = 0; call->interp->device != NULL && i < sizeof models / sizeof models[0]; i++) {
    if (strcmp(models[i].name, call->node->function->name) != 0) continue;
    *result = models[i].run(call);
    return true;
  }
  return false;
}
