/* The tables of a program's description: what the runtime reads and writes by them is inside the arena, as what it is.
 */
#include "gen/audit/tables.h"

#include <stdint.h>
#include <string.h>

#include "gen/audit/interp/constant.h"

struct table {
  const struct variable *variable; /* NULL: the description names none */
  const struct type *row;
  struct constants constants;
  int64_t count; /* rows */
};

struct tables {
  struct audit *audit;
  struct claim *claim;
  const struct variable *program;
  struct constants fields; /* of the program's description */
  const struct type *arena;
  int64_t arena_bytes, weights_bytes; /* -1: not known */
};

/* Numbers beyond these are no numbers of a program: their products and sums are numbers of 64 bits. */
enum { MOST = INT32_MAX, MOST_LAYERS = 1 << 12, MOST_ROWS = 1 << 12 };
static const int64_t LARGEST = (int64_t)1 << 38;

/* ---- Reading ---- */

static const struct syntax *bare(const struct syntax *node) {
  while (node->kind == SYNTAX_CAST || (node->kind == SYNTAX_UNARY && node->operation == OPERATOR_ADDRESS))
    node = node->parts[0];
  return node;
}

static const struct syntax *value_at(const struct constants *constants, int64_t offset) {
  const struct syntax *value = NULL; /* a later one overrides an earlier one */
  for (int i = 0; i < constants->count; i++)
    if (constants->items[i].offset == offset) value = constants->items[i].value;
  return value;
}

/* A member that is not named is 0. */
static bool number_of(const struct constants *constants, const struct type *type, const char *name, int64_t base,
                      int64_t *number) {
  int member = type_member(type, name);
  const struct syntax *value = member < 0 ? NULL : value_at(constants, base + type->members[member].offset);
  *number = 0;
  return member >= 0 && (value == NULL || constant_integer(value, number));
}

static struct table table_of(const struct tables *tables, const char *name) {
  struct table table = {0};
  int member = type_member(tables->program->type, name);
  const struct syntax *value =
      member < 0 ? NULL : value_at(&tables->fields, tables->program->type->members[member].offset);
  const struct variable *variable = value == NULL ? NULL : bare(value)->variable;
  if (variable == NULL || variable->type->kind != TYPE_ARRAY || variable->type->element->kind != TYPE_RECORD)
    return table;
  table.variable = variable;
  table.row = variable->type->element;
  table.count = variable->type->count;
  table.constants = constants_of(tables->audit->arena, variable);
  return table;
}

static void refuse(const struct tables *tables, const struct table *table, int64_t row, const char *what) {
  claim_finding(tables->audit, tables->claim, VERDICT_BROKEN, table->variable->where, "row %lld of '%s' %s",
                (long long)row, table->variable->name, what);
}

static void cannot_tell(const struct tables *tables, const struct table *table, int64_t row) {
  claim_finding(tables->audit, tables->claim, VERDICT_CANNOT_TELL, table->variable->where,
                "row %lld of '%s' is not constant", (long long)row, table->variable->name);
}

/* The description says how many rows a table has. */
static void check_count(const struct tables *tables, const struct table *table, const char *name) {
  int64_t count;
  if (table->variable == NULL) return;
  if (table->count < 0 || table->count > MOST_ROWS)
    claim_finding(tables->audit, tables->claim, VERDICT_CANNOT_TELL, table->variable->where, "'%s' is too long",
                  table->variable->name);
  else if (!table->variable->is_constant)
    claim_finding(tables->audit, tables->claim, VERDICT_BROKEN, table->variable->where, "'%s' may change",
                  table->variable->name);
  else if (!number_of(&tables->fields, tables->program->type, name, 0, &count) || count != table->count)
    claim_finding(tables->audit, tables->claim, VERDICT_BROKEN, tables->program->where,
                  "'%s' has %lld rows, which .%s does not say", table->variable->name, (long long)table->count, name);
}

