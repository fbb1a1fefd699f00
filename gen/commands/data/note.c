#include "gen/commands/data/note.h"

#include <stdio.h>
#include <unistd.h>

#include "runtime/base/clock.h"

/* Seconds from one note to the next, where a note takes no more than a small fraction of them. */
static const double pace_least = 1.0, note_fraction = 0.05;

bool note_begin(struct note *note, const char *output, struct problem *problem) {
  *note = (struct note){.noted = rt_now()};
  int length = snprintf(note->path, sizeof note->path, "%s.progress", output);
  return (length > 0 && (size_t)length < sizeof note->path) ||
         rt_problem(problem, "the name of the output is too long");
}

bool note_is_due(const struct note *note) {
  double pace = note->took / note_fraction;
  return rt_now() - note->noted > (pace > pace_least ? pace : pace_least);
}

FILE *note_open(struct note *note, int file, const char *name, struct problem *problem) {
  note->opened = rt_now();
  if (fdatasync(file) != 0) return rt_problem(problem, "%s: cannot be synced", name), NULL;
  if (!rt_writer_open(&note->writer, note->path, BY_RENAME, problem)) return NULL;
  const int copy = dup(note->writer.file);
  FILE *stream = copy >= 0 ? fdopen(copy, "w") : NULL;
  if (stream != NULL) return stream;
  if (copy >= 0) close(copy);
  rt_writer_give_up(&note->writer, "cannot be written", problem);
  return NULL;
}

bool note_close(struct note *note, FILE *stream, struct problem *problem) {
  const bool failed = ferror(stream) != 0;
  if (fclose(stream) != 0 || failed) return rt_writer_give_up(&note->writer, "cannot be written", problem);
  const bool good = rt_writer_commit(&note->writer, problem);
  note->noted = rt_now();
  note->took = note->noted - note->opened;
  return good;
}
