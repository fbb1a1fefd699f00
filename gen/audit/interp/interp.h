/* The abstract interpreter: runs the program from main on with abstract values. It represents integers as ranges and
 * pointers as ranges of bytes in slots of objects, knows the number of every loop's iterations, and checks each access.
 *
 * Two levels. Functions that call kernels are followed call by call, with their loops unrolled, so that the arena's
 * state is known at each moment. A kernel (its pointers are parameters with a declared extent) is followed once for
 * each set of its numbers, over objects of that extent; its loops' counters are ranges. Where a range is too wide for a
 * proof, the range is halved and both halves are tried, down to single iterations: then an access is proved, or the
 * iteration that breaks it is known. */
#ifndef ACCEL_AUDIT_INTERP_INTERP_H
#define ACCEL_AUDIT_INTERP_INTERP_H

#include "gen/audit/interp/constant.h"
#include "gen/audit/interp/in_flight.h"
#include "gen/audit/interp/map.h"
#include "gen/audit/interp/ranges.h"
#include "gen/audit/interp/value.h"
#include "gen/audit/program/claim.h"

/* What the interpreter learned of a branch or a loop. */
struct note {
  bool seen;
  unsigned origin;    /* of the condition's values, over all visits */
  int64_t iterations; /* a loop: the most iterations of one run, where it is bounded */
  bool counts_steps;  /* a loop: its counter is static, and it ends at the step's number */
  bool is_shared_out; /* a loop of the step's own function, with an iteration count that the runtime gives for this step
                       */
  int is_unrolled;    /* a loop: 1 when it calls kernels or collectives, -1 when not, 0 not known yet */
  int leaves;         /* a loop: 1 when a break or a return may end it, -1 when not, 0 not known yet */
  bool is_undecided;  /* a choice: its condition was not known */
  int takes_pointers; /* a loop: 1 when it uses an element of an array of pointers, -1 when not, 0 not known yet */
  int awaits;         /* a wait: 1 when something was in flight for it, -1 when it never was, 0: it is no wait */
  const struct directive *directive; /* of OpenMP, that this statement is for; NULL: none */
  bool barrier_at_end;               /* a block */
  bool has_open_races;               /* a region: it has been listed, and what it accesses does not tell */
  int spreads;                       /* a loop: 1 when threads share out or meet in it, -1 when not, 0 not known yet */
  int warps;                         /* a loop: 1 when the lanes of a warp meet in it, -1 when not, 0 not known yet */
  int counter;                       /* a loop of a kernel in which threads meet: the symbol of its iterations */
  bool has_assigned;                 /* the list below is made */
  struct variable **assigned;        /* a loop: what its body and step assign */
  int n_assigned, assigned_capacity;
};

enum object_kind { OBJECT_LOCAL, OBJECT_STATIC, OBJECT_PARAMETER, OBJECT_ARENA };

struct object {
  enum object_kind kind;
  const char *name;
  const struct variable *variable; /* NULL: the arena */
  const struct type *type;
  int64_t size;
  bool is_set_by_steps; /* a static one: the step path writes it */
  int region;           /* the region whose accesses are listed in which it is declared, by number; 0: none */
  int once;             /* a static one: 1 when a single statement sets it, -1 when not, 0 not known yet */
  bool has_constants;
  struct constants constants;
};

/* The interval of the integers in an object or a slot. */
struct content {
  bool known, exact; /* exact: by a contract, each of them may occur */
  int64_t low, high;
  const struct grouping *grouping; /* an array: what a counting sort has put there; NULL: nothing is known */
};

/* The smallest interval that contains both. */
struct content content_join(struct content a, struct content b);

/* The abstract state of an object; the states of all objects are copied where a path splits. */
struct state {
  struct value value; /* of a scalar */
  const struct ranges *written;
  bool by_data; /* a parameter: which of its elements are accessed depends on data */
  bool has_stored;
  bool maybe_written;           /* more of it is written, on some of the paths that lead here */
  const struct ranges *exposed; /* a parameter: its upward exposed reads, before the kernel wrote it */
  uint64_t noalias;             /* a parameter: bits of the parameters that must not alias it */
  struct content content;
  struct content stored; /* a parameter: what the kernel stored, where has_stored */
};

