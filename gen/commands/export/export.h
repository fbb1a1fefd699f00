/* Export: a folder of Hugging Face as another program's file. */
#ifndef ACCEL_COMMANDS_EXPORT_EXPORT_H
#define ACCEL_COMMANDS_EXPORT_EXPORT_H

#include <jansson.h>

#include "gen/base/diag.h"
#include "gen/base/text.h"
#include "gen/commands/cli/options.h"
#include "gen/commands/start/family.h"
#include "gen/model/rows.h"
#include "runtime/weights/shards.h"

/* What is exported, all of it checked against the family. */
struct exported {
  struct arena *arena;
  struct diagnostics *diags;
  const char *folder;
  struct family family;
  struct model_values config; /* of the family's model */
  json_t *published;          /* the config.json */
  struct shards shards;       /* the weights */
};

/* The value of a word: a field of the config, a key of the config.json as "a.b", a number, or a product or quotient of
 * such by * and /. False where it is none; then there is no error yet. */
bool exported_number(const struct exported *of, const char *word, struct model_value *value);

/* The field at a path; NULL: the config has none. */
const struct model_value *exported_field(const struct exported *of, const char *path);

/* Whether "FIELD=VALUE" holds; NULL always does. */
bool exported_holds(const struct exported *of, const char *when);

/* The types that matrices are written in. */
enum gguf_type { GGUF_F32 = 0, GGUF_F16 = 1, GGUF_Q8_0 = 8 };

/* Writes the file of GGUF. Gives the command's status: after errors, STATUS_CANNOT where the file cannot be written,
 * and STATUS_BAD_JOB where the model cannot be. */
int gguf_write(struct exported *of, enum gguf_type type, const char *output);

#endif
