#include "gen/commands/export/onnx_file.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gen/base/path.h"
#include "gen/base/version.h"
#include "gen/commands/cli/commands.h"
#include "gen/onnx/proto.h"
#include "runtime/base/progress.h"
#include "runtime/base/terminal.h"
#include "runtime/files/files.h"

/* Fields of onnx.proto. */
enum { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_PRODUCER_VERSION = 3, MODEL_GRAPH = 7, MODEL_OPSET = 8 };
enum { MODEL_METADATA = 14, OPSET_VERSION = 2, ENTRY_KEY = 1, ENTRY_VALUE = 2, GRAPH_WEIGHT = 5 };
enum { WEIGHT_DIMS = 1, WEIGHT_TYPE = 2, WEIGHT_NAME = 8, WEIGHT_RAW = 9, WEIGHT_EXTERNAL = 13, WEIGHT_LOCATION = 14 };

/* Where a weight of a second file may begin, and how many elements are converted at a time. */
enum { ALIGNMENT = 4096, CHUNK = 1 << 16 };

/* A weight as it is written: all of its TensorProto before its elements. */
struct piece {
  const struct stored_tensor *tensor;
  struct text before;
  uint64_t bytes, padding; /* of its elements, and after them */
};

static void add_entry(const struct exported *of, struct text *message, int field, const char *key, const char *value) {
  struct text entry = text_in(of->arena);
  proto_text(&entry, ENTRY_KEY, key);
  proto_text(&entry, ENTRY_VALUE, value);
  proto_message(message, field, &entry);
}

/* The tensor of the folder that is a parameter; NULL with an error. */
static const struct stored_tensor *tensor_of(const struct exported *of, const char *parameter) {
  const struct stored_tensor *found = NULL;
  for (int i = 0; i < of->tensors.count && found == NULL; i++) {
    const struct tensor_row *row = &of->tensors.items[i];
    if (row->parameter != NULL && row->name != NULL && strcmp(row->parameter, parameter) == 0)
      found = rt_shards_find(&of->shards, row->name);
  }
  const char *dtype = found != NULL ? found->dtype : "F32";
  if (found == NULL)
    diag_error(of->diags, (struct location){.file = of->folder}, "the weights have no %s", parameter);
  else if (strcmp(dtype, "F32") != 0 && strcmp(dtype, "F16") != 0 && strcmp(dtype, "BF16") != 0)
    diag_error(of->diags, (struct location){.file = of->folder}, "%s is %s; only F32, F16 and BF16 are exported",
               parameter, dtype);
  else
    return found;
  return NULL;
}

/* The weight's own message; `file`: the second file, in which its elements begin at `offset`; NULL: they follow. */
static void begin_weight(const struct exported *of, const struct onnx_weight *weight, const char *file, uint64_t offset,
                         struct piece *piece) {
  piece->before = text_in(of->arena);
  piece->bytes = (uint64_t)shape_count(weight->shape) * sizeof(float);
  piece->padding = file == NULL ? 0 : (ALIGNMENT - piece->bytes % ALIGNMENT) % ALIGNMENT;
  for (int i = 0; i < weight->shape.rank; i++) proto_int(&piece->before, WEIGHT_DIMS, weight->shape.dim[i]);
  proto_int(&piece->before, WEIGHT_TYPE, ONNX_FLOAT);
  proto_text(&piece->before, WEIGHT_NAME, weight->name);
  if (file == NULL) {
    proto_begin(&piece->before, WEIGHT_RAW, piece->bytes);
    return;
  }
  add_entry(of, &piece->before, WEIGHT_EXTERNAL, "location", file);
  add_entry(of, &piece->before, WEIGHT_EXTERNAL, "offset", arena_printf(of->arena, "%llu", (unsigned long long)offset));
  add_entry(of, &piece->before, WEIGHT_EXTERNAL, "length",
            arena_printf(of->arena, "%llu", (unsigned long long)piece->bytes));
  proto_int(&piece->before, WEIGHT_LOCATION, 1);
}

/* What is before the graph in a ModelProto. */
static struct text model_header(const struct exported *of, uint64_t graph_bytes) {
  struct text header = text_in(of->arena), opset = text_in(of->arena);
  proto_int(&header, MODEL_IR, ONNX_IR_VERSION);
  proto_text(&header, MODEL_PRODUCER, "accel-gen");
  proto_text(&header, MODEL_PRODUCER_VERSION, ACCEL_VERSION);
  proto_int(&opset, OPSET_VERSION, ONNX_OPSET);
  proto_message(&header, MODEL_OPSET, &opset);
  add_entry(of, &header, MODEL_METADATA, "architecture", of->family.architecture);
  proto_begin(&header, MODEL_GRAPH, graph_bytes);
  return header;
}

/* ---- Writing ---- */

static bool write_elements(const struct piece *piece, struct writer *file, struct problem *problem) {
  static const char zeros[ALIGNMENT];
  struct arena *chunk = arena_new();
  float *values = arena_alloc(chunk, CHUNK * sizeof *values);
  const int64_t count = (int64_t)(piece->bytes / sizeof *values);
  bool written = true;
  for (int64_t at = 0; written && at < count; at += CHUNK) {
    const int64_t part = count - at < CHUNK ? count - at : CHUNK;
    exported_elements(piece->tensor, at, part, values);
    written = rt_writer_add(file, values, (size_t)part * sizeof *values, problem);
  }
  arena_free(chunk);
  return written && (piece->padding == 0 || rt_writer_add(file, zeros, piece->padding, problem));
}

