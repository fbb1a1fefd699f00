/* What C computes, the reader must compute: each assertion holds when this file is compiled and run (tests/model/
 * test_semantics.sh does that too) and when it is read. */
#include <accel/model.h>
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum kind { FIRST = 3, SECOND, THIRD = -7 };

struct inner {
  int a, b;
};

struct outer {
  double real;
  struct inner parts[2];
  const char *name;
  enum kind kind;
};

static const int table[2][3] = {{1, 2, 3}, {4, 5, 6}};
static const struct outer shared = {.parts = {[1] = {.b = 9}}, .name = "shared"};

static int factorial(int n) {
  return n <= 1 ? 1 : n * factorial(n - 1);
}

static int is_odd(int n);

static int is_even(int n) {
  return n == 0 ? 1 : is_odd(n - 1);
}

static int is_odd(int n) {
  return n == 0 ? 0 : is_even(n - 1);
}

static struct outer changed(struct outer o) {
  o.parts[0].a += 100;
  o.name = "changed";
  return o;
}

static void fill(int *values, int n) {
  for (int i = 0; i < n; i++) values[i] = i * i;
}

static int total(const int values[], int n) {
  int sum = 0;
  while (n > 0) sum += values[--n];
  return sum;
}

static void integers(void) {
  assert(7 / 2 == 3 && -7 / 2 == -3 && -7 % 2 == -1 && 7 % -2 == 1);
  assert((1 << 4 | 3) == 19 && (6 & 3) == 2 && (6 ^ 3) == 5 && ~5 == -6 && -8 + 16 >> 1 == 4);
  assert(4294967295u + 1u == 0 && (unsigned char)300 == 44 && (unsigned)-1 == 4294967295u);
  assert(-1 < 1 && !(-1 < 1u) && sizeof(int) == 4 && sizeof table / sizeof table[0] == 2);
  assert('a' == 97 && '\n' == 10 && 0x1F == 31 && 017 == 15 && 10L * 1000 * 1000 * 1000 * 1000 > 1);
  assert(9223372036854775807L - 1 > 0 && 18446744073709551615ul == -1ul && 1ul << 63 > 1);
  long wide = 2147483647;
  wide += 1;
  assert(wide == 2147483648L);
  int n = 5;
  assert(n++ == 5 && n == 6 && ++n == 7 && n-- == 7 && --n == 5);
  n += 3, n *= 2, n -= 1, n /= 2, n <<= 2, n |= 1, n ^= 2, n &= 30, n >>= 1, n %= 8;
  assert(n == 7);
  n = (1, 2, 3);
  assert(n == 3 && (bool)0.5 && !(bool)0 && (n, 4) == 4);
  short s = 1000;
  s *= 2;
  assert(s == 2000);
  unsigned char byte = 250;
  byte += 10;
  assert(byte == 4);
}

static void unsigneds(void) {
  unsigned a = 10, b = 3;
  unsigned long big = 1ul << 63;
  assert(a * b == 30 && a % b == 1 && a / b == 3 && a - b == 7 && b - a == 4294967289u);
  assert((a & b) == 2 && (a | b) == 11 && (a ^ b) == 9 && ~a == 4294967285u && -a == 4294967286u);
  assert(a >= b && b <= a && a != b && !(a == b) && a > b && b < a);
  assert(big > 1 && (double)big == 9223372036854775808.0 && (unsigned long)9223372036854775808.0 == big);
  assert(abs(-3) == 3 && abs(4) == 4 && labs(-5l) == 5 && (int)a - 20 < 0 && +a == 10);
}

static void reals(void) {
  double small = 0.25, large = 4;
  assert(small < large && large > small && small <= 0.25 && large >= 4 && small != large && !(small == large));
  assert(large - small == 3.75 && -small == -0.25 && +small == 0.25 && (small ? 1 : 0) == 1 && !(0.0 ? 1 : 0));
  assert(1 / 2.0 == 0.5 && (int)2.9 == 2 && (int)-2.9 == -2 && 1.5f + 1 == 2.5);
  float third = 1.0f / 3;
  assert(third != 1.0 / 3 && (double)third == (float)(1.0 / 3));
  int n = 3;
  n *= 1.5;
  assert(n == 4);
  n += 0.9;
  assert(n == 4 && 5 / 2 * 2.0 == 4.0 && 0x1p-2 == 0.25 && 1e3 == 1000);
  assert(sqrt(16) == 4 && pow(2, 10) == 1024 && fabs(-1.5) == 1.5 && floor(-1.5) == -2 && ceil(1.2) == 2);
  assert(fmin(1, 2) == 1 && fmax(1, 2) == 2 && fmod(7, 4) == 3 && exp(0) == 1 && log(1) == 0 && sqrtf(4) == 2);
  assert(round(2.5) == 3 && (long)trunc(-2.5) == -2 && !(0.1 + 0.2 == 0.3) && -0.0 == 0.0);
}

