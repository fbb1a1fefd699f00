/* Programs that several devices run together, through the plugin for processors: what each has, what they exchange, and
 * what is kept of them. SKIPPED without a plugin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/xla/xla.h"

enum { MOST = 4, COUNT = 3 };

static char plugin[4096];

/* w, donated, plus the sum over all devices of x; and the number of the device. */
static const char module[] =
    "module @sums {\n"
    "  func.func public @main(%%w: tensor<3xf32> {tf.aliasing_output = 0 : i32}, %%x: tensor<3xf32>)\n"
    "      -> (tensor<3xf32>, tensor<ui32>) {\n"
    "    %%s = \"stablehlo.all_reduce\"(%%x) <{replica_groups = dense<[[%s]]> : tensor<1x%dxi64>}> ({\n"
    "    ^bb0(%%a: tensor<f32>, %%b: tensor<f32>):\n"
    "      %%c = stablehlo.add %%a, %%b : tensor<f32>\n"
    "      stablehlo.return %%c : tensor<f32>\n"
    "    }) : (tensor<3xf32>) -> tensor<3xf32>\n"
    "    %%n = stablehlo.add %%w, %%s : tensor<3xf32>\n"
    "    %%i = stablehlo.replica_id : tensor<ui32>\n"
    "    return %%n, %%i : tensor<3xf32>, tensor<ui32>\n"
    "  }\n"
    "}\n";

static void fail_of(bool good, const struct problem *problem) {
  if (!good) fail_msg("%s", problem->what);
}

static struct xla_program *compile(struct xla *xla, int devices, const char *folder) {
  char text[4096];
  struct problem problem;
  struct xla_program *program;
  snprintf(text, sizeof text, module, &"3, 2, 1, 0"[3 * (MOST - devices)], devices);
  fail_of(rt_xla_compile(xla, text, devices, folder, &program, &problem), &problem);
  assert_int_equal(rt_xla_replicas(program), devices);
  return program;
}

static void step(struct xla *xla, struct xla_program *program, int devices, struct xla_buffer **weights,
                 float expected) {
  static const int64_t dims[] = {COUNT};
  struct xla_buffer *arguments[MOST * 2], *results[MOST * 2];
  struct problem problem;
  for (int d = 0; d < devices; d++) {
    const float x[COUNT] = {(float)d + 1, 0.5f, -1};
    arguments[2 * d] = weights[d];
    fail_of(rt_xla_put(xla, d, ACCEL_FLOAT32, dims, 1, x, &arguments[2 * d + 1], &problem), &problem);
  }
  fail_of(rt_xla_run(program, arguments, 2, results, &problem), &problem);
  for (int d = 0; d < devices; d++) {
    float got[COUNT];
    uint32_t number;
    fail_of(rt_xla_get(xla, results[2 * d], got, sizeof got, &problem), &problem);
    fail_of(rt_xla_get(xla, results[2 * d + 1], &number, sizeof number, &problem), &problem);
    assert_int_equal(number, d);
    assert_float_equal(got[0], (float)d * 100 + expected * (float)(devices * (devices + 1)) / 2, 0);
    assert_float_equal(got[1], expected * 0.5f * (float)devices, 0);
    assert_false(rt_xla_get(xla, arguments[2 * d], got, sizeof got, &problem)); /* it was donated, on each device */
    rt_xla_drop(xla, arguments[2 * d]);
    rt_xla_drop(xla, arguments[2 * d + 1]);
    rt_xla_drop(xla, results[2 * d + 1]);
    weights[d] = results[2 * d];
  }
}

/* Steps of so many devices: each has weights of its own. */
static void run_on(struct xla *xla, int devices, const char *folder, bool kept) {
  static const int64_t dims[] = {COUNT};
  struct xla_program *program = compile(xla, devices, folder);
  struct xla_buffer *weights[MOST];
  struct problem problem;
  assert_int_equal(rt_xla_was_kept(program), kept);
  for (int d = 0; d < devices; d++) {
    const float w[COUNT] = {(float)d * 100};
    fail_of(rt_xla_put(xla, d, ACCEL_FLOAT32, dims, 1, w, &weights[d], &problem), &problem);
  }
  for (int i = 1; i <= 5; i++) step(xla, program, devices, weights, (float)i);
  for (int d = 0; d < devices; d++) rt_xla_drop(xla, weights[d]);
  rt_xla_discard(program);
}

