"""Small programs with one thing wrong each, and the claims that must find it. `/*!*/` stands on the lines at fault, or
`at` holds a piece of them."""

PROGRAM = """#include <accel/trainer.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
{includes}
struct arena {{
  float weights[6 * 4];
  float gradients[6 * 4];
  int32_t tokens[2 * 4];
  int32_t targets[2 * 4];
  float x[8 * 4];
  float y[8 * 4];
{members}
}};
static struct arena *arena;
{globals}
/* y[r][:] = weights[tokens[r]][:]. */
static void embed(float y[static 8 * 4], const float weights[static 6 * 4], const int32_t tokens[static 2 * 4]) {{
  for (size_t r = 0; r < 8; r++)
    for (size_t c = 0; c < 4; c++) y[r * 4 + c] = weights[(size_t)tokens[r] * 4 + c];
}}

static void kernel(float y[static 8 * 4], const float x[static 8 * 4]) {{
{kernel}
}}

static void backward(float gradients[static 6 * 4], const float y[static 8 * 4], const int32_t tokens[static 2 * 4]) {{
  memset(gradients, 0, 24 * sizeof(float));
  for (size_t r = 0; r < 8; r++)
    for (size_t c = 0; c < 4; c++) gradients[(size_t)tokens[r] * 4 + c] += y[r * 4 + c];
}}
{functions}
static void step(struct accel_run *run, int64_t at) {{
  accel_load_sequences(run, ACCEL_TRAIN, at * 2, 2, arena->tokens, arena->targets);
  embed(arena->x, arena->weights, arena->tokens);
{step}
  backward(arena->gradients, arena->y, arena->tokens);
  for (size_t i = 0; i < 24; i++) arena->weights[i] -= 0.1f * arena->gradients[i];
}}

{states}
static const struct accel_program program = {{
    .steps = {steps},
    .weights_bytes = 6 * 4 * sizeof(float),
    .arena_bytes = {arena_bytes},
    .sequence_length = {sequence_length},
    .vocabulary = {vocabulary},
}};

int main(int argc, char **argv) {{
  struct accel_run *run = accel_start(&program, argc, argv);
  arena = accel_arena(run);
  accel_fill_weights(run, arena->weights);
{start}
  for (int64_t at = 0; at < accel_steps(run); at++) step(run, at);
  return accel_finish(run);
}}
"""

PARTS = {
    "includes": "",
    "members": "",
    "globals": "",
    "kernel": "  for (size_t i = 0; i < 32; i++) y[i] = x[i] > 0.0f ? x[i] : 0.0f;",
    "functions": "",
    "step": "  kernel(arena->y, arena->x);",
    "start": "",
    "steps": "10",
    "sequence_length": "4",
    "vocabulary": "6",
    "arena_bytes": "sizeof(struct arena)",
    "states": "",
}


class Case:
    """A program: PROGRAM with some parts of its own; `claims` are the ones that do not hold, `open` those that cannot be
    reported because of it."""

    def __init__(self, claims, verdict="broken", root=None, at=(), open="", **parts):
        self.claims, self.verdict, self.root, self.open = claims.split(), verdict, root, open.split()
        self.text = PROGRAM.format(**{**PARTS, **parts})
        lines = self.text.split("\n")
        self.lines = [i + 1 for i, line in enumerate(lines) if "/*!*/" in line or any(text in line for text in at)]


GOOD = Case("")
EFFECTS = "no-allocation no-file no-network no-environment no-clock no-process no-runtime-between-steps "
WALK = "bounded-loops in-bounds written-before-read no-overlap aligned "
STEP = "known-externals strings-listed no-configuration-branch whole-arrays no-overflow"
TOKENS = ["tokens[r] * 4"]
KERNEL = ["static void kernel("]
RACE = "no-race-with-transfers"
SUM = "  accel_start_all_reduce(ACCEL_DP_REPLICATE, arena->y, 8);\n"
SUMMED = "  accel_wait_collectives();\n"



