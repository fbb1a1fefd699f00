/* The software: GPUs by their drivers' tools, compilers, launchers, libraries, variables. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/base/embedded.h"
#include "gen/base/system_file.h"
#include "gen/base/text.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/cli/process.h"
#include "gen/commands/cli/runtime.h"
#include "gen/commands/env/facts.h"
#include "gen/commands/generate/compiler.h"
#include "runtime/xla/xla.h"

extern char **environ;

static const char *first_line(struct arena *arena, const char *text) {
  return text == NULL || text[0] == '\0' ? NULL : arena_copy(arena, text, strcspn(text, "\n"));
}

static const char *output_of(struct arena *arena, const char *command) {
  struct words words = words_in(arena);
  words_split(&words, command);
  return process_try(&words);
}

const char *facts_line(struct arena *arena, const char *command) {
  return first_line(arena, output_of(arena, command));
}

/* ---- GPUs ---- */

/* The fields of a line of nvidia-smi's CSV, under these names. */
static json_t *gpu_of(struct arena *arena, const char *line) {
  static const char *const names[] = {"name", "memory", "compute_capability", "driver"};
  json_t *gpu = json_object();
  for (size_t i = 0; i < sizeof names / sizeof *names && *line != '\0'; i++) {
    size_t length = strcspn(line, ",\n");
    facts_put(gpu, names[i], arena_copy(arena, line, length));
    line += length;
    line += strspn(line, ", ");
  }
  return gpu;
}

