/* The walk: an abstract run of the program from main on. It follows integers as ranges and pointers as ranges of bytes
 * in slots of objects, knows every loop's turns, and checks each access.
 *
 * Two levels. Functions that call kernels are followed call by call, with their loops unrolled, so that the arena's
 * state is known at each moment. A kernel (its pointers are parameters with a declared extent) is followed once for
 * each set of its numbers, over objects of that extent; its loops' counters are ranges. Where a range is too wide for a
 * proof, the range is halved and both halves are tried, down to single turns: then an access is proved, or the turn
 * that breaks it is known. */
#ifndef ACCEL_AUDIT_WALK_H
#define ACCEL_AUDIT_WALK_H

#include "gen/audit/audit.h"
#include "gen/audit/constant.h"
#include "gen/audit/map.h"
#include "gen/audit/ranges.h"
#include "gen/audit/value.h"

/* What the walk learned of a branch or a loop. */
struct note {
  bool seen;
  unsigned origin;            /* of the condition's values, over all visits */
  int64_t turns;              /* a loop: the most turns of one run, where it is bounded */
  bool counts_steps;          /* a loop: its counter lasts, and it ends at the step's number */
  bool is_shared_out;         /* a loop: at the step's border, as often as the runtime says for this step */
  bool has_assigned;          /* the list below is made */
  struct variable **assigned; /* a loop: what its body and step assign */
  int n_assigned, assigned_capacity;
};

enum object_kind { OBJECT_LOCAL, OBJECT_LASTING, OBJECT_PARAMETER, OBJECT_ARENA };

struct object {
  enum object_kind kind;
  const char *name;
  const struct variable *variable; /* NULL: the arena */
  const struct type *type;
  int64_t size;
  bool is_set_hot; /* a lasting one: the hot loop writes it */
  int once;        /* a lasting one: the program sets it in one place; -1 it does not, 0 not known yet */
  bool has_constants;
  struct constants constants;
};

/* The integers that an object or a slot holds. */
struct content {
  bool known, exact; /* exact: a contract says that each of them may come */
  int64_t low, high;
};

/* The integers of either. */
struct content content_join(struct content a, struct content b);

/* What changes of an object; the states of all objects are copied where a path splits. */
struct state {
  struct value value; /* of a scalar */
  const struct ranges *written;
  bool by_data;                 /* a parameter: what of it is accessed hangs on data */
  bool maybe_written;           /* more of it, on some of the ways here */
  const struct ranges *exposed; /* a parameter: read before the kernel wrote it */
  uint64_t apart;               /* a parameter: the ones that must not share memory with it */
  struct content content;
  struct content stored; /* a parameter: what the kernel put there, once it did */
  bool has_stored;
};

/* An lvalue: a pointer and what it points to. */
struct place {
  struct value at;
  const struct type *type;
};

enum failure_kind {
  FAILURE_LOOP,
  FAILURE_COLLECTIVE,
  FAILURE_BOUNDS,
  FAILURE_UNWRITTEN,
  FAILURE_PART,
  FAILURE_OVERLAP,
  FAILURE_ALIGNMENT,
  FAILURE_OVERFLOW,
  FAILURE_SIDE,
  FAILURE_KINDS
};

struct failure {
  enum failure_kind kind;
  enum verdict verdict;
  struct location where;
  const char *message;
  uint64_t loops; /* that may be halved for a better answer */
};

/* An access to the arena inside of an open loop, kept until the loop is done. */
struct effect_entry {
  bool is_write;
  int64_t certain; /* so many bytes from the start of it are reached whenever a step is taken */
  int64_t from, to;
  const struct path *path;
  const struct syntax *node;
};

struct frame {
  struct function *function;
  int base; /* the object of its slot 0 */
  bool returned;
  struct value result;
  unsigned chosen; /* what of an origin the choices among its ways out add to the result */
};

/* What a kernel does to its parameters, for one set of numbers. */
struct summary {
  const struct function *function;
  const struct value *arguments;
  const struct content *contents;
  const struct ranges **read, **written; /* by parameter */
  const struct content *stored;
  const uint64_t *apart; /* by parameter: those that must not share memory with it */
};

