#include "runtime/weights/pickle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 26, MOST_RANK = 8 };

/* Values refer to each other by their indices. A dict's pairs and a tuple's items are chains of links. */
enum kind { NOTHING, MARK, NUMBER, TEXT, TUPLE, DICT, NAME, STORAGE, TENSOR };

struct value {
  enum kind kind;
  int64_t number;   /* of NUMBER; of STORAGE its elements; of NAME which one */
  const char *text; /* of TEXT; of STORAGE its key */
  size_t length;
  int first, last, count; /* links; of TENSOR first is its arguments' tuple; of STORAGE count is its type's NAME */
};

struct link {
  int key, value, next; /* key: of a dict's pair */
};

struct machine {
  const char *path;
  const uint8_t *at, *end;
  struct value *values;
  struct link *links;
  int *stack, *memo; /* memo: -1: nothing */
  size_t n_values, n_links, n_stack, n_memo;
  struct problem *problem;
};

static const struct global {
  const char *module, *name;
  enum { MAKES_DICT, MAKES_TENSOR, MAKES_PARAMETER, IS_TYPE } does;
  const char *dtype;
} globals[] = {
    {"collections", "OrderedDict", MAKES_DICT, NULL},
    {"torch._utils", "_rebuild_tensor_v2", MAKES_TENSOR, NULL},
    {"torch._utils", "_rebuild_parameter", MAKES_PARAMETER, NULL},
    {"torch", "DoubleStorage", IS_TYPE, "F64"},
    {"torch", "FloatStorage", IS_TYPE, "F32"},
    {"torch", "HalfStorage", IS_TYPE, "F16"},
    {"torch", "BFloat16Storage", IS_TYPE, "BF16"},
    {"torch", "LongStorage", IS_TYPE, "I64"},
    {"torch", "IntStorage", IS_TYPE, "I32"},
    {"torch", "ShortStorage", IS_TYPE, "I16"},
    {"torch", "CharStorage", IS_TYPE, "I8"},
    {"torch", "ByteStorage", IS_TYPE, "U8"},
    {"torch", "BoolStorage", IS_TYPE, "BOOL"},
};

static bool damaged(struct machine *m) {
  return rt_problem(m->problem, "%s: the pickle is damaged", m->path);
}

/* ---- Values ---- */

static int add_value(struct machine *m, struct value value) {
  m->values[m->n_values] = value;
  return (int)m->n_values++;
}

static bool push(struct machine *m, struct value value) {
  m->stack[m->n_stack++] = add_value(m, value);
  return true;
}

static bool pop(struct machine *m, int *value) {
  if (m->n_stack == 0 || m->values[m->stack[m->n_stack - 1]].kind == MARK) return damaged(m);
  *value = m->stack[--m->n_stack];
  return true;
}

static void append(struct machine *m, int to, int key, int item) {
  struct value *value = &m->values[to];
  const int link = (int)m->n_links++;
  m->links[link] = (struct link){key, item, -1};
  if (value->count++ == 0)
    value->first = link;
  else
    m->links[value->last].next = link;
  value->last = link;
}

/* The position on the stack after the newest mark. */
static bool find_mark(struct machine *m, size_t *at) {
  for (size_t i = m->n_stack; i > 0; i--)
    if (m->values[m->stack[i - 1]].kind == MARK) {
      *at = i;
      return true;
    }
  return damaged(m);
}

/* Items of a tuple: as many as are asked for. */
static bool items_of(const struct machine *m, int tuple, int *items, int least, int most, int *count) {
  const struct value *value = &m->values[tuple];
  if (value->kind != TUPLE || value->count < least || value->count > most) return false;
  *count = value->count;
  for (int i = 0, link = value->first; i < value->count; i++, link = m->links[link].next)
    items[i] = m->links[link].value;
  return true;
}

/* ---- Opcodes ---- */

static bool take(struct machine *m, size_t bytes, const uint8_t **at) {
  if ((size_t)(m->end - m->at) < bytes) return damaged(m);
  *at = m->at;
  m->at += bytes;
  return true;
}

