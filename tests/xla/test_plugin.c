/* The runtime's door to XLA, with the plugin for processors: what it compiles, runs and refuses. Skipped without it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/xla/xla.h"

/* One step of gradient descent on |x w - y|^2: w is donated, the loss is the other result. */
static const char step_module[] =
    "module @step {\n"
    "  func.func public @main(%w: tensor<3xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<4x3xf32>, %y: "
    "tensor<4xf32>)\n"
    "      -> (tensor<3xf32>, tensor<f32>) {\n"
    "    %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x3xf32>, tensor<3xf32>) -> "
    "tensor<4xf32>\n"
    "    %d = stablehlo.subtract %p, %y : tensor<4xf32>\n"
    "    %s = stablehlo.multiply %d, %d : tensor<4xf32>\n"
    "    %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "    %loss = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, "
    "tensor<f32>) -> tensor<f32>\n"
    "    %g = stablehlo.dot_general %d, %x, contracting_dims = [0] x [0] : (tensor<4xf32>, tensor<4x3xf32>) -> "
    "tensor<3xf32>\n"
    "    %rate = stablehlo.constant dense<0.125> : tensor<3xf32>\n"
    "    %u = stablehlo.multiply %g, %rate : tensor<3xf32>\n"
    "    %n = stablehlo.subtract %w, %u : tensor<3xf32>\n"
    "    return %n, %loss : tensor<3xf32>, tensor<f32>\n"
    "  }\n"
    "}\n";

static const int64_t weight_dims[] = {3}, x_dims[] = {4, 3}, y_dims[] = {4};
static const float x[] = {1, 0, 2, 0, 1, 1, 1, 1, 0, 2, 0, 1}, y[] = {1, 2, 3, 4};

static struct xla *xla;
static char plugin[4096];
static const char *packages; /* $VIRTUAL_ENV */

/* Whether `problem` is what a function has failed with. */
static void check_problem(const struct problem *problem, const char *what) {
  if (strstr(problem->what, what) == NULL) fail_msg("'%s' lacks '%s'", problem->what, what);
  assert_null(strchr(problem->what, '\n'));
}

static struct xla_buffer *put(const int64_t *dims, int rank, const float *values) {
  struct problem problem;
  struct xla_buffer *buffer;
  if (!rt_xla_put(xla, 0, ACCEL_FLOAT32, dims, rank, values, &buffer, &problem)) fail_msg("%s", problem.what);
  return buffer;
}

static struct xla_program *compile(const char *module, const char *folder) {
  struct problem problem;
  struct xla_program *program;
  if (!rt_xla_compile(xla, module, 1, folder, &program, &problem)) fail_msg("%s", problem.what);
  return program;
}

/* The same step on the processor. */
static float step_here(float *w) {
  float loss = 0, d[4], g[3] = {0};
  for (int i = 0; i < 4; i++) {
    d[i] = -y[i];
    for (int k = 0; k < 3; k++) d[i] += x[3 * i + k] * w[k];
    loss += d[i] * d[i];
  }
  for (int i = 0; i < 4; i++)
    for (int k = 0; k < 3; k++) g[k] += d[i] * x[3 * i + k];
  for (int k = 0; k < 3; k++) w[k] -= g[k] * 0.125f;
  return loss;
}

static void donates_and_runs(void **state) {
  (void)state;
  struct problem problem;
  struct xla_program *program = compile(step_module, NULL);
  struct xla_memory memory;
  float w[] = {0.5f, -1, 2}, got[3], loss;
  struct xla_buffer *arguments[] = {put(weight_dims, 1, w), put(x_dims, 2, x), put(y_dims, 1, y)}, *results[2];
  assert_int_equal(rt_xla_results(program), 2);
  assert_true(rt_xla_memory(program, &memory, &problem));
  assert_int_equal(memory.arguments, sizeof w + sizeof x + sizeof y);
  assert_int_equal(memory.reused, sizeof w);
  for (int step = 0; step < 20; step++) {
    const float expected = step_here(w);
    if (!rt_xla_run(program, arguments, 3, results, &problem)) fail_msg("%s", problem.what);
    assert_false(rt_xla_get(xla, arguments[0], got, sizeof got, &problem)); /* it was donated */
    check_problem(&problem, "XLA cannot copy an array from the device");
    assert_true(rt_xla_get(xla, results[0], got, sizeof got, &problem));
    assert_true(rt_xla_get(xla, results[1], &loss, sizeof loss, &problem));
    assert_float_equal(loss, expected, 1e-5);
    for (int k = 0; k < 3; k++) assert_float_equal(got[k], w[k], 1e-5);
    rt_xla_drop(xla, arguments[0]);
    rt_xla_drop(xla, results[1]);
    arguments[0] = results[0];
  }
  assert_false(rt_xla_get(xla, arguments[1], got, sizeof got, &problem));
  check_problem(&problem, "48 bytes, where 12 are expected");
  for (int i = 0; i < 3; i++) rt_xla_drop(xla, arguments[i]);
  rt_xla_discard(program);
}