/* The integers that a kernel puts into a slot. */
struct stored {
  struct value slot;
  const struct ranges *written;
  struct content content;
};

enum { MOST_LOOPS = 60 };

struct walk {
  struct audit *audit;
  const struct tree *tree;
  struct arena *memory; /* the walk's own */
  struct object *objects;
  struct state *states;
  int n_objects, objects_capacity;
  int *lasting;               /* by variable slot: its object, -1 when there is none yet */
  int arena_object;           /* -1: none yet */
  struct map map;             /* of the arena */
  struct snapshot *snapshots; /* that are free */
  struct frame *frame;
  int depth;           /* of calls */
  int first_parameter; /* the object of the kernel's first parameter */
  bool hot;
  bool starts; /* main has not come to its first loop */
  bool in_kernel;
  int n_loops; /* that are open and not unrolled */
  struct {
    struct failure *items;
    int count, capacity;
  } failures;
  struct {
    struct failure *items;
    int count, capacity;
  } finals; /* of kernels that are done */
  struct {
    struct effect_entry *items;
    int count, capacity;
  } effects;
  struct {
    struct summary *items;
    int count, capacity;
  } summaries;
  struct {
    struct stored *items;
    int count, capacity;
  } stored;
  uint64_t choosers;           /* the loops of the launch at hand over the grid's z and y */
  uint64_t guards;             /* what to blame when it is not sure that the place at hand is reached: as value.blame */
  bool strays;                 /* something may have been written that is not followed */
  const struct syntax *lost;   /* in the hot loop, the first access to what is not known; NULL: none */
  int64_t budget;              /* visits that are left */
  int64_t steps;               /* statements that were followed, so that every walk ends */
  struct walk_device *device;  /* of a program for GPUs (walk_device.c); NULL: another */
  int kernel_base;             /* the first object of the kernel at hand that runs on the device; 0: the host runs */
  const struct object *config; /* the accel_program that the run starts with; NULL: not seen */
  struct content incoming;     /* the integers that the access at hand writes */
  int n_kernels, n_accesses;
};

enum flow { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE, FLOW_RETURN, FLOW_NEVER };

/* Walks the program and adds the claims about branches, loops, bounds, order and overlap. False when there is no end to
 * it; then they prove nothing. */
bool walk_check(struct audit *audit, struct tree *tree);

/* The most statements that a walk follows, each as often as it is come by. */
enum { WALK_MOST_STEPS = 8000000 };

/* ---- Shared by the files of the walk ---- */

/* Expressions and statements. */
struct value walk_evaluate(struct walk *walk, struct syntax *node);
struct place walk_place(struct walk *walk, struct syntax *node);
/* A pointer, `index` elements of `size` bytes on (sign 1) or back (-1). */
struct value walk_move(struct value at, struct value index, int64_t size, int sign);
enum flow walk_statement(struct walk *walk, struct syntax *node);
enum flow walk_loop(struct walk *walk, struct syntax *node);
struct value walk_call(struct walk *walk, struct syntax *node);

/* Narrows variables by a condition that is true, or false. False when it cannot be. */
bool walk_assume(struct walk *walk, struct syntax *condition, bool truth);

/* A call of a function that is not defined here: its effect on memory and its result. */
struct value walk_external(struct walk *walk, struct syntax *node, const struct value *arguments, int count);

/* The range of an integer of static storage that is set in one place, outside of the hot loop; false: it is another. */
bool walk_set_once(struct walk *walk, int object, struct value *value);

/* A function that takes nothing, where the walk stands. */
void walk_run(struct walk *walk, struct function *function);

/* A program for GPUs. */
void walk_device_start(struct walk *walk);
bool walk_starts_launch(const struct walk *walk, const struct variable *counter); /* of its outermost loop */
struct value walk_mirror(struct walk *walk, int64_t bytes);                       /* the host's arena */
/* Says so when what lies at `at` is the device's and the host is at hand, or the other way round. */
void walk_check_side(struct walk *walk, struct value at, const struct syntax *node);

