/* Compiled programs: made of a module, described, run. */
#include "runtime/xla/state.h"

#include <stdlib.h>
#include <string.h>

/* A CompileOptionsProto (xla/pjrt/proto/compile_options.proto): executable_build_options, field 3, with num_replicas,
 * field 4, and num_partitions, field 5, both 1; then an entry of env_option_overrides, field 7, for processors alone.
 * It turns XNNPACK off, whose products keep the packed weights of their first run while these are at one address, as
 * donated ones are, whatever a step has made of them. */
enum { FOR_ALL = 6 };
static const char compile_options[] = "\x1a\x04\x20\x01\x28\x01"
                                      "\x3a\x19\x0a\x13xla_cpu_use_xnnpack\x12\x02\x10\x00";

static bool compile(struct xla *xla, const char *module, PJRT_LoadedExecutable **loaded, struct problem *problem) {
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

bool rt_xla_compile(struct xla *xla, const char *module, const char *folder, struct xla_program **compiled,
                    struct problem *problem) {
  struct xla_program *program = calloc(1, sizeof *program);
  if (program == NULL) return rt_problem(problem, "out of memory");
  program->xla = xla;
  program->kept = folder != NULL && rt_xla_read_kept(xla, module, folder, program);
  if ((!program->kept && !compile(xla, module, &program->loaded, problem)) || !describe(program, problem)) {
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
  PJRT_ExecuteOptions options = RT_PJRT(PJRT_ExecuteOptions, .launch_id = 0);
  PJRT_Buffer *const *given = (PJRT_Buffer *const *)arguments;
  PJRT_Buffer **made = (PJRT_Buffer **)results;
  PJRT_LoadedExecutable_Execute_Args execute =
      RT_PJRT(PJRT_LoadedExecutable_Execute_Args, .executable = program->loaded, .options = &options,
              .argument_lists = &given, .num_devices = 1, .num_args = (size_t)n_arguments, .output_lists = &made);
  const PJRT_Api *api = program->xla->api;
  return rt_xla_good(api, api->PJRT_LoadedExecutable_Execute(&execute), "run the program", problem);
}