/* A product of a size for which a plugin may have kernels of its own; and its weights times 2, for the product is above
 * 0, in their memory: each run multiplies by what the one before has left. */
static const char doubling_module[] =
    "module @doubling {\n"
    "  func.func public @main(%w: tensor<1536x384xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<512x1536xf32>)\n"
    "      -> (tensor<1536x384xf32>, tensor<512x384xf32>) {\n"
    "    %y = stablehlo.multiply %x, %x : tensor<512x1536xf32>\n"
    "    %p = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (tensor<512x1536xf32>, "
    "tensor<1536x384xf32>) -> tensor<512x384xf32>\n"
    "    %s = stablehlo.slice %p [0:1, 0:384] : (tensor<512x384xf32>) -> tensor<1x384xf32>\n"
    "    %b = stablehlo.broadcast_in_dim %s, dims = [0, 1] : (tensor<1x384xf32>) -> tensor<1536x384xf32>\n"
    "    %f = stablehlo.sign %b : tensor<1536x384xf32>\n"
    "    %u = stablehlo.multiply %w, %f : tensor<1536x384xf32>\n"
    "    %n = stablehlo.add %w, %u : tensor<1536x384xf32>\n"
    "    return %n, %p : tensor<1536x384xf32>, tensor<512x384xf32>\n"
    "  }\n"
    "}\n";

static void multiplies_by_new_weights(void **state) {
  (void)state;
  enum { ROWS = 512, DEPTH = 1536, COLUMNS = 384, RUNS = 4 };
  static const int64_t w_dims[] = {DEPTH, COLUMNS}, own_dims[] = {ROWS, DEPTH};
  static float ones[DEPTH * ROWS], got[ROWS * COLUMNS];
  struct problem problem;
  for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) ones[i] = 1;
  struct xla_program *program = compile(doubling_module, NULL);
  struct xla_buffer *arguments[] = {put(w_dims, 2, ones), put(own_dims, 2, ones)}, *results[2];
  for (int run = 0; run < RUNS; run++) {
    if (!rt_xla_run(program, arguments, 2, results, &problem)) fail_msg("%s", problem.what);
    assert_true(rt_xla_get(xla, results[1], got, sizeof got, &problem));
    for (size_t i = 0; i < sizeof got / sizeof *got; i++) assert_float_equal(got[i], (DEPTH << run), 0);
    rt_xla_drop(xla, arguments[0]);
    rt_xla_drop(xla, results[1]);
    arguments[0] = results[0];
  }
  for (int i = 0; i < 2; i++) rt_xla_drop(xla, arguments[i]);
  rt_xla_discard(program);
}

static void refuses_arguments(void **state) {
  (void)state;
  struct problem problem;
  struct xla_program *program = compile(step_module, NULL);
  struct xla_buffer *one = put(weight_dims, 1, x), *results[2];
  assert_false(rt_xla_run(program, &one, 1, results, &problem));
  check_problem(&problem, "XLA cannot run the program: ");
  rt_xla_drop(xla, one);
  rt_xla_discard(program);
}

static void refuses_modules(void **state) {
  (void)state;
  struct problem problem;
  struct xla_program *program;
  assert_false(rt_xla_compile(xla, "module { not StableHLO }", 1, NULL, &program, &problem));
  check_problem(&problem, "XLA cannot compile the module: ");
  assert_false(rt_xla_compile(xla,
                              "func.func @main(%x: tensor<2xf32>) -> tensor<3xf32> {\n  return %x : tensor<2xf32>\n}\n",
                              1, NULL, &program, &problem));
  check_problem(&problem, "XLA cannot compile the module: ");
}

/* ---- Compiled programs in a folder ---- */

/* The one file of the folder, read and written. */
static void damage(const char *folder) {
  char command[4400];
  snprintf(command, sizeof command,
           "for f in %s/*.xla; do printf x | dd of=$f bs=1 seek=$(($(wc -c <$f) - 9)) conv=notrunc 2>/dev/null; done",
           folder);
  assert_int_equal(system(command), 0);
}

