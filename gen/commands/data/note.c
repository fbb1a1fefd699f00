#include "gen/commands/data/note.h"

#include <stdio.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/files/files.h"

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

bool note_write(struct note *note, double started, int file, const char *name, const char *text, size_t size,
                struct problem *problem) {
  bool good = (fdatasync(file) == 0 || rt_problem(problem, "%s: cannot be synced", name)) &&
              rt_write_file(note->path, BY_RENAME, text, size, NULL, problem);
  note->noted = rt_now();
  note->took = note->noted - started;
  return good;
}