/* An lvalue: a pointer and what it points to. */
struct lvalue {
  struct value at;
  const struct type *type;
};

enum failure_kind {
  FAILURE_LOOP,
  FAILURE_COLLECTIVE,
  FAILURE_DEADLOCK,
  FAILURE_TRANSFER,
  FAILURE_BOUNDS,
  FAILURE_UNWRITTEN,
  FAILURE_PARTIAL,
  FAILURE_OVERLAP,
  FAILURE_RACE,
  FAILURE_ALIGNMENT,
  FAILURE_OVERFLOW,
  FAILURE_OUTSIDE,
  FAILURE_ADDRESS_SPACE,
  FAILURE_KINDS
};

struct failure {
  enum failure_kind kind;
  enum verdict verdict;
  struct location where;
  const char *message;
  uint64_t loops; /* that may be halved for a better answer */
};

/* An access to the arena within an open loop, applied when the loop has ended. */
struct pending_access {
  bool is_write;
  int64_t certain; /* so many bytes from the start of it are reached whenever a step is taken */
  int64_t from, to;
  const struct path *path;
  const struct syntax *node;
  uint64_t loops; /* that make it a range */
  bool is_exact;  /* all of it is accessed, but for what conditions leave out */
  bool has_gaps;  /* some of it is not */
};

struct frame {
  struct function *function;
  const struct frame *caller; /* NULL: none */
  int base;                   /* the object of its slot 0 */
  bool returned;
  struct value result;
  struct in_flight at_return; /* at one of its return statements */
  unsigned chosen;            /* the origin that the choice among its return statements adds to the result */
};

/* What a kernel does to its parameters, for one set of numbers. */
struct summary {
  const struct function *function;
  const struct value *arguments;
  const struct content *contents;
  const struct ranges **read, **written; /* by parameter */
  const struct content *stored;
  const uint64_t *noalias; /* by parameter: bits of those that must not alias it */
  const struct sharing *sharing;
};

/* The integers that a kernel puts into a slot. */
struct stored {
  struct value slot;
  const struct ranges *written;
  struct content content;
};

/* What a stage of a pipeline exchanges with others, in the order in which it comes to it. */
enum message_kind {
  MESSAGE_SEND,
  MESSAGE_START, /* of a message, which a receipt or a wait ends */
  MESSAGE_WAIT,
  MESSAGE_WAIT_ONE, /* for what was started from one address */
  MESSAGE_RECEIVE,  /* which ends when what was started is sent, too */
  MESSAGE_TAKE,     /* which leaves it on its way */
  MESSAGE_EXCHANGE,
  MESSAGE_TOGETHER,
  MESSAGE_ROUND /* an iteration of a loop begins or ends, of which all stages have as many */
};
struct stage_message {
  enum message_kind kind;
  const struct syntax *node;
  int64_t peer, size;  /* the other stage; bytes or elements */
  struct value memory; /* of a message, and of a wait for one: where it is */
};
struct stage_messages {
  struct stage_message *items;
  int count, capacity;
};

enum { MAX_LOOPS = 60, MAX_STAGES = 32, SIZES = 256, DEEPEST_CALL = 64 };

/* After the arguments of a call there are so many of VALUE_NOTHING: a program may declare a function with fewer than it
 * has. */
enum { SPARE_ARGUMENTS = 16 };

/* A quotient or a remainder of a number: number / divisor, or number / divisor % modulus. */
struct digit {
  const struct form *of; /* NULL: it is none */
  int64_t numbers;       /* how many there are of these at most */
  int64_t divisor, modulus;
  int64_t count; /* of the digit's values */
};