/* Records. The value of {...} for a record, or for an array of pointers; a member that is set, by its place; what is
 * known of one, or NULL. */
struct value walk_record(struct walk *walk, struct syntax *list);
struct value walk_pointers(struct walk *walk, struct syntax *list);
const struct field *walk_set_field(struct walk *walk, const struct field *fields, int64_t offset, int64_t size,
                                   struct value value);
const struct value *walk_field(const struct field *fields, int64_t offset, int64_t size);
/* The integers of a record's value, all alike; and such a value. */
struct content walk_integers(struct value record);
void walk_set_integers(struct walk *walk, struct value *record, struct content content);

/* What a constant variable holds at a place, of an origin. */
struct value walk_constant(struct walk *walk, struct place place, unsigned origin);

/* Memory. */
int walk_object(struct walk *walk, enum object_kind kind, const struct variable *variable, const char *name,
                const struct type *type, int64_t size);
int walk_variable(struct walk *walk, const struct variable *variable); /* its object */
struct value walk_load(struct walk *walk, struct place place, const struct syntax *node);
void walk_store(struct walk *walk, struct place place, struct value value, const struct syntax *node);
struct value walk_address(const struct walk *walk, int object);
/* `size` bytes at a pointer are read or written; false when that is outside of its slot. */
bool walk_access(struct walk *walk, struct value pointer, int64_t size, bool is_write, const struct syntax *node);
/* The integers behind a pointer are of this range from now on. */
void walk_set_content(struct walk *walk, struct value pointer, int64_t size, struct content content);
struct content walk_content(const struct walk *walk, struct value pointer);
/* Applies the arena's accesses that were kept, when no loop is open. */
void walk_flush(struct walk *walk);
/* Something is written that is not followed. */
void walk_stray(struct walk *walk);
/* A copy of all states, back from it, and the end of its use. */
struct state *walk_save(struct walk *walk);
void walk_restore(struct walk *walk, const struct state *saved, int count);
void walk_drop(struct walk *walk, struct state *saved);
/* What may be after one of two ways, by a condition. Where that depends on no counter, one of them was taken, so that
 * only what both wrote is written; otherwise
 * both were, in different turns of a loop. */
void walk_merge(struct walk *walk, const struct state *other, int count, struct value condition);

/* The arena is of this type. False when one was told before. */
bool walk_set_arena(struct walk *walk, const struct type *type, const struct syntax *node);

/* Kernels. */
bool walk_is_kernel(struct function *function);
bool walk_orchestrates(struct function *function);

/* Collectives: whether a function reaches one; the arguments of a call of one; the claim about all. */
bool walk_exchanges(struct function *function);
void walk_collective(struct walk *walk, struct syntax *node, const struct value *arguments, int count);
void walk_claim_collectives(struct walk *walk);

struct note *walk_note(struct walk *walk, struct syntax *node);
/* Notes what a choice depends on, where it is not decided. */
void walk_note_choice(struct walk *walk, struct syntax *node, struct value condition);
/* What to blame for it when it is not known whether a condition holds. */
uint64_t walk_guard(struct value condition);
void walk_fail(struct walk *walk, enum failure_kind kind, enum verdict verdict, const struct syntax *node,
               uint64_t loops, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* From here on, what the hot loop does is not all followed: the claims that rest on it cannot be told. */
void walk_lose(struct walk *walk, const struct syntax *node, const char *what);

/* The loops whose counters, halved, may say more of a value at the place at hand; 0: it is exactly so. */
uint64_t walk_doubt(const struct walk *walk, struct value value);

/* For messages: "data" */
const char *walk_origin_word(unsigned origin);
/* Adds the failures of a kind to its claim. */
void walk_add_failures(struct walk *walk, struct claim *claim, enum failure_kind kind);

/* "arena.saved.block[3].mlp.gelu" */
const char *walk_slot_name(const struct walk *walk, struct value pointer);
/* An expression, shortly, for messages: "g[i]" */
const char *walk_spell(struct walk *walk, const struct syntax *node);

/* The claims of what was learned. */
void walk_claims(struct walk *walk);

#endif
