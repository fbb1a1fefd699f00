/* A plugin: loaded, its version checked, its devices opened. */
#include "runtime/xla/state.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int rt_xla_quiet(void) {
  const int kept = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  fflush(stderr);
  if (kept >= 0 && nowhere >= 0) dup2(nowhere, STDERR_FILENO);
  if (nowhere >= 0) close(nowhere);
  return kept;
}

void rt_xla_loud(int kept) {
  if (kept < 0) return;
  fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
}

/* ---- Loading ---- */

static bool load(const char *path, const PJRT_Api **api, struct problem *problem) {
  const PJRT_Api *(*get)(void);
  const int kept = rt_xla_quiet();
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol = NULL;
  const char *why = library == NULL ? dlerror() : NULL;
  if (library != NULL) symbol = dlsym(library, "GetPjrtApi");
  memcpy(&get, &symbol, sizeof get);
  *api = symbol != NULL ? get() : NULL;
  rt_xla_loud(kept);
  if (library == NULL) return rt_problem(problem, "the plugin of XLA cannot be loaded: %s", why);
  if (*api == NULL) {
    rt_problem(problem, "%s is no plugin of XLA: it has no function GetPjrtApi, or that gives nothing", path);
    return rt_help(problem, "a plugin of PJRT's C API is needed, such as the package xla-cpu-pjrt has");
  }
  return true;
}

/* Whether the plugin has all that is called. Its structure ends earlier where it is older. */
static bool check_version(const PJRT_Api *api, const char *path, struct problem *problem) {
  const size_t used = PJRT_STRUCT_SIZE(PJRT_Api, PJRT_Executable_GetCompiledMemoryStats);
  const bool says = api->struct_size >= PJRT_STRUCT_SIZE(PJRT_Api, pjrt_api_version);
  const int major = says ? api->pjrt_api_version.major_version : 0;
  const int minor = says ? api->pjrt_api_version.minor_version : 0;
  if (major == PJRT_API_MAJOR && api->struct_size >= used) return true;
  rt_problem(problem, "%s speaks version %d.%d of PJRT's C API, which this program does not: it is made for %d.%d",
             path, major, minor, PJRT_API_MAJOR, PJRT_API_MINOR);
  return rt_help(problem, major > PJRT_API_MAJOR ? "an older plugin is needed" : "a newer plugin is needed");
}

/* ---- Devices ---- */

static char *copy_text(const char *text, size_t size) {
  char *copy = malloc(size + 1);
  if (copy == NULL) return NULL;
  memcpy(copy, text, size);
  copy[size] = '\0';
  return copy;
}

static bool read_names(struct xla *xla, struct problem *problem) {
  const PJRT_Api *api = xla->api;
  PJRT_Client_PlatformName_Args name = RT_PJRT(PJRT_Client_PlatformName_Args, .client = xla->client);
  PJRT_Client_PlatformVersion_Args version = RT_PJRT(PJRT_Client_PlatformVersion_Args, .client = xla->client);
  if (!rt_xla_good(api, api->PJRT_Client_PlatformName(&name), "name its platform", problem)) return false;
  if (!rt_xla_good(api, api->PJRT_Client_PlatformVersion(&version), "say its version", problem)) return false;
  xla->platform = copy_text(name.platform_name, name.platform_name_size);
  xla->version = copy_text(version.platform_version, version.platform_version_size);
  return (xla->platform != NULL && xla->version != NULL) || rt_problem(problem, "out of memory");
}

static bool list_devices(struct xla *xla, struct problem *problem) {
  const PJRT_Api *api = xla->api;
  PJRT_Client_AddressableDevices_Args devices = RT_PJRT(PJRT_Client_AddressableDevices_Args, .client = xla->client);
  if (!rt_xla_good(api, api->PJRT_Client_AddressableDevices(&devices), "list its devices", problem)) return false;
  if (devices.num_addressable_devices == 0) return rt_problem(problem, "the plugin of XLA has no device here");
  xla->addressable = devices.addressable_devices;
  xla->devices = (int)devices.num_addressable_devices;
  return true;
}

