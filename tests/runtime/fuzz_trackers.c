/* Any bytes as a file that a run continues which resumes, as they are and in records with the right sums: what stays is
 * whole, so that a second run that resumes from there keeps all of it. And any bytes as tracking.json. */
#include "runtime/tracking/bytes.h"
#include "runtime/tracking/crc.h"
#include "runtime/tracking/identity.h"
#include "runtime/tracking/sink.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const struct accel_sink *const sinks[] = {&accel_sink_tensorboard, &accel_sink_wandb,  &accel_sink_csv,
                                                 &rt_sink_jsonl,          &accel_sink_mlflow, &accel_sink_dvclive,
                                                 &accel_sink_clearml};
enum { SINKS = sizeof sinks / sizeof sinks[0] };

static void add_event(struct bytes *to, const uint8_t *bytes, size_t size) {
  const size_t at = to->count;
  rt_bytes_u64(to, size);
  uint32_t crc = rt_crc(CRC_OF_CASTAGNOLI, 0, to->data + at, 8);
  rt_bytes_u32(to, (crc >> 15 | crc << 17) + 0xa282ead8u);
  rt_bytes_add(to, bytes, size);
  crc = rt_crc(CRC_OF_CASTAGNOLI, 0, bytes, size);
  rt_bytes_u32(to, (crc >> 15 | crc << 17) + 0xa282ead8u);
}

/* The first byte is the kind of the part. */
static void add_part(struct bytes *to, const uint8_t *bytes, size_t size) {
  if (size == 0 || size > 30000) return;
  const uint8_t type = bytes[0] % 8;
  rt_bytes_u32(to, rt_crc(CRC_OF_ZLIB, rt_crc(CRC_OF_ZLIB, 0, &type, 1), bytes + 1, size - 1));
  rt_bytes_u16(to, (uint16_t)(size - 1));
  rt_bytes_add(to, &type, 1);
  rt_bytes_add(to, bytes + 1, size - 1);
}

/* Records, of which the byte before each is the length. */
static void add_records(struct bytes *to, const struct accel_sink *sink, const uint8_t *bytes, size_t size) {
  if (sink == &accel_sink_wandb) rt_bytes_add(to, ":W&B\xe1\xbe", 7);
  if (sink == &accel_sink_csv) rt_bytes_add(to, "step,", 5);
  for (size_t at = 0; at < size;) {
    const size_t left = size - at - 1, count = bytes[at] < left ? bytes[at] : left;
    if (sink == &accel_sink_tensorboard)
      add_event(to, bytes + at + 1, count);
    else if (sink == &accel_sink_wandb)
      add_part(to, bytes + at + 1, count);
    else
      rt_bytes_add(to, bytes + at + 1, count);
    at += 1 + count;
  }
}

/* The bytes end where their memory does. */
static bool cut(const struct accel_sink *sink, const struct bytes *content, size_t size, int64_t keep, int64_t *whole) {
  uint8_t *copy = malloc(size + (size == 0));
  if (copy == NULL) abort();
  if (size > 0) memcpy(copy, content->data, size);
  const bool good = sink->cut(copy, size, keep, whole);
  free(copy);
  if (*whole < 0 || (uint64_t)*whole > size) __builtin_trap();
  return good;
}

static void check_identity(const char *bytes, size_t size) {
  char id[33];
  double began;
  if (!rt_identity_read(bytes, size, id, &began)) return;
  if (strspn(id, "0123456789abcdef") != 32 || id[32] != '\0' || !(began >= 0 && began < 1e12)) __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct bytes content = {0};
  int64_t whole, again;
  if (size < 2) return 0;
  const int which = bytes[0] % (SINKS + 1);
  if (which == SINKS) return check_identity((const char *)bytes + 2, size - 2), 0;
  if (bytes[0] & 0x80)
    add_records(&content, sinks[which], bytes + 2, size - 2);
  else
    rt_bytes_add(&content, bytes + 2, size - 2);
  cut(sinks[which], &content, content.count, bytes[1], &whole);
  const bool begun = which != 1 || whole > 0; /* W&B's file is never empty */
  if (begun && (!cut(sinks[which], &content, (size_t)whole, bytes[1], &again) || again != whole)) __builtin_trap();
  rt_bytes_free(&content);
  return 0;
}