/* What forms are linear in: a counter of a loop, or another number. */
struct symbol {
  struct span span;
  bool is_exact;                  /* each number of the span occurs, whatever the other symbols are */
  const struct variable *counter; /* of a loop; NULL: another number */
  int64_t start, step;            /* the counter is start + step * the symbol */
  bool is_uniform;                /* the same for all threads of a block where they meet */
  bool is_of_warps;               /* of a loop in which the lanes of a warp meet */
  struct digit digit;
  const struct form *sum; /* a number that is smaller than this sum may be, of which it is one; NULL: none */
};

/* A loop over counter = 0 .. count - 1, or over a part of its iterations. */
struct open_loop {
  const struct variable *counter;
  int64_t count;
  bool is_whole;
};

struct interp {
  struct audit *audit;
  const struct tree *tree;
  struct arena *memory;    /* the interpreter's own */
  struct arena *forms;     /* of values, and what a region accesses */
  struct arena *arguments; /* of the calls that are open, given back when a call ends */
  struct object *objects;
  struct state *states;
  int n_objects, objects_capacity;
  int *statics;                          /* by variable slot: its object, -1 when there is none yet */
  int arena_object;                      /* -1: none yet */
  struct map map;                        /* of the arena */
  const struct ranges *lasting;          /* its bytes that the table of states names, weights among them; NULL: none */
  const struct ranges *updated;          /* bytes of the arena that steps write, where there are lasting ones */
  const struct ranges *perhaps_updated;  /* bytes of which they write some */
  bool has_looped;                       /* outside of the step: the program has started */
  int taking_step;                       /* calls of what takes a step that are open */
  struct snapshot *snapshots;            /* that are free */
  const struct ranges *all_bytes[SIZES]; /* of a variable, the last one with its size modulo SIZES; NULL: none yet */
  struct frame *frame;
  int depth;           /* of calls */
  int first_parameter; /* the object of the kernel's first parameter */
  bool in_step_path;
  bool starts; /* main has not reached its first loop */
  bool in_kernel;
  int n_loops; /* that are open and not unrolled: bits of value.loops */
  struct open_loop open[MAX_LOOPS];
  int64_t iterations;    /* of all of these together */
  struct row_chain rows; /* in a kernel */
  int sorted_index;      /* in a kernel: the object whose elements a counting sort has placed; -1: none */
  struct {
    struct failure *items;
    int count, capacity;
  } failures;
  struct {
    struct failure *items;
    int count, capacity;
  } kernel_failures; /* of kernels that are done */
  struct {
    struct pending_access *items;
    int count, capacity;
  } pending;
  struct {
    struct summary *items;
    int count, capacity;
  } summaries;
  struct {
    struct stored *items;
    int count, capacity;
  } stored;
  uint64_t grid_loops; /* the loops of the current launch over the grid's z and y */
  uint64_t guards;     /* of the path condition, as value.blame: why it is not certain that this point is reached */
  int doubts; /* arms of a kernel around this point, of conditions that are not known and the same for all threads */
  bool has_unknown_write;         /* memory may have been written that is not tracked */
  const struct syntax *untracked; /* on the step path, the first access to what is not known; NULL: none */
  bool is_launched;               /* this is in the loops of a launch */
  int halvings;                   /* the loops of a launch of which a half is followed */
  int first_symbol;               /* of this launch */
  int64_t budget;                 /* visits that are left */
  int64_t steps;                  /* statements that were followed, so that every interpretation ends */
  struct interp_device *device;   /* of a program for GPUs (device.c); NULL: of another program */
  int kernel_base;                /* the first object of the current kernel that runs on the device; 0: the host runs */
  const struct object *config;    /* the accel_program that the run starts with; NULL: not seen */
  struct content incoming;        /* the integers that the current access writes */
  int n_kernels, n_accesses;
  int stage, n_stages; /* of a pipeline: as which one the program is followed, of how many; 0: it has not asked */
  struct stage_messages messages[MAX_STAGES];
  bool passes_on; /* ranks along an axis exchange data in a ring */
  struct in_flight in_flight;
  struct {
    struct again *items;
    int count, capacity;
  } again;                /* calls of the device's half that were followed */
  struct again *recorded; /* the one that is being followed; NULL: none */
  bool is_spoiled;        /* it does more than is recorded */
  int deepest;            /* the most calls that were open in it */
  bool starts_transfer;   /* the current accesses are those of a collective that is being started */
  bool has_left;          /* a path has left an iteration of the current loop, with this in flight: */
  struct in_flight left_with;
  struct {
    struct symbol *items;
    int count, capacity;
  } symbols;
  struct region *region;   /* whose accesses are being listed; NULL: none */
  int rehearsals;          /* what is followed now is followed as a whole elsewhere */
  struct sharing *sharing; /* of the current kernel's parameters */
  bool has_open_races;     /* some region of the current kernel has */
  int teams;               /* of threads, around this point */
  int n_regions, n_listed; /* regions that were followed, and accesses of these */
  int region_numbers;      /* the last one */
  int n_starts, n_waits, most_in_flight;
  int64_t n_concurrent; /* accesses while something was in flight */
};

