/* Lines of a program's own for people, on standard error: what Python's logging prints, as Accelerate's get_logger has
 * it for several processes: "INFO:name:[RANK 1] text". */
#ifndef ACCEL_LOGGER_H
#define ACCEL_LOGGER_H

/* As Python's logging numbers them. */
enum accel_level {
  ACCEL_LEVEL_DEBUG = 10,
  ACCEL_LEVEL_INFO = 20,
  ACCEL_LEVEL_WARNING = 30,
  ACCEL_LEVEL_ERROR = 40,
  ACCEL_LEVEL_CRITICAL = 50
};

/* Who writes a line: the main process; all; all, one after the other in the order of their ranks, for which all call
 * it (what mpirun collects of several it may print in another order). */
enum accel_writers { ACCEL_MAIN_PROCESS_ONLY, ACCEL_EVERY_PROCESS, ACCEL_IN_ORDER };

/* Lines below `level` are not written. */
struct accel_logger {
  const char *name;
  enum accel_level level;
};

/* A logger of this name and level. The name is the caller's, and must outlive it. */
struct accel_logger accel_get_logger(const char *name, enum accel_level level);

/* Writes a line, as printf with a line end. */
void accel_write(const struct accel_logger *logger, enum accel_level level, enum accel_writers writers,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* A warning of the main process that is written once, however often this line runs. */
#define ACCEL_WARNING_ONCE(logger, ...)                                                                                \
  do {                                                                                                                 \
    static int accel_told_;                                                                                            \
    if (!accel_told_++) accel_write(logger, ACCEL_LEVEL_WARNING, ACCEL_MAIN_PROCESS_ONLY, __VA_ARGS__);                \
  } while (0)

#endif
