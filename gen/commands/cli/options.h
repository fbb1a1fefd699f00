/* Options: the command line of accel-gen, read once by the table (gen/commands/cli/table.h) and handed to the command.
 */
#ifndef ACCEL_COMMANDS_CLI_OPTIONS_H
#define ACCEL_COMMANDS_CLI_OPTIONS_H

#include <stdbool.h>

#include "gen/base/arena.h"
#include "gen/plan/ranks/network.h"
#include "gen/spec/job.h"

/* Exit statuses of every command. */
enum status { STATUS_OK = 0, STATUS_CANNOT = 1, STATUS_BAD_JOB = 2 };

/* What the command line says. A text is NULL, a flag false, where its option is absent, but for the defaults named. */
struct options {
  struct arena *arena;          /* of the whole run */
  const struct command *chosen; /* the command that was read */
  const char *commit;           /* that the command was built from; "" when nobody knows */
  const char *binary;           /* the folder of the command itself; NULL when the system does not say */
  const char *argument;         /* the first of the arguments: the job file, the program of `audit`, ... */
  const char *second;           /* the one after it */
  const char **arguments;       /* all of them, these two included */
  int n_arguments;
  char **rest; /* what follows the arguments of `launch`, ending with NULL */

  bool asks_help; /* --help: of this command alone */
  const char *as; /* --as: a form of the manual that the build makes */

  const char *config;    /* --config K=V,...: of the model of `model check` */
  const char *output;    /* -o FILE */
  const char *program;   /* --program: a kind of program, "train" by default */
  const char *templates; /* --templates DIR instead of the embedded ones */
  const char *tuning;    /* --tuning FILE, which is an override, too */
  const char *measured;  /* --measured FILE: what a trainer for GPUs has measured elsewhere */
  const char *key;       /* --key KEY of `explain` */
  int rounds;            /* --rounds N of a measurement; 3 */
  const char *dump;      /* --dump PASS: print the plan as it is after it */
  bool resolved;         /* --resolved */
  bool json;             /* --json */
  const char *html;      /* --html FILE: a page instead of text */
  bool verbose;          /* -v */
  bool compile;          /* --compile: the written module is compiled, too */
  bool quiet;            /* -q: no progress, and nothing of what was written */
  bool colour;           /* --color, or that standard error is a terminal */
  bool manifest;         /* --manifest: next to the program */
  bool provenance;       /* --provenance: statements next to the program */
  bool functions;        /* --functions of `verify`: each function by itself, too */
  bool grammar;          /* --grammar: `audit` prints what the text of a program may hold */
  bool regenerate;       /* --regenerate: the argument of `audit` is a manifest, whose program is made again */
  const char *bundle;    /* --bundle DIR: a folder of sources instead of a program */

  const char *format;    /* --format of an audit ("text" by default), of the files of `data` */
  const char *fail_on;   /* --fail-on: "unproved" (default: broken too), "broken" or "never" */
  const char *command;   /* --command TEXT: what compiles the audited program */
  const char *object;    /* --object FILE: the audited program's object code */
  const char *root;      /* --root NAME: the step path's function; NULL: found */
  const char *march;     /* --march NAME: the processor that an audited program is compiled for; "native" (default) */
  const char **includes; /* -I DIR, in order */
  int n_includes, includes_capacity;

  bool predicts;          /* --nodes, --latency, --bandwidth or --step: what exchange takes is predicted */
  struct network network; /* over which */
  bool fits;              /* --fit of `plan`: what could be trained in the memory at hand */
  bool device_map;        /* --device-map: `plan` prints which memory modules are in */
  double read_bandwidth;  /* --read-bandwidth MB/S: bytes a second that come from another memory; 0: not known */

  struct job_override *overrides; /* --set KEY=VALUE, in order */
  int n_overrides, overrides_capacity;

  const char *tokenizer, *end;          /* --tokenizer FILE and --end TOKEN of `data` */
  const char *on_bad_record;            /* --on-bad-record of `data`: stop (the default) or skip */
  const char *text_field, *text_column; /* --text-field NAME and --text-column NAME of `data` */
  const char *text_pair, *label;        /* --text-pair NAME and --label NAME of `data` */
  const char *task, *labels, *pad;      /* --task WHAT, --labels LIST and --pad TOKEN of `data` */
  int max_length, doc_stride;           /* --max-length N and --doc-stride N of `data`; 0: absent */
  const char *chat, *chat_template;     /* --chat FOLDER and --chat-template NAME of `data` */
  const char *train_on;                 /* --train-on WHAT of `data`: assistant (the default), last or all */
  const char *size, *fit;               /* --size HxW and --fit WHAT of `data` */
  bool gray;                            /* --gray of `data` */
  const char *by, *hosts;               /* --by NAME and --hosts LIST of `launch` */
  int ranks;                            /* --ranks N of `test`; 0: what the machines suggest */
  const char *device;                   /* --device KIND of `test`; "cpu" by default */
  bool print;                           /* --print of `launch` */
  const char *write;                    /* --write ENGINE of `launch` */
  struct job_override *with;            /* --with NAME=VALUE of `launch --write`, in order */
  int n_with, with_capacity;
  const char *dtype;            /* --dtype of `export`: f32 (the default), f16 or q8_0 */
  int batch, sequence;          /* --batch N and --sequence N of `export`; 0: any */
  const char *job;              /* --job FILE of `report` */
  bool serves;                  /* --serve of `report`: on 127.0.0.1, instead of -o */
  int port;                     /* --port N of `report --serve`; 0: any that is free; -1: not given */
  const char *model, *data;     /* --model NAME and --data PATH of `init` */
  bool logits;                  /* --logits of `model`: of a random prompt, by a program that is built and run */
  bool lora;                    /* --lora of `init`: low-rank adapters are trained */
  bool takes_defaults;          /* --default of `config` and `init`: nobody is asked */
  bool strict;                  /* --strict of `import` */
  const char *undefined;        /* --undefined KIND of `render`; "strict" by default */
  bool source_map, trim_blocks; /* the flags of `render` */
  bool lstrip_blocks, keep_newline, autoescape;

  const char *color; /* --color: "auto" by default */
};

/* Reads argv for its command and what belongs to it into *options. The command, or NULL after a usage message on
 * standard error; --help and --version are answered by the `help` and `version` commands that they name. */
const struct command *options_read(struct options *options, int argc, char **argv);

/* Prints "accel-gen: MESSAGE DETAIL" and how the chosen command is called, and gives false. */
bool options_refuse(const struct options *options, const char *message, const char *detail);

/* Whether --set gives a key, or one within it. */
bool options_set(const struct options *options, const char *key);

#endif
