#include "runtime/data/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *descr; /* as NumPy spells it */
  int width;
} types[NPY_TYPES] = {
    [NPY_U1] = {"|u1", 1}, [NPY_U2] = {"<u2", 2}, [NPY_U4] = {"<u4", 4}, [NPY_I1] = {"|i1", 1}, [NPY_I2] = {"<i2", 2},
    [NPY_I4] = {"<i4", 4}, [NPY_I8] = {"<i8", 8}, [NPY_F4] = {"<f4", 4}, [NPY_F8] = {"<f8", 8},
};

/* The header's text, and how far it was read. */
struct reader {
  const char *at, *end;
};

static void skip_blanks(struct reader *reader) {
  while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\n')) reader->at++;
}

/* Takes a text, and blanks before it. */
static bool take(struct reader *reader, const char *text) {
  size_t length = strlen(text);
  skip_blanks(reader);
  if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, text, length) != 0) return false;
  reader->at += length;
  return true;
}

static bool take_type(struct reader *reader, enum npy_type *type) {
  char quoted[8];
  for (int i = 0; i < NPY_TYPES; i++) {
    snprintf(quoted, sizeof quoted, "'%s'", types[i].descr);
    if (take(reader, quoted)) return *type = (enum npy_type)i, true;
  }
  return false;
}

static bool take_number(struct reader *reader, int64_t *number) {
  skip_blanks(reader);
  const char *from = reader->at;
  for (*number = 0; reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9'; reader->at++) {
    if (*number > (INT64_MAX - 9) / 10) return false;
    *number = *number * 10 + (*reader->at - '0');
  }
  return reader->at > from;
}

/* A tuple: (), (3,) or (3, 4). */
static bool take_shape(struct reader *reader, struct npy *npy) {
  if (!take(reader, "(")) return false;
  while (!take(reader, ")")) {
    if (npy->rank == 8 || !take_number(reader, &npy->shape[npy->rank++])) return false;
    if (!take(reader, ",")) return npy->rank > 1 && take(reader, ")");
  }
  return true;
}

/* The three keys, each once, in any order. */
static bool take_header(struct reader *reader, struct npy *npy, bool *is_known, bool *is_fortran) {
  unsigned seen = 0;
  if (!take(reader, "{")) return false;
  while (!take(reader, "}")) {
    unsigned key;
    if (take(reader, "'descr':")) {
      key = 1;
      *is_known = take_type(reader, &npy->type);
      if (!*is_known) return true;
    } else if (take(reader, "'fortran_order':")) {
      key = 2;
      *is_fortran = take(reader, "True");
      if (!*is_fortran && !take(reader, "False")) return false;
    } else if (take(reader, "'shape':")) {
      key = 4;
      if (!take_shape(reader, npy)) return false;
    } else {
      return false;
    }
    if (seen & key) return false;
    seen |= key;
    if (!take(reader, ",")) return take(reader, "}") && seen == 7;
  }
  return seen == 7;
}

static bool bad(struct problem *problem, const char *path, int64_t byte, const char *what, const char *cure) {
  rt_problem(problem, "%s: byte %" PRId64 ": %s", path, byte, what);
  return rt_help(problem, "%s", cure);
}

static const char write_anew[] = "write the array again with numpy.save";

