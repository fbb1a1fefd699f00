"""Programs as people write them, with nothing of ours: what the audit may hold of them, what is broken, and what cannot be
decided. `/*B*/` stands where a claim is broken, `/*?*/` where one cannot be decided."""

EFFECTS = "no-allocation no-file no-network no-environment no-clock no-process no-runtime-between-steps "
WALK = "bounded-loops in-bounds written-before-read no-overlap aligned "


def main_of(call, before, after):
    """main(), with a hundred steps."""
    body = [*before, f"for (int at = 0; at < 100; at++) {call};", *after, "return 0;"]
    counts = any("argc" in line for line in body)
    lines = ["(void)argv;", *body] if counts else body
    return f"\nint main({'int argc, char **argv' if counts else 'void'}) {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


class Foreign:
    """A program; every claim that is neither in `broken` nor in `open`, which cannot be decided, must hold."""

    def __init__(self, name, text, call="step()", before=(), after=(), broken="", open="", header=""):
        """call: a step, of which main has a hundred; before, after: lines around them. header: own.h."""
        self.name, self.text, self.header = name, text + main_of(call, before, after), header
        self.broken, self.open = broken.split(), open.split()


def with_record(parameter, layers, mark):
    """Sizes in a record, which fill() writes."""
    return f"""
struct config {{
  int layers, width;
}};
static float w[16];

static void fill(struct config *c{parameter}) {{
  c->layers = {layers};
  c->width = 4;
}}

static void step(const struct config *c) {{
  for (int l = 0; l < c->layers; l++){mark}
    for (int i = 0; i < c->width; i++) w[l * c->width + i] *= 0.5f;{mark}
}}
"""


def with_list(mark):
    """A sum over a list."""
    return f"""
struct item {{
  struct item *next;
  float value;
}};
static struct item *list;
static float sum;

static void step(void) {{
  sum = 0.0f;
  for (const struct item *at = list; at; at = at->next) sum += at->value;{mark}
}}
"""


def halving(bound, mark=""):
    return f"""
static float w[8];

static void step(void) {{
  for (int i = 0; i {bound}; i++) w[i] *= 0.5f;{mark}
}}
"""


