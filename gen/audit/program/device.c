#include "gen/audit/program/device.h"

#include <string.h>
#include <unistd.h>

#include "gen/audit/program/device_headers.h"
#include "gen/base/path.h"

static const char *const index_names[INDEX_NAMES] = {"threadIdx", "blockIdx", "blockDim", "gridDim"};
static const char *const axis_names[INDEX_AXES] = {"x", "y", "z"};

bool device_is_used(const struct tree *tree) {
  const struct function *opens = tree_function(tree, "accel_gpu_open");
  return opens != NULL && opens->body == NULL;
}

/* Names of the kernels' files, and how architectures begin that such a program is for. */
static const struct half {
  const char *ending, *architecture;
} halves[] = {{".cu", "\"sm_"}, {".hip", "\"gfx"}};

enum { HALVES = sizeof halves / sizeof *halves };

const char *device_ending(const char *file) {
  for (int i = 0; i < HALVES; i++)
    if (has_ending(file, halves[i].ending)) return halves[i].ending;
  return NULL;
}

/* The ending of the file that goes with the host's half. */
static const char *ending_of(const struct tree *tree) {
  const char *names = strstr(tree->text, " architectures[] = {");
  for (int i = 0; names != NULL && i < HALVES; i++) {
    const char *first = strchr(names, '"');
    if (first != NULL && strncmp(first, halves[i].architecture, strlen(halves[i].architecture)) == 0)
      return halves[i].ending;
  }
  return halves[0].ending;
}

/* ---- Launches ---- */

static struct syntax *new_node(struct arena *arena, enum syntax_kind kind, const struct syntax *like, int n_parts) {
  struct syntax *node = arena_alloc(arena, sizeof *node);
  *node = (struct syntax){.kind = kind, .where = like->where, .last_line = like->last_line, .type = &type_int};
  node->parts = arena_alloc(arena, ((size_t)n_parts + 1) * sizeof(struct syntax *));
  node->n_parts = n_parts;
  return node;
}

static struct syntax *number(struct arena *arena, const struct syntax *like, int64_t value) {
  struct syntax *node = new_node(arena, SYNTAX_INTEGER, like, 0);
  node->integer = value;
  return node;
}

static struct syntax *name_of(struct arena *arena, const struct syntax *like, struct variable *variable) {
  struct syntax *node = new_node(arena, SYNTAX_VARIABLE, like, 0);
  node->variable = variable;
  node->type = variable->type;
  return node;
}

static struct syntax *set(struct arena *arena, const struct syntax *like, struct variable *variable,
                          struct syntax *value) {
  struct syntax *node = new_node(arena, SYNTAX_ASSIGN, like, 2);
  node->parts[0] = name_of(arena, like, variable);
  node->parts[1] = value;
  node->type = variable->type;
  return node;
}

/* for (index = 0; index < extent; index++) body */
static struct syntax *loop_over(struct arena *arena, const struct syntax *like, struct variable *index,
                                struct syntax *extent, struct syntax *body) {
  struct syntax *loop = new_node(arena, SYNTAX_FOR, like, 4);
  loop->parts[0] = set(arena, like, index, number(arena, like, 0));
  loop->parts[1] = new_node(arena, SYNTAX_BINARY, like, 2);
  loop->parts[1]->operation = OPERATOR_LESS;
  loop->parts[1]->parts[0] = name_of(arena, like, index);
  loop->parts[1]->parts[1] = extent;
  loop->parts[2] = new_node(arena, SYNTAX_INCREMENT, like, 1);
  loop->parts[2]->integer = 1;
  loop->parts[2]->type = index->type;
  loop->parts[2]->parts[0] = name_of(arena, like, index);
  loop->parts[3] = body;
  return loop;
}

/* The extent of a grid or a block along an axis: of dim3(x, y), or of a number. */
static struct syntax *extent_of(struct arena *arena, struct syntax *shape, int axis) {
  struct syntax *bare = syntax_bare(shape);
  bool listed = bare->kind == SYNTAX_CALL && bare->function != NULL && strcmp(bare->function->name, "dim3") == 0;
  if (listed) return axis + 1 < bare->n_parts ? bare->parts[axis + 1] : number(arena, shape, 1);
  return axis == 0 ? shape : number(arena, shape, 1);
}

