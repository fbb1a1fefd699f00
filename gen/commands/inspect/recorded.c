#include "gen/commands/inspect/recorded.h"

#include <errno.h>
#include <string.h>

#include "gen/base/file.h"
#include "gen/commands/cli/files.h"

bool recorded_read(struct arena *arena, const char *program, struct recorded *recorded, struct diagnostics *diags) {
  struct location where = {.file = program};
  recorded->path = program;
  recorded->text = read_bytes(arena, program, &recorded->length);
  if (recorded->text == NULL) {
    diag_error(diags, where, "cannot read the program: %s", strerror(errno));
    return false;
  }
  recorded->lines = lines_of(arena, recorded->text, recorded->length);
  recorded->manifest = manifest_read(arena, manifest_path(arena, program), diags);
  if (recorded->manifest == NULL) {
    diag_help(diags, "accel-gen JOB -o %s --manifest writes the program and its manifest", program);
    return false;
  }
  const char *digest = digest_of(arena, recorded->text, recorded->length), *said = recorded->manifest->output.sha256;
  if (strcmp(digest, said) == 0 && recorded->manifest->n_lines == recorded->lines.count) return true;
  diag_error(diags, where,
             "this is not the program that its manifest describes: it was changed, or made again without one");
  diag_note(diags, where, "its SHA-256 is %s, in the manifest it is %s", digest, said);
  diag_help(diags, "generate it again with --manifest");
  return false;
}
