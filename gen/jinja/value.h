/* The value type's inside: what strings, lists, maps and the engine's objects are made of, and the operations on
 * values that need no template: truth, equality, order, hashing, printing, look-up. */
#ifndef ACCEL_JINJA_VALUE_H
#define ACCEL_JINJA_VALUE_H

#include "gen/jinja/jinja.h"
#include "gen/jinja/pool.h"
#include "gen/jinja/words.h"

struct run;
struct span_list;

struct jinja_string {
  size_t length;                 /* in bytes; `bytes` has a NUL after them */
  uint32_t hash;                 /* 0: not computed yet */
  uint16_t word;                 /* enum jj_word of an interned name */
  const struct span_list *spans; /* who wrote which part, for text that was captured with a source map */
  char bytes[];
};

/* Python has several sequence types, which print, test and fail differently; here they are flavours of one list. */
enum flavour {
  FLAVOUR_LIST,
  FLAVOUR_TUPLE,
  FLAVOUR_RANGE,
  FLAVOUR_GENERATOR,
  FLAVOUR_ITEMS,
  FLAVOUR_KEYS,
  FLAVOUR_VALUES,
  FLAVOUR_GROUP
};

struct jinja_list {
  struct jinja_value *items; /* of a range: NULL until all of them are needed (jj_iterate) */
  int count, capacity;
  uint8_t flavour;
  bool outside;              /* made by the caller: a template may not change it */
  int cursor;                /* a generator's items before it were taken */
  int64_t start, stop, step; /* of a range */
};

struct map_entry {
  struct jinja_value key, value;
  uint32_t hash;
};

struct jinja_map {
  struct map_entry *items; /* in insertion order */
  int count, capacity;
  int *index; /* open addressing, entry number + 1; NULL for small maps, which are scanned */
  int index_size;
  bool outside;
};

/* The engine's own objects; each struct begins with a struct object. */
enum object_type {
  OBJECT_MACRO,
  OBJECT_LOOP,
  OBJECT_NAMESPACE,
  OBJECT_CYCLER,
  OBJECT_JOINER,
  OBJECT_MODULE,
  OBJECT_SELF,
  OBJECT_BLOCK,
  OBJECT_METHOD,
  OBJECT_FUNCTION
};

struct object {
  enum object_type type;
};

/* Why a value is undefined; names the culprit in messages. A slot that was never set holds one of the two marks. */
struct undefined_info {
  const char *hint;   /* the whole message, or NULL */
  const char *name;   /* the missing name or attribute */
  const char *object; /* "dict object" for a missing attribute; NULL for a missing name */
  bool is_item;       /* name is a repr of a key, not an attribute's name */
  bool standard;      /* of the class Undefined, and the environment's is another: an if-expression without else */
};
extern const struct undefined_info jj_missing_mark; /* a local that is not assigned yet */
extern const struct undefined_info jj_nameless;     /* undefined, and nothing is known of it */

/* --- strings --- */
struct jinja_string *jj_string_new(struct pool *pool, const char *bytes, size_t length);
struct jinja_value jj_text(struct pool *pool, const char *bytes, size_t length);
struct jinja_value jj_cstr(struct pool *pool, const char *text);
static inline struct jinja_value jj_string_value(struct jinja_string *string) {
  return (struct jinja_value){.kind = JINJA_STRING, .as.string = string};
}
uint32_t jj_hash_bytes(const char *bytes, size_t length);
static inline uint32_t jj_string_hash(struct jinja_string *s) {
  return s->hash != 0 ? s->hash : (s->hash = jj_hash_bytes(s->bytes, s->length));
}
bool jj_string_equal(const struct jinja_string *a, const struct jinja_string *b);

/* --- lists and maps --- */
struct jinja_value jj_list(struct pool *pool, enum flavour flavour, int capacity);
void jj_push(struct pool *pool, struct jinja_list *list, struct jinja_value item);
/* A range of `count` numbers, none of which is written out. */
struct jinja_value jj_range(struct pool *pool, int64_t start, int64_t stop, int64_t step, int count);
struct jinja_value jj_pair(struct pool *pool, struct jinja_value first, struct jinja_value second);
struct jinja_value jj_map(struct pool *pool);
/* The item number `index`, in [0, count): that of a range is computed. */
static inline struct jinja_value jj_item(const struct jinja_list *list, int64_t index) {
  if (list->items != NULL) return list->items[index];
  uint64_t number = (uint64_t)list->start + (uint64_t)index * (uint64_t)list->step; /* a product may wrap around */
  return (struct jinja_value){.kind = JINJA_INT, .as.integer = (int64_t)number};
}
/* The entry of a key, or NULL. Unhashable keys are in no map. */
struct map_entry *jj_map_find(const struct jinja_map *map, struct jinja_value key);
struct map_entry *jj_map_find_string(const struct jinja_map *map, struct jinja_string *key);
void jj_map_put(struct pool *pool, struct jinja_map *map, struct jinja_value key, struct jinja_value value);
bool jj_map_remove(struct jinja_map *map, struct jinja_value key);

/* --- questions --- */
/* True for the kinds that Python takes as numbers: bool, int, double. */
static inline bool jj_is_number(struct jinja_value v) {
  return v.kind == JINJA_BOOL || v.kind == JINJA_INT || v.kind == JINJA_DOUBLE;
}
static inline bool jj_is_integral(struct jinja_value v) {
  return v.kind == JINJA_BOOL || v.kind == JINJA_INT;
}
static inline int64_t jj_as_int(struct jinja_value v) {
  return v.kind == JINJA_BOOL ? v.as.boolean : v.as.integer;
}
static inline double jj_as_double(struct jinja_value v) {
  return v.kind == JINJA_DOUBLE ? v.as.real : (double)jj_as_int(v);
}
/* Python's name of the type: "str", "int", "dict", … */
const char *jj_type_name(struct jinja_value v);

/* --- truth, equality, order (equality.c) --- */
bool jj_truth_plain(struct jinja_value v); /* undefined is false here; jj_truth of run.h knows the strict kind */
bool jj_equal(struct jinja_value a, struct jinja_value b);
/* The same where undefined values raise: one that is met ends it, and is left in *refused. */
bool jj_equal_strictly(struct jinja_value a, struct jinja_value b, struct jinja_value *refused);
/* -1, 0, 1; *comparable is false where Python raises (and 2 is returned for NaN: no order at all). */
int jj_order(struct jinja_value a, struct jinja_value b, bool *comparable);
bool jj_hashable(struct jinja_value v);
uint32_t jj_hash(struct jinja_value v);

/* --- numbers as text --- */
/* The shortest decimal that reads back as the same double, in Python's form. Returns its length; capacity 32. */
int jj_double_text(double value, char out[32]);
int jj_int_text(int64_t value, char out[24]);

/* --- UTF-8 --- */
size_t jj_utf8_count(const char *bytes, size_t length);
/* Byte offset of the code point number `index` (or `length` past the end). */
size_t jj_utf8_offset(const char *bytes, size_t length, size_t index);
/* Decodes one code point at bytes (malformed bytes count as one Latin-1 character); *size is its length. */
uint32_t jj_utf8_decode(const char *bytes, size_t length, int *size);
int jj_utf8_encode(uint32_t code, char out[4]);
uint32_t jj_upper_code(uint32_t code);
uint32_t jj_lower_code(uint32_t code);
bool jj_is_alpha_code(uint32_t code);
bool jj_is_space_code(uint32_t code);

#endif