static void logic(void) {
  int calls = 0;
  assert(!(0 && calls++) && (1 || calls++) && calls == 0);
  assert((1 && calls++) == 0 && calls == 1);
  assert((calls > 0 ? 10 : 20) == 10 && !!5 == 1 && (3 > 2) + (2 > 3) == 1);
  assert(FIRST == 3 && SECOND == 4 && THIRD == -7);
  enum kind kind = SECOND;
  assert(kind + 1 == 5);
}

static void aggregates(void) {
  struct outer o = {1.5, {{1, 2}, {3, 4}}, "o", SECOND};
  struct outer flat = {1.5, 1, 2, 3, 4, "o", SECOND};
  assert(flat.parts[1].a == 3 && flat.parts[1].b == 4 && strcmp(flat.name, "o") == 0 && flat.kind == SECOND);
  struct outer p = changed(o);
  assert(o.parts[0].a == 1 && p.parts[0].a == 101 && strcmp(p.name, "changed") == 0 && strcmp(o.name, "o") == 0);
  o = p;
  p.parts[0].a = 7;
  assert(o.parts[0].a == 101 && changed(o).parts[0].a == 201);
  struct outer d = {.kind = THIRD, .parts[1].b = 5, .parts[0] = {.b = 6}, .name = "d"};
  assert(d.real == 0 && d.parts[0].a == 0 && d.parts[0].b == 6 && d.parts[1].b == 5 && d.kind == THIRD);
  d = (struct outer){.real = 2};
  assert(d.real == 2 && d.kind == 0);
  assert(shared.parts[1].b == 9 && shared.parts[0].a == 0 && table[1][2] == 6);
  int matrix[2][3] = {1, 2, 3, 4};
  assert(matrix[1][0] == 4 && matrix[1][2] == 0);
  int list[] = {[2] = 5, 6, [0] = 1};
  assert(sizeof list / sizeof list[0] == 4 && list[3] == 6 && list[1] == 0 && list[0] == 1);
  int n = 4, squares[n];
  fill(squares, n);
  assert(total(squares, n) == 14 && *(squares + 2) == 4 && 1 [squares] == 1 && (squares + 1)[1] == 4);
  matrix[1][1] = 8;
  int *row = matrix[1];
  assert(row[1] == 8 && total(matrix[0], 3) == 6);
  struct inner pairs[2] = {{1, 2}, {3, 4}};
  assert(pairs->b == 2 && (pairs + 1)->a == 3 && __extension__ pairs[1].b == 4);
  const char *odd = "\001\x02z";
  assert(odd[0] == 1 && odd[1] == 2 && odd[2] == 'z');
  const char *text = "a\tb\"c\x41\101";
  assert(text[1] == '\t' && text[3] == '"' && text[5] == 'A' && text[6] == 'A' && text[7] == 0);
}

static int classify(int n) {
  int seen = 0;
  switch (n) {
  case 0:
    seen += 1; /* falls through */
  case 1:
    seen += 10;
    break;
  case FIRST:
  case 5:
    return 100;
  default:
    seen = -1;
  case 9:
    seen += 1000;
  }
  return seen;
}

static void statements(void) {
  assert(classify(0) == 11 && classify(1) == 10 && classify(3) == 100 && classify(5) == 100);
  assert(classify(9) == 1000 && classify(77) == 999);
  int sum = 0;
  for (int i = 0; i < 10; i++) {
    if (i == 3) continue;
    if (i == 6) break;
    sum += i;
  }
  assert(sum == 12);
  int n = 0;
  ;
  do n++;
  while (n < 5);
  for (; n < 8;) n++;
  for (;;)
    if (++n > 20) break;
  for (int i = 0, j = 10; i < j; i++, j--) n = i;
  assert(n == 4);
  {
    int n = 100;
    assert(n == 100);
  }
  while (n-- > 0) {
    switch (n) {
    case 2:
      continue;
    default:
      break;
    }
    sum += 100;
  }
  assert(n == -1 && sum == 312 && factorial(10) == 3628800 && is_even(20) && !is_even(7));
}

static void all(void) {
  integers();
  unsigneds();
  reals();
  logic();
  aggregates();
  statements();
}

#ifdef RUN
int main(void) {
  all();
  return 0;
}
#else
tensor model(scope s, tensor tokens) {
  all();
  return mean_all(embedding(s, tokens, 10, 16));
}
#endif
