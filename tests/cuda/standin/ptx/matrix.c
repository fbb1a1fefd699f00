/* Tensor cores (PTX ISA, 9.7.14.4): wmma of 16 x 16 x 16 numbers of bfloat16 and float16 and of 16 x 16 x 8 of TF32,
 * with sums in float32. Which lane has which element of a fragment is nobody's business but this file's: element i of a
 * fragment's n is in lane i / (n / 32). */
#include "tests/cuda/standin/ptx/checks.h"
#include "tests/cuda/standin/ptx/lanes.h"

enum { SIDE = 16, ELEMENTS = SIDE * SIDE };

enum matrix_flag { BY_COLUMNS = 1, HALF = 2, TF32 = 4, IS_LEFT = 8 };

/* The inner length of a product. */
static int depth_of(const struct instruction *of) {
  return (of->kind_of_matrix & TF32) ? 8 : SIDE;
}

/* The demands of 9.7.14.4.4: all lanes give the same address and the same distance of rows. */
static u64 same_address(struct warp *warp, const struct instruction *of, u32 *rows) {
  u64 addresses[LANES];
  const int last = of->n_from - 1;
  GIVEN(u32, distance, last)
  addresses_of(warp, of, &of->places[0], addresses);
  for (int i = 0; i < LANES; i++)
    if (addresses[i] != addresses[0] || distances[i] != distances[0])
      wrong(warp, of, i, "lanes with different addresses");
  if (addresses[0] % 32 != 0) wrong(warp, of, -1, "a fragment's address that is not a multiple of 32");
  if (distances[0] * of->bytes % 16 != 0) wrong(warp, of, -1, "rows that are not multiples of 16 bytes");
  *rows = distances[0];
  return addresses[0];
}

static char *checked(struct warp *warp, const struct instruction *of, u64 address, enum access access) {
  u64 addresses[LANES];
  enum space space = of->places[0].space;
  if (space == GENERIC && (address & SHARED_WINDOW) != 0) space = SHARED, address -= SHARED_WINDOW;
  for (int i = 0; i < LANES; i++) addresses[i] = address;
  warp->active = 1;
  if (space == SHARED) check_arrays(warp, of, &of->places[0], addresses, of->bytes);
  if (space == SHARED)
    check_shared(warp, of, addresses, of->bytes, access);
  else
    check_global(warp, of, &of->places[0], addresses, of->bytes, access);
  warp->active = ALL_LANES;
  return space == SHARED ? warp->block->shared + address : (char *)(uintptr_t)address;
}

static u64 offset_of(const struct instruction *of, int row, int column, u32 distance) {
  const u64 element =
      (of->kind_of_matrix & BY_COLUMNS) ? (u64)column * distance + (u64)row : (u64)row * distance + (u64)column;
  return element * of->bytes;
}

static void run_load(struct warp *warp, const struct instruction *of) {
  u32 distance;
  const u64 from = same_address(warp, of, &distance);
  u32 made[VECTOR][LANES];
  const int columns = (of->kind_of_matrix & IS_LEFT) ? depth_of(of) : SIDE, elements = SIDE * depth_of(of);
  const int each = of->n_to * 4 / of->bytes, lanes = elements / each; /* elements of a lane */
  for (int e = 0; e < elements; e++) {
    const int lane = e / each, at = e % each;
    const char *element = checked(warp, of, from + offset_of(of, e / columns, e % columns, distance), READS);
    memcpy((char *)&made[at * of->bytes / 4][lane] + at * of->bytes % 4, element, of->bytes);
  }
  for (int t = 0; t < of->n_to; t++) {
    for (int i = lanes; i < LANES; i++) made[t][i] = made[t][i - lanes]; /* fragments of float16 are there twice */
    keep_32(warp, of->to[t], made[t]);
  }
}

static void run_store(struct warp *warp, const struct instruction *of) {
  u32 distance;
  const u64 to = same_address(warp, of, &distance);
  const int each = ELEMENTS / LANES;
  for (int e = 0; e < ELEMENTS; e++)
    memcpy(checked(warp, of, to + offset_of(of, e / SIDE, e % SIDE, distance), WRITES),
           (const u32 *)from_of(warp, of, 1 + e % each) + e / each, sizeof(u32));
}