static void add_nvidia(struct arena *arena, json_t *gpus) {
  const char *text =
      output_of(arena, "nvidia-smi --query-gpu=name,memory.total,compute_cap,driver_version --format=csv,noheader");
  for (const char *at = text; at != NULL && *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n')
    json_array_append_new(gpus, gpu_of(arena, first_line(arena, at)));
}

/* rocminfo has a block for each agent: of processors, too. */
static void add_amd(struct arena *arena, json_t *gpus) {
  const char *text = output_of(arena, "rocminfo"), *architecture = NULL;
  for (const char *at = text; at != NULL && *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n') {
    const char *line = first_line(arena, at);
    const char *value = line != NULL ? strchr(line, ':') : NULL;
    if (value == NULL) continue;
    value += 1 + strspn(value + 1, " ");
    line += strspn(line, " ");
    if (strncmp(line, "Name:", 5) == 0) architecture = strncmp(value, "gfx", 3) == 0 ? value : NULL;
    if (strncmp(line, "Marketing Name:", 15) != 0 || architecture == NULL) continue;
    json_t *gpu = json_object();
    facts_put(gpu, "name", value);
    facts_put(gpu, "architecture", architecture);
    json_array_append_new(gpus, gpu);
    architecture = NULL;
  }
}

json_t *facts_gpus(struct arena *arena) {
  json_t *gpus = json_array();
  add_nvidia(arena, gpus);
  add_amd(arena, gpus);
  return gpus;
}

/* ---- Compilers and launchers ---- */

/* What the toolkit's script prints, which the command carries; NULL where there is no such toolkit. */
static const char *toolkit(struct arena *arena, const char *kind, const char *flag, const char *part) {
  struct words words = words_in(arena);
  words_split(&words, "sh -c");
  words_add(&words, embedded_source(arena_printf(arena, "tools/%s-toolkit.sh", kind)));
  words_add(&words, "toolkit");
  words_add(&words, flag);
  if (part != NULL) words_add(&words, part);
  return first_line(arena, process_try(&words));
}

/* nvcc says its release in its fourth line. */
static const char *nvcc_release(struct arena *arena) {
  const char *nvcc = toolkit(arena, "cuda", "--nvcc", NULL);
  const char *text = nvcc != NULL ? output_of(arena, arena_printf(arena, "%s --version", nvcc)) : NULL;
  const char *release = text != NULL ? strstr(text, "release ") : NULL;
  return release == NULL ? nvcc : arena_printf(arena, "%s, %.*s", nvcc, (int)strcspn(release, "\n"), release);
}

json_t *facts_tools(const struct options *options) {
  static const char *const names[] = {"gcc", "clang", "hipcc", "mpicc", "mpirun", "srun", "pkg-config", "ninja"};
  struct arena *arena = options->arena;
  json_t *tools = json_object();
  facts_put(tools, "CC", facts_line(arena, arena_printf(arena, "%s --version", compiler_name())));
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    facts_put(tools, names[i], facts_line(arena, arena_printf(arena, "%s --version", names[i])));
  facts_put(tools, "nvcc", nvcc_release(arena));
  return tools;
}

/* ---- Libraries that programs link ---- */

/* A header, and how it says a version: an expression of at most three numbers. */
static const struct {
  const char *name, *header, *numbers;
} headers[] = {
    {"oneDNN", "oneapi/dnnl/dnnl_version.h", "DNNL_VERSION_MAJOR DNNL_VERSION_MINOR DNNL_VERSION_PATCH"},
    {"Open MPI", "mpi.h", "OMPI_MAJOR_VERSION OMPI_MINOR_VERSION OMPI_RELEASE_VERSION"},
    {"MPICH", "mpi.h", "MPICH_NUMVERSION 0 0"},
    {"MPI standard", "mpi.h", "MPI_VERSION MPI_SUBVERSION -1"},
    {"OpenMP", NULL, "_OPENMP -1 -1"},
    {"cuDNN", "cudnn_version.h", "CUDNN_MAJOR CUDNN_MINOR CUDNN_PATCHLEVEL"},
    {"NCCL", "nccl.h", "NCCL_MAJOR NCCL_MINOR NCCL_PATCH"},
    {"HIP", "hip/hip_version.h", "HIP_VERSION_MAJOR HIP_VERSION_MINOR HIP_VERSION_PATCH"},
    {"hipBLASLt", "hipblaslt/hipblaslt-version.h",
     "HIPBLASLT_VERSION_MAJOR HIPBLASLT_VERSION_MINOR HIPBLASLT_VERSION_PATCH"},
};

enum { HEADERS = sizeof headers / sizeof *headers };

/* C that preprocesses to "accel INDEX A B C" for each header that is there. */
static const char *question(struct arena *arena) {
  struct text text = text_in(arena);
  for (int i = 0; i < HEADERS; i++) {
    const char *header = headers[i].header;
    if (header != NULL) text_printf(&text, "#if __has_include(<%s>)\n#include <%s>\n", header, header);
    text_printf(&text, "accel %d %s\n%s", i, headers[i].numbers, header != NULL ? "#endif\n" : "");
  }
  return text_string(&text);
}

/* The compiler's command to preprocess a file, with the folders of MPI's and the GPUs' headers. */
static const char *preprocessed(const struct options *options, const char *file) {
  struct arena *arena = options->arena;
  struct words words = words_in(arena);
  words_split(&words, compiler_name());
  words_split(&words, "-E -P -fopenmp -D__HIP_PLATFORM_AMD__=1");
  const char *more[] = {output_of(arena, "mpicc --showme:compile"), toolkit(arena, "cuda", "--cflags", NULL),
                        toolkit(arena, "hip", "--cflags", NULL)};
  for (size_t i = 0; i < sizeof more / sizeof *more; i++)
    if (more[i] != NULL) words_split(&words, more[i]);
  words_add(&words, file);
  return process_try(&words);
}

/* "2.6.3" of three numbers, of which -1 is none. NULL: a macro that the header does not define. */
static const char *version_text(struct arena *arena, const char *line) {
  long numbers[3];
  int count = 0;
  for (char *end; count < 3; count++, line = end) {
    numbers[count] = strtol(line, &end, 10);
    if (end == line) return NULL;
  }
  if (numbers[1] == -1) return arena_printf(arena, "%ld", numbers[0]);
  if (numbers[2] == -1) return arena_printf(arena, "%ld.%ld", numbers[0], numbers[1]);
  return arena_printf(arena, "%ld.%ld.%ld", numbers[0], numbers[1], numbers[2]);
}

static void put_headers(const struct options *options, json_t *libraries) {
  struct arena *arena = options->arena;
  const char *folder = make_folder(arena);
  if (folder == NULL) return;
  const char *file = arena_printf(arena, "%s/versions.c", folder), *text = question(arena);
  const struct inputs none = {.arena = arena};
  const char *said = write_file(&none, file, text, strlen(text)) ? preprocessed(options, file) : NULL;
  remove_folder(folder);
  for (const char *at = said; (at = at != NULL ? strstr(at, "accel ") : NULL) != NULL;) {
    char *rest;
    long index = strtol(at + 6, &rest, 10);
    at += 6;
    if (index >= 0 && index < HEADERS && rest != at)
      facts_put(libraries, headers[index].name, version_text(arena, rest));
  }
}

/* A package whose requirements are there, too. */
static const char *package_version(struct arena *arena, const char *package) {
  const char *tool = environment("PKG_CONFIG", "pkg-config");
  if (output_of(arena, arena_printf(arena, "%s --exists %s", tool, package)) == NULL) return NULL;
  return facts_line(arena, arena_printf(arena, "%s --modversion %s", tool, package));
}

/* "cpu, PJRT 0.81, /usr/lib/python3/...so" of the plugin that programs for XLA load. One that is there and cannot be
 * loaded has its problem instead; NULL: there is none. */
static const char *plugin_text(struct arena *arena) {
  char path[4096];
  struct xla *xla;
  struct problem problem = {0};
  if (!rt_xla_find(NULL, path, sizeof path, &problem)) return NULL;
  if (!rt_xla_open(path, 1, &xla, &problem)) return arena_string(arena, problem.what);
  const struct xla_facts facts = rt_xla_facts(xla);
  const char *text = arena_printf(arena, "%s, PJRT %d.%d, %s", facts.platform, facts.major, facts.minor, path);
  rt_xla_close(xla);
  return text;
}

json_t *facts_libraries(const struct options *options) {
  static const char *const packages[][2] = {{"hwloc", "hwloc"},
                                            {"runtime", "accel-runtime"},
                                            {"runtime for ranks", "accel-runtime-mpi"},
                                            {"runtime for CUDA", "accel-runtime-cuda"},
                                            {"runtime for HIP", "accel-runtime-hip"},
                                            {"runtime for XLA", "accel-runtime-xla"}};
  json_t *libraries = json_object();
  put_headers(options, libraries);
  facts_put(libraries, "CUDA", toolkit(options->arena, "cuda", "--version", NULL));
  runtime_path(options);
  for (size_t i = 0; i < sizeof packages / sizeof *packages; i++)
    facts_put(libraries, packages[i][0], package_version(options->arena, packages[i][1]));
  facts_put(libraries, "plugin of XLA", plugin_text(options->arena));
  return libraries;
}

/* ---- Libraries that the command has loaded ---- */

/* Whether the command links the library by itself, and not by way of another one. */
static bool is_linked(const char *name) {
  static const char *const names[] = {"clang",    "yaml", "jansson", "yajl", "pcre2", "utf8proc",
                                      "capstone", "dw",   "elf",     "gomp", "omp"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    size_t length = strlen(names[i]);
    if (strncmp(name, names[i], length) == 0 && strchr(".-", name[length]) != NULL) return true;
  }
  return false;
}

/* "yaml-0" and "2.0.9" of /usr/lib/libyaml-0.so.2.0.9: by the loader's own list, so without a header. */
static void put_loaded(struct arena *arena, json_t *loaded, const char *path) {
  const char *name = strrchr(path, '/'), *ending = name != NULL ? strstr(name, ".so") : NULL;
  if (ending == NULL || strncmp(name, "/lib", 4) != 0) return;
  const char *version = ending[3] == '.' ? ending + 4 : "";
  const char *key = arena_copy(arena, name + 4, (size_t)(ending - name - 4));
  if (is_linked(name + 4) && version[0] != '\0' && json_object_get(loaded, key) == NULL)
    facts_put(loaded, key, version);
}

json_t *facts_loaded(struct arena *arena) {
  const char *maps = system_file(arena, "/proc/self/maps");
  json_t *loaded = json_object();
  for (const char *at = maps; at != NULL && *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n') {
    const char *line = first_line(arena, at), *path = line != NULL ? strchr(line, '/') : NULL;
    if (path != NULL) put_loaded(arena, loaded, path);
  }
  return loaded;
}

/* ---- Variables ---- */

json_t *facts_variables(void) {
  static const char *const names[] = {"ACCEL_",
                                      "CC=",
                                      "CFLAGS=",
                                      "PKG_CONFIG",
                                      "TMPDIR=",
                                      "LD_LIBRARY_PATH=",
                                      "LD_PRELOAD=",
                                      "OMP_",
                                      "GOMP_",
                                      "KMP_",
                                      "DNNL_",
                                      "ONEDNN_",
                                      "CUDA_",
                                      "NVIDIA_VISIBLE_",
                                      "NCCL_",
                                      "PJRT_",
                                      "HIP_",
                                      "ROCR_",
                                      "ROCM_",
                                      "HSA_",
                                      "OMPI_MCA_",
                                      "UCX_",
                                      "FI_",
                                      "HWLOC_",
                                      "MPIR_",
                                      "RANK=",
                                      "LOCAL_RANK=",
                                      "WORLD_SIZE=",
                                      "MASTER_ADDR=",
                                      "MASTER_PORT=",
                                      "SLURM_JOB_ID=",
                                      "SLURM_NTASKS=",
                                      "SLURM_NNODES=",
                                      "SLURM_CPUS_PER_TASK=",
                                      "SLURM_MPI_TYPE=",
                                      "SM_HOSTS=",
                                      "SM_CURRENT_HOST=",
                                      "TORCHELASTIC_USE_AGENT_STORE="};
  json_t *variables = json_object();
  for (char **variable = environ; *variable != NULL; variable++) {
    const char *equals = strchr(*variable, '=');
    for (size_t i = 0; equals != NULL && i < sizeof names / sizeof *names; i++) {
      if (strncmp(*variable, names[i], strlen(names[i])) != 0) continue;
      json_object_setn_new_nocheck(variables, *variable, (size_t)(equals - *variable),
                                   json_stringn_nocheck(equals + 1, strlen(equals + 1)));
      break;
    }
  }
  return variables;
}
