#include "gen/program/fp8.h"

#include <string.h>

const char fp8_scale_beginning[] = "fp8_scale_";
const char fp8_history_beginning[] = "fp8_amax_history_";

bool is_fp8_state(const char *name) {
  const char *dot = strrchr(name, '.'), *last = dot != NULL ? dot + 1 : name;
  return strncmp(last, fp8_scale_beginning, strlen(fp8_scale_beginning)) == 0 ||
         strncmp(last, fp8_history_beginning, strlen(fp8_history_beginning)) == 0;
}