enum flow { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE, FLOW_RETURN, FLOW_UNREACHABLE };

/* Interprets the program and adds the claims about branches, loops, bounds, order and overlap. False when the limit of
 * statements was reached first; then the claims prove nothing. */
bool interp_check(struct audit *audit, struct tree *tree);

/* The most statements that are interpreted, each counted as often as it is reached. */
enum { INTERP_MAX_STEPS = 40000000 };

/* ---- Shared by the interpreter's files ---- */

/* Expressions and statements. */
struct value interp_evaluate(struct interp *interp, struct syntax *node);
struct lvalue interp_lvalue(struct interp *interp, struct syntax *node);
/* A pointer, `index` elements of `size` bytes on (sign 1) or back (-1). */
struct value interp_move(struct interp *interp, struct value at, struct value index, int64_t size, int sign);
enum flow interp_statement(struct interp *interp, struct syntax *node);
enum flow interp_statement_alone(struct interp *interp, struct syntax *node); /* without its directives */
enum flow interp_loop(struct interp *interp, struct syntax *node);
struct value interp_call(struct interp *interp, struct syntax *node);

/* Narrows variables by a condition that is true, or false. False when it cannot be. */
bool interp_assume(struct interp *interp, struct syntax *condition, bool truth);

/* The expression without the conversions around it that keep its number as it is: every one of its type, or those that
 * it can be here. */
struct syntax *interp_unconverted(struct interp *interp, struct syntax *node);

/* A call of a function that is not defined here: its effect on memory and its result. */
struct value interp_external(struct interp *interp, struct syntax *node, const struct value *arguments, int count);

/* The range of an integer of static storage that is set by one statement, outside of the step path; false: it is
 * another.
 */
bool interp_set_once(struct interp *interp, int object, struct value *value);

/* Calls a function in the current state, with a value for each of its parameters. */
void interp_run(struct interp *interp, struct function *function, const struct value *arguments);

/* A program for GPUs. */
void interp_device_start(struct interp *interp);
bool interp_starts_launch(const struct interp *interp, const struct variable *counter); /* of its outermost loop */
struct value interp_mirror(struct interp *interp, int64_t bytes);                       /* the host's arena */
bool interp_is_mirror(const struct interp *interp, int object);
/* Reports an access of the host to the device's memory, or of the device to the host's. */
void interp_check_address_space(struct interp *interp, struct value at, const struct syntax *node);

/* Records. The value of {...} for a record, or for an array of pointers; a member that is set, by its offset;
 * what is known of a member, or NULL. */
struct value interp_record(struct interp *interp, struct syntax *list);
struct value interp_pointers(struct interp *interp, struct syntax *list);
const struct field *interp_set_field(struct interp *interp, const struct field *fields, int64_t offset, int64_t size,
                                     struct value value);
