/* Facts: what a machine has that decides whether and how fast programs run, as JSON. A member that the machine does not
 * tell is absent. Private to gen/commands/env. */
#ifndef ACCEL_COMMANDS_ENV_FACTS_H
#define ACCEL_COMMANDS_ENV_FACTS_H

#include <jansson.h>

#include "gen/commands/cli/options.h"

/* Adds a text to an object unless it is NULL or empty. */
void facts_put(json_t *object, const char *key, const char *text);

/* The first line that a command prints, whose words are separated by blanks; NULL where there is no such command or
 * it fails. */
const char *facts_line(struct arena *arena, const char *command);

/* The operating system, the processors with their instruction sets, and the memory, each with what limits this process:
 * affinity and control groups. The caller owns the object. */
json_t *facts_system(struct arena *arena);
json_t *facts_processor(struct arena *arena);
json_t *facts_memory(struct arena *arena);

/* The GPUs, as the tools of their drivers list them, an object each; an empty list where there is none. */
json_t *facts_gpus(struct arena *arena);

/* Compilers and launchers by the first line that they print; the libraries that programs link, by their headers or by
 * pkg-config; those that the command has loaded. */
json_t *facts_tools(const struct options *options);
json_t *facts_libraries(const struct options *options);
json_t *facts_loaded(struct arena *arena);

/* The variables of the environment that the command, programs or their libraries read, as far as they are set. */
json_t *facts_variables(void);

#endif
