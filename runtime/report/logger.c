#include "include/accel/logger.h"

#include "runtime/process/world.h"
#include "runtime/values/agreement.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct accel_logger accel_get_logger(const char *name, enum accel_level level) {
  return (struct accel_logger){name, level};
}

static const char *name_of(enum accel_level level) {
  return level >= ACCEL_LEVEL_CRITICAL  ? "CRITICAL"
         : level >= ACCEL_LEVEL_ERROR   ? "ERROR"
         : level >= ACCEL_LEVEL_WARNING ? "WARNING"
         : level >= ACCEL_LEVEL_INFO    ? "INFO"
                                        : "DEBUG";
}

/* A line goes out in one piece, so that those of several processes stand one below the other. */
static void write_line(const struct accel_logger *logger, enum accel_level level, const char *format,
                       va_list arguments) {
  char *text = NULL;
  size_t size;
  FILE *line = open_memstream(&text, &size);
  if (line == NULL) return;
  fprintf(line, "%s:%s:[RANK %d] ", name_of(level), logger->name, rt_world()->rank);
  vfprintf(line, format, arguments);
  putc('\n', line);
  if (fclose(line) == 0) {
    fflush(stdout);
    fwrite(text, 1, size, stderr);
  }
  free(text);
}

void accel_write(const struct accel_logger *logger, enum accel_level level, enum accel_writers writers,
                 const char *format, ...) {
  const struct world *world = rt_world();
  bool in_order = writers == ACCEL_IN_ORDER;
  va_list arguments;
  if (level < logger->level || (writers == ACCEL_MAIN_PROCESS_ONLY && world->rank != 0)) return;
  for (int rank = 0; in_order && rank < world->rank; rank++) rt_meet(OPERATION_LOG, "");
  va_start(arguments, format);
  write_line(logger, level, format, arguments);
  va_end(arguments);
  for (int rank = world->rank; in_order && rank < world->ranks; rank++) rt_meet(OPERATION_LOG, "");
}