static bool take_number(struct machine *m, size_t bytes, bool is_signed, int64_t *number) {
  const uint8_t *at = m->at;
  uint64_t value = 0;
  if (bytes > 8 || !take(m, bytes, &at)) return bytes > 8 ? damaged(m) : false;
  for (size_t i = bytes; i > 0; i--) value = value << 8 | at[i - 1];
  if (is_signed && bytes > 0 && bytes < 8 && (at[bytes - 1] & 0x80) != 0) value |= UINT64_MAX << 8 * bytes;
  memcpy(number, &value, sizeof value);
  return true;
}

static bool push_number(struct machine *m, size_t bytes, bool is_signed) {
  int64_t number;
  return take_number(m, bytes, is_signed, &number) && push(m, (struct value){.kind = NUMBER, .number = number});
}

static bool push_long(struct machine *m) {
  int64_t bytes;
  return take_number(m, 1, false, &bytes) && push_number(m, (size_t)bytes, true);
}

static bool push_text(struct machine *m) {
  int64_t length;
  const uint8_t *text = m->at;
  return take_number(m, 4, false, &length) && take(m, (size_t)length, &text) &&
         push(m, (struct value){.kind = TEXT, .text = (const char *)text, .length = (size_t)length});
}

static bool take_line(struct machine *m, const char **text, int *length) {
  const uint8_t *end = memchr(m->at, '\n', (size_t)(m->end - m->at));
  if (end == NULL || end - m->at > 1000) return damaged(m);
  *text = (const char *)m->at;
  *length = (int)(end - m->at);
  m->at = end + 1;
  return true;
}

static bool is_text(const char *text, size_t length, const char *wanted) {
  return strlen(wanted) == length && memcmp(text, wanted, length) == 0;
}

static bool push_global(struct machine *m) {
  const char *module, *name;
  int length, of_name;
  if (!take_line(m, &module, &length) || !take_line(m, &name, &of_name)) return false;
  for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
    if (is_text(module, (size_t)length, globals[i].module) && is_text(name, (size_t)of_name, globals[i].name))
      return push(m, (struct value){.kind = NAME, .number = (int64_t)i});
  return rt_problem(m->problem, "%s: the pickle names %.*s.%.*s, which is not called", m->path, length, module, of_name,
                    name);
}

/* ('storage', torch.FloatStorage, key, device, elements) */
static bool push_storage(struct machine *m) {
  int id, items[5], count;
  if (!pop(m, &id)) return false;
  if (!items_of(m, id, items, 5, 5, &count)) return damaged(m);
  const struct value *what = &m->values[items[0]], *type = &m->values[items[1]], *key = &m->values[items[2]];
  const struct value *elements = &m->values[items[4]];
  if (what->kind != TEXT || !is_text(what->text, what->length, "storage") || type->kind != NAME ||
      globals[type->number].does != IS_TYPE || key->kind != TEXT || elements->kind != NUMBER || elements->number < 0)
    return damaged(m);
  return push(m, (struct value){.kind = STORAGE,
                                .number = elements->number,
                                .text = key->text,
                                .length = key->length,
                                .count = (int)type->number});
}

static bool call(struct machine *m) {
  int arguments, function, items[MOST_RANK], count;
  if (!pop(m, &arguments) || !pop(m, &function)) return false;
  const struct value *name = &m->values[function];
  if (name->kind != NAME || globals[name->number].does == IS_TYPE) return damaged(m);
  if (globals[name->number].does == MAKES_DICT)
    return (items_of(m, arguments, items, 0, 0, &count) || damaged(m)) && push(m, (struct value){.kind = DICT});
  if (globals[name->number].does == MAKES_TENSOR)
    return (items_of(m, arguments, items, 6, 7, &count) || damaged(m)) &&
           push(m, (struct value){.kind = TENSOR, .first = arguments});
  if (!items_of(m, arguments, items, 3, 3, &count) || m->values[items[0]].kind != TENSOR) return damaged(m);
  m->stack[m->n_stack++] = items[0];
  return true;
}

static bool push_tuple(struct machine *m, size_t from) {
  const int tuple = add_value(m, (struct value){.kind = TUPLE});
  for (size_t i = from; i < m->n_stack; i++) {
    if (m->values[m->stack[i]].kind == MARK) return damaged(m);
    append(m, tuple, -1, m->stack[i]);
  }
  m->n_stack = from;
  m->stack[m->n_stack++] = tuple;
  return true;
}

