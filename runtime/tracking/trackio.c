/* Trackio: the SQLite database of a project, which `trackio show` opens where TRACKIO_DIR names its folder. A row of
 * the table `metrics` is a step, with its numbers as JSON; `configs` has the keys of the job. Trackio adds the other
 * tables of its schema 2 when it opens the file. Held against trackio 0.43.
 * A runtime that is built without SQLite has no such tool. */
#include "runtime/files/files.h"
#include "runtime/tracking/json.h"
#include "runtime/tracking/series.h"
#include "runtime/tracking/sink.h"

#if __has_include(<sqlite3.h>)
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { PATIENCE = 10000 }; /* milliseconds for which a dashboard may keep the file locked */

/* What waits: a row of the table, or a file of a picture. */
struct row {
  struct row *next;
  int64_t step;
  char time[64];
  char *path;           /* of the picture; NULL: a row */
  struct bytes content; /* JSON, or PNG */
};

struct trackio {
  sqlite3 *database;
  char path[4096], media[4096];
  char folder[1024]; /* of the run's pictures below that of all */
  char id[33], name[256];
  struct bytes items; /* of the next row: what hooks logged since the last one */
  struct row *first, **last;
  bool lost; /* there was no memory for some of what waits */
};

/* As trackio 0.43 makes them. */
static const char tables[] =
    "CREATE TABLE IF NOT EXISTS metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, timestamp TEXT "
    "NOT "
    "NULL, run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL, log_id TEXT, space_id TEXT);"
    "CREATE TABLE IF NOT EXISTS configs (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, run_name TEXT NOT "
    "NULL, config TEXT NOT NULL, created_at TEXT NOT NULL, UNIQUE(run_id));"
    "CREATE INDEX IF NOT EXISTS idx_metrics_run_step ON metrics(run_id, step);"
    "CREATE INDEX IF NOT EXISTS idx_metrics_run_timestamp ON metrics(run_id, timestamp);";

/* ---- SQLite ---- */

static bool failed(const struct trackio *trackio, struct problem *problem) {
  sqlite3 *database = trackio->database;
  const int code = sqlite3_errcode(database), number = sqlite3_system_errno(database);
  if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT) {
    rt_problem(problem, "%s: is damaged: %s", trackio->path, sqlite3_errmsg(database));
    return rt_help(problem, "move it to another folder, where nothing of it is lost; the run then begins it anew");
  }
  const bool is_system = (code == SQLITE_IOERR || code == SQLITE_CANTOPEN || code == SQLITE_FULL) && number != 0;
  rt_problem(problem, "%s: cannot be written: %s", trackio->path,
             is_system ? strerror(number) : sqlite3_errmsg(database));
  return rt_help(problem, "check the free space, the quota and the rights of the folder, or choose another with "
                          "--project-dir");
}

static bool execute(const struct trackio *trackio, const char *sql, struct problem *problem) {
  return sqlite3_exec(trackio->database, sql, NULL, NULL, NULL) == SQLITE_OK || failed(trackio, problem);
}

/* Runs a statement with texts and, as its last parameter, a number unless that is below 0. */
static bool run(const struct trackio *trackio, const char *sql, const char *const *texts, int count, int64_t number,
                struct problem *problem) {
  sqlite3_stmt *statement = NULL;
  if (sqlite3_prepare_v2(trackio->database, sql, -1, &statement, NULL) != SQLITE_OK) return failed(trackio, problem);
  bool good = true;
  for (int i = 0; good && i < count; i++)
    good = sqlite3_bind_text(statement, i + 1, texts[i], -1, SQLITE_STATIC) == SQLITE_OK;
  if (good && number >= 0) good = sqlite3_bind_int64(statement, count + 1, number) == SQLITE_OK;
  good = (good && sqlite3_step(statement) == SQLITE_DONE) || failed(trackio, problem);
  sqlite3_finalize(statement);
  return good;
}

