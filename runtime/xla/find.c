/* Where a plugin is. */
#include "runtime/xla/xla.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char plugin[] = "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so";

static bool give(const char *found, char *path, size_t size, struct problem *problem) {
  if ((size_t)snprintf(path, size, "%s", found) < size) return true;
  return rt_problem(problem, "%s: the path is too long", found);
}

/* The plugin among the packages of a Python below `root`, the newest version of Python first. */
static bool find_below(const char *root, char *path, size_t size) {
  static const char *const folders[] = {"lib/python3*/site-packages", "lib/python3*/dist-packages"};
  bool found = false;
  for (size_t i = 0; i < sizeof folders / sizeof *folders && !found; i++) {
    char pattern[4096];
    glob_t names;
    if ((size_t)snprintf(pattern, sizeof pattern, "%s/%s/%s", root, folders[i], plugin) >= sizeof pattern) continue;
    if (glob(pattern, 0, NULL, &names) == 0) {
      found = (size_t)snprintf(path, size, "%s", names.gl_pathv[names.gl_pathc - 1]) < size;
      globfree(&names);
    }
  }
  return found;
}

/* The same of an interpreter ROOT/bin/python. */
static bool find_of_python(const char *python, char *path, size_t size) {
  char root[4096];
  if (python == NULL || (size_t)snprintf(root, sizeof root, "%s", python) >= sizeof root) return false;
  for (int i = 0; i < 2; i++) {
    char *slash = strrchr(root, '/');
    if (slash == NULL) return false;
    *slash = '\0';
  }
  return find_below(root, path, size);
}

bool rt_xla_find(const char *wanted, char *path, size_t size, struct problem *problem) {
  const char *variable = getenv("PJRT_PLUGIN_LIBRARY_PATH"), *environment = getenv("VIRTUAL_ENV"),
             *home = getenv("HOME");
  if (wanted != NULL) return give(wanted, path, size, problem);
  if (variable != NULL && *variable != '\0') return give(variable, path, size, problem);
  if (environment != NULL && find_below(environment, path, size)) return true;
  if (find_of_python(getenv("PYTHON"), path, size)) return true;
  char user[4096];
  if (home != NULL && (size_t)snprintf(user, sizeof user, "%s/.local", home) < sizeof user &&
      find_below(user, path, size))
    return true;
  if (find_below("/usr/local", path, size) || find_below("/usr", path, size)) return true;
  rt_problem(problem, "there is no plugin of XLA: neither PJRT_PLUGIN_LIBRARY_PATH nor a Python package names one");
  return rt_help(problem, "pip install xla-cpu-pjrt installs the one for processors");
}
