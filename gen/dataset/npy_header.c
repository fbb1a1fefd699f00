#include "gen/dataset/npy_header.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void npy_header(char out[NPY_HEADER], const char *type, const int64_t *shape, int rank) {
  enum { MAGIC = 10 };
  char *at = out + MAGIC;
  size_t left = NPY_HEADER - MAGIC;
  memcpy(out, "\x93NUMPY\x01\x00", MAGIC - 2);
  out[8] = (char)(NPY_HEADER - MAGIC);
  out[9] = 0;
  int length = snprintf(at, left, "{'descr': '%.4s', 'fortran_order': False, 'shape': (", type);
  for (int i = 0; i < rank; i++)
    length += snprintf(at + length, left - (size_t)length, "%" PRId64 "%s", shape[i],
                       rank == 1       ? ","
                       : i + 1 == rank ? ""
                                       : ", ");
  length += snprintf(at + length, left - (size_t)length, "), }");
  memset(at + length, ' ', left - (size_t)length);
  out[NPY_HEADER - 1] = '\n';
}
