/* Files of a run that not every run has: a trace, texts that it logged, an audit. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "gen/base/path.h"
#include "gen/commands/report/page.h"
#include "gen/report/samples.h"

/* ---- Finding ---- */

static bool is_file(const char *path, int64_t most) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= most;
}

/* The first by its name of the entries of a folder for which `is_right` gives something: what it gave; NULL: none is.
 */
static const char *first_in(struct arena *arena, const char *folder,
                            const char *(*is_right)(struct arena *arena, const char *folder, const char *name)) {
  DIR *handle = opendir(folder);
  const char *first = NULL, *found = NULL;
  for (struct dirent *entry; handle != NULL && (entry = readdir(handle)) != NULL;) {
    if (entry->d_name[0] == '.' || (first != NULL && strcmp(entry->d_name, first) > 0)) continue;
    const char *path = is_right(arena, folder, entry->d_name);
    if (path == NULL) continue;
    found = path;
    first = arena_string(arena, entry->d_name);
  }
  if (handle != NULL) closedir(handle);
  return found;
}

static const char *trace_in(struct arena *arena, const char *folder, const char *name) {
  enum { MOST = 1 << 27 };
  const char *path = arena_printf(arena, "%s/%s/profile_0.json", folder, name);
  return is_file(path, MOST) ? path : NULL;
}

static const char *events_are(struct arena *arena, const char *folder, const char *name) {
  const char *path = arena_printf(arena, "%s/%s", folder, name);
  return strncmp(name, "events.out.tfevents.", 20) == 0 && is_file(path, INT64_MAX) ? path : NULL;
}

static const char *events_in(struct arena *arena, const char *folder, const char *name) {
  return first_in(arena, arena_printf(arena, "%s/%s", folder, name), events_are);
}

const char *report_trace(struct arena *arena, const struct report_run *run) {
  const char *own = trace_in(arena, run->folder, ".");
  return own != NULL ? own : first_in(arena, run->folder, trace_in);
}

const char *report_events(struct arena *arena, const struct report_run *run) {
  return first_in(arena, arena_printf(arena, "%s/tensorboard", run->folder), events_in);
}

/* ---- Texts ---- */

static struct jinja_value tag_value(struct arena *arena, const struct report_run *run, const struct sample_list *of) {
  struct jinja_value value = jinja_map(arena), list = jinja_list(arena);
  for (int i = 0; i < of->count; i++) {
    struct jinja_value sample = jinja_map(arena);
    jinja_set(arena, sample, "step", jinja_int(of->items[i].step));
    jinja_set(arena, sample, "text", page_text(arena, of->items[i].text));
    jinja_push(arena, list, sample);
  }
  jinja_set(arena, value, "run", page_text(arena, run->name));
  jinja_set(arena, value, "tag", page_text(arena, of->tag));
  jinja_set(arena, value, "seen", jinja_int(of->seen));
  jinja_set(arena, value, "samples", list);
  return value;
}

void page_add_texts(struct arena *arena, struct jinja_value page, struct report_run *runs, int count) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < count; i++) {
    struct samples *samples = arena_alloc(arena, sizeof *samples);
    if (runs[i].events == NULL) continue;
    if (!samples_read(arena, runs[i].events, samples))
      report_note(arena, &runs[i], arena_printf(arena, "The file of events was not read: %s.", strerror(errno)));
    if (samples->damaged) report_note(arena, &runs[i], "Not all texts of the file of events are here.");
    for (int k = 0; k < samples->count; k++) jinja_push(arena, list, tag_value(arena, &runs[i], &samples->tags[k]));
  }
  jinja_set(arena, page, "texts", list);
}

/* ---- Audits ---- */

static void add_claims(struct arena *arena, struct jinja_value list, const json_t *claims) {
  size_t i;
  json_t *claim;
  json_array_foreach(claims, i, claim) {
    const char *verdict = json_string_value(json_object_get(claim, "verdict"));
    const char *id = json_string_value(json_object_get(claim, "id"));
    const char *sentence = json_string_value(json_object_get(claim, "sentence"));
    if (verdict == NULL || id == NULL || strcmp(verdict, "holds") == 0 || jinja_count(list) == 40) continue;
    struct jinja_value row = jinja_map(arena);
    jinja_set(arena, row, "verdict", page_text(arena, verdict));
    jinja_set(arena, row, "id", page_text(arena, id));
    jinja_set(arena, row, "sentence", page_text(arena, sentence != NULL ? sentence : ""));
    jinja_push(arena, list, row);
  }
}

static struct jinja_value audit_value(struct arena *arena, const struct report_run *run) {
  struct jinja_value value = jinja_map(arena), claims = jinja_list(arena);
  const json_t *summary = json_object_get(run->audit, "summary"), *program = json_object_get(run->audit, "program");
  const char *file = json_string_value(json_object_get(program, "file"));
  static const char *const counts[] = {"holds", "broken", "cannot_tell"};
  for (int i = 0; i < 3; i++)
    jinja_set(arena, value, counts[i], jinja_int(json_integer_value(json_object_get(summary, counts[i]))));
  jinja_set(arena, value, "run", page_text(arena, run->name));
  jinja_set(arena, value, "file", page_text(arena, file != NULL ? file : "a program"));
  add_claims(arena, claims, json_object_get(run->audit, "claims"));
  jinja_set(arena, value, "claims", claims);
  return value;
}

void page_add_audits(struct arena *arena, struct jinja_value page, const struct report_run *runs, int count) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < count; i++)
    if (json_is_object(json_object_get(runs[i].audit, "summary")))
      jinja_push(arena, list, audit_value(arena, &runs[i]));
  jinja_set(arena, page, "audits", list);
}
