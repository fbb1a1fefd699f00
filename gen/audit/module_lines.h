/* A module of StableHLO in a program, line by line: what the files of its claims share. */
#ifndef ACCEL_AUDIT_MODULE_LINES_H
#define ACCEL_AUDIT_MODULE_LINES_H

#include "gen/audit/module.h"

struct module_line {
  const char *text;
  struct location where; /* of the first piece of it in the program */
  int number;
};

struct module {
  struct audit *audit;
  const struct variable *variable; /* the module's description */
  bool steps;                      /* it is a step: what it gives stays on the device; else the host reads all of it */
  bool known;                      /* all pieces are strings */
  int64_t devices;                 /* that run it together; 0: unknown */
  const char *text;
  struct {
    struct module_line *items;
    int count, capacity;
  } lines;
};

/* The line without its comment, which begins after two blanks or at its beginning. */
size_t module_code_length(const char *text);

/* Whether a word is one of a list, " abs add ". */
bool module_lists(const char *list, const char *name, size_t length);

/* Letters, digits and '_' at the beginning. */
size_t module_word_length(const char *text);

/* A finding at a line: `what`, and a word of it. */
void module_refuse(const struct module *module, struct claim *claim, const struct module_line *line, const char *what,
                   const char *name, size_t length);

/* Whether an operation of StableHLO of this name is one by which devices exchange tensors, or that tells a device which
 * one it is. */
bool module_exchanges(const char *name, size_t length);

/* The claim that the devices of each module run the same collectives in the same order. */
void module_claim_collectives(const struct module *modules, int count);

#endif