/* All of a transaction, or nothing of it. */
static bool end_transaction(const struct trackio *trackio, bool good, struct problem *problem) {
  if (good && execute(trackio, "COMMIT", problem)) return true;
  sqlite3_exec(trackio->database, "ROLLBACK", NULL, NULL, NULL);
  return false;
}

/* ---- The beginning of a run ---- */

/* As Python's datetime writes a time of UTC. */
static void write_time(char *text, size_t size, double seconds) {
  const time_t whole = (time_t)seconds;
  struct tm calendar;
  char date[32];
  gmtime_r(&whole, &calendar);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &calendar);
  const unsigned micro = (unsigned)(1e6 * (seconds - (double)whole)) % 1000000;
  snprintf(text, size, "%s.%06u+00:00", date, micro);
}

/* The name of a project's files: without other marks than '-' and '_'. */
static void name_of_files(char *name, size_t size, const char *project) {
  size_t count = 0;
  for (const char *c = project; *c != '\0' && count + 1 < size; c++) {
    const bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '-' ||
                       *c == '_' || (unsigned char)*c >= 0x80;
    if (plain) name[count++] = *c;
  }
  name[count] = '\0';
  if (count == 0) snprintf(name, size, "default");
}

static void add_key(void *to, const char *name, const char *value) {
  rt_json_text(to, name);
  rt_bytes_print(to, ": ");
  rt_json_value(to, value);
  rt_bytes_print(to, ", ");
}

static bool write_config(const struct trackio *trackio, const struct tracked *tracked, struct problem *problem) {
  struct bytes config = {0};
  char time[64];
  write_time(time, sizeof time, tracked->began);
  rt_bytes_print(&config, "{");
  rt_each_key(tracked, add_key, &config);
  rt_bytes_print(&config, "\"_Created\": \"%s\"}", time);
  rt_bytes_add(&config, "", 1);
  if (config.failed) return rt_problem(problem, "%s: no memory for what is written", trackio->path);
  const char *const texts[] = {trackio->id, trackio->name, (const char *)config.data, time};
  const bool good =
      run(trackio, "INSERT OR REPLACE INTO configs (run_id, run_name, config, created_at) VALUES (?, ?, ?, ?)", texts,
          4, -1, problem);
  rt_bytes_free(&config);
  return good;
}