static bool push_last(struct machine *m, size_t count) {
  return m->n_stack >= count ? push_tuple(m, m->n_stack - count) : damaged(m);
}

static bool push_marked(struct machine *m) {
  size_t at;
  if (!find_mark(m, &at)) return false;
  if (!push_tuple(m, at)) return false;
  m->stack[at - 1] = m->stack[at];
  m->n_stack = at;
  return true;
}

/* The pairs from `from` on become those of the dict before them, and of what is before `end`. */
static bool set_items(struct machine *m, size_t from, size_t end) {
  if (end == 0 || m->values[m->stack[end - 1]].kind != DICT || (m->n_stack - from) % 2 != 0) return damaged(m);
  for (size_t i = from; i < m->n_stack; i += 2) append(m, m->stack[end - 1], m->stack[i], m->stack[i + 1]);
  m->n_stack = end;
  return true;
}

static bool set_marked(struct machine *m) {
  size_t at;
  return find_mark(m, &at) && set_items(m, at, at - 1);
}

/* What a dict has in addition to its pairs, such as versions of modules, is left out. */
static bool build(struct machine *m) {
  int state;
  if (!pop(m, &state)) return false;
  return (m->n_stack > 0 && m->values[m->stack[m->n_stack - 1]].kind == DICT) || damaged(m);
}

static bool put(struct machine *m, size_t bytes) {
  int64_t at;
  if (!take_number(m, bytes, false, &at)) return false;
  if (m->n_stack == 0 || (uint64_t)at >= m->n_memo) return damaged(m);
  m->memo[at] = m->stack[m->n_stack - 1];
  return true;
}

static bool get(struct machine *m, size_t bytes) {
  int64_t at;
  if (!take_number(m, bytes, false, &at)) return false;
  if ((uint64_t)at >= m->n_memo || m->memo[at] < 0) return damaged(m);
  m->stack[m->n_stack++] = m->memo[at];
  return true;
}

static bool check_protocol(struct machine *m) {
  int64_t version;
  if (!take_number(m, 1, false, &version)) return false;
  return version == 2 || version == 3 ||
         rt_problem(m->problem, "%s: the pickle is of protocol %d, and 2 and 3 are read", m->path, (int)version);
}

static bool run(struct machine *m, uint8_t opcode) {
  switch (opcode) {
  case 0x80:
    return check_protocol(m);
  case '(':
    return push(m, (struct value){.kind = MARK});
  case 'N':
    return push(m, (struct value){.kind = NOTHING});
  case 0x88:
    return push(m, (struct value){.kind = NUMBER, .number = 1});
  case 0x89:
    return push(m, (struct value){.kind = NUMBER});
  case 'K':
    return push_number(m, 1, false);
  case 'M':
    return push_number(m, 2, false);
  case 'J':
    return push_number(m, 4, true);
  case 0x8a:
    return push_long(m);
  case 'X':
    return push_text(m);
  case '}':
    return push(m, (struct value){.kind = DICT});
  case ')':
    return push_last(m, 0);
  case 0x85:
    return push_last(m, 1);
  case 0x86:
    return push_last(m, 2);
  case 0x87:
    return push_last(m, 3);
  case 't':
    return push_marked(m);
  case 's':
    return m->n_stack >= 2 ? set_items(m, m->n_stack - 2, m->n_stack - 2) : damaged(m);
  case 'u':
    return set_marked(m);
  case 'b':
    return build(m);
  case 'c':
    return push_global(m);
  case 'Q':
    return push_storage(m);
  case 'R':
    return call(m);
  case 'q':
    return put(m, 1);
  case 'r':
    return put(m, 4);
  case 'h':
    return get(m, 1);
  case 'j':
    return get(m, 4);
  default:
    return rt_problem(m->problem, "%s: the pickle has opcode 0x%02x, which is not read", m->path, opcode);
  }
}

/* ---- What came of it ---- */