struct reading {
  struct arena *arena;
  struct device *device;
};

/* accel_launch(kernel, grid, block, ...) as loops over blocks and threads around kernel(...). */
static void become_loops(struct reading *reading, struct syntax *launch, struct function *kernel) {
  struct arena *arena = reading->arena;
  struct device *device = reading->device;
  struct syntax *call = new_node(arena, SYNTAX_CALL, launch, launch->n_parts - 3);
  call->function = kernel;
  call->type = &type_void;
  call->parts[0] = launch->parts[1];
  for (int i = 4; i < launch->n_parts; i++) call->parts[i - 3] = launch->parts[i];
  struct syntax *all = new_node(arena, SYNTAX_BLOCK, launch, INDEX_AXES * 2 + 1), *inner = call;
  for (int axis = 0; axis < INDEX_AXES; axis++)
    for (int part = 0; part < 2; part++) {
      struct syntax *extent = extent_of(arena, launch->parts[part == 0 ? 3 : 2], axis);
      struct variable *size = device->index[part == 0 ? INDEX_BLOCK_SIZE : INDEX_GRID_SIZE][axis];
      all->parts[axis * 2 + part] = set(arena, launch, size, extent);
    }
  for (int part = 0; part < 2; part++)
    for (int axis = 0; axis < INDEX_AXES; axis++) {
      struct syntax *extent = extent_of(arena, launch->parts[part == 0 ? 3 : 2], axis);
      inner = loop_over(arena, launch, device->index[part == 0 ? INDEX_THREAD : INDEX_BLOCK][axis], extent, inner);
    }
  all->parts[INDEX_AXES * 2] = inner;
  all->type = &type_void;
  *launch = *all;
  device->n_launches++;
}

static bool is_launch(const struct syntax *node) {
  return node->kind == SYNTAX_CALL && node->function != NULL && node->function->body == NULL &&
         strcmp(node->function->name, "accel_launch") == 0 && node->n_parts >= 4;
}

static struct function *kernel_of(const struct syntax *launch) {
  struct syntax *kernel = syntax_bare(launch->parts[1]);
  if (kernel->kind == SYNTAX_UNARY && kernel->operation == OPERATOR_ADDRESS) kernel = syntax_bare(kernel->parts[0]);
  return kernel->kind == SYNTAX_FUNCTION ? kernel->function : NULL;
}

/* blockIdx.x as a variable of its own. */
static void become_index(const struct device *device, struct syntax *node) {
  const struct syntax *base = node->kind == SYNTAX_MEMBER ? node->parts[0] : NULL;
  if (base == NULL || base->kind != SYNTAX_VARIABLE || !base->variable->is_external) return;
  for (int i = 0; i < INDEX_NAMES; i++)
    if (strcmp(base->variable->name, index_names[i]) == 0 && node->member < INDEX_AXES) {
      node->kind = SYNTAX_VARIABLE;
      node->variable = device->index[i][node->member];
      node->n_parts = 0;
      return;
    }
}

static bool visit_device(struct syntax *node, void *data) {
  struct reading *reading = data;
  become_index(reading->device, node);
  struct function *kernel = is_launch(node) ? kernel_of(node) : NULL;
  if (kernel == NULL) return true;
  ARENA_PUSH(reading->arena, reading->device->kernels, kernel);
  become_loops(reading, node, kernel);
  return true;
}

/* ---- Reading ---- */

static void make_indices(struct arena *arena, struct tree *tree, struct device *device) {
  const struct variable *given = tree_variable(tree, "threadIdx");
  const struct type *type = given != NULL ? given->type->members[0].type : &type_int;
  for (int i = 0; i < INDEX_NAMES; i++)
    for (int axis = 0; axis < INDEX_AXES; axis++) {
      struct variable *variable = arena_alloc(arena, sizeof *variable);
      *variable = (struct variable){.name = arena_printf(arena, "%s.%s", index_names[i], axis_names[axis]),
                                    .type = type,
                                    .where = device->where,
                                    .is_static = true,
                                    .slot = tree->n_statics};
      tree->statics = arena_grow(arena, tree->statics, tree->n_statics, &tree->statics_capacity, sizeof *tree->statics);
      tree->statics[tree->n_statics++] = variable;
      device->index[i][axis] = variable;
    }
}

