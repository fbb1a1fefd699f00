#include "runtime/data/foreign.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A message of an Arrow stream begins with a mark and its length, a multiple of 8. How large the file is does not
 * count: of one that is unpacked only the first bytes may be there. */
static bool is_arrow_stream(const uint8_t *at, size_t size) {
  if (size < 16 || memcmp(at, "\xff\xff\xff\xff", 4) != 0) return false;
  uint32_t length = (uint32_t)at[4] | (uint32_t)at[5] << 8 | (uint32_t)at[6] << 16 | (uint32_t)at[7] << 24;
  return length > 0 && length % 8 == 0 && length < 1 << 28;
}

enum foreign rt_foreign_as(const void *bytes, size_t size) {
  const uint8_t *at = bytes;
  if (size >= 3 && at[0] == 0x1f && at[1] == 0x8b && at[2] == 8) return FOREIGN_GZIP;
  if (size < 4) return NOT_FOREIGN;
  bool skippable = (at[0] & 0xf0) == 0x50 && memcmp(at + 1, "\x2a\x4d\x18", 3) == 0;
  if (memcmp(at, "\x28\xb5\x2f\xfd", 4) == 0 || skippable) return FOREIGN_ZSTD;
  if (size < 8) return NOT_FOREIGN;
  if (memcmp(at, "PAR1\x15", 5) == 0) return FOREIGN_PARQUET; /* its first number is a 32-bit one in all versions */
  if (memcmp(at, "ARROW1\0\0", 8) == 0) return FOREIGN_ARROW;
  return is_arrow_stream(at, size) ? FOREIGN_ARROW_STREAM : NOT_FOREIGN;
}

/* The name of a file without such a file's ending, for the one that is written; NAME where a command cannot hold it as
 * it is. */
static void stem_of(const char *path, const char **name, int *stem) {
  enum { LONGEST = 60 };
  static const char *const endings[] = {".parquet", ".arrow", ".feather"};
  *name = strlen(path) > LONGEST || strpbrk(path, " '\"\\$`!*?;&|<>(){}[]\n") != NULL ? "NAME" : path;
  size_t length = strlen(*name);
  *stem = (int)length;
  for (int i = 0; i < 3; i++) {
    size_t has = strlen(endings[i]);
    if (length > has && strcmp(*name + length - has, endings[i]) == 0) *stem = (int)(length - has);
  }
}

bool rt_foreign_refuse(enum foreign kind, const char *path, bool as_table, struct problem *problem) {
  const char *name;
  int stem;
  stem_of(path, &name, &stem);
  rt_problem(problem, "%s: a file of %s, which is not read", path, kind == FOREIGN_PARQUET ? "Parquet" : "Arrow");
  if (as_table) {
    const char *open = kind == FOREIGN_PARQUET ? "parquet.read_table"
                       : kind == FOREIGN_ARROW ? "feather.read_table"
                                               : "ipc.open_stream";
    return rt_help(problem,
                   "write it as a table (pip install pyarrow), for format: csv\n"
                   "      python3 -c 'import pyarrow as a, pyarrow.csv, pyarrow.feather, pyarrow.parquet; "
                   "a.csv.write_csv(a.%s(\"%s\")%s, \"%.*s.csv\")'",
                   open, name, kind == FOREIGN_ARROW_STREAM ? ".read_all()" : "", stem, name);
  }
  const char *open = kind == FOREIGN_PARQUET ? "parquet.ParquetFile"
                     : kind == FOREIGN_ARROW ? "ipc.open_file"
                                             : "ipc.open_stream";
  const char *batches = kind == FOREIGN_PARQUET ? ".iter_batches()"
                        : kind == FOREIGN_ARROW ? ".read_all().to_batches()"
                                                : "";
  return rt_help(
      problem,
      "write it as JSON Lines (pip install pyarrow), for accel-gen data --text-field NAME\n"
      "      python3 -c 'import json, pyarrow as a, pyarrow.parquet; [print(json.dumps(r, default=str)) for b "
      "in a.%s(\"%s\")%s for r in b.to_pylist()]' >%.*s.jsonl",
      open, name, batches, stem, name);
}

bool rt_foreign_check(const char *path, enum accel_format format, const void *bytes, size_t size,
                      struct problem *problem) {
  enum foreign kind = format == ACCEL_BYTES ? NOT_FOREIGN : rt_foreign_as(bytes, size);
  bool is_table = format == ACCEL_CSV || format == ACCEL_NPY || format == ACCEL_NPZ;
  if (kind == NOT_FOREIGN || (kind == FOREIGN_ARROW_STREAM && !is_table)) return true; /* it may be two tokens */
  if (kind != FOREIGN_GZIP && kind != FOREIGN_ZSTD) return rt_foreign_refuse(kind, path, is_table, problem);
  rt_problem(problem, "%s: the file is compressed, and the data of a job is not unpacked", path);
  return rt_help(problem, "unpack it (%s %.200s), and name the file that comes of it",
                 kind == FOREIGN_GZIP ? "gzip -dk" : "zstd -d", path);
}
