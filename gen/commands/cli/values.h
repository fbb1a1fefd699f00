/* Values: options whose value is more than a text. Each gives false after a usage message on standard error. */
#ifndef ACCEL_COMMANDS_CLI_VALUES_H
#define ACCEL_COMMANDS_CLI_VALUES_H

#include "gen/commands/cli/options.h"

/* --set KEY=VALUE */
bool value_override(struct options *options, const char *value);

/* -o FILE of commands that do not write to standard output: - is refused. */
bool value_file(struct options *options, const char *value);

/* --with NAME=VALUE */
bool value_with(struct options *options, const char *value);

/* --nodes N, --latency US, --bandwidth MB/S, --step MS: the network that a plan is predicted for. */
bool value_nodes(struct options *options, const char *value);
bool value_latency(struct options *options, const char *value);
bool value_bandwidth(struct options *options, const char *value);
bool value_step(struct options *options, const char *value);

/* --read-bandwidth MB/S */
bool value_read_bandwidth(struct options *options, const char *value);

/* --rounds N */
bool value_rounds(struct options *options, const char *value);

/* --ranks N */
bool value_ranks(struct options *options, const char *value);
bool value_batch(struct options *options, const char *value);
bool value_sequence(struct options *options, const char *value);

/* --max-length N */
bool value_max_length(struct options *options, const char *value);

/* --doc-stride N */
bool value_doc_stride(struct options *options, const char *value);

/* --port N, which 0 is, too */
bool value_port(struct options *options, const char *value);

/* -I DIR */
bool value_include(struct options *options, const char *value);

/* --tuning FILE once all is read: it is devices.tuning, which names a file from the job's folder. */
bool value_tuning(struct options *options);

#endif