const struct value *interp_field(const struct field *fields, int64_t offset, int64_t size);
/* The integers of a record's value, all alike; and such a value. */
struct content interp_integers(struct value record);
void interp_set_integers(struct interp *interp, struct value *record, struct content content);

/* The value of a constant variable at an lvalue, with an origin. */
struct value interp_constant(struct interp *interp, struct lvalue lvalue, unsigned origin);

/* Counting sorts (grouping.c). What an array holds before an element of it is incremented, and what follows from
 * the increment: for the array, and for the element's old value. */
struct content interp_content_before(const struct interp *interp, const struct syntax *node, struct lvalue lvalue);
void interp_count(struct interp *interp, struct syntax *node, struct lvalue lvalue, struct content before,
                  struct value *old);
/* The object whose counts a loop makes starts, and what these are; -1: it is another loop. Afterwards, that it holds
 * them. Starts of which nothing is known but their bound. */
int interp_sums_counts(struct interp *interp, struct syntax *loop, const struct variable *counter, int64_t first,
                       int64_t iterations, const struct grouping **starts);
void interp_set_starts(struct interp *interp, int object, const struct grouping *starts);
const struct grouping *interp_starts_up_to(struct interp *interp, int64_t total); /* from 0 on */
/* What was counted, by a kernel's parameters instead of the arena's bytes, and back; after a write to the arena. */
void interp_grouping_enters(struct interp *interp, const struct function *function, const struct value *arguments,
                            struct content *content);
void interp_grouping_leaves(struct interp *interp, const struct function *function, const struct value *arguments,
                            const struct ranges *const *written, struct content *content);
const struct grouping *interp_grouping_after_write(struct interp *interp, const struct grouping *grouping, int64_t from,
                                                   int64_t to);

/* Linear forms (linear.c): of an element of starts; of a + b, a - b or a * b, whose interval is `value` already;
 * of a pointer that is moved. */
const struct linear *interp_linear_element(struct interp *interp, const struct grouping *starts, int64_t element);
void interp_linear_binary(struct interp *interp, enum operator_kind operation, struct value a, struct value b,
                          struct value *value);
const struct linear *interp_linear_moved(struct interp *interp, struct value at, struct value index, int64_t size,
                                         int sign);
/* Rows that a kernel has written one after the other end here, before the array's end. */
void interp_end_rows(struct interp *interp, const struct syntax *node);

/* Memory. */
int interp_object(struct interp *interp, enum object_kind kind, const struct variable *variable, const char *name,
                  const struct type *type, int64_t size);
int interp_variable(struct interp *interp, const struct variable *variable); /* its object */
struct value interp_load(struct interp *interp, struct lvalue lvalue, const struct syntax *node);
void interp_store(struct interp *interp, struct lvalue lvalue, struct value value, const struct syntax *node);
struct value interp_address(const struct interp *interp, int object);
/* The set of the bytes 0 .. size - 1. */
const struct ranges *interp_all_bytes(struct interp *interp, int64_t size);
/* A write of these bytes of the arena, which may be outside of the step. */
void interp_check_outside(struct interp *interp, int64_t from, int64_t to, const struct syntax *node);
/* A write that is not known to be inside of its object: outside of the step it may reach the arena. */
void interp_fail_outside(struct interp *interp, struct value at, const struct syntax *node);
/* `size` bytes at a pointer are read or written; false when that is outside of its slot. */
bool interp_access(struct interp *interp, struct value pointer, int64_t size, bool is_write, const struct syntax *node);
/* The integers that a pointer points to are of this range from now on. */
void interp_set_content(struct interp *interp, struct value pointer, int64_t size, struct content content);
struct content interp_content(const struct interp *interp, struct value pointer);
/* The current integers, or others, are written to some of these bytes of the arena. */
void interp_widen_contents(struct interp *interp, int64_t from, int64_t to);
/* Applies the pending accesses to the arena when no loop is open. */
void interp_flush(struct interp *interp);

/* An access that is certain in its order, to the arena as it is now. */
void interp_apply(struct interp *interp, const struct pending_access *access);

