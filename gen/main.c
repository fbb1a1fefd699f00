/* accel-gen: one job in, one program out. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gen/commands/commands.h"

#define JOB_OPTIONS " --set --tuning --color "

static const struct command commands[] = {
    {.name = "",
     .synopsis = "JOB -o FILE.c [--manifest] [--program KIND] [--set K=V]...",
     .summary = "write the program of a job",
     .accepts = JOB_OPTIONS "-o --program --templates --dump --manifest --provenance ",
     .argument = "a job file",
     .needs_output = true,
     .run = command_generate},
    {.name = "build",
     .synopsis = "build JOB -o PROGRAM [-v] | build JOB --bundle DIR",
     .summary = "write and compile it; or all its sources",
     .accepts = JOB_OPTIONS "-o --bundle --program --templates --provenance -v ",
     .argument = "a job file",
     .needs_output = true,
     .run = command_build},
    {.name = "plan",
     .synopsis = "plan JOB [--json] [--dump PASS] [--nodes N] [--latency US] [--bandwidth MB/S] [--step MS]",
     .summary = "what it will need: memory, work",
     .accepts = JOB_OPTIONS "--program --json --dump --nodes --latency --bandwidth --step ",
     .argument = "a job file",
     .run = command_plan},
    {.name = "tune",
     .synopsis = "tune JOB [-o TABLE] [--rounds N] [--measured FILE]",
     .summary = "measure here which kernels are fastest",
     .accepts = " --set --color -o --rounds --measured -v ",
     .argument = "a job file",
     .run = command_tune},
    {.name = "check",
     .synopsis = "check JOB [--resolved]",
     .summary = "check a job with its model; print it with all defaults",
     .accepts = JOB_OPTIONS "--resolved ",
     .argument = "a job file",
     .run = command_check},
    {.name = "model",
     .synopsis = "model check FILE [--config K=V,...] [--set data.features=N] [--json]",
     .summary = "a model's parameters, inputs and work, without a job",
     .accepts = JOB_OPTIONS "--config --json ",
     .argument = "'check'",
     .second = "a model in C",
     .run = command_model},
    {.name = "audit",
     .synopsis = "audit PROGRAM.c [--object FILE.o] [--format F] | audit --regenerate FILE.manifest.json",
     .summary = "prove what a program does, from its text alone",
     .accepts = " --regenerate --format --fail-on --object --march --root -I -o -v --color ",
     .argument = "a program in C",
     .run = command_audit},
    {.name = "explain",
     .synopsis = "explain PROGRAM.c:LINE | explain --key KEY PROGRAM.c",
     .summary = "what is behind a line; which lines a key is behind",
     .accepts = " --key --json -v --color ",
     .argument = "a line of a program, such as trainer.c:812,",
     .run = command_explain},
    {.name = "diff",
     .synopsis = "diff A B [--json]",
     .summary = "what differs between jobs, programs or manifests",
     .accepts = " --json --program --root --march -I -o -v --color ",
     .argument = "a job, a program or a manifest",
     .second = "a second one",
     .run = command_diff},
    {.name = "launch",
     .synopsis = "launch JOB PROGRAM [FLAG]...",
     .summary = "start the processes of a program",
     .run_words = command_launch},
    {.name = "render",
     .synopsis = "render TEMPLATE [VALUES] [--source-map]...",
     .summary = "render a Jinja template with values from YAML or JSON",
     .run_words = command_render},
    {.name = "data",
     .synopsis = "data FILE... -o FILE | data inspect FILE | data encode|decode TOKENIZER",
     .summary = "write a file of tokens; print what is in one",
     .run_words = command_data},
    {.name = "checkpoint",
     .synopsis = "checkpoint list|show|verify|diff|merge DIR",
     .summary = "look at what a run has saved; compare two; merge shards",
     .run_words = command_checkpoint},
    {.name = "help",
     .synopsis = "help [TOPIC]",
     .summary = "explain a command or a key of the job",
     .accepts = " --color ",
     .run = command_help},
    {.name = "version",
     .synopsis = "version",
     .summary = "print the version",
     .accepts = " --color ",
     .run = command_version},
    {0},
};

/* The folder that the command itself lies in; NULL when the system does not tell. */
static const char *own_folder(struct arena *arena) {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return NULL;
  path[length] = '\0';
  char *slash = strrchr(path, '/');
  return slash == NULL ? NULL : arena_copy(arena, path, (size_t)(slash - path));
}

static int run(struct options *options, int argc, char **argv) {
  const struct command *command = options_read(options, argc, argv);
  return command != NULL ? command->run(options) : STATUS_BAD_JOB;
}

int main(int argc, char **argv) {
  struct options options = {.arena = arena_new(), .commands = commands};
  options.binary = own_folder(options.arena);
  const struct command *own = argc > 1 ? command_find(&options, argv[1]) : NULL;
  int status = own != NULL && own->run_words != NULL ? own->run_words(argc - 1, argv + 1) : run(&options, argc, argv);
  if ((fflush(stdout) != 0 || ferror(stdout)) && status == STATUS_OK) {
    perror("accel-gen: standard output");
    status = STATUS_CANNOT;
  }
  arena_free(options.arena);
  return status;
}
