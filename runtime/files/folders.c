#define _DEFAULT_SOURCE /* dirfd */
#include "runtime/files/folders.h"

#include "runtime/files/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char partial_ending[] = ".partial";

static bool cannot(struct problem *problem, const char *path, const char *what) {
  rt_problem(problem, "%s: %s: %s", path, what, strerror(errno));
  return rt_help(problem, "check the rights of the folder, or choose another with --project-dir");
}

bool rt_partial_name(char *out, size_t size, const char *folder, struct problem *problem) {
  int length = snprintf(out, size, "%s%s", folder, partial_ending);
  return (length >= 0 && (size_t)length < size) || rt_problem(problem, "%.200s…: the path is too long", folder);
}

static bool remove_files(DIR *directory, const char *folder, struct problem *problem) {
  for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (unlinkat(dirfd(directory), entry->d_name, 0) != 0) return cannot(problem, folder, "a file cannot be removed");
  }
  return true;
}

bool rt_folder_remove(const char *folder, struct problem *problem) {
  DIR *directory = opendir(folder);
  if (directory == NULL) return errno == ENOENT || errno == ENOTDIR || cannot(problem, folder, "cannot be opened");
  bool removed = remove_files(directory, folder, problem);
  closedir(directory);
  return removed && (rmdir(folder) == 0 || cannot(problem, folder, "cannot be removed"));
}

static bool sync_parent(const char *path, struct problem *problem) {
  char parent[4096];
  snprintf(parent, sizeof parent, "%s", path);
  char *slash = strrchr(parent, '/');
  if (slash == NULL) return rt_sync_folder(".", problem);
  slash[slash == parent] = '\0';
  return rt_sync_folder(parent, problem);
}

/* Takes a folder out of its name in one instant, then removes it. */
static bool retire(const char *folder, const char *ending, struct problem *problem) {
  char retired[4096];
  int length = snprintf(retired, sizeof retired, "%s%s%s", folder, ending, partial_ending);
  if (length < 0 || (size_t)length >= sizeof retired)
    return rt_problem(problem, "%.200s…: the path is too long", folder);
  if (!rt_folder_remove(retired, problem)) return false;
  if (rename(folder, retired) != 0) return errno == ENOENT || cannot(problem, folder, "cannot be renamed");
  return rt_folder_remove(retired, problem);
}

bool rt_folder_replace(const char *from, const char *to, struct problem *problem) {
  struct stat status;
  if (stat(to, &status) == 0 && !retire(to, ".old", problem)) return false;
  if (rename(from, to) != 0) return cannot(problem, to, "cannot be put in its place");
  return sync_parent(to, problem);
}

/* The number behind the prefix; -1 when the name is not a prefix and a number. */
static int64_t number_of(const char *name, const char *prefix) {
  size_t length = strlen(prefix);
  if (strncmp(name, prefix, length) != 0) return -1;
  const char *digits = name + length;
  size_t count = strspn(digits, "0123456789");
  return count > 0 && count < 19 && digits[count] == '\0' ? strtoll(digits, NULL, 10) : -1;
}

static int by_size(const void *a, const void *b) {
  int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
  return (left > right) - (left < right);
}

static bool add_number(struct numbers *numbers, int64_t number) {
  int64_t *items = realloc(numbers->items, ((size_t)numbers->count + 1) * sizeof *items);
  if (items == NULL) return false;
  items[numbers->count++] = number;
  numbers->items = items;
  return true;
}

bool rt_numbers_find(struct numbers *numbers, const char *folder, const char *prefix, struct problem *problem) {
  *numbers = (struct numbers){0};
  DIR *directory = opendir(folder);
  if (directory == NULL) return errno == ENOENT || errno == ENOTDIR || cannot(problem, folder, "cannot be opened");
  for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    int64_t number = number_of(entry->d_name, prefix);
    if (number >= 0 && !add_number(numbers, number)) rt_problem(problem, "%s: no memory for its names", folder);
  }
  closedir(directory);
  if (numbers->count > 0) qsort(numbers->items, (size_t)numbers->count, sizeof *numbers->items, by_size);
  return true;
}

void rt_numbers_free(struct numbers *numbers) {
  free(numbers->items);
  *numbers = (struct numbers){0};
}

/* Whether the name is one that this file's functions give to what is not whole. */
static bool is_left(const char *name, const char *prefix) {
  size_t length = strlen(name), ending = strlen(partial_ending);
  return strncmp(name, prefix, strlen(prefix)) == 0 && length > ending &&
         strcmp(name + length - ending, partial_ending) == 0;
}

bool rt_folders_sweep(const char *folder, const char *prefix, struct problem *problem) {
  char path[4096];
  DIR *directory = opendir(folder);
  if (directory == NULL) return errno == ENOENT || errno == ENOTDIR || cannot(problem, folder, "cannot be opened");
  bool swept = true;
  for (const struct dirent *entry; swept && (entry = readdir(directory)) != NULL;)
    if (is_left(entry->d_name, prefix))
      swept = rt_join(path, sizeof path, folder, entry->d_name, problem) && rt_folder_remove(path, problem);
  closedir(directory);
  return swept;
}

bool rt_folders_limit(const char *folder, const char *prefix, int64_t limit, struct problem *problem) {
  struct numbers numbers;
  if (!rt_numbers_find(&numbers, folder, prefix, problem)) return false;
  bool removed = true;
  for (int i = 0; removed && i + limit < numbers.count; i++) {
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s%" PRId64, folder, prefix, numbers.items[i]);
    removed = (length >= 0 && (size_t)length < sizeof path) ? retire(path, "", problem)
                                                            : rt_problem(problem, "%s: the path is too long", folder);
  }
  rt_numbers_free(&numbers);
  return removed;
}
