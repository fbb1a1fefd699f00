/* Check driver: reads a job as the command does, prints the resolved job or the diagnostics, and exits 0 or 2.
 *
 * usage: check_driver JOB [KEY=VALUE]…     overrides, as --set gives them
 *        check_driver --docs               docs/job.md, from the schema */
#include <stdio.h>
#include <string.h>

#include "gen/spec/job.h"

static struct job_override split(struct arena *arena, const char *argument) {
  const char *equals = strchr(argument, '=');
  if (equals == NULL) return (struct job_override){argument, NULL};
  return (struct job_override){arena_copy(arena, argument, (size_t)(equals - argument)), equals + 1};
}

static int print_docs(struct arena *arena) {
  static const char *const groups[] = {"model",     "data",     "precision", "accumulation", "devices",
                                       "optimizer", "schedule", "training",  "checkpoint",   "tracking"};
  printf("# The job file\n\n"
         "<!-- Written from schemas/job.schema.json by tests/spec/run.sh --accept; edit the schema. -->\n\n"
         "A job is a YAML 1.2 file: groups of keys. `accel-gen check --resolved JOB` prints it with every default\n"
         "filled in; `accel-gen help KEY` prints what stands here. An editor completes and checks a job whose first\n"
         "line names the schema: `# yaml-language-server: $schema=…/schemas/job.schema.json`.\n\n```\n%s```\n",
         job_help(arena, ""));
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
    printf("\n## %s\n\n```\n%s```\n", groups[i], job_help(arena, groups[i]));
  return 0;
}

int main(int argc, char **argv) {
  struct arena *arena = arena_new();
  if (argc == 2 && strcmp(argv[1], "--docs") == 0) return print_docs(arena);
  if (argc < 2) return fprintf(stderr, "usage: check_driver JOB [KEY=VALUE]…\n"), 2;
  struct diagnostics diags = diagnostics_in(arena);
  struct job_override *overrides = arena_alloc(arena, (size_t)argc * sizeof *overrides);
  for (int i = 2; i < argc; i++) overrides[i - 2] = split(arena, argv[i]);
  struct job *job = job_read(arena, argv[1], overrides, argc - 2, &diags);
  diag_print(&diags, stdout, false);
  if (job != NULL) fputs(job_resolved(arena, job), stdout);
  arena_free(arena);
  return job == NULL ? 2 : 0;
}
