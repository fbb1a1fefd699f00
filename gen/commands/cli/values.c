#include "gen/commands/cli/values.h"

#include <stdlib.h>
#include <string.h>

#include "gen/base/path.h"
#include "gen/commands/cli/files.h"

/* Adds the text before and after the first "=" of `value` to a list. */
static bool add_pair(struct options *options, const char *value, struct job_override **items, int *count,
                     int *capacity) {
  const char *equals = strchr(value, '=');
  if (equals == NULL || equals == value) return false;
  *items = arena_grow(options->arena, *items, *count, capacity, sizeof **items);
  const char *key = arena_copy(options->arena, value, (size_t)(equals - value));
  (*items)[(*count)++] = (struct job_override){.key = key, .value = equals + 1};
  return true;
}

bool value_override(struct options *options, const char *value) {
  return add_pair(options, value, &options->overrides, &options->n_overrides, &options->overrides_capacity) ||
         options_refuse(options, "--set needs KEY=VALUE, not ", value);
}

bool value_file(struct options *options, const char *value) {
  if (strcmp(value, "-") == 0)
    return options_refuse(options, "this command does not write to standard output: -o FILE instead of -o ", value);
  options->output = value;
  return true;
}

bool value_with(struct options *options, const char *value) {
  return add_pair(options, value, &options->with, &options->n_with, &options->with_capacity) ||
         options_refuse(options, "--with needs NAME=VALUE, not ", value);
}

bool value_nodes(struct options *options, const char *value) {
  options->predicts = true;
  return value_override(options, arena_printf(options->arena, "devices.nodes=%s", value));
}

/* A positive number, in units of `unit`. */
static bool read_quantity(struct options *options, const char *value, double unit, double *quantity) {
  char *end;
  double number = strtod(value, &end);
  if (end == value || *end != '\0' || !(number > 0 && number < 1e12))
    return options_refuse(options, "a number greater than 0 is needed instead of ", value);
  *quantity = number * unit;
  return true;
}

static bool read_network(struct options *options, const char *value, double unit, double *quantity) {
  options->predicts = true;
  return read_quantity(options, value, unit, quantity);
}

bool value_read_bandwidth(struct options *options, const char *value) {
  return read_quantity(options, value, 1e6, &options->read_bandwidth);
}

bool value_latency(struct options *options, const char *value) {
  return read_network(options, value, 1e-6, &options->network.latency);
}

bool value_bandwidth(struct options *options, const char *value) {
  return read_network(options, value, 1e6, &options->network.bandwidth);
}

bool value_step(struct options *options, const char *value) {
  return read_network(options, value, 1e-3, &options->network.step);
}

static bool read_number(struct options *options, const char *name, const char *value, int least, int most, int *read) {
  char *end;
  long number = strtol(value, &end, 10);
  if (end == value || *end != '\0' || number < least || number > most)
    return options_refuse(options,
                          arena_printf(options->arena, "%s is a number from %d to %d, not ", name, least, most), value);
  *read = (int)number;
  return true;
}

static bool read_count(struct options *options, const char *name, const char *value, int most, int *count) {
  return read_number(options, name, value, 1, most, count);
}

bool value_rounds(struct options *options, const char *value) {
  return read_count(options, "--rounds", value, 1000, &options->rounds);
}

bool value_ranks(struct options *options, const char *value) {
  return read_count(options, "--ranks", value, 1000, &options->ranks);
}

bool value_batch(struct options *options, const char *value) {
  return read_count(options, "--batch", value, 1 << 20, &options->batch);
}

bool value_sequence(struct options *options, const char *value) {
  return read_count(options, "--sequence", value, 1 << 24, &options->sequence);
}

bool value_max_length(struct options *options, const char *value) {
  return read_count(options, "--max-length", value, 1 << 20, &options->max_length);
}

bool value_doc_stride(struct options *options, const char *value) {
  return read_count(options, "--doc-stride", value, 1 << 20, &options->doc_stride);
}

bool value_port(struct options *options, const char *value) {
  return read_number(options, "--port", value, 0, 65535, &options->port);
}

bool value_include(struct options *options, const char *value) {
  options->includes = arena_grow(options->arena, options->includes, options->n_includes, &options->includes_capacity,
                                 sizeof *options->includes);
  options->includes[options->n_includes++] = value;
  return true;
}

bool value_tuning(struct options *options) {
  const char *file = options->tuning;
  if (file == NULL || options->argument == NULL) return true;
  if (strchr(file, '\'') != NULL) return options_refuse(options, "a table's name may hold no quote: ", file);
  if (strcmp(file, "machine") != 0)
    file = name_from(options->arena, folder_of(options->arena, options->argument), file);
  return value_override(options, arena_printf(options->arena, "devices.tuning='%s'", file));
}