/* What the second file has. */
static bool write_data(const struct piece *pieces, int count, struct writer *file, struct problem *problem) {
  bool written = true;
  for (int i = 0; written && i < count; i++) written = write_elements(&pieces[i], file, problem);
  return written;
}

/* What comes before a piece of the graph. */
static struct text piece_header(const struct exported *of, const struct piece *piece, bool external) {
  struct text header = text_in(of->arena);
  proto_begin(&header, GRAPH_WEIGHT, piece->before.length + (external ? 0 : piece->bytes));
  text_add(&header, piece->before.bytes, piece->before.length);
  return header;
}

static bool write_model(const struct exported *of, const struct onnx_graph *graph, const struct piece *pieces,
                        bool external, struct writer *file, struct problem *problem) {
  uint64_t bytes = graph->fields.length;
  const int count = graph->weights.count;
  for (int i = 0; i < count; i++)
    bytes += piece_header(of, &pieces[i], external).length + (external ? 0 : pieces[i].bytes);
  const struct text header = model_header(of, bytes);
  bool written = rt_writer_add(file, header.bytes, header.length, problem) &&
                 rt_writer_add(file, graph->fields.bytes, graph->fields.length, problem);
  for (int i = 0; written && i < count; i++) {
    const struct text before = piece_header(of, &pieces[i], external);
    written = rt_writer_add(file, before.bytes, before.length, problem) &&
              (external || write_elements(&pieces[i], file, problem));
  }
  return written;
}

static bool open_file(struct writer *file, const char *path, struct progress *progress, struct problem *problem) {
  if (!rt_writer_open(file, path, BY_RENAME, problem)) return false;
  file->progress = progress;
  rt_writer_stream(file);
  return true;
}

/* Leaves nothing of a file after a problem that is known. */
static bool drop(struct writer *file) {
  struct problem ignored = {0};
  return rt_writer_give_up(file, "", &ignored);
}

static bool write_alone(const struct exported *of, const struct onnx_graph *graph, const struct piece *pieces,
                        const char *output, struct progress *progress, struct problem *problem) {
  struct writer file;
  return open_file(&file, output, progress, problem) && write_model(of, graph, pieces, false, &file, problem) &&
         rt_writer_commit(&file, problem);
}

/* Both files or neither: what can be refused is refused before the first byte, and the model is named last. */
static bool write_both(const struct exported *of, const struct onnx_graph *graph, const struct piece *pieces,
                       const char *output, const char *data, struct progress *progress, struct problem *problem) {
  struct writer model, second;
  if (!open_file(&model, output, progress, problem)) return false;
  if (!open_file(&second, data, progress, problem)) return drop(&model);
  if (!write_data(pieces, graph->weights.count, &second, problem) ||
      !write_model(of, graph, pieces, true, &model, problem)) {
    drop(&second);
    return drop(&model);
  }
  if (!rt_writer_commit(&second, problem)) return drop(&model);
  if (rt_writer_commit(&model, problem)) return true;
  unlink(data);
  return false;
}

/* The second file of an earlier export is not this one's. */
static void name_unused(const struct exported *of, const char *output, const char *data) {
  struct stat status;
  if (lstat(data, &status) != 0) return;
  diag_warning(of->diags, (struct location){.file = data}, "%s does not use this file, which was there before",
               name_in_folder(output));
}

int onnx_write_file(struct exported *of, const struct onnx_graph *graph, const char *output) {
  struct piece *pieces = arena_alloc(of->arena, ((size_t)graph->weights.count + 1) * sizeof *pieces);
  const char *data = arena_printf(of->arena, "%s_data", output);
  struct problem problem = {0};
  uint64_t bytes = 0, offset = 0;
  for (int i = 0; i < graph->weights.count; i++) {
    pieces[i].tensor = tensor_of(of, graph->weights.items[i].name);
    if (pieces[i].tensor == NULL) return STATUS_BAD_JOB;
    bytes +=
        (uint64_t)shape_count(graph->weights.items[i].shape) * sizeof(float) + strlen(graph->weights.items[i].name);
  }
  const bool external = bytes + graph->fields.length > INT32_MAX - (1 << 20);
  for (int i = 0; i < graph->weights.count; i++) {
    begin_weight(of, &graph->weights.items[i], external ? name_in_folder(data) : NULL, offset, &pieces[i]);
    offset += pieces[i].bytes + pieces[i].padding;
  }
  struct progress progress = rt_progress_begin(of->quiet ? NULL : stderr, "writes", 0, bytes + graph->fields.length);
  const bool written = external ? write_both(of, graph, pieces, output, data, &progress, &problem)
                                : write_alone(of, graph, pieces, output, &progress, &problem);
  rt_terminal_clear();
  if (!written) return exported_cannot_write(of, &problem);
  if (!external) name_unused(of, output, data);
  return STATUS_OK;
}