static void keeps_programs(void **state) {
  (void)state;
  char folder[] = "/tmp/accel-xla-XXXXXX", command[64];
  assert_non_null(mkdtemp(folder));
  static const bool expected[] = {false, true, true, false, true};
  for (int round = 0; round < 5; round++) {
    if (round == 3) damage(folder);
    struct problem problem;
    struct xla_program *program = compile(step_module, folder);
    assert_int_equal(rt_xla_was_kept(program), expected[round]);
    float w[] = {0.5f, -1, 2}, got[3];
    struct xla_buffer *arguments[] = {put(weight_dims, 1, w), put(x_dims, 2, x), put(y_dims, 1, y)}, *results[2];
    assert_true(rt_xla_run(program, arguments, 3, results, &problem));
    assert_true(rt_xla_get(xla, results[0], got, sizeof got, &problem));
    step_here(w);
    for (int k = 0; k < 3; k++) assert_float_equal(got[k], w[k], 1e-6);
    for (int i = 0; i < 3; i++) rt_xla_drop(xla, arguments[i]);
    for (int i = 0; i < 2; i++) rt_xla_drop(xla, results[i]);
    rt_xla_discard(program);
  }
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

/* ---- Plugins ---- */

static void says_what_it_is(void **state) {
  (void)state;
  const struct xla_facts facts = rt_xla_facts(xla);
  assert_string_equal(facts.platform, "cpu");
  assert_int_equal(facts.major, 0);
  if (facts.minor < 54 || facts.devices < 1)
    fail_msg("version %d.%d, %d devices", facts.major, facts.minor, facts.devices);
}

static void refuses_files(void **state) {
  (void)state;
  struct problem problem;
  struct xla *other;
  assert_false(rt_xla_open("/nonexistent/plugin.so", 1, &other, &problem));
  check_problem(&problem, "the plugin of XLA cannot be loaded: /nonexistent/plugin.so: cannot open");
  assert_false(rt_xla_open("/proc/self/cmdline", 1, &other, &problem));
  check_problem(&problem, "the plugin of XLA cannot be loaded: ");
  assert_false(rt_xla_open("libm.so.6", 1, &other, &problem));
  check_problem(&problem, "libm.so.6 is no plugin of XLA: it has no function GetPjrtApi");
}

/* A library whose API is what `members` says. */
static void refuses_version(const char *members, const char *what, const char *help) {
  char folder[] = "/tmp/accel-xla-XXXXXX", path[64], command[1024];
  struct problem problem;
  struct xla *other;
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/plugin.so", folder);
  snprintf(command, sizeof command,
           "printf '#include \"runtime/xla/pjrt.h\"\\nconst PJRT_Api *GetPjrtApi(void) { static const PJRT_Api api = "
           "{%s}; return &api; }\\n' | ${CC:-cc} -I. -shared -fPIC -x c -o %s -",
           members, path);
  assert_int_equal(system(command), 0);
  assert_false(rt_xla_open(path, 1, &other, &problem));
  check_problem(&problem, what);
  assert_string_equal(problem.help, help);
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

static void refuses_versions(void **state) {
  (void)state;
  refuses_version("offsetof(PJRT_Api, PJRT_Compile), 0, {0, 0, 0, 30}", "speaks version 0.30 of PJRT's C API",
                  "a newer plugin is needed");
  refuses_version("sizeof(PJRT_Api), 0, {0, 0, 1, 2}", "speaks version 1.2 of PJRT's C API",
                  "an older plugin is needed");
  refuses_version("sizeof(size_t)", "speaks version 0.0 of PJRT's C API", "a newer plugin is needed");
}

static void finds_plugins(void **state) {
  (void)state;
  char path[4096], small[4];
  struct problem problem;
  setenv("PJRT_PLUGIN_LIBRARY_PATH", "b.so", 1);
  assert_true(rt_xla_find(NULL, path, sizeof path, &problem));
  assert_string_equal(path, "b.so");
  assert_false(rt_xla_find(NULL, small, sizeof small, &problem));
  check_problem(&problem, "the path is too long");
  unsetenv("PJRT_PLUGIN_LIBRARY_PATH");
  /* Below ROOT/lib/python3.12/site-packages/xla_plugins/xla_cpu_pjrt. */
  char *root = strdup(plugin), *lib = strstr(root, "/lib/python3");
  if (lib != NULL) {
    *lib = '\0';
    unsetenv("PYTHON");
    setenv("VIRTUAL_ENV", root, 1);
    assert_true(rt_xla_find(NULL, path, sizeof path, &problem));
    assert_string_equal(path, plugin);
    unsetenv("VIRTUAL_ENV");
  }
  free(root);
}

/* The package of each kind: an environment with all of them, by the names that they have there. */
static void finds_kinds(void **state) {
  (void)state;
  static const char *const kinds[][2] = {{"tpu", "libtpu/libtpu.so"},
                                         {"neuron", "libneuronxla/libneuronpjrt.so"},
                                         {"rocm", "jax_plugins/xla_rocm7/xla_rocm_plugin.so"},
                                         {"xpu", "jax_plugins/intel_extension_for_openxla/pjrt_plugin_xpu.so"}};
  char folder[] = "/tmp/accel-plugins-XXXXXX", command[1100], path[4096], expected[512];
  struct problem problem;
  assert_non_null(mkdtemp(folder));
  unsetenv("PYTHON");
  setenv("VIRTUAL_ENV", folder, 1);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    problem = (struct problem){0};
    assert_false(rt_xla_find(kinds[i][0], path, sizeof path, &problem));
    snprintf(expected, sizeof expected, "there is no plugin of XLA for devices.kind %s: ", kinds[i][0]);
    check_problem(&problem, expected);
    assert_non_null(strstr(problem.help, "install") != NULL ? problem.help : strstr(problem.help, "package"));
    snprintf(expected, sizeof expected, "%s/lib/python3.11/site-packages/%s", folder, kinds[i][1]);
    snprintf(command, sizeof command, "mkdir -p $(dirname %s) && touch %s", expected, expected);
    assert_int_equal(system(command), 0);
    assert_true(rt_xla_find(kinds[i][0], path, sizeof path, &problem));
    assert_string_equal(path, expected);
  }
  unsetenv("VIRTUAL_ENV");
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

/* Plugins of other devices whose packages are installed: without the device each ends with a message of one line, and
 * soon. In a process of its own, as a plugin is loaded to the end of it. */
static void opens_kinds(void **state) {
  (void)state;
  static const char *const kinds[] = {"tpu", "neuron", "rocm", "xpu"};
  char path[4096];
  struct problem problem;
  if (packages != NULL) setenv("VIRTUAL_ENV", packages, 1);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (!rt_xla_find(kinds[i], path, sizeof path, &problem)) continue;
    const pid_t child = fork();
    int status;
    if (child == 0) {
      struct xla *other;
      alarm(60);
      const bool good = rt_xla_open(path, 1, &other, &problem);
      if (!good) printf("# %s: %s\n", kinds[i], problem.what);
      fflush(stdout);
      _exit(good || (problem.what[0] != '\0' && strchr(problem.what, '\n') == NULL) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0) fail_msg("%s: the plugin ends the process: %d", path, status);
  }
  unsetenv("VIRTUAL_ENV");
}

/* The plugin is loaded for the first time with a standard error that shows what it logs: nothing may come through. */
static bool opens_silently(struct problem *problem) {
  FILE *shown = tmpfile();
  const int kept = dup(STDERR_FILENO);
  dup2(fileno(shown), STDERR_FILENO);
  const bool good = rt_xla_open(plugin, 1, &xla, problem);
  dup2(kept, STDERR_FILENO);
  close(kept);
  const bool silent = ftell(shown) == 0 && lseek(fileno(shown), 0, SEEK_END) == 0;
  fclose(shown);
  if (good && !silent) rt_problem(problem, "the plugin's log came through");
  return good && silent;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(says_what_it_is),
                                     cmocka_unit_test(donates_and_runs),
                                     cmocka_unit_test(multiplies_by_new_weights),
                                     cmocka_unit_test(refuses_arguments),
                                     cmocka_unit_test(refuses_modules),
                                     cmocka_unit_test(keeps_programs),
                                     cmocka_unit_test(refuses_files),
                                     cmocka_unit_test(refuses_versions),
                                     cmocka_unit_test(finds_plugins),
                                     cmocka_unit_test(finds_kinds),
                                     cmocka_unit_test(opens_kinds)};
  struct problem problem;
  packages = getenv("VIRTUAL_ENV");
  if (!rt_xla_find(NULL, plugin, sizeof plugin, &problem)) {
    printf("%s\n", problem.what);
    return 77;
  }
  if (!opens_silently(&problem)) {
    printf("not ok %s\n", problem.what);
    return 1;
  }
  const int failed = cmocka_run_group_tests_name("xla", tests, NULL, NULL);
  rt_xla_close(xla);
  return failed;
}
