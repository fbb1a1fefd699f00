/* Regions of OpenMP: what the iterations of a divided loop, or the threads of a team, access. A region is followed once
 * more to list its accesses, each with the form of its address in the counters of loops, and by whom it is done when.
 * Two of them race if they may reach the same bytes, one writes, and different threads do them between two barriers. */
#ifndef ACCEL_AUDIT_INTERP_REGION_H
#define ACCEL_AUDIT_INTERP_REGION_H

#include "gen/audit/interp/loop.h"
#include "gen/c/directives.h"

/* Who does something. */
enum doer {
  DOER_ALL,  /* each thread */
  DOER_LOOP, /* the thread that an iteration is given to */
  DOER_ONE,  /* one thread */
  DOER_MASTER
};

enum { REGION_MOST_LOOPS = 7 };

struct share {
  enum doer doer;
  int number; /* of the loop that is divided, or of what one thread does, each time that it is reached */
  int n_loops;
  const struct syntax *loops[REGION_MOST_LOOPS]; /* that are divided together */
  int symbols[REGION_MOST_LOOPS];                /* of these, while they are open */
};

enum guard_kind { GUARD_NONE, GUARD_ATOMIC, GUARD_CRITICAL };

/* What a condition says of a symbol: of a number of the thread. */
struct fixed {
  int symbol;
  int64_t number;
};
enum { GRID_MOST_FIXED = 8 };

struct access {
  int object;
  bool is_write, is_certain;
  enum guard_kind guard;
  const char *lock; /* of GUARD_CRITICAL */
  int phase;        /* barriers before it */
  struct share share;
  const struct form *at;
  const struct span *spans; /* of its terms, here */
  struct span iterations[REGION_MOST_LOOPS];
  int64_t size;
  struct span reach; /* first and last byte */
  const struct syntax *node;
  const struct syntax *call; /* of a header's function, in a kernel: it is in there; NULL: in the program's own text */
  int warp_phase;            /* in a kernel: how often the lanes of a warp have met before it, */
  int n_warp_loops;          /* the loops around it in which they do, */
  const struct fixed *fixed; /* and what is known of numbers */
  int n_fixed;
  const struct access *coarse; /* in a kernel: with symbols in place of sums, once more or once; NULL: the same */
};

/* Which loops are followed in parts, where less does not tell. */
enum detail {
  DETAIL_NONE,
  DETAIL_LAST,     /* the last iteration of those that are divided, by itself */
  DETAIL_ALL_LAST, /* of all */
  DETAIL_SINGLE,   /* every iteration of the others, where these are few */
  MOST_DETAIL      /* both */
};

struct region {
  int number, first_object; /* objects from there on are a thread's own */
  int first_parameter;      /* the object of the kernel's first parameter */
  bool is_team;             /* not the lanes of one thread */
  int detail;
  int64_t parts; /* around this point */
  const struct syntax *node;
  int n_before; /* symbols that were there before it: all share them */
  struct {
    struct access *items;
    int count, capacity;
  } accesses;
  struct share share;
  enum guard_kind guard;
  const char *lock;
  const struct syntax *atomic; /* of GUARD_ATOMIC, what is protected; NULL: all */
  int phase, n_shares, thread; /* the symbol of the thread's number; -1: none yet */
  int *shared;                 /* by object of static storage: its symbol and 1; 0: none */
  int n_shared;
  struct grid {
    bool is_one;               /* the region is a launch, its share the loops over blocks and threads */
    uint64_t threads;          /* those over the threads of a block */
    int arms;                  /* around this point, of conditions that are not known */
    const struct syntax *call; /* the outermost call of a header's function around this point; NULL: none */
    uint64_t guards;           /* there */
    int arms_of_call;
    int warp_phase, n_warp_loops;
    struct fixed fixed[GRID_MOST_FIXED];
    int n_fixed;
    const struct syntax *next; /* a loop whose next iteration is followed; NULL: none */
  } grid;
  const struct syntax *lost; /* what is not followed; NULL: nothing */
  const char *why;
  const struct syntax *wrong; /* a loop with a reduction that is none; NULL: none */
  const struct directive_name *wrong_name;
  struct access_rows {
    int64_t count, step; /* the next access is to so many rows, each so many bytes after the one before; 0: to one */
    bool is_exact;       /* not to fewer */
  } rows;
};

