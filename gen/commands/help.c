/* accel-gen help: the commands, one command, or a key of the job. */
#include <stdio.h>
#include <string.h>

#include "gen/base/version.h"
#include "gen/commands/commands.h"

/* Columns for what stands behind "accel-gen "; what is longer has its summary on the next line. */
enum { SYNOPSIS = 58 };

static bool is_long(const struct command *command) {
  return strlen(command->synopsis) > SYNOPSIS;
}

static void print_overview(const struct options *options) {
  printf("accel-gen writes a training program in C for one job.\n\nusage:\n");
  for (const struct command *command = options->commands; command->name != NULL; command++)
    printf("  accel-gen %-*s%s%*s %s\n", SYNOPSIS, command->synopsis, is_long(command) ? "\n" : "",
           is_long(command) ? SYNOPSIS + (int)strlen("  accel-gen ") : 0, "", command->summary);
  printf(
      "\noptions of a job:\n"
      "  -o FILE                     where to write; - is standard output\n"
      "  --set KEY=VALUE             override a key of the job: --set training.steps=10\n"
      "  --program train|evaluate|generate\n"
      "                              the training program, or one that measures the trained weights, or writes text\n"
      "  --bundle DIR                build: a folder of all sources, which `sh build.sh` compiles on a bare machine\n"
      "  --manifest                  beside FILE.c also FILE.manifest.json: where each line comes from\n"
      "  --provenance                beside FILE also FILE.intoto.json and FILE.cdx.json, for supply-chain tools\n"
      "  --templates DIR             templates in the place of the built-in ones\n"
      "  --nodes N                   plan for so many machines, and predict what their exchange takes\n"
      "  --latency US, --bandwidth MB/S, --step MS\n"
      "                              on such a network (20, 1250), beside steps of one rank of so long\n"
      "  --tuning FILE               choose among kernels, and predict a step, by what `accel-gen tune` has measured\n"
      "  --dump PASS                 print the plan behind a pass; `--dump help` lists the passes\n"
      "  --color auto|always|never   colours in messages; auto also respects NO_COLOR\n"
      "\ntopics of `accel-gen help TOPIC`: a command, a group, or a key such as optimizer.lr\n");
  const char *groups = job_help(options->arena, "");
  if (groups != NULL) printf("\n%s", groups);
}

static bool print_command(const struct options *options, const char *name) {
  for (const struct command *command = options->commands; command->name != NULL; command++) {
    if (strcmp(command->name, name) != 0 || name[0] == '\0') continue;
    printf("usage: accel-gen %s\n%s\n", command->synopsis, command->summary);
    return true;
  }
  return false;
}

int command_help(const struct options *options) {
  const char *topic = options->argument;
  if (topic == NULL || topic[0] == '\0') {
    print_overview(options);
    return STATUS_OK;
  }
  bool command = print_command(options, topic); /* some are groups of the job, too */
  const char *text = job_help(options->arena, strcmp(topic, "job") == 0 ? "" : topic);
  if (text == NULL && !command) {
    fprintf(stderr, "accel-gen: no help on '%s'; `accel-gen help` lists the topics\n", topic);
    return STATUS_BAD_JOB;
  }
  if (text != NULL) printf("%s%s", command ? "\n" : "", text);
  return STATUS_OK;
}

int command_version(const struct options *options) {
  (void)options;
  printf("accel-gen %s\n", ACCEL_VERSION);
  return STATUS_OK;
}