/* Calls of the device's half that are followed once (again.c): calls such a function with these arguments, or
 * does what another call with the like of them did. False: it is none of those that can be; nothing has been done. */
bool interp_call_again(struct interp *interp, struct function *function, const struct value *arguments);
/* What the call that is being followed does: an access to the arena, a read of what interp_set_once gave, of a pointer
 * or of another number of static storage, a mark of what steps set, a choice between arms of which one is taken, a
 * change of what is known of integers in bytes of the arena, a check of an address, a call of an external function; or
 * something else that is not recorded. */
void interp_record_number(struct interp *interp, int object, struct value value);
void interp_record_pointer(struct interp *interp, int object, struct value value);
void interp_record_origin(struct interp *interp, int object);
void interp_record_set(struct interp *interp, int object);
void interp_record_choice(struct interp *interp);
void interp_record_content(struct interp *interp, struct value at, int64_t from, int64_t to, bool sets,
                           struct content content);
void interp_record_access(struct interp *interp, const struct pending_access *access);
void interp_record_alignment(struct interp *interp, int64_t alignment);
void interp_record_external(struct interp *interp, const struct syntax *node, const struct value *arguments, int count);
void interp_spoil_record(struct interp *interp);

/* Whether an access of those reads what was written neither before the loops that are open nor by those before it. */
bool interp_reads_unwritten(const struct interp *interp, int access);
/* A write to memory that is not tracked: any object may have changed. */
void interp_unknown_write(struct interp *interp);
/* Copies all states, restores them from a copy, and frees a copy for reuse. */
struct state *interp_save(struct interp *interp);
void interp_restore(struct interp *interp, const struct state *saved, int count);
void interp_drop(struct interp *interp, struct state *saved);
/* Joins the states after two branches of a condition. Where the condition depends on no counter, one branch was taken,
 * so that only what both wrote is written; otherwise both were taken, in different iterations of a loop. */
void interp_join(struct interp *interp, const struct state *other, int count, struct value condition);

/* Sets the arena's type. False when it has another type already. */
bool interp_set_arena(struct interp *interp, const struct type *type, const struct syntax *node);

/* Kernels. */
bool interp_is_kernel(struct function *function);
bool interp_orchestrates(struct function *function);

/* Whether the memory that two pointers may reach within their slots may overlap. */
bool interp_may_overlap(struct value x, struct value y);
/* Memory that a call writes must not be memory of another of its arguments: reports where it is. Of two parameters of
 * the current kernel, it is a constraint on the kernel's callers. */
void interp_require_noalias(struct interp *interp, const struct syntax *call, const char *function,
                            struct value written, struct value other);

/* The same where it may be the other's memory from the same element on, and not overlap it otherwise. Outside of
 * kernels. */
void interp_require_in_place(struct interp *interp, const struct syntax *call, const char *function,
                             struct value written, struct value other);

/* Collectives: whether a function reaches one; the arguments of a call of one; the claim about all. */
bool interp_reaches_collective(struct function *function);
void interp_collective(struct interp *interp, struct syntax *node, const struct value *arguments, int count);
void interp_claim_collectives(struct interp *interp);

/* Stages of a pipeline: whether an argument is their axis; a call that exchanges something among ranks; the claim about
 * all of these. */
bool interp_is_stage_axis(const struct syntax *argument, struct value axis);
void interp_message(struct interp *interp, const struct syntax *node, const struct value *arguments, int count);
void interp_claim_stages(struct interp *interp);
/* An iteration of a loop of which all stages have as many, whatever number that is: what stages exchange in it ends in
 * it, so that one iteration stands for all. `first` is what the first function gave before it. */
int interp_round_begins(const struct interp *interp);
void interp_round_ends(struct interp *interp, const struct syntax *loop, int first);

/* A call that gives a rank something and takes something from another one, all along an axis alike; the claim about all
 * of these. */
void interp_ring(struct interp *interp, const struct syntax *node, const struct value *arguments, int count);
void interp_claim_ring(struct interp *interp);

