/* accel-gen watch RUN: a run as it goes, on a terminal; elsewhere as it is now. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include "gen/base/path.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/cli/process.h"
#include "gen/commands/watch/screen.h"
#include "gen/commands/watch/view.h"
#include "runtime/base/clock.h"
#include "runtime/base/terminal.h"
#include "runtime/files/lock.h"

/* Columns and rows where there is no terminal. */
enum { COLUMNS_OF_SNAPSHOT = 80, ROWS_OF_SNAPSHOT = 32 };

/* Seconds from one look to the next; at least so many times as long as reading takes. */
static const double pace = 1, rest = 4;

static bool shows_blocks(void) {
  const char *locale = environment("LC_ALL", environment("LC_CTYPE", environment("LANG", "")));
  const char *set = strchr(locale, '.');
  return set != NULL && (strncasecmp(set, ".UTF-8", 6) == 0 || strncasecmp(set, ".utf8", 5) == 0);
}

static enum run_state state_of(const struct watched *run) {
  const struct metrics *metrics = &run->metrics;
  const json_int_t steps = json_integer_value(json_object_get(run->record, "steps"));
  const bool goes = rt_folder_is_locked(run->folder);
  if (metrics->n_columns == 0) return goes || run->record == NULL ? RUN_WAITS : RUN_ENDED;
  if (steps > 0 && metrics->columns[metrics->n_columns - 1].last >= steps) return RUN_FINISHED;
  return goes ? RUN_GOES : RUN_ENDED;
}

/* Reads what there is now. False, and why in errno, where metrics.jsonl cannot be read; one that is not there yet can.
 */
static bool look(struct arena *arena, const char *folder, json_int_t *began, struct watched *run) {
  struct stat status;
  const char *path = arena_printf(arena, "%s/metrics.jsonl", folder);
  *run = (struct watched){.folder = folder};
  run->record = json_load_file(arena_printf(arena, "%s/run.json", folder), 0, NULL);
  if (!metrics_read(arena, path, &run->metrics)) {
    if (errno != ENOENT) return false;
    run->metrics = (struct metrics){0};
  }
  if (stat(path, &status) == 0) run->age = difftime(time(NULL), status.st_mtime);
  const json_int_t now = json_integer_value(json_object_get(run->record, "began"));
  run->is_another = *began > 0 && now > *began;
  if (*began == 0) *began = now;
  run->state = state_of(run);
  return true;
}

static int fail(const char *folder) {
  rt_print(stderr, "accel-gen watch: %s/metrics.jsonl: %s\n", folder, strerror(errno));
  return STATUS_CANNOT;
}

static int print_once(const struct options *options, const char *folder) {
  struct watched run;
  json_int_t began = 0;
  if (!look(options->arena, folder, &began, &run)) return fail(folder);
  fputs(view_text(options->arena, &run, COLUMNS_OF_SNAPSHOT, ROWS_OF_SNAPSHOT, shows_blocks()), stdout);
  json_decref(run.record);
  return STATUS_OK;
}

/* Draws one picture; how long the next one may wait. False where nothing can be read any more. */
static bool draw(const char *folder, json_int_t *began, bool blocks, double *wait) {
  struct arena *arena = arena_new();
  struct watched run;
  int columns, rows;
  const double start = rt_now();
  const bool good = look(arena, folder, began, &run);
  const int reason = errno;
  screen_size(&columns, &rows);
  if (good) {
    const char *text = view_text(arena, &run, columns, rows - 1, blocks);
    screen_draw(arena_printf(arena, "%sq ends", text));
    json_decref(run.record);
  }
  arena_free(arena);
  *wait = rest * (rt_now() - start) > pace ? rest * (rt_now() - start) : pace;
  errno = reason;
  return good;
}

static int follow(const char *folder) {
  struct screen screen;
  json_int_t began = 0;
  double wait = pace;
  char key = '\0';
  const bool blocks = shows_blocks();
  screen_open(&screen);
  bool good = draw(folder, &began, blocks, &wait);
  for (enum screen_event event = SCREEN_TIME; good;) {
    event = screen_wait(&screen, wait, &key);
    if (event == SCREEN_ENDS || (event == SCREEN_KEY && (key == 'q' || key == 'Q'))) break;
    good = draw(folder, &began, blocks, &wait);
  }
  const int reason = errno;
  screen_close(&screen);
  errno = reason;
  return good ? STATUS_OK : fail(folder);
}

int command_watch(const struct options *options) {
  const char *folder = options->argument;
  struct stat status;
  if (stat(folder, &status) != 0) {
    rt_print(stderr, "accel-gen watch: %s: %s\n    help: name the project folder of a run (checkpoint.project_dir)\n",
             folder, strerror(errno));
    return STATUS_CANNOT;
  }
  if (!S_ISDIR(status.st_mode)) folder = folder_of(options->arena, folder); /* of its metrics.jsonl */
  return screen_is_there() ? follow(folder) : print_once(options, folder);
}