/* Bytes of an element of enum accel_dtype; 0: there is no such type. */
static int64_t element_bytes(int64_t dtype) {
  static const int bytes[] = {4, 2, 2, 4, 8, 1, 8, 1, 2, 1};
  return dtype >= 0 && dtype < (int64_t)(sizeof bytes / sizeof *bytes) ? bytes[dtype] : 0;
}

static bool is_real(int64_t dtype) {
  enum { FLOAT32 = 0, FLOAT64 = 6 };
  return dtype == FLOAT32 || dtype == FLOAT64;
}

/* ---- States ---- */

static bool has_elements(const struct type *type, int64_t dtype);

static bool has_members(const struct type *type, int64_t dtype) {
  for (int i = 0; i < type->n_members; i++)
    if (!has_elements(type->members[i].type, dtype)) return false;
  return type->n_members > 0;
}

/* Whether all numbers of a type are of this one. */
static bool has_elements(const struct type *type, int64_t dtype) {
  while (type->kind == TYPE_ARRAY) type = type->element;
  if (type->kind == TYPE_RECORD) return has_members(type, dtype);
  return type->size == element_bytes(dtype) && (type->kind == TYPE_REAL || !is_real(dtype));
}

/* A member of the arena that starts at `offset`, has numbers of this type and space for `bytes`; with `whole`, for no
 * more than padding above that. */
static bool holds(const struct type *record, int64_t offset, int64_t bytes, int64_t dtype, bool whole) {
  enum { PADDING = 64 };
  for (int i = 0; i < record->n_members; i++) {
    const struct member *member = &record->members[i];
    bool unnamed = member->name[0] == '\0' && member->type->kind == TYPE_RECORD;
    if (unnamed && holds(member->type, offset - member->offset, bytes, dtype, whole)) return true;
    if (member->offset != offset || member->type->size < bytes || !has_elements(member->type, dtype)) continue;
    if (!whole || member->type->size - bytes < PADDING) return true;
  }
  return false;
}

/* What a state has on a disk; -1: it is in the arena. */
static int64_t disk_bytes(const struct tables *tables, int64_t row) {
  const struct type *program = tables->program->type;
  const int at = type_member(program, "disk");
  int64_t first, count, bytes;
  if (at < 0) return -1;
  const struct member *disk = &program->members[at];
  const bool known = number_of(&tables->fields, disk->type, "first", disk->offset, &first) &&
                     number_of(&tables->fields, disk->type, "count", disk->offset, &count) &&
                     number_of(&tables->fields, disk->type, "bytes", disk->offset, &bytes);
  return known && row >= first && row - first < count ? bytes : -1;
}

static void check_state(const struct tables *tables, const struct table *states, int64_t row) {
  int64_t base = row * states->row->size, offset, count, dtype, n_slices;
  bool known = number_of(&states->constants, states->row, "offset", base, &offset) &&
               number_of(&states->constants, states->row, "count", base, &count) &&
               number_of(&states->constants, states->row, "dtype", base, &dtype) &&
               number_of(&states->constants, states->row, "n_slices", base, &n_slices);
  if (!known) {
    cannot_tell(tables, states, row);
    return;
  }
  int64_t bytes = count < 0 || count > MOST ? -1 : count * element_bytes(dtype), stored = disk_bytes(tables, row);
  if (stored >= 0 && (bytes <= 0 || bytes > stored))
    refuse(tables, states, row, "is larger than what it has on the disk");
  else if (stored >= 0)
    return;
  else if (bytes <= 0 || offset < 0 || offset > tables->arena_bytes - bytes)
    refuse(tables, states, row, "is not inside the arena");
  else if (tables->arena != NULL && !holds(tables->arena, offset, bytes, dtype, n_slices == 0))
    refuse(tables, states, row, "is no member of the arena, of that type and count");
}

/* ---- Tensors ---- */