def of_ranks(claims, step, verdict="broken", open="", **parts):
    """A step that ends with what several ranks do together."""
    globals = "static int64_t rank;\nstatic const size_t firsts[] = {0, 8, 16};\n" + parts.pop("globals", "")
    return Case(claims, verdict, open=open, includes="#include <accel/collectives.h>", globals=globals,
                start="  rank = accel_rank(run);" + parts.pop("start", ""), step=PARTS["step"] + "\n" + step, **parts)


def copied(count):
    return {"globals": f"static int32_t read[{count}];",
            "step": "  accel_load_sequences(run, ACCEL_TRAIN, at, 2, read, arena->targets);\n"
            "  memcpy(arena->tokens, read, sizeof arena->tokens);\n  embed(arena->y, arena->weights, arena->tokens);"}


def marked(written):
    """A kernel that writes one table and looks its rows up in another."""
    return {"functions": "static void marked(int32_t a[static 2 * 4], const int32_t b[static 2 * 4], float y[static 8 * 4], "
            "const float x[static 6 * 4]) {\n  for (size_t i = 0; i < 8; i++) a[i] = 6;\n  for (size_t i = 0; i < 8; i++)\n"
            "    for (size_t c = 0; c < 4; c++) y[i * 4 + c] = x[(size_t)b[i] * 4 + c];\n}",
            "members": "  int32_t marks[2 * 4];",
            "step": f"  marked(arena->{written}, arena->tokens, arena->y, arena->weights);"}


def chosen(then, otherwise):
    """A kernel that stores rows in two branches, each with something added; they are looked up."""
    return {"functions": "static void choose(int32_t a[static 2 * 4], const int32_t b[static 2 * 4]) {\n"
            f"  for (size_t i = 0; i < 8; i++)\n    if (i >= 1 && i < 8)\n      a[i] = b[i] + {then};\n    else\n      a[i] = b[i] + {otherwise};\n}}",
            "members": "  int32_t chosen[2 * 4];",
            "step": "  choose(arena->chosen, arena->tokens);\n  embed(arena->y, arena->weights, arena->chosen);"}


def summed(cleared=64, rows=8, half=32):
    """A kernel with room of no declared extent, of which threads have a half each."""
    return {"functions": "static void summed(float y[static 8 * 4], const float x[static 8 * 4], float *room) {\n"
            f"  for (size_t i = 0; i < {cleared}; i++) room[i] = 0.0f;\n#pragma omp parallel for\n  for (size_t part = 0; part < 2; part++)\n"
            f"    for (size_t i = 0; i < 16; i++) room[part * {half} + i] += x[part * 16 + i];\n"
            f"  for (size_t i = 0; i < {rows} * 4; i++) y[i] = room[i] + room[32 + i];\n}}",
            "members": "  float room[2 * 32];", "step": "  summed(arena->y, arena->x, arena->room);"}


