#include "runtime/tracking/series.h"

#include "runtime/files/files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/ending.h"

void rt_plain_name(char *plain, size_t size, const char *name) {
  size_t i;
  for (i = 0; name[i] != '\0' && i + 1 < size; i++)
    plain[i] = isalnum((unsigned char)name[i]) || strchr("_.- ", name[i]) != NULL ? name[i]
               : name[i] == '/'                                                   ? '.'
                                                                                  : '_';
  plain[i] = '\0';
  if (plain[0] == '.') plain[0] = '_';
}

static bool failed(const char *path, struct problem *problem) {
  return rt_problem(problem, "%s: cannot be written: %s", path, strerror(errno));
}

/* At once, by a file `partial` that takes the name. */
static bool write_whole(const char *path, const char *partial, const struct bytes *content, struct problem *problem) {
  if (content->failed) return rt_problem(problem, "%s: no memory for what is written", path);
  if (unlink(partial) != 0 && errno != ENOENT) return failed(path, problem); /* what a link leads to is not written */
  FILE *file = fopen(partial, "wxe");
  bool good = file != NULL && fwrite(content->data, 1, content->count, file) == content->count;
  if (file != NULL) good = fclose(file) == 0 && good;
  good = (good && rename(partial, path) == 0) || failed(path, problem);
  if (!good && file != NULL) unlink(partial);
  return good;
}

bool rt_replace_file(const char *path, struct bytes *content, struct problem *problem) {
  char partial[4200];
  snprintf(partial, sizeof partial, "%s.partial", path);
  const bool good = write_whole(path, partial, content, problem);
  rt_bytes_free(content);
  return good;
}

bool rt_replace_in(const char *folder, const char *name, struct bytes *content, struct problem *problem) {
  char path[4096];
  if (rt_join(path, sizeof path, folder, name, problem)) return rt_replace_file(path, content, problem);
  rt_bytes_free(content);
  return false;
}

static bool cut_file(const struct series *series, const char *path, int64_t keep, struct problem *problem) {
  struct journal journal;
  if (keep < 0) return unlink(path) == 0 || failed(path, problem);
  if (!rt_journal_open(&journal, path, keep, series->cut, problem)) return false;
  const bool empty = journal.whole == 0; /* MLflow opens no run with such a file */
  return rt_journal_close(&journal, problem) && (!empty || unlink(path) == 0 || failed(path, problem));
}

bool rt_series_open(struct series *series, const char *folder, const char *ending, int64_t keep, journal_cut *cut,
                    struct problem *problem) {
  char path[4096];
  *series = (struct series){.ending = ending, .cut = cut};
  if (strlen(folder) >= sizeof series->folder) return rt_problem(problem, "%.200s...: the path is too long", folder);
  memcpy(series->folder, folder, strlen(folder) + 1);
  if (!rt_make_folders(folder, problem)) return false;
  DIR *listing = opendir(folder);
  bool good = listing != NULL || failed(folder, problem);
  for (struct dirent *entry; good && (entry = readdir(listing)) != NULL;)
    if (entry->d_name[0] != '.' && rt_has_ending(entry->d_name, ending))
      good = rt_join(path, sizeof path, folder, entry->d_name, problem) && cut_file(series, path, keep, problem);
  if (listing != NULL) closedir(listing);
  return good;
}

/* The file of a name; NULL without memory. */
static struct series_file *file_of(struct series *series, const char *name) {
  char plain[200], path[4400];
  rt_plain_name(plain, sizeof plain, name);
  snprintf(path, sizeof path, "%s/%s%s", series->folder, plain, series->ending);
  for (int i = 0; i < series->count; i++)
    if (strcmp(series->files[i]->journal.path, path) == 0) return series->files[i];
  struct series_file **files = realloc(series->files, ((size_t)series->count + 1) * sizeof *files);
  struct series_file *file = calloc(1, sizeof *file);
  if (files != NULL) series->files = files;
  if (files == NULL || file == NULL || strlen(path) >= sizeof file->journal.path) return free(file), NULL;
  memcpy(file->journal.path, path, strlen(path) + 1);
  return series->files[series->count++] = file;
}

void rt_series_add(struct series *series, const char *name, const char *header, struct bytes *entry) {
  struct series_file *file = file_of(series, name);
  if (file == NULL) {
    rt_bytes_free(entry);
    return;
  }
  if (!file->is_open && file->header.count == 0) rt_bytes_print(&file->header, "%s", header);
  rt_journal_add(&file->journal, entry);
}

/* Begins the file with its header and what waits, which is kept where that fails. It is never seen empty: it is made
 * outside of the folder, of which MLflow reads each file. */
static bool begin_file(const struct series *series, struct series_file *file, struct problem *problem) {
  char partial[4200];
  struct bytes *waiting = &file->journal.waiting;
  rt_bytes_add(&file->header, waiting->data, waiting->count);
  file->header.failed |= waiting->failed;
  rt_bytes_free(waiting);
  snprintf(partial, sizeof partial, "%s.partial", series->folder);
  if (!write_whole(file->journal.path, partial, &file->header, problem)) return false;
  file->journal.file = -1;
  file->journal.whole = (int64_t)file->header.count;
  rt_bytes_free(&file->header);
  return true;
}

/* What waits is written next. */
static bool continue_file(const struct series *series, struct series_file *file, struct problem *problem) {
  struct journal journal;
  if (!rt_journal_open(&journal, file->journal.path, INT64_MAX, series->cut, problem)) return false;
  journal.waiting = file->journal.waiting;
  file->journal = journal;
  rt_bytes_free(&file->header);
  return rt_journal_rest(&file->journal, problem);
}

static bool open_file(const struct series *series, struct series_file *file, struct problem *problem) {
  const bool is_there = access(file->journal.path, F_OK) == 0;
  file->is_open = is_there ? continue_file(series, file, problem) : begin_file(series, file, problem);
  return file->is_open;
}

bool rt_series_flush(struct series *series, struct problem *problem) {
  for (int i = 0; i < series->count; i++) {
    struct series_file *file = series->files[i];
    if (!file->is_open && !open_file(series, file, problem)) return false;
    if (!rt_journal_flush(&file->journal, problem)) return false;
  }
  return true;
}

bool rt_series_close(struct series *series, struct problem *problem) {
  bool good = rt_series_flush(series, problem);
  for (int i = 0; i < series->count; i++) {
    rt_bytes_free(&series->files[i]->journal.waiting);
    rt_bytes_free(&series->files[i]->header);
    free(series->files[i]);
  }
  free(series->files);
  return good;
}
