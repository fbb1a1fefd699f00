#define _DEFAULT_SOURCE /* dirfd, fdopendir */
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
enum { DEEPEST = 32 }; /* folders within each other that are removed */

static bool cannot(struct problem *problem, const char *path, const char *what) {
  rt_problem(problem, "%s: %s: %s", path, what, strerror(errno));
  return rt_help(problem, "check the rights of the folder, or choose another with --project-dir");
}

bool rt_partial_name(char *out, size_t size, const char *folder, struct problem *problem) {
  int length = snprintf(out, size, "%s%s", folder, partial_ending);
  return (length >= 0 && (size_t)length < size) || rt_problem(problem, "%.200s…: the path is too long", folder);
}

/* ---- Removing: by descriptors, so that no link leads out of the folder ---- */

/* Where removing is, for messages, and what it stays on. */
struct removal {
  char path[4096];
  size_t length;
  dev_t device;
  struct problem *problem;
};

static bool remove_entry(struct removal *removal, int in, const char *name, int depth);

static bool remove_entries(struct removal *removal, DIR *directory, int depth) {
  size_t length = removal->length, space = sizeof removal->path - length;
  for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    int added = snprintf(removal->path + length, space, "/%s", entry->d_name);
    if (added < 0 || (size_t)added >= space)
      return rt_problem(removal->problem, "%.200s…: the path is too long", removal->path);
    removal->length = length + (size_t)added;
    if (!remove_entry(removal, dirfd(directory), entry->d_name, depth)) return false;
    removal->length = length;
    removal->path[length] = '\0';
  }
  return true;
}

/* What a folder holds; one that another file system is mounted on is not the run's. */
static bool empty_folder(struct removal *removal, int in, const char *name, int depth) {
  struct stat status = {0};
  int file = openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return cannot(removal->problem, removal->path, "cannot be opened");
  if (fstat(file, &status) == 0 && depth == 0) removal->device = status.st_dev;
  DIR *directory = status.st_dev == removal->device && depth < DEEPEST ? fdopendir(file) : NULL;
  if (directory == NULL) {
    close(file);
    return rt_problem(removal->problem, "%s: cannot be emptied: it is mounted there, or too deep", removal->path);
  }
  bool emptied = remove_entries(removal, directory, depth + 1);
  closedir(directory);
  return emptied;
}

/* Removes `name` of the folder `in`: a folder with all that it holds, of a link the link alone. */
static bool remove_entry(struct removal *removal, int in, const char *name, int depth) {
  if (unlinkat(in, name, 0) == 0 || errno == ENOENT) return true;
  if (errno != EISDIR) return cannot(removal->problem, removal->path, "cannot be removed");
  return empty_folder(removal, in, name, depth) &&
         (unlinkat(in, name, AT_REMOVEDIR) == 0 || cannot(removal->problem, removal->path, "cannot be removed"));
}

bool rt_folder_remove(const char *folder, struct problem *problem) {
  struct removal removal = {.problem = problem};
  int length = snprintf(removal.path, sizeof removal.path, "%s", folder);
  if (length < 0 || (size_t)length >= sizeof removal.path)
    return rt_problem(problem, "%.200s…: the path is too long", folder);
  removal.length = (size_t)length;
  return remove_entry(&removal, AT_FDCWD, folder, 0);
}

bool rt_folder_make_own(const char *folder, struct problem *problem) {
  struct stat status;
  if (lstat(folder, &status) == 0 && S_ISLNK(status.st_mode) && !rt_folder_remove(folder, problem)) return false;
  return rt_make_folders(folder, problem);
}

/* ---- Replacing ---- */

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
  if (lstat(to, &status) == 0 && !retire(to, ".old", problem)) return false;
  if (rename(from, to) != 0) return cannot(problem, to, "cannot be moved there");
  return sync_parent(to, problem);
}

/* The number after the prefix; -1 when the name is not a prefix and a number. */
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

/* Whether it is a folder, or a link that may lead to one: a file of such a name is no folder of the run. */
static bool is_folder_or_link(const char *path) {
  struct stat status;
  return lstat(path, &status) == 0 && (S_ISDIR(status.st_mode) || S_ISLNK(status.st_mode));
}

static bool path_of_number(char *out, size_t size, const char *folder, const char *prefix, int64_t number,
                           struct problem *problem) {
  int length = snprintf(out, size, "%s/%s%" PRId64, folder, prefix, number);
  return (length >= 0 && (size_t)length < size) || rt_problem(problem, "%.200s…: the path is too long", folder);
}

bool rt_folders_limit(const char *folder, const char *prefix, int64_t limit, struct problem *problem) {
  struct numbers numbers;
  if (!rt_numbers_find(&numbers, folder, prefix, problem)) return false;
  bool good = true;
  for (int i = numbers.count - 1; good && i >= 0; i--) {
    char path[4096];
    good = path_of_number(path, sizeof path, folder, prefix, numbers.items[i], problem);
    if (good && is_folder_or_link(path) && limit-- <= 0) good = retire(path, "", problem);
  }
  rt_numbers_free(&numbers);
  return good;
}