/* Programs of other numbers of devices are others in a folder, too: the module of one device is the same text but for
 * its group. */
static void exchanges(void **state) {
  (void)state;
  char folder[] = "/tmp/accel-xla-XXXXXX", command[64];
  assert_non_null(mkdtemp(folder));
  for (int devices = 1; devices <= MOST; devices++) {
    struct xla *xla;
    struct problem problem;
    fail_of(rt_xla_open(plugin, devices, &xla, &problem), &problem);
    assert_true(rt_xla_facts(xla).devices >= devices);
    run_on(xla, devices, folder, false);
    run_on(xla, devices, folder, true);
    rt_xla_close(xla);
  }
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

/* A plugin of one device, which is no processor. */
static const char one_device[] =
    "#include \"runtime/xla/pjrt.h\"\n"
    "static PJRT_Error *start(PJRT_Plugin_Initialize_Args *a) { (void)a; return NULL; }\n"
    "static PJRT_Error *create(PJRT_Client_Create_Args *a) { return a->num_options > 0 ? (PJRT_Error *)a : NULL; }\n"
    "static PJRT_Error *end(PJRT_Client_Destroy_Args *a) { (void)a; return NULL; }\n"
    "static PJRT_Error *name(PJRT_Client_PlatformName_Args *a) {\n"
    "  a->platform_name = \"tpu\"; a->platform_name_size = 3; return NULL; }\n"
    "static PJRT_Error *version(PJRT_Client_PlatformVersion_Args *a) {\n"
    "  a->platform_version = \"1\"; a->platform_version_size = 1; return NULL; }\n"
    "static PJRT_Error *list(PJRT_Client_AddressableDevices_Args *a) {\n"
    "  static PJRT_Device *const one[1]; a->addressable_devices = one; a->num_addressable_devices = 1; return NULL; }\n"
    "const PJRT_Api *GetPjrtApi(void) {\n"
    "  static PJRT_Api api = {.struct_size = sizeof api, .pjrt_api_version = {.major_version = PJRT_API_MAJOR}};\n"
    "  api.PJRT_Plugin_Initialize = start; api.PJRT_Client_Create = create; api.PJRT_Client_Destroy = end;\n"
    "  api.PJRT_Client_PlatformName = name; api.PJRT_Client_PlatformVersion = version;\n"
    "  api.PJRT_Client_AddressableDevices = list; return &api; }\n";

static void refuses_too_few(void **state) {
  (void)state;
  char folder[] = "/tmp/accel-xla-XXXXXX", path[64], source[64], command[256];
  struct problem problem;
  struct xla *xla;
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/plugin.so", folder);
  snprintf(source, sizeof source, "%s/plugin.c", folder);
  FILE *file = fopen(source, "w");
  assert_non_null(file);
  fputs(one_device, file);
  fclose(file);
  snprintf(command, sizeof command, "${CC:-cc} -I. -shared -fPIC -o %s %s", path, source);
  assert_int_equal(system(command), 0);
  assert_false(rt_xla_open(path, 2, &xla, &problem));
  assert_string_equal(problem.what, "the program runs on 2 devices, and XLA has 1 here (tpu)");
  assert_string_equal(problem.help, "make a program for 1: devices.per_node: 1");
  fail_of(rt_xla_open(path, 1, &xla, &problem), &problem);
  rt_xla_close(xla);
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(exchanges), cmocka_unit_test(refuses_too_few)};
  struct problem problem;
  if (!rt_xla_find(NULL, plugin, sizeof plugin, &problem)) {
    printf("%s\n", problem.what);
    return 77;
  }
  return cmocka_run_group_tests_name("replicas", tests, NULL, NULL);
}