/* How often a row of tensors is there, and how far from one to the next. */
static bool repetition_of(const struct table *layers, int64_t row, int64_t *times, int64_t *stride) {
  *times = 1;
  *stride = 0;
  for (int64_t i = 0; layers->variable != NULL && i < layers->count; i++) {
    int64_t base = i * layers->row->size, first, rows, count, step;
    if (!number_of(&layers->constants, layers->row, "first", base, &first) ||
        !number_of(&layers->constants, layers->row, "rows", base, &rows) ||
        !number_of(&layers->constants, layers->row, "count", base, &count) ||
        !number_of(&layers->constants, layers->row, "stride", base, &step))
      return false;
    if (first < 0 || row < first || row - first >= rows) continue;
    *times = count;
    *stride = step;
  }
  return *times > 0 && *times < MOST_LAYERS && *stride >= 0 && *stride < LARGEST;
}

/* The bytes of a tensor; -1: no number. */
static int64_t bytes_of(const struct table *tensors, int64_t row) {
  int64_t base = row * tensors->row->size, rank, dtype;
  int shape = type_member(tensors->row, "shape");
  if (!number_of(&tensors->constants, tensors->row, "rank", base, &rank) ||
      !number_of(&tensors->constants, tensors->row, "dtype", base, &dtype) || shape < 0 || rank < 0 || rank > 8)
    return -1;
  int64_t bytes = element_bytes(dtype);
  for (int64_t i = 0; i < rank; i++) {
    int64_t extent = 0;
    const struct syntax *value =
        value_at(&tensors->constants, base + tensors->row->members[shape].offset + i * (int64_t)sizeof extent);
    if (value == NULL || !constant_integer(value, &extent) || extent < 1 || bytes > LARGEST / extent) return -1;
    bytes *= extent;
  }
  return bytes;
}

/* Layers that come before each use: the offsets of their tensors, and the bytes of the weights that they come to.
 */
struct read_layers {
  int64_t from, end, slots; /* end 0: there are none */
};

/* Layers follow one another; several come to one slot. */
static struct read_layers read_layers_of(const struct tables *tables, const struct table *reads) {
  struct read_layers layers = {0};
  int64_t first, at, bytes, before, from_host = 0;
  if (reads->count > 0 && !number_of(&tables->fields, tables->program->type, "n_from_host", 0, &from_host))
    cannot_tell(tables, reads, 0);
  for (int64_t row = 0; row < reads->count && reads->count <= MOST_ROWS; row++) {
    const int64_t base = row * reads->row->size;
    if (!number_of(&reads->constants, reads->row, "first", base, &first) ||
        !number_of(&reads->constants, reads->row, "at", base, &at) ||
        !number_of(&reads->constants, reads->row, "bytes", base, &bytes)) {
      cannot_tell(tables, reads, row);
      break;
    }
    if (bytes == 0) continue;
    if (row == 0) layers.from = layers.end = first;
    if (first != layers.end || first < tables->weights_bytes || bytes < 0 || bytes > LARGEST || first > LARGEST ||
        at < 0 || at > tables->weights_bytes - bytes)
      refuse(tables, reads, row, "is not after the layer before it, or does not come to the weights");
    layers.end = first + bytes;
    if (row < from_host && layers.end > tables->arena_bytes)
      refuse(tables, reads, row, "is not inside what the host has");
    bool is_new = true;
    for (int64_t i = 0; i < row && is_new; i++)
      is_new = number_of(&reads->constants, reads->row, "at", i * reads->row->size, &before) && before != at;
    layers.slots += is_new ? bytes : 0;
  }
  return layers;
}

/* Tensors of one range of offsets, and the bytes that they have, without padding and with the most of it. */
struct filled {
  int64_t end, bytes; /* of the range */
  int64_t total, most;
};

static void check_filled(const struct tables *tables, const struct table *tensors, const struct filled *filled) {
  if (filled->total <= filled->bytes && filled->most >= filled->bytes) return;
  claim_finding(tables->audit, tables->claim, VERDICT_BROKEN, tensors->variable->where,
                "the tensors have %lld bytes, the weights %lld", (long long)filled->total, (long long)filled->bytes);
}