/* `options`: the plugin's own; NULL: none. */
static bool create_client(struct xla *xla, const PJRT_NamedValue *options, struct problem *problem) {
  const PJRT_Api *api = xla->api;
  PJRT_Client_Create_Args create =
      RT_PJRT(PJRT_Client_Create_Args, .create_options = options, .num_options = options != NULL);
  if (!rt_xla_good(api, api->PJRT_Client_Create(&create), "open its devices", problem)) return false;
  xla->client = create.client;
  return list_devices(xla, problem);
}

static void destroy_client(struct xla *xla) {
  struct problem ignored;
  PJRT_Client_Destroy_Args destroy = RT_PJRT(PJRT_Client_Destroy_Args, .client = xla->client);
  if (xla->client != NULL) rt_xla_good(xla->api, xla->api->PJRT_Client_Destroy(&destroy), "close", &ignored);
  xla->client = NULL;
}

/* The plugin for processors has as many devices as it is asked for; that of others does not know the option. */
static bool make_devices(struct xla *xla, int devices, struct problem *problem) {
  static const char name[] = "cpu_device_count";
  const PJRT_NamedValue count = RT_PJRT(PJRT_NamedValue, .name = name, .name_size = sizeof name - 1,
                                        .type = PJRT_NamedValue_kInt64, .int64_value = devices, .value_size = 1);
  if (devices > xla->devices && strcmp(xla->platform, "cpu") == 0) {
    destroy_client(xla);
    if (!create_client(xla, &count, problem)) return false;
  }
  if (devices <= xla->devices) return true;
  rt_problem(problem, "the program runs on %d devices, and XLA has %d here (%s)", devices, xla->devices, xla->platform);
  return rt_help(problem, "make a program for %d: devices.per_node: %d", xla->devices, xla->devices);
}

static bool open_devices(struct xla *xla, int devices, struct problem *problem) {
  PJRT_Plugin_Initialize_Args initialize = RT_PJRT(PJRT_Plugin_Initialize_Args, .extension_start = NULL);
  return rt_xla_good(xla->api, xla->api->PJRT_Plugin_Initialize(&initialize), "start its plugin", problem) &&
         create_client(xla, NULL, problem) && read_names(xla, problem) && make_devices(xla, devices, problem);
}

/* Whether a device of this vendor is at the PCI bus. */
static bool has_vendor(const char *vendor) {
  glob_t names;
  bool found = false;
  if (glob("/sys/bus/pci/devices/*/vendor", 0, NULL, &names) != 0) return false;
  for (size_t i = 0; i < names.gl_pathc && !found; i++) {
    char text[16] = "";
    FILE *file = fopen(names.gl_pathv[i], "r");
    if (file == NULL) continue;
    found = fgets(text, sizeof text, file) != NULL && strncmp(text, vendor, strlen(vendor)) == 0;
    fclose(file);
  }
  globfree(&names);
  return found;
}

/* Where no chip of Google's is, libtpu would ask the cloud's server for minutes what the machine has. */
static void prepare(const char *path) {
  static const char name[] = "libtpu.so";
  const size_t length = strlen(path);
  if (length < sizeof name - 1 || strcmp(path + length - (sizeof name - 1), name) != 0) return;
  if (!has_vendor("0x1ae0")) setenv("TPU_SKIP_MDS_QUERY", "1", 0);
}

bool rt_xla_open(const char *path, int devices, struct xla **opened, struct problem *problem) {
  const PJRT_Api *api;
  prepare(path);
  if (!load(path, &api, problem) || !check_version(api, path, problem)) return false;
  struct xla *xla = calloc(1, sizeof *xla);
  if (xla == NULL) return rt_problem(problem, "out of memory");
  xla->api = api;
  struct stat file;
  if (stat(path, &file) == 0) xla->size = file.st_size, xla->changed = file.st_mtime;
  const int kept = rt_xla_quiet();
  const bool good = open_devices(xla, devices, problem);
  rt_xla_loud(kept);
  if (!good) rt_xla_close(xla);
  if (good) *opened = xla;
  return good;
}

void rt_xla_close(struct xla *xla) {
  destroy_client(xla);
  free(xla->platform);
  free(xla->version);
  free(xla);
}

struct xla_facts rt_xla_facts(const struct xla *xla) {
  return (struct xla_facts){.platform = xla->platform,
                            .version = xla->version,
                            .major = xla->api->pjrt_api_version.major_version,
                            .minor = xla->api->pjrt_api_version.minor_version,
                            .devices = xla->devices};
}
