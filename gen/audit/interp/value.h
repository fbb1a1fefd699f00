/* Abstract values: what is known of a number (an interval) or a pointer at a point of the program. */
#ifndef ACCEL_AUDIT_INTERP_VALUE_H
#define ACCEL_AUDIT_INTERP_VALUE_H

#include "gen/audit/interp/form.h"
#include "gen/audit/interp/grouping.h"

/* What a value depends on other than constants and counters of loops: the labels of a taint analysis. */
enum origin {
  ORIGIN_DATA = 1,       /* computed from tensors */
  ORIGIN_STEP = 2,       /* the step's number, and what the root is called with */
  ORIGIN_CONFIG = 4,     /* set outside of the step path, or the result of an external function */
  ORIGIN_REPORTED = 8,   /* not known, and reported by a finding already */
  ORIGIN_UNTRACKED = 16, /* a number or a pointer in a record, or one that a loop changes */
  ORIGIN_CHOSEN = 32,    /* control dependence: which of several values it is depends on one of the above */
  ORIGIN_RANK = 64,      /* which of several processes this is */
  ORIGIN_STAGED = 128,   /* memory of the host that mirrors the device's, until it is sent */
  ORIGIN_STAGE = 256     /* the stage of a pipeline as which the program is followed */
};

enum value_kind {
  VALUE_NOTHING, /* never written */
  VALUE_NUMBER,  /* a real, or anything that is not followed */
  VALUE_INTEGER, /* of low .. high */
  VALUE_POINTER
};

/* How a slot is reached: members and indices, from the object on. */
struct path {
  const struct path *parent; /* NULL: the object itself */
  const struct type *record; /* of a member; NULL for an index */
  int member;
  int64_t index;
};

/* In `blame`, in addition to the loops: the range is an over-approximation that no halving refines. A value without
 * any blame takes both ends of its range. */
#define BLAME_ALWAYS ((uint64_t)1 << 63)

/* The limits of integers that are followed: beyond, anything is possible. */
#define VALUE_MIN INT64_MIN
#define VALUE_MAX INT64_MAX

struct value {
  enum value_kind kind;
  unsigned origin;
  uint64_t blame;    /* those of the loops below that make the range an over-approximation: halving them refines it */
  uint64_t loops;    /* which loops' counters make it a range, by their index among the open loops */
  int64_t low, high; /* an integer; of a pointer: bytes from the slot's start */
  int64_t step;      /* an integer: low, low + step, ...; 0 and 1: any between */
  double real;       /* where is_known */
  bool is_known;     /* a real whose value is `real` */
  int object;        /* a pointer: among the interpreter's objects; -1: not known */
  int64_t base,
      slot_size; /* a pointer: where its slot starts in the object (base .. base + base_width), and its bytes */
  int64_t base_width;
  const struct path *path;
  const struct field *fields;  /* a record: the members of which something is known */
  const struct linear *linear; /* an integer or a pointer: what it is linear in; NULL: nothing is known */
  const struct form *form;     /* where a region's accesses are listed (region.h): of an integer; of a pointer, of
                                  its bytes from the object's start. NULL: another one of the range at each use */
};

/* A member of a record, by its offset; FIELD_ALL: every integer of the record. */
enum { FIELD_ALL = -1 };
struct field {
  const struct field *next;
  int64_t offset, size;
  struct value value;
};

struct value value_integer(int64_t low, int64_t high);
struct value value_number(unsigned origin);
struct value value_unknown_pointer(unsigned origin);

/* The origin that a condition, or an index, adds to the value that it chooses. */
unsigned origin_of_choice(unsigned origin);

/* Anything of a type: an integer of its whole range (to blame for it), a number, an unknown pointer. */
struct value value_of_type(const struct type *type, unsigned origin);

/* Either of two values. */
struct value value_join(struct value a, struct value b);

/* An integer as another integer type, or as a real. A range that does not fit wraps as a whole, or may be anything of
 * the type. 0 stays an integer as a pointer: it points to nothing. */
struct value value_convert(struct value value, const struct type *type);

/* a operator b in `type`, both integers. Sets *overflows when a signed result does not fit. */
struct value value_binary(enum operator_kind operation, struct value a, struct value b, const struct type *type,
                          bool *overflows);

/* Whether a value is an integer that is known: a range of one. */
bool value_is_one(struct value value);

/* Whether a value is the integer 0, or the pointer to nothing. */
bool value_is_null(struct value value);

/* Whether a comparison's or condition's value is true: 1 yes, 0 no, -1 either. */
int value_truth(struct value value);

/* a * b and a + b, kept within the limits. */
int64_t bounded_multiply(int64_t a, int64_t b);
int64_t bounded_add(int64_t a, int64_t b);

#endif