/* Each tensor is inside the weights, or the layers that are read, and together they leave nothing but padding. */
static void check_tensors(const struct tables *tables, const struct table *tensors, const struct table *layers,
                          const struct read_layers *reads) {
  enum { ALIGNMENT = 64 };
  struct filled kept = {.end = tables->weights_bytes, .bytes = tables->weights_bytes - reads->slots},
                read = {.end = reads->end, .bytes = reads->end - reads->from};
  for (int64_t row = 0; row < tensors->count; row++) {
    int64_t offset, times, stride, bytes = bytes_of(tensors, row);
    bool known = number_of(&tensors->constants, tensors->row, "offset", row * tensors->row->size, &offset) &&
                 repetition_of(layers, row, &times, &stride) && bytes >= 0;
    if (!known) {
      cannot_tell(tables, tensors, row);
      return;
    }
    struct filled *filled = reads->end > 0 && offset >= reads->from ? &read : &kept;
    if (offset < 0 || offset > LARGEST || offset % ALIGNMENT != 0 || stride % ALIGNMENT != 0 ||
        offset + (times - 1) * stride > filled->end - bytes)
      refuse(tables, tensors, row, "is not inside the weights, or not aligned as they are");
    filled->total += times * bytes;
    filled->most += times * (bytes + ALIGNMENT - 1);
  }
  check_filled(tables, tensors, &kept);
  check_filled(tables, tensors, &read);
}

/* ---- The description ---- */

static const struct variable *find_program(const struct tree *tree) {
  for (int i = 0; i < tree->n_statics; i++)
    if (strcmp(tree->statics[i]->type->name, "const struct accel_program") == 0 ||
        strcmp(tree->statics[i]->type->name, "struct accel_program") == 0)
      return tree->statics[i];
  return NULL;
}

/* What a pointer of the program's to so many bytes points to. */
static const struct type *find_arena(const struct tree *tree, int64_t bytes) {
  for (int i = 0; i < tree->n_statics; i++) {
    const struct type *type = tree->statics[i]->type;
    if (type->kind == TYPE_POINTER && type->element->kind == TYPE_RECORD && type->element->size == bytes)
      return type->element;
  }
  return NULL;
}

void tables_check(struct audit *audit, const struct tree *tree) {
  struct tables tables = {.audit = audit, .program = find_program(tree)};
  if (tables.program == NULL || tables.program->initial == NULL) return;
  tables.claim = audit_claim(audit, "tables-fit",
                             "Each row of the table of states is a member of the arena, of its type and count, "
                             "or fits what it has on a disk; the tensors fill the weights.");
  tables.fields = constants_of(audit->arena, tables.program);
  if (!number_of(&tables.fields, tables.program->type, "arena_bytes", 0, &tables.arena_bytes)) tables.arena_bytes = -1;
  if (!number_of(&tables.fields, tables.program->type, "weights_bytes", 0, &tables.weights_bytes))
    tables.weights_bytes = -1;
  tables.arena = find_arena(tree, tables.arena_bytes);
  struct table states = table_of(&tables, "states"), tensors = table_of(&tables, "tensors"),
               layers = table_of(&tables, "layers"), reads = table_of(&tables, "reads");
  check_count(&tables, &states, "n_states");
  check_count(&tables, &tensors, "n_tensors");
  check_count(&tables, &layers, "n_layers");
  check_count(&tables, &reads, "n_reads");
  const struct read_layers read = read_layers_of(&tables, &reads);
  for (int64_t row = 0; row < states.count && states.count <= MOST_ROWS; row++) check_state(&tables, &states, row);
  if (tensors.variable != NULL && tensors.count <= MOST_ROWS && layers.count <= MOST_ROWS)
    check_tensors(&tables, &tensors, &layers, &read);
  claim_evidence(audit, tables.claim, "%lld states, %lld tensors", (long long)states.count, (long long)tensors.count);
}