/* Two fragments' numbers, whose layout in memory no longer matters, and the sums that they are added to. */
static f32 number_at(const struct warp *warp, const struct instruction *of, int first, int registers, int element) {
  const int size = (of->kind_of_matrix & TF32) ? 4 : 2, each = registers * 4 / size;
  const int lane = element / each, at = element % each;
  const char *from =
      (const char *)from_of(warp, of, first + at * size / 4) + (size_t)lane * 4 + (size_t)(at * size % 4);
  u16 bits;
  u32 whole;
  if (size == 4) { /* the lower bits of TF32 count for nothing */
    memcpy(&whole, from, sizeof whole);
    return f32_of(whole & ~UINT32_C(0x1fff));
  }
  memcpy(&bits, from, sizeof bits);
  return (of->kind_of_matrix & HALF) ? f32_of_f16(bits) : f32_of_bf16(bits);
}

static void run_multiply(struct warp *warp, const struct instruction *of) {
  const int registers = (of->n_from - VECTOR) / 2, each = ELEMENTS / LANES, depth = depth_of(of);
  f32 a[SIDE][SIDE], b[SIDE][SIDE];
  u32 made[VECTOR][LANES];
  for (int e = 0; e < SIDE * depth; e++) {
    a[e / depth][e % depth] = number_at(warp, of, 0, registers, e);
    b[e / SIDE][e % SIDE] = number_at(warp, of, registers, registers, e);
  }
  for (int e = 0; e < ELEMENTS; e++) {
    f32 c;
    memcpy(&c, (const u32 *)from_of(warp, of, 2 * registers + e % each) + e / each, sizeof c);
    f64 sum = c; /* products are exact */
    for (int k = 0; k < depth; k++) sum += (f64)a[e / SIDE][k] * (f64)b[k][e % SIDE];
    made[e % each][e / each] = bits_of(same_nan((f32)sum));
  }
  for (int t = 0; t < of->n_to; t++) keep_32(warp, of->to[t], made[t]);
}

/* wmma.load.a.sync.aligned.row.m16n16k16.shared.bf16, wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32,
 * wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 */
bool decode_matrix(const char *name, struct instruction *into) {
  const bool is_tf32 = strstr(name, ".m16n16k8.") != NULL;
  if (strncmp(name, "wmma.", 5) != 0 || strstr(name, ".sync.aligned.") == NULL ||
      (strstr(name, ".m16n16k16.") == NULL && !is_tf32))
    return false;
  const char *layout = strstr(name, ".aligned.") + 9;
  const bool is_half = strstr(name, ".f16") != NULL, is_brain = strstr(name, ".bf16") != NULL;
  if (strncmp(layout, "col", 3) == 0) into->kind_of_matrix |= BY_COLUMNS;
  if (is_half) into->kind_of_matrix |= HALF;
  if (strstr(name, ".shared") != NULL) into->places[0].space = SHARED;
  if (strstr(name, ".global") != NULL) into->places[0].space = GLOBAL;
  into->flow = TOGETHER;
  into->kind = -1;
  into->bytes = is_tf32 ? 4 : 2;
  into->kind_of_matrix |= is_tf32 ? TF32 : 0;
  into->vector = 1;
  into->has_result = true;
  if ((strncmp(name, "wmma.load.a.", 12) == 0 || strncmp(name, "wmma.load.b.", 12) == 0) &&
      (is_tf32 ? strstr(name, ".tf32") != NULL : is_half || is_brain)) {
    into->kind_of_matrix |= name[10] == 'a' ? IS_LEFT : 0;
    into->run = run_load;
  } else if (strncmp(name, "wmma.mma.", 9) == 0 &&
             (strstr(name, is_tf32 ? ".f32.tf32.tf32.f32" : ".f32.bf16.bf16.f32") != NULL ||
              (!is_tf32 && strstr(name, ".f32.f32") != NULL))) {
    into->bytes = 4;
    into->run = run_multiply;
    if (strstr(name, ".f32.f32") != NULL) into->kind_of_matrix |= HALF; /* .f32.f32: of float16 */
  } else if (strncmp(name, "wmma.store.d.", 13) == 0 && strstr(name, ".f32") != NULL) {
    into->bytes = 4;
    into->has_result = false;
    into->run = run_store;
  } else {
    return false;
  }
  return true;
}
