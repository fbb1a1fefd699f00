/* Where a plugin is. */
#include "runtime/xla/xla.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a package has the plugin of a kind, below a folder of packages. */
static const struct plugin {
  const char *kind, *file, *package;
} plugins[] = {
    {"xla", "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so", "pip install xla-cpu-pjrt installs the one for processors"},
    {"tpu", "libtpu/libtpu.so", "pip install libtpu installs it"},
    {"neuron", "libneuronxla/libneuronpjrt.so", "the package libneuronxla of AWS's own index has it"},
    {"rocm", "jax_plugins/xla_rocm*/xla_rocm_plugin.so", "pip install jax-rocm7-pjrt installs it, for ROCm 7"},
    {"xpu", "jax_plugins/intel_extension_for_openxla/pjrt_plugin_xpu.so",
     "pip install intel-extension-for-openxla installs it"},
};

static const struct plugin *plugin_of(const char *kind) {
  for (size_t i = 0; kind != NULL && i < sizeof plugins / sizeof *plugins; i++)
    if (strcmp(plugins[i].kind, kind) == 0) return &plugins[i];
  return &plugins[0];
}

static bool give(const char *found, char *path, size_t size, struct problem *problem) {
  if ((size_t)snprintf(path, size, "%s", found) < size) return true;
  return rt_problem(problem, "%s: the path is too long", found);
}

/* The plugin among the packages of a Python below `root`, the newest version of Python first. */
static bool find_below(const char *root, const struct plugin *plugin, char *path, size_t size) {
  static const char *const folders[] = {"lib/python3*/site-packages", "lib/python3*/dist-packages"};
  bool found = false;
  for (size_t i = 0; i < sizeof folders / sizeof *folders && !found; i++) {
    char pattern[4096];
    glob_t names;
    if ((size_t)snprintf(pattern, sizeof pattern, "%s/%s/%s", root, folders[i], plugin->file) >= sizeof pattern)
      continue;
    if (glob(pattern, 0, NULL, &names) == 0) {
      found = (size_t)snprintf(path, size, "%s", names.gl_pathv[names.gl_pathc - 1]) < size;
      globfree(&names);
    }
  }
  return found;
}

/* The same of an interpreter ROOT/bin/python. */
static bool find_of_python(const char *python, const struct plugin *plugin, char *path, size_t size) {
  char root[4096];
  if (python == NULL || (size_t)snprintf(root, sizeof root, "%s", python) >= sizeof root) return false;
  for (int i = 0; i < 2; i++) {
    char *slash = strrchr(root, '/');
    if (slash == NULL) return false;
    *slash = '\0';
  }
  return find_below(root, plugin, path, size);
}

bool rt_xla_find(const char *kind, char *path, size_t size, struct problem *problem) {
  const struct plugin *plugin = plugin_of(kind);
  const char *variable = getenv("PJRT_PLUGIN_LIBRARY_PATH"), *environment = getenv("VIRTUAL_ENV"),
             *home = getenv("HOME");
  if (variable != NULL && *variable != '\0') return give(variable, path, size, problem);
  if (environment != NULL && find_below(environment, plugin, path, size)) return true;
  if (find_of_python(getenv("PYTHON"), plugin, path, size)) return true;
  char user[4096];
  if (home != NULL && (size_t)snprintf(user, sizeof user, "%s/.local", home) < sizeof user &&
      find_below(user, plugin, path, size))
    return true;
  if (find_below("/usr/local", plugin, path, size) || find_below("/usr", plugin, path, size)) return true;
  rt_problem(problem, "there is no plugin of XLA%s%s: neither PJRT_PLUGIN_LIBRARY_PATH nor a Python package names one",
             plugin == plugins ? "" : " for devices.kind ", plugin == plugins ? "" : plugin->kind);
  return rt_help(problem, "%s", plugin->package);
}