PROGRAMS = [
    Foreign("arrays of constant size, all in bounds", """
static float w[8], g[8], x[4][8], y[4];

static void step(int at) {
  for (int i = 0; i < 8; i++) g[i] = 0.0f;
  for (int r = 0; r < 4; r++) {
    float sum = 0.0f;
    for (int i = 0; i < 8; i++) sum += w[i] * x[r][i];
    for (int i = 0; i < 8; i++) g[i] += (sum - y[r]) * x[r][i];
  }
  for (int i = 0; i < 8; i++) w[i] -= 0.1f / (float)(at + 1) * g[i];
}
""", "step(at)"),
    Foreign("the same, one element too far", halving("<= 8", " /*B*/"), broken="in-bounds"),
    Foreign("a count from the command line chooses elements", """
#include <stdlib.h>
static float w[8];

static void step(int n) {
  w[n] = 0.0f; /*?*/
  if (n > 20) w[9] = 1.0f; /*?*/
  unsigned m = (unsigned)n;
  if (m < 8) w[m] = 2.0f;
}
""", "step(n)", ("int n = argc;",), open="in-bounds"),
    Foreign("a switch whose later case leaves the array", """
static float w[8];

static void step(int kind) {
  switch (kind) {
  case 0:
    w[0] = 1.0f;
    break;
  case 1:
    w[8] = 1.0f; /*?*/
    break;
  default:
    break;
  }
}
""", "step(argc)", open="in-bounds"),
    Foreign("an unsigned index that wraps and comes back", """
#define N 624u
#define M 397u
static unsigned state[N];

static void step(void) {
  unsigned j = 0;
  for (; j < N - M; j++) state[j] = state[j + M] ^ (state[j + 1] >> 1);
  for (; j < N - 1; j++) state[j] = state[j + (M - N)] ^ (state[j + 1] >> 1);
}
"""),
    Foreign("sizes in a record that a function fills", with_record(", int layers", "layers", " /*?*/"), "step(&c)",
            ("struct config c;", "fill(&c, argc);"), open="bounded-loops in-bounds"),
    Foreign("sizes in a record that are always the same", with_record("", "4", ""), "step(&c)", ("struct config c;", "fill(&c);")),
    Foreign("one block of memory, cut into tensors by pointers", """
#include <stdlib.h>
struct tensors {
  float *a, *b;
};

static float *cut(struct tensors *t, const size_t sizes[2]) {
  float *memory = malloc((sizes[0] + sizes[1]) * sizeof(float)); /*B*/
  float **slots[] = {&t->a, &t->b};
  float *next = memory;
  for (int i = 0; i < 2; i++) {
    *slots[i] = next;
    next += sizes[i];
  }
  return memory;
}

static void step(struct tensors *t) {
  for (int i = 0; i < 4; i++) t->a[i] += t->b[i]; /*?*/
}
""", "step(&t)", ("struct tensors t;", "const size_t sizes[2] = {4, 4};", "float *memory = cut(&t, sizes);"),
            ("free(memory); /*B*/",), broken="runtime-alone", open="in-bounds written-before-read no-overlap aligned"),
    Foreign("a pointer that may be missing", """
#include <stddef.h>
static float x[8], y[8];

static void forward(float *out, const float *in, const float *bias) {
  for (int i = 0; i < 8; i++) out[i] = in[i] * 2.0f;
  if (bias != NULL)
    for (int i = 0; i < 8; i++) out[i] += bias[i];
}

static void step(void) {
  forward(y, x, NULL);
  forward(x, y, y);
}
"""),
    Foreign("a function that nobody knows", """
void mystery(float *x); /*B*/
static float w[8];

static void step(void) {
  mystery(w); /*B?*/
  for (int i = 0; i < 8; i++) w[i] *= 0.5f;
}
""", broken="known-externals", open=EFFECTS + "runtime-alone"),
    Foreign("until it is good enough", """
static float w[8];

static void step(void) {
  float norm = 2.0f;
  while (norm > 1.0f) { /*B*/
    norm = 0.0f;
    for (int i = 0; i < 8; i++) {
      w[i] *= 0.5f;
      norm += w[i] * w[i];
    }
  }
}
""", broken="bounded-loops"),
    Foreign("assert, whose macro has statements", """
#include <assert.h>
static int w[8];

static void step(int n) {
  assert(n >= 0); /*B*/
  w[0] = n;
}
""", "step(at)", broken="no-process runtime-alone strings-listed"),
    Foreign("a number that is read first", """
static float w[8];

static void step(void) {
  float sum;
  for (int i = 0; i < 8; i++) sum += w[i]; /*B*/
  w[0] = sum;
}
""", broken="written-before-read"),
    Foreign("a number that one arm writes, and one that both do", """
static float w[8];

static void step(void) {
  float scale, shift;
  if (w[0] > 1.0f) {
    scale = 0.5f;
    shift = 1.0f;
  } else {
    shift = 0.0f;
  }
  w[1] = w[1] * scale; /*?*/
  w[2] = w[2] + shift;
}
""", open="written-before-read"),
    Foreign("an array whose length is asked for", """
static float w[8];

static void step(int n) {
  float t[n];
  for (int i = 0; i < 8; i++) t[i] = w[i]; /*?*/
  for (int i = 0; i < 8; i++) w[i] = t[7 - i]; /*?*/
}
""", "step(argc + 8)", open="in-bounds"),
    Foreign("a header of its own", """
#include "own.h"
static float w[WIDTH];

static void step(void) {
  for (int i = 0; i < WIDTH; i++) w[i] *= half(1.0f);
}
""", header="#define WIDTH 8\n#define fopenCheck(x) (x)\nstatic inline float half(float x) { return 0.5f * x; }\n"),
    Foreign("a header of its own that changes what words mean", '\n#include "own.h"' + halving("< 8"), broken="nothing-hidden",
            header="[[gnu::constructor]] static inline void before(void) {}\n"),
    Foreign("a jump back", """
static float w[8];

static void step(void) {
  int i = 0;
again:
  w[i] *= 0.5f;
  if (++i < 8) goto again; /*B?*/
}
""", broken="no-indirect-call", open=WALK),
    Foreign("a list of two", with_list(""), before=("struct item a = {0, 1.0f}, b = {&a, 2.0f};", "list = &b;")),
    Foreign("a walk over a list", with_list(" /*?*/"), open=WALK, before=(
        "static struct item items[9];", "for (int i = 0; i < 8; i++) items[i].next = &items[i + 1];", "list = items;")),
]
