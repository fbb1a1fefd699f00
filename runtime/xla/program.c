/* Compiled programs: made of a module, described, run. */
#include "runtime/xla/state.h"

#include <stdlib.h>
#include <string.h>

/* A CompileOptionsProto (xla/pjrt/proto/compile_options.proto). executable_build_options, field 3, has num_replicas,
 * field 4, as a varint of two bytes, and num_partitions, field 5, which is 1. Then comes an entry of
 * env_option_overrides, field 7, for processors alone. It turns XNNPACK off, whose products keep the packed weights of
 * their first run while these are at one address, as donated ones are, whatever a step has made of them. */
enum { FOR_ALL = 7, REPLICAS = 3, LARGEST = 1 << 14 };
static const char form_of_options[] = "\x1a\x05\x20\x80\x01\x28\x01"
                                      "\x3a\x19\x0a\x13xla_cpu_use_xnnpack\x12\x02\x10\x00";

static bool compile(struct xla *xla, const char *module, int replicas, PJRT_LoadedExecutable **loaded,
                    struct problem *problem) {
  if (replicas >= LARGEST) return rt_problem(problem, "a program of XLA cannot run on %d devices", replicas);
  char compile_options[sizeof form_of_options];
  memcpy(compile_options, form_of_options, sizeof compile_options);
  compile_options[REPLICAS] = (char)(replicas % 128 + 128);
  compile_options[REPLICAS + 1] = (char)(replicas / 128);
  static const char format[] = "mlir";
  const PJRT_Program program = RT_PJRT(PJRT_Program, .code = (char *)module, .code_size = strlen(module),
                                       .format = format, .format_size = sizeof format - 1);
  PJRT_Client_Compile_Args arguments =
      RT_PJRT(PJRT_Client_Compile_Args, .client = xla->client, .program = &program, .compile_options = compile_options,
              .compile_options_size = strcmp(xla->platform, "cpu") == 0 ? sizeof compile_options - 1 : FOR_ALL);
  const int kept = rt_xla_quiet();
  PJRT_Error *error = xla->api->PJRT_Client_Compile(&arguments);
  rt_xla_loud(kept);
  *loaded = arguments.executable;
  return rt_xla_good(xla->api, error, "compile the module", problem);
}

static bool describe(struct xla_program *program, struct problem *problem) {
  const PJRT_Api *api = program->xla->api;
  PJRT_LoadedExecutable_GetExecutable_Args get =
      RT_PJRT(PJRT_LoadedExecutable_GetExecutable_Args, .loaded_executable = program->loaded);
  if (!rt_xla_good(api, api->PJRT_LoadedExecutable_GetExecutable(&get), "describe the program", problem)) return false;
  program->executable = get.executable;
  PJRT_Executable_NumOutputs_Args outputs = RT_PJRT(PJRT_Executable_NumOutputs_Args, .executable = program->executable);
  if (!rt_xla_good(api, api->PJRT_Executable_NumOutputs(&outputs), "describe the program", problem)) return false;
  program->results = outputs.num_outputs;
  return true;
}

bool rt_xla_compile(struct xla *xla, const char *module, int replicas, const char *folder,
                    struct xla_program **compiled, struct problem *problem) {
  struct xla_program *program = calloc(1, sizeof *program);
  if (program == NULL) return rt_problem(problem, "out of memory");
  program->xla = xla;
  program->replicas = replicas;
  program->kept = folder != NULL && rt_xla_read_kept(xla, module, folder, program);
  if ((!program->kept && !compile(xla, module, replicas, &program->loaded, problem)) || !describe(program, problem)) {
    rt_xla_discard(program);
    return false;
  }
  if (folder != NULL && !program->kept) rt_xla_keep(program, module, folder);
  *compiled = program;
  return true;
}

void rt_xla_discard(struct xla_program *program) {
  const PJRT_Api *api = program->xla->api;
  struct problem ignored;
  PJRT_Executable_Destroy_Args described = RT_PJRT(PJRT_Executable_Destroy_Args, .executable = program->executable);
  PJRT_LoadedExecutable_Destroy_Args loaded =
      RT_PJRT(PJRT_LoadedExecutable_Destroy_Args, .executable = program->loaded);
  if (program->executable != NULL) rt_xla_good(api, api->PJRT_Executable_Destroy(&described), "free", &ignored);
  if (program->loaded != NULL) rt_xla_good(api, api->PJRT_LoadedExecutable_Destroy(&loaded), "free", &ignored);
  free(program);
}

bool rt_xla_was_kept(const struct xla_program *program) {
  return program->kept;
}

int rt_xla_results(const struct xla_program *program) {
  return (int)program->results;
}

int rt_xla_replicas(const struct xla_program *program) {
  return program->replicas;
}

bool rt_xla_memory(const struct xla_program *program, struct xla_memory *memory, struct problem *problem) {
  const PJRT_Api *api = program->xla->api;
  PJRT_Executable_GetCompiledMemoryStats_Args stats =
      RT_PJRT(PJRT_Executable_GetCompiledMemoryStats_Args, .executable = program->executable);
  if (!rt_xla_good(api, api->PJRT_Executable_GetCompiledMemoryStats(&stats), "say what memory is needed", problem))
    return false;
  *memory = (struct xla_memory){.arguments = stats.argument_size_in_bytes,
                                .results = stats.output_size_in_bytes,
                                .reused = stats.alias_size_in_bytes,
                                .temporary = stats.temp_size_in_bytes,
                                .code = stats.generated_code_size_in_bytes};
  return true;
}

bool rt_xla_run(struct xla_program *program, struct xla_buffer *const *arguments, int n_arguments,
                struct xla_buffer **results, struct problem *problem) {
  const PJRT_Api *api = program->xla->api;
  const size_t count = (size_t)program->replicas;
  PJRT_ExecuteOptions options = RT_PJRT(PJRT_ExecuteOptions, .launch_id = 0);
  PJRT_Buffer *const **given = calloc(count, sizeof *given);
  PJRT_Buffer ***made = calloc(count, sizeof *made);
  for (size_t i = 0; given != NULL && made != NULL && i < count; i++) {
    given[i] = (PJRT_Buffer *const *)arguments + i * (size_t)n_arguments;
    made[i] = (PJRT_Buffer **)results + i * program->results;
  }
  PJRT_LoadedExecutable_Execute_Args execute =
      RT_PJRT(PJRT_LoadedExecutable_Execute_Args, .executable = program->loaded, .options = &options,
              .argument_lists = given, .num_devices = count, .num_args = (size_t)n_arguments, .output_lists = made);
  const bool good = given == NULL || made == NULL
                        ? rt_problem(problem, "out of memory")
                        : rt_xla_good(api, api->PJRT_LoadedExecutable_Execute(&execute), "run the program", problem);
  free(given);
  free(made);
  return good;
}
