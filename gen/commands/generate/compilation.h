/* Compilation: takes a job's file to a program, stage by stage, for the commands that need it. */
#ifndef ACCEL_COMMANDS_GENERATE_COMPILATION_H
#define ACCEL_COMMANDS_GENERATE_COMPILATION_H

#include "gen/commands/cli/options.h"
#include "gen/emit/emit.h"
#include "gen/emit/origin.h"
#include "gen/plan/trial.h"
#include "gen/program/program.h"

struct inputs;
struct search_result;
struct tree;
struct tuning;

struct compilation {
  const struct options *options;
  struct arena *arena;
  struct diagnostics diags;
  enum program_kind kind;
  const char *job_file; /* which the program names as all of its job; NULL: the command line set other keys, too */
  const char *text; /* the job's text, where it is not to be read from options->argument, which names it all the same */
  struct job *job;
  struct tree *model;          /* set before: a model that was read before serves, and the job's hooks are good */
  struct templates *templates; /* set before: they serve */
  struct json_t *schema;       /* the same, of a job that is given as text */
  const struct tuning *tuning; /* what was measured of kernels; NULL: nothing. Set before: it serves */
  void (*adjust)(void *context, struct job *job); /* changes the job before it is planned; NULL: nothing */
  void *context;
  bool leaves_open;                     /* numbers that the job leaves open stay so, and its mesh */
  const struct search_result *searched; /* what the search of its mesh has found; NULL: there was none */
  struct program *program;
  const char *second;             /* the program's second text, where its target has two */
  struct step_modules modules;    /* that the program holds, where its target has them */
  struct origins *second_origins; /* set before: filled with who wrote its lines; NULL: it is not requested */
  const char *dumped;             /* the IR after options->dump */
};

/* The name of the job's file where it is all of the job; NULL: the command line sets other keys, too. */
const char *compilation_job_file(const struct options *options);

/* Reads the job, and plans as often as it takes to find the numbers that it leaves open. A status; STATUS_OK leaves
 * compilation->job set. The caller has set options, arena, diags and kind. */
int compile_to_job(struct compilation *compilation);

/* What plans its job and variations of it, once compile_to_job has read it. */
struct planner compilation_planner(struct compilation *compilation);

/* The same, and plans the job as far as the graph is differentiated: STATUS_OK leaves compilation->program set, of
 * which nothing but the graph is there. */
int compile_to_graph(struct compilation *compilation);

/* The same, and plans the job: STATUS_OK leaves compilation->program set. */
int compile_to_program(struct compilation *compilation);

/* The same, and writes the program: STATUS_OK leaves its text in *text. `origins` is filled with who wrote its lines;
 * NULL: it is not requested. */
int compile_to_text(struct compilation *compilation, struct origins *origins, const char **text);

/* Makes compilation->modules after compile_to_program, where the target has one. */
int compile_to_module(struct compilation *compilation);

/* The path of a module next to a program whose name ends with ".c", the first or the second one; NULL
 * if it has none, or the name ends otherwise. */
const char *compilation_module_path(const struct compilation *compilation, const char *program, bool second);

/* The path of the second text of a program whose name ends with ".c", in `arena`; NULL if the name ends
 * otherwise. And the reverse, NULL where `path` is not the second text's. */
const char *compilation_second_path(const struct compilation *compilation, const char *program);
const char *compilation_program_path(const struct compilation *compilation, const char *path);

/* Adds what a compilation reads, and what its program will: the job, the model with its headers, hooks, templates, a
 * table of what was measured, data and weights. */
void inputs_add_compilation(struct inputs *inputs, const struct compilation *compilation);

#endif