/* Where the header's text is. */
static bool find_header(struct reader *reader, const char *path, const uint8_t *bytes, size_t size,
                        struct problem *problem) {
  if (size < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
    return bad(problem, path, 0, "no magic of a .npy file", "give a file of numpy.save, or name its format");
  if (bytes[6] < 1 || bytes[6] > 3) return bad(problem, path, 6, "an unknown version of .npy", write_anew);
  size_t before = bytes[6] == 1 ? 10 : 12;
  if (size < before) return bad(problem, path, 8, "the file ends in its header", write_anew);
  size_t length = bytes[8] | (size_t)bytes[9] << 8;
  if (bytes[6] > 1) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
  if (length > size - before) return bad(problem, path, 8, "the file ends in its header", write_anew);
  *reader = (struct reader){(const char *)bytes + before, (const char *)bytes + before + length};
  return true;
}

static bool count_elements(struct npy *npy, const char *path, uint64_t held, struct problem *problem) {
  uint64_t width = (uint64_t)types[npy->type].width, count = 1;
  bool fits = true;
  for (int i = 0; i < npy->rank; i++) {
    uint64_t dim = (uint64_t)npy->shape[i];
    fits = fits && (dim == 0 || count <= held / width / dim);
    count *= dim;
  }
  npy->count = (int64_t)count;
  if (fits && count * width == held) return true;
  rt_problem(problem, "%s: the header's shape needs another number of bytes than the %" PRIu64 " that follow it", path,
             held);
  return rt_help(problem, "the file was cut or changed: copy or write it again");
}

bool rt_npy_find(struct npy *npy, const char *path, const uint8_t *bytes, size_t size, struct problem *problem) {
  struct reader reader = {0};
  bool is_known = false, is_fortran = false;
  *npy = (struct npy){0};
  if (!find_header(&reader, path, bytes, size, problem)) return false;
  const char *text = reader.at;
  int64_t before = (int64_t)((const uint8_t *)text - bytes);
  bool good = take_header(&reader, npy, &is_known, &is_fortran);
  if (good && !is_known)
    return bad(problem, path, before + (reader.at - text), "a type of elements that is not read",
               "convert the array with astype: uint8, uint16, uint32, int8, int16, int32, int64, float32 or float64, "
               "little endian");
  skip_blanks(&reader);
  if (!good || reader.at != reader.end)
    return bad(problem, path, before + (reader.at - text), "this is not the header that numpy.save writes", write_anew);
  if (is_fortran && npy->rank > 1)
    return bad(problem, path, before, "the array is in Fortran's order", "save numpy.ascontiguousarray(array)");
  npy->elements = (const uint8_t *)reader.end;
  npy->bytes_before = (int64_t)(npy->elements - bytes);
  return count_elements(npy, path, size - (size_t)npy->bytes_before, problem);
}

int rt_npy_width(enum npy_type type) {
  return types[type].width;
}

/* One loop a type, so that a compiler makes vector loops of them. */
#define READ(TYPE)                                                                                                     \
  for (int64_t i = 0; i < count; i++) {                                                                                \
    TYPE element;                                                                                                      \
    memcpy(&element, elements + (first + i) * (int64_t)sizeof element, sizeof element);                                \
    out[i] = (float)element;                                                                                           \
  }                                                                                                                    \
  break

void rt_npy_read(enum npy_type type, const uint8_t *elements, int64_t first, int64_t count, float *out) {
  switch (type) {
  case NPY_U1:
    READ(uint8_t);
  case NPY_U2:
    READ(uint16_t);
  case NPY_U4:
    READ(uint32_t);
  case NPY_I1:
    READ(int8_t);
  case NPY_I2:
    READ(int16_t);
  case NPY_I4:
    READ(int32_t);
  case NPY_I8:
    READ(int64_t);
  case NPY_F4:
    READ(float);
  case NPY_F8:
    READ(double);
  case NPY_TYPES:
    break;
  }
}

#define ELEMENT(TYPE)                                                                                                  \
  do {                                                                                                                 \
    TYPE element;                                                                                                      \
    memcpy(&element, elements + index * (int64_t)sizeof element, sizeof element);                                      \
    return (double)element;                                                                                            \
  } while (0)

double rt_npy_at(enum npy_type type, const uint8_t *elements, int64_t index) {
  switch (type) {
  case NPY_U1:
    ELEMENT(uint8_t);
  case NPY_U2:
    ELEMENT(uint16_t);
  case NPY_U4:
    ELEMENT(uint32_t);
  case NPY_I1:
    ELEMENT(int8_t);
  case NPY_I2:
    ELEMENT(int16_t);
  case NPY_I4:
    ELEMENT(int32_t);
  case NPY_I8:
    ELEMENT(int64_t);
  case NPY_F4:
    ELEMENT(float);
  case NPY_F8:
    ELEMENT(double);
  case NPY_TYPES:
    break;
  }
  return 0;
}