/* A statement with directives, and a barrier. */
enum flow interp_directive(struct interp *interp, struct syntax *node);
void interp_region_barrier(struct interp *interp, const struct syntax *node);
/* Finds the statements of all directives. */
void interp_place_directives(struct interp *interp);

/* Reports those of functions that the program uses but that are not followed. */
void interp_find_unfollowed_regions(struct interp *interp);

/* Symbols and forms (region_form.c): whether numbers get forms here; a new symbol, alone and as a form; the form
 * of an integer or an address, NULL: it is any of its range; the numbers that a form may be. Every variable gets a
 * form. */
bool interp_region_has_forms(const struct interp *interp);
int interp_region_symbol(struct interp *interp, struct symbol symbol);
const struct form *interp_region_new(struct interp *interp, struct symbol symbol);
const struct form *interp_region_form(struct interp *interp, struct value value);
struct span interp_region_span(const struct interp *interp, const struct form *form);
void interp_region_take_shared(struct interp *interp);

/* Races (region_race.c): how many pairs of accesses race; `reports`: reports each. What cannot be decided for
 * all iterations of the loops around a region at once may be decided for fewer. */
int interp_region_find_races(struct interp *interp, const struct region *region, bool reports);
void interp_region_fail(struct interp *interp, enum verdict verdict, const struct syntax *node, const char *message);

/* The variable of a name in a clause, NULL: there is none in the loop; whether the loop does nothing with it but
 * updates by an operation. */
const struct variable *interp_region_variable(struct syntax *node, const char *name);
bool interp_region_is_update(struct syntax *node, const struct variable *variable, const char *operation);

/* Where no region is listed, these do nothing and give NULL, 0, false or the value itself. */
int interp_region_number(const struct interp *interp);
void interp_region_access(struct interp *interp, struct value at, int64_t size, bool is_write,
                          const struct syntax *node);
void interp_region_scalar(struct interp *interp, struct lvalue lvalue, bool is_write, const struct syntax *node);
void interp_region_lost(struct interp *interp, const struct syntax *node, const char *why);
/* A number of static storage, the same for all threads. */
struct value interp_region_shared(struct interp *interp, int object, struct value value);
/* A number from memory. */
struct value interp_region_loaded(struct interp *interp, struct value at, struct value value);
/* The number of the thread. */
bool interp_region_thread(struct interp *interp, const struct syntax *node, struct value *value);
/* The next access is to a matrix of so many rows. */
void interp_region_rows(struct interp *interp, int64_t count, int64_t step, bool is_exact);

/* Forms. */
void interp_region_binary(struct interp *interp, enum operator_kind operation, struct value a, struct value b,
                          const struct type *type, struct value *value);
const struct form *interp_region_moved(struct interp *interp, struct value at, struct value index, int64_t size);
const struct form *interp_region_offset(struct interp *interp, struct value at, int64_t offset);

/* Loops: whether one is followed iteration by iteration; whether it is divided; how many of its iterations, the last
 * ones, are followed one by one. */
bool interp_region_unrolls(struct interp *interp, struct syntax *loop);
bool interp_region_divides(const struct interp *interp, const struct syntax *loop);
int64_t interp_region_single(struct interp *interp, const struct syntax *loop, int64_t count);
/* The form of a counter in iterations first .. first + count - 1 of a loop that begins at `start`, and the most
 * iterations of it up to a bound that is that far from the start. */
const struct form *interp_region_counter(struct interp *interp, const struct syntax *loop, struct value start,
                                         const struct variable *counter, int64_t step, int64_t first, int64_t count,
                                         bool is_exact);
int64_t interp_region_distance(struct interp *interp, struct value from, struct value to);