/* The log in front of the file is what lets others read while a run writes, and what a killed process leaves whole. */
static bool begin(const struct trackio *trackio, const struct tracked *tracked, struct problem *problem) {
  const char *const texts[] = {trackio->id};
  sqlite3_busy_timeout(trackio->database, PATIENCE);
  return execute(trackio, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE", problem) &&
         end_transaction(trackio,
                         execute(trackio, tables, problem) &&
                             run(trackio, "DELETE FROM metrics WHERE run_id = ? AND step > ?", texts, 1,
                                 tracked->keep < 0 ? 0 : tracked->keep, problem) &&
                             write_config(trackio, tracked, problem),
                         problem);
}

static bool find_paths(struct trackio *trackio, const struct tracked *tracked, struct problem *problem) {
  char folder[4096], project[256], name[300];
  name_of_files(project, sizeof project, tracked->project);
  snprintf(name, sizeof name, "%s.db", project);
  snprintf(trackio->folder, sizeof trackio->folder, "%s/%s", project, tracked->run_name);
  return rt_join(folder, sizeof folder, tracked->folder, "trackio", problem) && rt_make_folders(folder, problem) &&
         rt_join(trackio->path, sizeof trackio->path, folder, name, problem) &&
         rt_join(trackio->media, sizeof trackio->media, folder, "media", problem);
}

static bool open_database(void *state, const struct tracked *tracked, struct problem *problem) {
  struct trackio *trackio = state;
  struct stat status;
  trackio->last = &trackio->first;
  memcpy(trackio->id, tracked->id, sizeof trackio->id);
  memcpy(trackio->name, tracked->run_name, sizeof trackio->name);
  if (!find_paths(trackio, tracked, problem)) return false;
  if (stat(trackio->path, &status) == 0 && !S_ISREG(status.st_mode)) {
    rt_problem(problem, "%s: cannot be read: not a regular file", trackio->path);
    return rt_help(problem, "remove it, or choose another --project-dir");
  }
  if (sqlite3_open_v2(trackio->path, &trackio->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
    return failed(trackio, problem);
  return begin(trackio, tracked, problem);
}

/* ---- Rows ---- */

/* Lets a row wait, or a file where `path` names one, which it takes over together with the content. */
static void add_row(struct trackio *trackio, int64_t step, double now, char *path, struct bytes *content) {
  struct row *row = calloc(1, sizeof *row);
  if (row == NULL || content->failed) {
    trackio->lost = true;
    rt_bytes_free(content);
    free(row);
    free(path);
    return;
  }
  *row = (struct row){.step = step, .path = path, .content = *content};
  *content = (struct bytes){0};
  write_time(row->time, sizeof row->time, now);
  *trackio->last = row;
  trackio->last = &row->next;
}

/* What is not finite is a text, as JSON has no number for it. */
static void add_number(struct bytes *to, const struct scalar *scalar) {
  const char *quote = isfinite(scalar->value) ? "" : "\"";
  rt_json_text(to, scalar->name);
  rt_bytes_print(to, ": %s", quote);
  rt_json_number(to, scalar);
  rt_bytes_print(to, "%s, ", quote);
}

static void add_scalars(void *state, int64_t step, double now, const struct scalars *scalars) {
  struct trackio *trackio = state;
  struct bytes json = {0};
  rt_bytes_print(&json, "{");
  rt_bytes_add(&json, trackio->items.data, trackio->items.count);
  json.failed |= trackio->items.failed;
  rt_bytes_free(&trackio->items);
  for (int i = 0; i < scalars->count; i++) add_number(&json, &scalars->items[i]);
  if (json.count > 1) json.count -= 2;
  rt_bytes_add(&json, "}", 2); /* with its end */
  add_row(trackio, step, now, NULL, &json);
}

static void add_text(void *state, int64_t step, double now, const char *name, const char *text) {
  struct bytes *items = &((struct trackio *)state)->items;
  (void)step;
  (void)now;
  rt_json_text(items, name);
  rt_bytes_print(items, ": {\"_type\": \"trackio.markdown\", \"_value\": ");
  rt_json_text(items, text);
  rt_bytes_print(items, "}, ");
}

static void add_histogram(void *state, int64_t step, double now, const char *name, const struct histogram *histogram) {
  struct bytes *items = &((struct trackio *)state)->items;
  (void)step;
  (void)now;
  rt_json_text(items, name);
  rt_bytes_print(items, ": {\"_type\": \"trackio.histogram\", \"bins\": [%.9g", histogram->least);
  for (size_t i = 0; i < histogram->count; i++) rt_bytes_print(items, ", %.9g", histogram->limits[i]);
  rt_bytes_print(items, "], \"values\": [");
  for (size_t i = 0; i < histogram->count; i++)
    rt_bytes_print(items, "%s%.9g", i > 0 ? ", " : "", histogram->counts[i]);
  rt_bytes_print(items, "]}, ");
}

/* A file below the folder of pictures, and its name in the next row. */
static void add_picture(void *state, int64_t step, double now, const char *name, const struct picture *picture) {
  struct trackio *trackio = state;
  struct bytes path = {0}, png = {0}, *items = &trackio->items;
  char plain[200], file[1500];
  rt_plain_name(plain, sizeof plain, name);
  snprintf(file, sizeof file, "%s/%" PRId64 "/%.8s-%s.png", trackio->folder, step, trackio->id, plain);
  rt_bytes_print(&path, "%s/%s", trackio->media, file);
  rt_bytes_add(&path, "", 1);
  rt_bytes_add(&png, picture->png, picture->png_bytes);
  png.failed |= path.failed;
  add_row(trackio, step, now, (char *)path.data, &png);
  rt_json_text(items, name);
  rt_bytes_print(items, ": {\"_type\": \"trackio.image\", \"file_path\": ");
  rt_json_text(items, file);
  rt_bytes_print(items, ", \"caption\": null}, ");
}

/* ---- Writing ---- */

static bool write_picture(const struct row *row, struct problem *problem) {
  struct bytes copy = {0};
  char folder[6000];
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(row->path, '/') - row->path), row->path);
  rt_bytes_add(&copy, row->content.data, row->content.count);
  if (rt_make_folders(folder, problem)) return rt_replace_file(row->path, &copy, problem);
  rt_bytes_free(&copy);
  return false;
}

static bool write_row(const struct trackio *trackio, const struct row *row, struct problem *problem) {
  const char *const texts[] = {trackio->id, trackio->name, row->time, (const char *)row->content.data};
  if (row->path != NULL) return write_picture(row, problem);
  return run(trackio, "INSERT INTO metrics (run_id, run_name, timestamp, metrics, step) VALUES (?, ?, ?, ?, ?)", texts,
             4, row->step, problem);
}

static void free_rows(struct trackio *trackio) {
  for (struct row *row = trackio->first, *next; row != NULL; row = next) {
    next = row->next;
    rt_bytes_free(&row->content);
    free(row->path);
    free(row);
  }
  trackio->first = NULL;
  trackio->last = &trackio->first;
}

static bool flush(void *state, struct problem *problem) {
  struct trackio *trackio = state;
  if (trackio->lost) {
    trackio->lost = false;
    return rt_problem(problem, "%s: no memory for what is written", trackio->path);
  }
  if (trackio->first == NULL) return true;
  bool good = execute(trackio, "BEGIN IMMEDIATE", problem);
  if (!good) return false;
  for (const struct row *row = trackio->first; good && row != NULL; row = row->next)
    good = write_row(trackio, row, problem);
  if (!end_transaction(trackio, good, problem)) return false;
  free_rows(trackio);
  return true;
}

/* Trackio has no end of a run. */
static bool close_database(void *state, double now, enum run_end end, struct problem *problem) {
  struct trackio *trackio = state;
  (void)now;
  (void)end;
  const bool good = trackio->database == NULL || flush(state, problem);
  free_rows(trackio);
  rt_bytes_free(&trackio->items);
  sqlite3_close(trackio->database);
  return good;
}

const struct accel_sink accel_sink_trackio = {.name = "trackio",
                                              .bytes = sizeof(struct trackio),
                                              .open = open_database,
                                              .scalars = add_scalars,
                                              .histogram = add_histogram,
                                              .text = add_text,
                                              .picture = add_picture,
                                              .flush = flush,
                                              .close = close_database};

#else
static bool open_nothing(void *state, const struct tracked *tracked, struct problem *problem) {
  (void)state;
  (void)tracked;
  rt_problem(problem, "tracking.log_with: trackio: this runtime was built without SQLite");
  return rt_help(problem, "install libsqlite3-dev and build accel-gen again, or leave trackio out");
}

static void add_nothing(void *state, int64_t step, double now, const struct scalars *scalars) {
  (void)state;
  (void)step;
  (void)now;
  (void)scalars;
}

static bool flush_nothing(void *state, struct problem *problem) {
  (void)state;
  (void)problem;
  return true;
}

static bool close_nothing(void *state, double now, enum run_end end, struct problem *problem) {
  (void)state;
  (void)now;
  (void)end;
  (void)problem;
  return true;
}

const struct accel_sink accel_sink_trackio = {.name = "trackio",
                                              .bytes = 1,
                                              .open = open_nothing,
                                              .scalars = add_nothing,
                                              .flush = flush_nothing,
                                              .close = close_nothing};
#endif