GEMM = "\n  dnnl_sgemm('N', 'N', 4, 4, 4, 1.0f, {}, 4, {}, 4, 0.0f, y, 4);"
CASES = [
    Case("no-recursion", functions="static int again(int n) { return n > 0 ? again(n - 1) /*!*/ : 0; }"),
    Case("no-recursion", functions="static int odd(int n);\nstatic int even(int n) { return n == 0 || odd(n - 1); }\n"
         "static int odd(int n) { return n != 0 && even(n - 1) /*!*/; }"),
    Case("no-indirect-call", open=EFFECTS + WALK, globals="static float twice(float x) { return 2 * x; }\n"
         "static float (*f)(float) = twice; /*!*/",
         kernel="  for (size_t i = 0; i < 32; i++) y[i] = f(x[i]); /*!*/"),
    Case("no-indirect-call whole-arrays", open=WALK, kernel=PARTS["kernel"] + "\n  goto end; /*!*/\nend:\n  y[0] = x[0];"),
    Case("no-allocation runtime-alone", includes="#include <stdlib.h>", step="  free(malloc(8)); /*!*/\n" + PARTS["step"]),
    Case("no-allocation runtime-alone", includes="#include <stdlib.h>\n#define WORK malloc",
         kernel="  float *t = WORK(128); /*!*/\n" + PARTS["kernel"] + "\n  (void)t;"),
    Case("no-allocation runtime-alone", kernel="  float *t = __builtin_alloca(128); /*!*/\n" + PARTS["kernel"] + "\n  (void)t;"),
    Case("no-file runtime-alone", includes="#include <stdio.h>", step='  puts(""); /*!*/\n' + PARTS["step"]),
    Case("no-file runtime-alone strings-listed", includes="#include <stdio.h>", step='  fopen("/etc/passwd", "r"); /*!*/\n' + PARTS["step"]),
    Case("runtime-alone", includes="#include <stdio.h>", start='  fopen("/etc/passwd", "r"); /*!*/'),
    Case("no-network runtime-alone", includes="#include <sys/socket.h>", step="  socket(AF_INET, SOCK_STREAM, 0); /*!*/\n" + PARTS["step"]),
    Case("runtime-alone", includes="#include <sys/socket.h>", start="  socket(AF_INET, SOCK_STREAM, 0); /*!*/"),
    Case("no-environment runtime-alone strings-listed no-configuration-branch", includes="#include <stdlib.h>",
         step='  if (getenv("X") != NULL) return; /*!*/\n' + PARTS["step"]),
    Case("no-clock runtime-alone", includes="#include <time.h>", step="  time(NULL); /*!*/\n" + PARTS["step"]),
    Case("no-process runtime-alone strings-listed", includes="#include <stdlib.h>", step='  system("ls"); /*!*/\n' + PARTS["step"]),
    Case("no-runtime-between-steps", step="  accel_next_event(run, at); /*!*/\n" + PARTS["step"]),
    Case("known-externals", open=EFFECTS + "runtime-alone", includes="#include <wchar.h>", step="  wcslen(0); /*!*/\n" + PARTS["step"]),
    Case("known-externals runtime-alone no-runtime-between-steps main-alone", globals="int accel_spy(void); /*!*/",
         step="  accel_spy(); /*!*/\n" + PARTS["step"]),
    Case("known-externals runtime-alone nothing-hidden main-alone", globals='double fmod(double, double) __asm__("system"); /*!*/',
         step="  fmod(1.0, 2.0);\n" + PARTS["step"]),
    Case("nothing-hidden", open=WALK, kernel='  __asm__ volatile("nop"); /*!*/\n' + PARTS["kernel"]),
    Case("nothing-hidden", globals="#pragma weak step /*!*/"),
    Case("nothing-hidden", globals='#define QUIET _Pragma("GCC diagnostic ignored") /*!*/'),
    Case("nothing-hidden", globals="#define float double /*!*/\n#undef float /*!*/"),
    Case("nothing-hidden", globals="#define sqrtf(x) (x) /*!*/", kernel="  for (size_t i = 0; i < 32; i++) y[i] = sqrtf(x[i]);"),
    Case("nothing-hidden", globals="__attribute__((constructor)) static void before(void) {} /*!*/"),
    Case("nothing-hidden", functions="static void late(int *x) { (void)x; }",
         step="  __attribute__((cleanup(late))) int x = 0; /*!*/\n  (void)x;\n" + PARTS["step"]),
    Case("nothing-hidden", kernel="  for (size_t i = 0; i < 32; i++) y[i] = ({ x[i]; }); /*!*/"),
    Case("step-path-found", verdict="cannot tell", root="nowhere", open=EFFECTS + WALK + STEP + " no-race known-writes"),

    # Collectives.
    of_ranks("", "  for (size_t i = 0; i < 3; i++) accel_start_all_reduce(ACCEL_DP_REPLICATE, arena->y + firsts[i], 8);\n"
                 "  accel_wait_collectives();"),
    of_ranks("", "  size_t n = 4;\n  for (size_t i = 0; i < 2; i++) n = i == 0 ? 4 : 8;\n  n = 8;\n"
                 "  if (arena->y[0] > 1.0f) arena->y[0] = 1.0f;\n  accel_all_reduce(ACCEL_DP_REPLICATE, arena->y, n);"),
    of_ranks("same-collectives", "  accel_all_reduce(ACCEL_DP_REPLICATE, arena->y, 8 * (size_t)rank); /*!*/"),
    of_ranks("same-collectives", "  accel_all_reduce(ACCEL_DP_REPLICATE, arena->y + rank % 2, 8); /*!*/"),
    of_ranks("same-collectives no-configuration-branch",
             "  accel_all_reduce(ACCEL_DP_REPLICATE, rank == 0 ? arena->y : arena->y + 8, 8); /*!*/"),
    of_ranks("same-collectives", "  accel_all_reduce(ACCEL_DP_REPLICATE, arena->y + firsts[(size_t)rank % 3], 8); /*!*/"),
    of_ranks("same-collectives", "  accel_all_reduce((enum accel_axis)rank, arena->y, 8); /*!*/"),
    of_ranks("same-collectives", "  accel_all_reduce(ACCEL_DP_REPLICATE, arena->y, (size_t)arena->y[0]); /*!*/"),
    of_ranks("same-collectives", "  const struct accel_micro_batches of = {.count = 8 * rank};\n"
             "  accel_all_reduce(ACCEL_DP_REPLICATE, arena->y, (size_t)of.count); /*!*/"),
    of_ranks("same-collectives", "  struct accel_micro_batches of = {.count = 8};\n  memcpy(&of, arena->y, sizeof of);\n"
             "  accel_all_reduce(ACCEL_DP_REPLICATE, arena->y, (size_t)of.count); /*!*/", verdict="cannot tell"),
    of_ranks("same-collectives", "  add_up(8 + rank % 2);", functions="static void add_up(int64_t n) {\n"
             "  accel_all_reduce(ACCEL_DP_REPLICATE, arena->y, (size_t)n); /*!*/\n}"),
    of_ranks("same-collectives", "  if (arena->y[0] > 1.0f) /*!*/\n    accel_all_reduce(ACCEL_DP_REPLICATE, arena->y, 8);"),
    of_ranks("same-collectives no-configuration-branch", "  if (rank == 0) /*!*/\n    accel_advance_collectives();"),
    of_ranks("same-collectives", "  add_up(arena->y + 4 * ((size_t)rank % 2));", functions="static void add_up(float y[static 8]) {\n"
             "  accel_all_reduce(ACCEL_DP_REPLICATE, y, 8); /*!*/\n}"),
    of_ranks("", "", functions="static void exchange(int64_t n) {\n  accel_all_reduce(ACCEL_DP_REPLICATE, arena->y, (size_t)n);\n}",
             start="  exchange(4);\n  if (accel_eval_is_due(run, 3)) exchange(8);"),
    of_ranks("same-collectives", "", functions="static void exchange(int64_t n) {\n"
             "  accel_all_reduce(ACCEL_DP_REPLICATE, arena->y, (size_t)n); /*!*/\n}", start="  exchange(4 + rank);"),
    of_ranks("same-collectives", "", start="  if (accel_eval_is_due(run, rank)) /*!*/\n"
             "    accel_all_reduce(ACCEL_DP_REPLICATE, arena->y, 8);"),
    of_ranks("same-collectives", "", start="  if (argc > 1) /*!*/\n    accel_all_reduce(ACCEL_DP_REPLICATE, arena->y, 8);"),
    of_ranks("same-collectives", "  if (arena->y[0] > 1.0f) return; /*!*/\n  accel_all_reduce(ACCEL_DP_REPLICATE, arena->y, 8);",
             verdict="cannot tell"),
    of_ranks("same-collectives", "  size_t n = 4;\n  if (arena->y[0] > 1.0f) n = 8;\n"
             "  accel_all_reduce(ACCEL_DP_REPLICATE, arena->y, n); /*!*/", verdict="cannot tell"),
    of_ranks("same-collectives", "  accel_all_reduce(ACCEL_DP_REPLICATE, arena->y, many()); /*!*/", verdict="cannot tell",
             functions="static size_t many(void) {\n  if (arena->y[0] > 1.0f) return 4;\n  return 8;\n}"),
    of_ranks("same-collectives", "  accel_all_reduce(ACCEL_DP_REPLICATE, arena->y, (size_t)at); /*!*/", verdict="cannot tell"),

    # Collectives in flight.
    of_ranks("", SUM + "  if (arena->x[0] > 1.0f) arena->x[0] = 1.0f;\n" + SUMMED),
    of_ranks("", "  for (size_t i = 0; i < 4; i++) {\n    if (i == 3) break;\n  " + SUM + "  " + SUMMED + "  }"),
    of_ranks(RACE, SUM + "  arena->y[7] += 1.0f; /*!*/\n" + SUMMED),
    of_ranks(RACE, SUM + "  kernel(arena->y, arena->x); /*!*/\n" + SUMMED),
    of_ranks(RACE, SUM + "  for (size_t i = 0; i < 10; i++)\n    arena->x[i] = arena->y[16 - i]; /*!*/\n" + SUMMED),
    of_ranks("", SUM + "  for (size_t i = 0; i < 9; i++) arena->x[i] = arena->y[16 - i] + arena->y[16 + i];\n" + SUMMED),
    of_ranks(RACE, "  accel_start_all_reduce(ACCEL_DP_REPLICATE, arena->y, 9);\n"
             "  accel_start_all_reduce(ACCEL_DP_REPLICATE, arena->y + 8, 8); /*!*/\n" + SUMMED),
    of_ranks(RACE, SUM + "  accel_wait_reductions(2); /*!*/\n" + SUMMED),
    of_ranks(RACE, SUM + SUMMED + "  accel_wait_gathers(); /*!*/"),
    of_ranks(RACE, "  accel_start_all_reduce_chained(ACCEL_DP_REPLICATE, arena->y, 8); /*!*/\n" + SUMMED),
    of_ranks(RACE, "  add_up();\n" + SUMMED, functions="static void add_up(void) {\n  float z[8] = {0.0f};\n"
             "  accel_start_all_reduce(ACCEL_DP_REPLICATE, z, 8); /*!*/\n}"),

    # Branches.
    Case("no-configuration-branch", globals="static int flag;", step="  if (flag) /*!*/\n" + PARTS["step"]),
    Case("no-configuration-branch", globals="static int flag;",
         kernel="  for (size_t i = 0; i < 32; i++) y[i] = flag ? x[i] : 0.0f; /*!*/"),
    Case("no-configuration-branch", globals="static int flag;",
         kernel="  for (size_t i = 0; i < 32; i++) y[i] = (flag && x[i] > 0.0f) * x[i]; /*!*/"),
    Case("no-configuration-branch whole-arrays", kernel="  for (size_t i = 0; i < 32; i++) y[i] = x[i];\n"
         "  if (x[0] > 0.0f) return; /*!*/\n  y[0] = 0.0f;"),
    Case("no-configuration-branch whole-arrays", kernel="  for (size_t i = 0; i < 32; i++) y[i] = x[i];\n"
         "  if (x[0] > 0.0f) /*!*/\n    for (size_t i = 0; i < 32; i++) y[i] = 0.0f;"),
    Case("", step="  if (at > 3 || arena->x[0] > 0.0f) arena->x[1] = 0.0f;\n  if (at == 2) memset(arena->x, 0, 4);\n" + PARTS["step"]),
    # Loops.
    Case("bounded-loops", kernel=PARTS["kernel"] + "\n  float t = x[0];\n  while (t > 1.0f) t *= 0.5f; /*!*/\n  y[0] = t;"),
    Case("bounded-loops", globals="static size_t n;", kernel=PARTS["kernel"] + "\n  float t = 0.0f;\n"
         "  for (size_t i = 0; i < n; i++) t += 1.0f; /*!*/\n  y[0] = t;"),
    Case("bounded-loops", verdict="cannot tell", kernel=PARTS["kernel"] + "\n  for (size_t i = 0; i < 8; i += 0) y[i] = 0.0f; /*!*/"),
    # Bounds.
    Case("in-bounds", kernel="  for (size_t i = 0; i <= 32; i++) y[i] = 0.0f; /*!*/"),
    Case("in-bounds whole-arrays", kernel="  for (size_t i = 0; i < 32; i++) y[i] = x[i + 1]; /*!*/", at=KERNEL),
    Case("in-bounds whole-arrays", kernel="  for (int i = 0; i < 32; i++) y[i] = x[i - 1]; /*!*/", at=KERNEL),
    Case("in-bounds", kernel="  for (int i = 31; i >= 0; i--) y[i] = x[31 - 2 * i + 30]; /*!*/"),
    Case("in-bounds", kernel="  for (size_t i = 0; i < 32; i++) y[i] = x[i];\n  for (size_t j = 0; j < 6; j++)\n"
         "    for (size_t i = 0; i < j + 1; i++) y[j * 6 + i] = x[i]; /*!*/"),
    Case("", kernel="  for (size_t i = 0; i < 32; i++) y[i] = x[i];\n  for (size_t j = 0; j < 6; j++)\n"
         "    for (size_t i = 0; i < j; i++) y[j * 5 + i] = x[i];"),
    Case("", kernel="  for (size_t first = 0; first < 32; first += 5) {\n"
         "    const size_t count = 32 - first < 5 ? 32 - first : 5;\n"
         "    for (size_t i = 0; i < count; i++) y[first + i] = x[first + i];\n  }"),
    Case("in-bounds", kernel="  for (size_t first = 0; first < 32; first += 5) {\n"
         "    const size_t count = 32 - first < 5 ? 5 : 32 - first;\n"
         "    for (size_t i = 0; i < count; i++) y[first + i] = x[i]; /*!*/\n  }"),
    Case("in-bounds", kernel="  memcpy(y, x, 33 * sizeof(float)); /*!*/"),
    Case("in-bounds", kernel="  float t[4][8];\n  memcpy(t, x, sizeof t);\n  memcpy(y, t, sizeof t);\n  y[0] = t[4][0]; /*!*/"),
    Case("in-bounds", members="  float small[31];", step="  memset(arena->small, 0, sizeof arena->small);\n"
         "  kernel(arena->y, arena->small); /*!*/"),
    Case("in-bounds", step="  kernel(arena->y, arena->x + 1); /*!*/"),
    Case("in-bounds", members="  float rows[3][32];", step="  for (int i = 0; i <= 3; i++) memset(arena->rows[i], 0, 128); /*!*/\n"
         + PARTS["step"]),
    Case("in-bounds", members="  struct { float a[32]; } part[2];",
         step="  for (int i = 0; i < 3; i++) kernel(arena->part[i].a, arena->x); /*!*/\n" + PARTS["step"]),
    Case("in-bounds", verdict="cannot tell", vocabulary="0", at=TOKENS),
    Case("in-bounds", vocabulary="7", at=TOKENS),
    Case("in-bounds", sequence_length="5", at=["accel_load_sequences"]),
    Case("in-bounds", arena_bytes="sizeof(struct arena) - 4", at=["arena = accel_arena(run)"]),
    Case("in-bounds", verdict="cannot tell", step="  arena->tokens[1] = 99;\n  embed(arena->y, arena->weights, arena->tokens);", at=TOKENS),
    # Tokens that come over an array of the program's own: all of it was loaded, or a part.
    Case("", **copied(8)),
    Case("in-bounds", verdict="cannot tell", at=TOKENS, **copied(16)),
    Case("in-bounds", verdict="cannot tell", kernel="  int at[1] = {0};\n  if (x[0] > 0.0f)\n    at[0] = 40;\n  else\n    at[0] = 1;\n"
         + PARTS["kernel"] + "\n  y[at[0]] = 0.0f; /*!*/"),
    # Order.
    Case("written-before-read", step="  kernel(arena->x, arena->x);", at=["  backward("]),
    Case("written-before-read whole-arrays", kernel="  for (size_t i = 0; i < 31; i++) y[i] = x[i];", at=["  backward(", *KERNEL]),
    Case("written-before-read", kernel="  float sum[4];\n  for (size_t i = 0; i < 4; i++) sum[i] += x[i]; /*!*/\n"
         "  for (size_t i = 0; i < 32; i++) y[i] = x[i] * sum[i % 4];"),
    Case("written-before-read", kernel="  float sum;\n  for (size_t i = 0; i < 32; i++) {\n    sum += x[i]; /*!*/\n    y[i] = sum;\n  }"),
    Case("written-before-read", members="  float moment[32];",
         step=PARTS["step"] + "\n  for (size_t i = 0; i < 32; i++) arena->moment[i] = 0.9f * arena->moment[i] + arena->y[i]; /*!*/"),
    Case("", members="  float moment[32];",
         states='static const struct accel_state states[] = {{"optimizer", "m", ACCEL_FLOAT32, offsetof(struct arena, moment), 32, NULL, 0}};',
         step=PARTS["step"] + "\n  for (size_t i = 0; i < 32; i++) arena->moment[i] = 0.9f * arena->moment[i] + arena->y[i];"),
    # Overlap.
    Case("no-overlap", members="  union {\n    float a[32];\n    float b[32];\n  };",
         step="  kernel(arena->a, arena->x);\n  kernel(arena->b, arena->x);\n  kernel(arena->y, arena->a); /*!*/"),
    Case("", members="  union {\n    float a[32];\n    float b[32];\n  };",
         step="  kernel(arena->a, arena->x);\n  kernel(arena->y, arena->a);\n  kernel(arena->b, arena->x);\n"
         "  kernel(arena->y, arena->b);"),
    Case("no-overlap", members="  union {\n    struct {\n      float c[8], a[32];\n    };\n    float b[32];\n  };",
         step="  kernel(arena->a, arena->x);\n  kernel(arena->b, arena->a); /*!*/\n  kernel(arena->y, arena->b);"),
    Case("no-overlap", includes="#include <dnnl.h>", kernel=PARTS["kernel"] + GEMM.format("x", "y") + " /*!*/"),
    Case("no-overlap", includes="#include <dnnl.h>", kernel=PARTS["kernel"] + GEMM.format("y + 12", "x") + " /*!*/"),
    Case("", **marked("marks")),
    Case("", **summed()),
    Case("in-bounds", at=["room[i] = 0.0f"], **summed(cleared=65)),
    Case("written-before-read", at=["  summed("], **summed(cleared=63)),
    Case("in-bounds", at=["+= x[part"], **summed(half=49)),
    Case("no-race", at=["+= x[part"], **summed(half=8)),
    Case("whole-arrays written-before-read", at=["static void summed(", "backward(arena->"], **summed(rows=7)),
    Case("in-bounds", at=["x[(size_t)b[i] * 4 + c]", "gradients[(size_t)"], **marked("tokens")),
    Case("", **chosen(0, 0)),
    Case("in-bounds", verdict="cannot tell", at=["= weights[(size_t)tokens"], **chosen(1000, 0)),
    Case("in-bounds", verdict="cannot tell", at=["= weights[(size_t)tokens"], **chosen(0, 1000)),
    # Overflow.
    Case("no-overflow", kernel="  for (int i = 0; i < 32; i++) y[i] = x[i] * (float)(i * 100000000); /*!*/"),
    Case("no-overflow", kernel="  for (int i = 0; i < 32; i++) y[i] = x[i] * (float)(1u << (i + 1)); /*!*/"),
    Case("no-overflow", kernel="  for (int i = 0; i < 32; i++) y[i] = x[i] * (float)(100 / (i - 7)); /*!*/"),
    Case("", kernel="  for (int i = 0; i < 32; i++) y[i] = x[i] * (float)(100 / (i + 1) + 100 % (32 - i) + (int)(1u << i >> 31));"),
    # Alignment.
    Case("aligned", kernel=PARTS["kernel"] + "\n  float t = *(const float *)((const char *)x + 2); /*!*/\n  y[0] = t;"),
    Case("aligned", verdict="cannot tell", kernel=PARTS["kernel"]
         + "\n  double t = *(const double *)(const void *)(x + 2); /*!*/\n  y[0] = (float)t;"),
    Case("aligned", members="  float wide[8 * 4 + 1];", step="  memset(arena->wide, 0, sizeof arena->wide);\n"
         "  kernel(arena->y, (const float *)((const char *)arena->wide + 2)); /*!*/"),
]