/* Collectives in flight (transfer.c). Whether a loop or a function reaches a collective, or what is in flight
 * until it is waited for; a memory access, to
 * bytes from .. to - 1 of an object, which must not race with them; */
bool interp_has_collective(struct syntax *node);
bool interp_has_transfer(struct syntax *node);
bool interp_reaches_transfer(struct function *function);
void interp_check_race(struct interp *interp, struct value at, int64_t from, int64_t to, bool is_write,
                       const struct syntax *node);
/* what is in flight on two paths that join, which must agree: in an iteration's end and the next one's start, or
 * otherwise; */
void interp_agree(struct interp *interp, const struct in_flight *other);
void interp_agree_in_loop(struct interp *interp, const struct syntax *loop, const struct in_flight *before);
/* a path that leaves an iteration by break or continue, and what all such paths of a loop must agree with; */
void interp_leave(struct interp *interp, enum flow flow);
void interp_agree_with_left(struct interp *interp);
/* where nothing may be in flight, from then on nothing is: "the step ends"; where no local object may be, from `first`
 * on; the claim about all. */
void interp_require_none_in_flight(struct interp *interp, struct location where, const char *what);
void interp_require_no_locals_in_flight(struct interp *interp, const struct function *function, int first);
void interp_claim_transfers(struct interp *interp);

/* Whether a condition is true, or false, for the numbers between bounds: comparisons of integers, all of them. */
bool interp_is_bound(struct syntax *condition, bool truth);
/* Whether a choice was not decided wherever it was followed, by nothing but counters and constants. */
bool interp_is_by_counters(const struct syntax *node);
/* Whether a statement or an expression is a write: an assignment to more than a variable or a member of one, or a call
 * of what may be one. */
bool interp_is_write(const struct syntax *node);
/* Whether a function is in the program's own text, of either half. */
bool interp_is_program(const struct interp *interp, const struct function *function);

/* A write to the arena; findings for the arrays of weights that steps write in part. */
void interp_note_update(struct interp *interp, const struct pending_access *access);
bool interp_is_open_update(const struct interp *interp, const struct pending_access *access); /* of some of its bytes */
void interp_check_updates(struct interp *interp);
/* Findings for the conditions of the step path that leave out writes, and for choices that write the old number. */
void interp_find_chosen(struct interp *interp, struct claim *claim);
void interp_find_kept(struct interp *interp, struct claim *claim);
/* Findings for the jumps of the step path that leave out writes. */
void interp_find_left_out(struct interp *interp, struct claim *claim);

struct note *interp_note(struct interp *interp, struct syntax *node);
/* Notes what a choice depends on, where its condition is not constant. */
void interp_note_choice(struct interp *interp, struct syntax *node, struct value condition);
/* The blame for not knowing whether a condition is true, as value.blame. */
uint64_t interp_guard(struct value condition);
void interp_fail(struct interp *interp, enum failure_kind kind, enum verdict verdict, const struct syntax *node,
                 uint64_t loops, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* From here on the step path is not tracked completely: the claims that rest on it cannot be decided. */
void interp_lose_track(struct interp *interp, const struct syntax *node, const char *what);

/* The loops whose iteration spaces, halved, may make a value more precise here; 0: it is exact. */
uint64_t interp_imprecision(const struct interp *interp, struct value value);

/* For messages: "data" */
const char *interp_origin_word(unsigned origin);
/* Adds the failures of a kind to its claim. */
void interp_add_failures(struct interp *interp, struct claim *claim, enum failure_kind kind);

/* Whether a place is in the program's own text, not in a header. */
bool interp_is_own(const struct interp *interp, struct location where);

/* "arena.saved.block[3].mlp.gelu" */
const char *interp_slot_name(const struct interp *interp, struct value pointer);
/* An expression, abbreviated for messages: "g[i]" */
const char *interp_spell(struct interp *interp, const struct syntax *node);

/* Adds the claims. */
void interp_claims(struct interp *interp);

#endif