/* Numbers of a tuple, none below 0. */
static bool extents_of(const struct machine *m, int tuple, int64_t *extents, int *count) {
  int items[MOST_RANK];
  if (!items_of(m, tuple, items, 0, MOST_RANK, count)) return false;
  for (int i = 0; i < *count; i++) {
    extents[i] = m->values[items[i]].number;
    if (m->values[items[i]].kind != NUMBER || extents[i] < 0) return false;
  }
  return true;
}

static bool read_tensor(const struct machine *m, const struct link *pair, struct pickled_tensor *tensor) {
  const struct value *name = &m->values[pair->key], *value = &m->values[pair->value];
  int items[7], count, n_strides;
  if (name->kind != TEXT || value->kind != TENSOR || !items_of(m, value->first, items, 6, 7, &count)) return false;
  const struct value *storage = &m->values[items[0]], *offset = &m->values[items[1]];
  if (storage->kind != STORAGE || offset->kind != NUMBER || offset->number < 0) return false;
  *tensor = (struct pickled_tensor){.name = name->text,
                                    .name_length = name->length,
                                    .key = storage->text,
                                    .key_length = storage->length,
                                    .dtype = globals[storage->count].dtype,
                                    .offset = offset->number,
                                    .count = storage->number};
  return extents_of(m, items[2], tensor->shape, &tensor->rank) &&
         extents_of(m, items[3], tensor->strides, &n_strides) && n_strides == tensor->rank;
}

static bool read_dict(struct machine *m, struct pickled *pickled) {
  const struct value *dict = m->n_stack == 1 ? &m->values[m->stack[0]] : NULL;
  if (dict == NULL || dict->kind != DICT) return rt_problem(m->problem, "%s: is no dict of tensors", m->path);
  pickled->tensors = calloc((size_t)dict->count + 1, sizeof *pickled->tensors);
  if (pickled->tensors == NULL) return rt_problem(m->problem, "%s: no memory for the list of tensors", m->path);
  for (int link = dict->count > 0 ? dict->first : -1; link >= 0; link = m->links[link].next) {
    if (read_tensor(m, &m->links[link], &pickled->tensors[pickled->count])) {
      pickled->count++;
      continue;
    }
    const struct value *name = &m->values[m->links[link].key];
    const int length = name->kind != TEXT ? 0 : name->length < 200 ? (int)name->length : 200;
    return rt_problem(m->problem, "%s: '%.*s' is no dense tensor of 8 dimensions at most", m->path, length,
                      length > 0 ? name->text : "");
  }
  return true;
}

/* Each opcode is a byte at least, and makes one value at most, and one item of each that it takes from the stack. */
static bool open_machine(struct machine *m, size_t size) {
  m->n_memo = size;
  m->values = malloc((size + 1) * sizeof *m->values);
  m->links = malloc((size + 1) * sizeof *m->links);
  m->stack = malloc((size + 1) * sizeof *m->stack);
  m->memo = malloc((size + 1) * sizeof *m->memo);
  if (m->values == NULL || m->links == NULL || m->stack == NULL || m->memo == NULL)
    return rt_problem(m->problem, "%s: no memory to read it", m->path);
  memset(m->memo, 0xff, (size + 1) * sizeof *m->memo);
  return true;
}

bool rt_pickle_read(struct pickled *pickled, const char *path, const uint8_t *bytes, size_t size,
                    struct problem *problem) {
  struct machine m = {.path = path, .at = bytes, .end = bytes + size, .problem = problem};
  bool good = true, ended = false;
  *pickled = (struct pickled){0};
  if (size > MOST_BYTES)
    return rt_problem(problem, "%s: a pickle of %zu bytes is larger than what is read", path, size);
  good = open_machine(&m, size);
  while (good && !ended) {
    ended = m.at < m.end && *m.at == '.';
    good = ended || (m.at < m.end ? run(&m, *m.at++) : damaged(&m));
  }
  good = good && read_dict(&m, pickled);
  free(m.values);
  free(m.links);
  free(m.stack);
  free(m.memo);
  if (!good) rt_pickled_free(pickled);
  return good;
}

void rt_pickled_free(struct pickled *pickled) {
  free(pickled->tensors);
  *pickled = (struct pickled){0};
}
