/* accel-gen JOB -o FILE and accel-gen plan JOB. */
#include <stdio.h>
#include <string.h>

#include "gen/base/text.h"
#include "gen/commands/commands.h"
#include "gen/commands/files.h"
#include "gen/commands/generate.h"
#include "gen/commands/manifest.h"
#include "gen/commands/travel.h"
#include "gen/commands/variations.h"
#include "gen/plan/choose.h"
#include "gen/plan/kernels/predict.h"
#include "gen/plan/plan.h"
#include "gen/plan/ranks/cost.h"
#include "gen/plan/report/report.h"
#include "gen/plan/report/traffic.h"
#include "gen/plan/target.h"

static bool is_pass(const char *name) {
  for (int i = 0; pass_name(i) != NULL; i++)
    if (strcmp(pass_name(i), name) == 0) return true;
  return false;
}

static int begin(struct travel *travel, const struct options *options) {
  *travel = (struct travel){.options = options, .arena = options->arena, .diags = diagnostics_in(options->arena)};
  program_kind_find(options->program, &travel->kind);
  if (options->dump == NULL || is_pass(options->dump)) return STATUS_OK;
  diag_error(&travel->diags, (struct location){0}, "unknown pass '%s'", options->dump);
  struct text names = text_in(options->arena);
  for (int i = 0; pass_name(i) != NULL; i++) text_printf(&names, "%s%s", i > 0 ? ", " : "", pass_name(i));
  diag_help(&travel->diags, "the passes are %s", text_string(&names));
  return STATUS_BAD_JOB;
}

static int finish(struct travel *travel, int status) {
  if (travel->diags.count > 0) diag_print(&travel->diags, stderr, travel->options->colour);
  return status;
}

/* Writes the plan behind a pass. */
static int dump(struct travel *travel) {
  const struct options *options = travel->options;
  int status = travel_to_program(travel);
  if (status != STATUS_OK) return finish(travel, status);
  const char *output = options->output != NULL ? options->output : "-";
  if (!write_file(options->arena, output, travel->dumped, strlen(travel->dumped))) return STATUS_CANNOT;
  return finish(travel, STATUS_OK);
}

/* The second text lies beside the first. */
static bool write_beside(const struct travel *travel) {
  const struct options *options = travel->options;
  const char *path = travel_beside_path(travel, options->output);
  if (path != NULL) return write_file(options->arena, path, travel->beside, strlen(travel->beside));
  fprintf(stderr, "accel-gen: this program is two files, NAME.c and NAME%s: -o must end with .c\n",
          travel->program->target->suffixes[1]);
  return false;
}

int generate(const struct options *options, const char *program, struct manifest **manifest) {
  struct travel travel;
  struct origins origins = {0}, beside = {0};
  const char *text = NULL;
  int status = begin(&travel, options);
  if (program != NULL) travel.beside_origins = &beside;
  if (status == STATUS_OK && options->dump != NULL) return dump(&travel);
  if (status == STATUS_OK) status = travel_to_text(&travel, program != NULL ? &origins : NULL, &text);
  if (status != STATUS_OK) return finish(&travel, status);
  if (travel.beside != NULL && !write_beside(&travel)) return STATUS_CANNOT;
  if (!write_file(options->arena, options->output, text, strlen(text))) return STATUS_CANNOT;
  if (program != NULL) *manifest = describe(&travel, program, text, &origins);
  if (options->manifest) find_keys(&travel, text, *manifest);
  return finish(&travel, STATUS_OK);
}

int command_generate(const struct options *options) {
  bool told = options->dump == NULL && (options->manifest || options->provenance);
  struct manifest *manifest = NULL;
  int status = generate(options, told ? options->output : NULL, &manifest);
  if (status != STATUS_OK || manifest == NULL) return status;
  struct made made = {.manifest = manifest, .name = manifest->output.name, .sha256 = manifest->output.sha256};
  bool good = !options->manifest || write_manifest(options->arena, options->output, manifest);
  if (good && options->provenance) good = write_statements(options->arena, options->output, &made);
  return good ? STATUS_OK : STATUS_CANNOT;
}

int command_plan(const struct options *options) {
  struct travel travel;
  int status = begin(&travel, options);
  if (status == STATUS_OK) status = travel_to_program(&travel);
  if (status != STATUS_OK) return finish(&travel, status);
  struct network over = options->network;
  struct prediction step;
  if (over.step <= 0 && predict_step(travel.program, &step)) over.step = step.seconds;
  const struct network *network = options->predicts ? &over : NULL;
  const char *people =
      arena_printf(travel.arena, "%s%s%s%s%s%s", report_text(travel.program), traffic_text(travel.program),
                   network != NULL ? cost_text(travel.program, network) : "", target_products(travel.program),
                   choices_text(travel.program), prediction_text(travel.program));
  json_t *predicted = options->json && network != NULL ? cost_json(travel.program, network) : NULL;
  const char *text = options->json ? report_json(travel.program, predicted) : people;
  fputs(travel.dumped != NULL ? travel.dumped : text, stdout);
  return finish(&travel, STATUS_OK);
}
