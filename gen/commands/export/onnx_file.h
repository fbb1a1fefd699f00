/* The file of a graph of ONNX. */
#ifndef ACCEL_COMMANDS_EXPORT_ONNX_FILE_H
#define ACCEL_COMMANDS_EXPORT_ONNX_FILE_H

#include "gen/commands/export/export.h"
#include "gen/onnx/make.h"

/* Writes the graph with its weights, in float32. Where they do not fit into a message of protocol buffers, which has 2
 * GiB at most, they are in a second file, `output` with "_data" at its end. The status is as gguf_write's. */
int onnx_write_file(struct exported *of, const struct onnx_graph *graph, const char *output);

#endif
