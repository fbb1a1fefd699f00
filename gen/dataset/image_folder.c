#include "gen/dataset/image_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { DEEPEST = 64 };

static bool is_folder(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool is_image(const char *name) {
  static const char *const endings[] = {".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"};
  size_t length = strlen(name);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    size_t has = strlen(endings[i]);
    if (length >= has && strcasecmp(name + length - has, endings[i]) == 0) return true;
  }
  return false;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names in a folder, in the order of their bytes, which is that of their characters. */
static bool names_in(struct arena *arena, const char *path, struct class_names *names, struct problem *problem) {
  DIR *folder = opendir(path);
  if (folder == NULL) return rt_problem(problem, "%s: cannot be read: %s", path, strerror(errno));
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
      ARENA_PUSH(arena, *names, arena_string(arena, entry->d_name));
  closedir(folder);
  if (names->count > 1) qsort(names->items, (size_t)names->count, sizeof *names->items, by_name);
  return true;
}

/* The folders below and at `path`. */
static bool add_folders(struct arena *arena, const char *path, int depth, struct class_names *folders,
                        struct problem *problem) {
  struct class_names names = {0};
  ARENA_PUSH(arena, *folders, path);
  if (depth > DEEPEST) {
    rt_problem(problem, "%s: more than %d folders in each other", path, DEEPEST);
    return rt_help(problem, "remove links to folders above");
  }
  if (!names_in(arena, path, &names, problem)) return false;
  for (int i = 0; i < names.count; i++) {
    const char *inner = arena_printf(arena, "%s/%s", path, names.items[i]);
    if (is_folder(inner) && !add_folders(arena, inner, depth + 1, folders, problem)) return false;
  }
  return true;
}

static bool add_class(struct image_folder *folder, struct arena *arena, const char *path, int label,
                      struct problem *problem) {
  struct class_names folders = {0};
  int before = folder->files.count;
  if (!add_folders(arena, path, 0, &folders, problem)) return false;
  qsort(folders.items, (size_t)folders.count, sizeof *folders.items, by_name);
  for (int i = 0; i < folders.count; i++) {
    struct class_names names = {0};
    if (!names_in(arena, folders.items[i], &names, problem)) return false;
    for (int k = 0; k < names.count; k++) {
      if (!is_image(names.items[k])) continue;
      const char *file = arena_printf(arena, "%s/%s", folders.items[i], names.items[k]);
      if (!is_folder(file)) ARENA_PUSH(arena, folder->files, ((struct labelled_file){file, label}));
    }
  }
  if (folder->files.count > before) return true;
  rt_problem(problem, "%s: the folder of a class has no image", path);
  return rt_help(problem, "put images in it (.png, .jpg, .jpeg), or remove it");
}

/* The number of a class by its name; -1: there is none. */
static int class_find(const struct class_names *classes, const char *name) {
  for (int i = 0; i < classes->count; i++)
    if (strcmp(classes->items[i], name) == 0) return i;
  return -1;
}

bool image_folder_read(struct image_folder *folder, struct arena *arena, const char *root,
                       const struct class_names *known, struct problem *problem) {
  struct class_names names = {0}, found = {0};
  *folder = (struct image_folder){0};
  if (!names_in(arena, root, &names, problem)) return false;
  for (int i = 0; i < names.count; i++)
    if (is_folder(arena_printf(arena, "%s/%s", root, names.items[i]))) ARENA_PUSH(arena, found, names.items[i]);
  folder->classes = known != NULL ? *known : found;
  for (int i = 0; i < found.count; i++) {
    const char *path = arena_printf(arena, "%s/%s", root, found.items[i]);
    int label = known != NULL ? class_find(known, found.items[i]) : i;
    if (label < 0) {
      rt_problem(problem, "%s: no class of --labels has this name", path);
      return rt_help(problem, "remove the folder, or leave --labels out for classes of its own");
    }
    if (!add_class(folder, arena, path, label, problem)) return false;
  }
  if (found.count > 0) return true;
  rt_problem(problem, "%s: it has no folder of a class", root);
  return rt_help(problem, "put the images of each class in a folder of its own: %.200s/CLASS/NAME.png", root);
}