/* Follows a region once to list what it accesses; nothing else of it stays. */
void interp_region_list(struct interp *interp, struct syntax *node, const struct directive *directive,
                        struct region *region);
bool interp_region_may_meet(const struct access *a, const struct access *b); /* but for their addresses */
void interp_region_report(struct interp *interp, const struct region *region, const struct access *a,
                          const struct access *b, const char *who, bool certain);

/* Launches (grid.c): the blocks of a grid and the threads of each, of which those of a block wait for each other
 * at barriers. Compares what the threads of a launch access; the memory is a block's own; a barrier, and one of a warp;
 * whether a loop has one of a warp; the start and the end of a call of a function, which gives what the end takes;
 * whether threads of a block meet in a loop's iterations; the form of a counter of threads; the quotient or the
 * remainder of a form, NULL: it is not linear; what conditions leave of a symbol's span; races between the threads of a
 * launch, as interp_region_find_races. */
void interp_grid_check(struct interp *interp, struct syntax *launch);
bool interp_grid_is_shared(const struct object *object);
void interp_grid_barrier(struct interp *interp, const struct syntax *node);
void interp_grid_meet_lanes(struct interp *interp);
bool interp_grid_lanes_meet(struct interp *interp, const struct syntax *loop);
bool interp_grid_enters(struct interp *interp, const struct syntax *call, const struct function *function);
void interp_grid_leaves(struct interp *interp, bool entered);
/* In the arm of a condition that is true: what it says of the number of a thread, up to its end. */
int interp_grid_assume(struct interp *interp, struct syntax *condition);
void interp_grid_forget(struct interp *interp, int before);
bool interp_grid_meets(struct interp *interp, const struct syntax *loop);
const struct form *interp_grid_threads(struct interp *interp, int64_t count);
const struct form *interp_grid_divided(struct interp *interp, const struct form *form, int64_t divisor, bool remains);
struct span interp_grid_span(const struct interp *interp, int symbol);
/* The form of a counter whose range is narrower than its form: a symbol for it, with its sum; a form with all sums. */
const struct form *interp_grid_counter(struct interp *interp, struct value counter);
const struct form *interp_grid_expanded(struct interp *interp, const struct form *form);
/* A form in which one symbol stands for what it has of a variable of several terms, bounded as conditions leave that
 * variable; the form itself: there is no such variable. */
const struct form *interp_grid_bounded(struct interp *interp, const struct form *form);
int interp_grid_find_races(struct interp *interp, const struct region *region, bool reports);

/* Sweeps (sweep.c): whether an access of so many bytes at each address of this range leaves out some of what is
 * between its ends; whether a GPU's threads, each from its own start on, go through every number up to a bound (by a
 * step of 1: through every start below it). False where it is not known. */
bool interp_leaves_gaps(const struct interp *interp, struct value at, int64_t size);
bool interp_is_sweep(const struct interp *interp, struct value start, struct value bound, int64_t step);

/* The form of a / divisor or a % divisor, whose range is known; NULL: it is none of a kernel's. How many of the places
 * that the digits of one number make up are left out where that is known: the number has too few values; 0: none. */
const struct form *interp_digit(struct interp *interp, enum operator_kind operation, struct value a,
                                const struct form *of, int64_t divisor, struct value value);
int64_t interp_places_left_out(const struct interp *interp, const struct form *form);

/* What a kernel's regions do to its parameters. */
struct named_object {
  int parameter, object;
};
struct sharing {
  uint64_t both[64]; /* by parameter: those that a region uses with it, where it writes one of them */
  struct {
    struct region *items;
    int count, capacity;
  } regions;
  struct {
    struct named_object *items;
    int count, capacity;
  } named; /* a parameter and an object that a region uses by its name, where it writes one of them */
};

/* Whether a kernel's accesses to two of its parameters race, of which the second one begins so many bytes after the
 * first one. */
bool interp_region_races(const struct sharing *sharing, int x, int y, int64_t shift);

#endif
