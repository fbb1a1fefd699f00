/* Table: every command and option with its words. Reading the command line, --help, the man page, the completions and
 * the tables of docs/commands.md are made of it. */
#ifndef ACCEL_COMMANDS_CLI_TABLE_H
#define ACCEL_COMMANDS_CLI_TABLE_H

#include "gen/commands/cli/options.h"

/* A way to call a command. */
struct form {
  const char *synopsis; /* after "accel-gen " */
  const char *summary;  /* what it does, without a full stop */
};

struct command {
  const char *name;      /* "JOB" for the main form: a job file without a command word */
  const char *summary;   /* in a line of the overview */
  const char *about;     /* sentences of the help and the man page; NULL: the summary is all */
  const char *page;      /* of docs/; NULL: commands.md is all */
  struct form forms[16]; /* ending with a NULL synopsis */
  const char *words;     /* that the first argument can be, each between spaces; NULL: it is a name of the user's */
  bool only_words;       /* it can be nothing else */
  const char *needed[2]; /* what the arguments are that must be given: "a job file"; NULL: no more of them */
  int most;              /* arguments; 0: none */
  bool needs_output;     /* -o must be given, unless a pass is dumped or a bundle is written */
  bool has_rest;         /* words after `most` arguments are not read */
  bool (*is_last)(const char *argument); /* no argument is read after such a one; NULL: of none */
  bool takes_dashes; /* an option that no command has is an argument: --tp_size of another trainer */
  int (*run)(const struct options *options);
};

/* What completion offers for a value without choices: of the last two keys of a job, "KEY=" and "KEY". */
enum completes { COMPLETES_NOTHING, COMPLETES_FILE, COMPLETES_FOLDER, COMPLETES_SETTING, COMPLETES_KEY };

struct option {
  const char *name, *alias; /* "-o", "--output" or NULL */
  const char *value;        /* the word for its value: "FILE"; NULL: a flag */
  const char *choices;      /* all values that it takes, each between spaces; NULL: any */
  enum completes completes;
  const char *commands; /* that take it, each between spaces: " JOB build "; " * ": all */
  const char *summary;  /* a sentence without a full stop */
  const char *page;     /* of docs/ with more about it; NULL: none */
  size_t member;        /* of struct options: a text, or a flag's bool */
  bool hidden;          /* not for people: the build's */
  bool (*read)(struct options *options, const char *value); /* instead of the member; false after a message */
};

/* Both end with a NULL name. Options are in the order of the documents; some names occur more than once, each time for
 * other commands. */
extern const struct command command_table[];
extern const struct option option_table[];

/* The command that a word names; NULL when there is none. The main form has no word: command_table[0]. */
const struct command *command_find(const char *name);

/* Whether a command takes an option. */
bool command_takes(const struct command *command, const struct option *option);

/* "train, evaluate or generate" of " train evaluate generate ". */
const char *words_listed(struct arena *arena, const char *words, const char *last);

/* The completion that a shell reads: "bash", "zsh" or "fish"; NULL of another word. */
const char *completion_for(struct arena *arena, const char *shell);

/* The table for other readers: the sections of the man page that list it ("man"), the tables of docs/commands.md
 * ("markdown"), the completion of a shell. */
const char *manual_as(struct arena *arena, const char *form);

#endif