#define APPEND(arena, tree, list, item)                                                                                \
  do {                                                                                                                 \
    (tree)->list = arena_grow(arena, (tree)->list, (tree)->n_##list, &(tree)->list##_capacity, sizeof *(tree)->list);  \
    (tree)->list[(tree)->n_##list++] = (item);                                                                         \
  } while (0)

/* One program: what the kernels' file has follows what the host's has. */
static void append(struct arena *arena, struct tree *tree, const struct tree *device) {
  for (int i = 0; i < device->n_statics; i++) {
    device->statics[i]->slot = tree->n_statics;
    APPEND(arena, tree, statics, device->statics[i]);
  }
  for (int i = 0; i < device->n_functions; i++) APPEND(arena, tree, functions, device->functions[i]);
  for (int i = 0; i < device->n_written; i++) APPEND(arena, tree, written, device->written[i]);
  for (int i = 0; i < device->n_skipped; i++) APPEND(arena, tree, skipped, device->skipped[i]);
}

static const struct message *first_error(const struct tree *tree) {
  for (int i = 0; i < tree->n_messages; i++)
    if (tree->messages[i].severity == SEVERITY_ERROR) return &tree->messages[i];
  return NULL;
}

static struct tree *parse(struct arena *arena, struct device *device, const struct audit_options *options) {
  static const char *const own_flags[] = {"-std=c++17", "-nostdinc++", "-Wno-everything"};
  enum { OWN_FLAGS = sizeof own_flags / sizeof own_flags[0] };
  const char **flags = arena_alloc(arena, (size_t)(OWN_FLAGS + options->n_flags) * sizeof *flags);
  memcpy(flags, own_flags, sizeof own_flags);
  if (options->n_flags > 0) memcpy(flags + OWN_FLAGS, options->flags, (size_t)options->n_flags * sizeof *flags);
  struct parse_request request = {.file = device->file,
                                  .flags = flags,
                                  .n_flags = OWN_FLAGS + options->n_flags,
                                  .headers = device_headers,
                                  .n_headers = DEVICE_HEADERS,
                                  .is_device = true,
                                  .tokens = true};
  struct diagnostics unread = diagnostics_in(arena);
  struct tree *tree = tree_parse(arena, &request, &unread);
  const struct message *error = tree != NULL ? first_error(tree) : NULL;
  if (tree == NULL || tree->deep.line > 0)
    device->why = unread.count > 0 ? unread.items[0].message : "it is nested too deep to audit";
  if (error == NULL) return tree;
  device->where = error->where;
  device->why = error->text;
  return tree;
}

struct device *device_read(struct arena *arena, struct tree *tree, const struct audit_options *options) {
  struct device *device = arena_alloc(arena, sizeof *device);
  const char *stem = without_ending(arena, tree->file, ".c");
  device->file = arena_printf(arena, "%s%s", stem != NULL ? stem : tree->file, ending_of(tree));
  device->where = (struct location){.file = device->file};
  if (access(device->file, R_OK) != 0) {
    device->where.file = tree->file;
    device->why = arena_printf(arena, "there is no %s that can be read", device->file);
    return device;
  }
  struct tree *kernels = parse(arena, device, options);
  if (device->why != NULL) return device;
  make_indices(arena, kernels, device);
  struct reading reading = {arena, device};
  for (int i = 0; i < kernels->n_functions; i++) {
    kernels->functions[i]->is_device = true;
    syntax_visit(kernels->functions[i]->body, visit_device, &reading);
  }
  append(arena, tree, kernels);
  return device;
}

/* ---- One program of two halves ---- */

/* The function that the linker knows by this name alone. */
static struct function *find_linked(const struct tree *tree, const char *name) {
  for (int i = 0; i < tree->n_functions; i++) {
    struct function *function = tree->functions[i];
    if (function->is_device && function->is_plain && function->body != NULL && strcmp(function->name, name) == 0)
      return function;
  }
  return NULL;
}

bool device_records(const struct syntax *call) {
  return call->kind == SYNTAX_CALL && call->function != NULL && call->function->body == NULL && call->n_parts == 3 &&
         strcmp(call->function->name, "accel_gpu_capture") == 0;
}

bool device_adds_shards(const struct syntax *call) {
  if (call->kind != SYNTAX_CALL || call->function == NULL || call->function->body != NULL) return false;
  return strcmp(call->function->name, "accel_start_all_reduce_by_tree") == 0 ||
         strcmp(call->function->name, "accel_start_reduce_scatter_by_tree") == 0;
}

static bool find_capture(struct syntax *node, void *data) {
  struct audit *audit = data;
  if (node->kind != SYNTAX_ASSIGN || !device_records(syntax_bare(node->parts[1]))) return true;
  const struct syntax *to = syntax_bare(node->parts[0]), *what = syntax_bare(syntax_bare(node->parts[1])->parts[2]);
  if (to->kind != SYNTAX_VARIABLE || what->kind != SYNTAX_FUNCTION) return true;
  struct capture capture = {to->variable, what->function};
  ARENA_PUSH(audit->arena, audit->device->captures, capture);
  return true;
}

void device_link(struct audit *audit, struct tree *tree) {
  struct function *adds = tree_function(tree, "accel_add_shards");
  audit->device->adds_shards = adds != NULL && adds->body != NULL ? adds : NULL;
  for (int i = 0; i < audit->device->kernels.count; i++) audit->device->kernels.items[i]->role->is_launched = true;
  for (int i = 0; i < tree->n_functions; i++) {
    struct function *function = tree->functions[i];
    bool own = function->body == NULL && function->header != NULL && strcmp(function->header, tree->file) == 0;
    if (own && !function->is_device) function->role->elsewhere = find_linked(tree, function->name);
    syntax_visit(function->body, find_capture, audit);
  }
}

struct function *device_recorded(const struct device *device, const struct variable *graph) {
  struct function *found = NULL;
  for (int i = 0; device != NULL && i < device->captures.count; i++) {
    if (device->captures.items[i].graph != graph) continue;
    if (found != NULL && found != device->captures.items[i].function) return NULL;
    found = device->captures.items[i].function;
  }
  return found;
}

/* ---- The claim ---- */

static bool same_parameter(const struct type *host, const struct type *device) {
  bool points = (host->kind == TYPE_POINTER || host->kind == TYPE_ARRAY) && device->kind == TYPE_POINTER;
  if (!points) return host->kind == device->kind && host->size == device->size;
  bool constant = host->kind == TYPE_ARRAY || host->points_to_constant == device->points_to_constant;
  bool half =
      host->element->size == 2 && device->element->size == 2; /* a number of 16 bits is an integer to the host */
  if (half) return constant;
  return constant && host->element->kind == device->element->kind && host->element->size == device->element->size;
}

static void check_linked(struct audit *audit, struct claim *claim, const struct function *function) {
  const struct function *definition = function->role->elsewhere;
  if (definition == NULL) { /* hooks have a file of their own, and no step calls them */
    claim_finding(audit, claim, function->role->in_step_path ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, function->where,
                  "'%s' is declared here, and %s does not define it", function->name, audit->device->file);
    return;
  }
  bool same = function->n_parameters == definition->n_parameters;
  for (int i = 0; same && i < function->n_parameters; i++)
    same = same_parameter(function->parameters[i]->type, definition->parameters[i]->type);
  if (!same)
    claim_finding(audit, claim, VERDICT_BROKEN, function->where, "'%s' has other parameters in %s", function->name,
                  audit->device->file);
}

void device_claim(struct audit *audit, const struct tree *tree) {
  if (audit->device == NULL) return;
  struct claim *claim = audit_claim(audit, "device-half",
                                    "The functions that the host's half declares itself are those of the device's "
                                    "half, with the same parameters.");
  if (audit->device->why != NULL) {
    claim_finding(audit, claim, VERDICT_CANNOT_TELL, audit->device->where, "the kernels are not read: %s",
                  audit->device->why);
    return;
  }
  int linked = 0;
  for (int i = 0; i < tree->n_functions; i++) {
    const struct function *function = tree->functions[i];
    bool own = function->header != NULL && strcmp(function->header, tree->file) == 0;
    if (function->body != NULL || !own || function->is_device) continue;
    check_linked(audit, claim, function);
    linked++;
  }
  claim_evidence(audit, claim, "%d functions of %s, %d launches", linked, audit->device->file,
                 audit->device->n_launches);
}
