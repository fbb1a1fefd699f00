/* Export: a folder of Hugging Face as another program's file. */
#ifndef ACCEL_COMMANDS_EXPORT_EXPORT_H
#define ACCEL_COMMANDS_EXPORT_EXPORT_H

#include <jansson.h>

#include "gen/base/diag.h"
#include "gen/base/text.h"
#include "gen/commands/cli/options.h"
#include "gen/commands/start/family.h"
#include "gen/commands/start/tensors.h"
#include "gen/model/rows.h"
#include "runtime/weights/shards.h"

/* What is exported, all of it checked against the family. */
struct exported {
  struct arena *arena;
  struct diagnostics *diags;
  const char *folder;
  struct family family;
  struct model_values config;  /* of the family's model */
  json_t *published;           /* the config.json */
  struct shards shards;        /* the weights */
  struct tensor_table tensors; /* which of them each parameter is */
  bool quiet;                  /* no progress is shown */
};

/* The value of a word: a field of the config, a key of the config.json as "a.b", a number, or such ones with +, * and /
 * between them. False where it is none; then there is no error yet. */
bool exported_number(const struct exported *of, const char *word, struct model_value *value);

/* The field at a path; NULL: the config has none. */
const struct model_value *exported_field(const struct exported *of, const char *path);

/* Whether all comparisons of a text hold, "A=B A!=B A<B A>B A>=B" with blanks between them, of what exported_number
 * takes or of words. One does not hold where its left side is neither; NULL always does. */
bool exported_holds(const struct exported *of, const char *when);

/* Elements of a tensor of the weights, from `first` on, in float32. */
void exported_elements(const struct stored_tensor *tensor, int64_t first, int64_t count, float *values);

/* Adds the error of a file that cannot be written; the command's status. */
int exported_cannot_write(const struct exported *of, const struct problem *problem);

/* The types that matrices are written in. */
enum gguf_type { GGUF_F32 = 0, GGUF_F16 = 1, GGUF_Q8_0 = 8 };

/* Writes the file of GGUF. Gives the command's status: after errors, STATUS_CANNOT where the file cannot be written,
 * and STATUS_BAD_JOB where the model cannot be. */
int gguf_write(struct exported *of, enum gguf_type type, const char *output);

/* Writes the graph of ONNX of the model's function `predict`, with `batch` samples of `sequence` tokens, or where these
 * are 0 any. The status is as gguf_write's. */
int onnx_write(struct exported *of, int batch, int sequence, const char *output);

#endif
