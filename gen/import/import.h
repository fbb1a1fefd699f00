/* Import: what configurations of other trainers say, as keys of a job. Which names they have, and what these are here,
 * is in schemas/names.yaml; a name is not known to the C of this folder but by the conversions that it names
 * (gen/import/convert.h). */
#ifndef ACCEL_IMPORT_IMPORT_H
#define ACCEL_IMPORT_IMPORT_H

#include <jansson.h>

#include "gen/base/diag.h"
#include "gen/spec/names.h"
#include "gen/spec/node.h"

/* What became of a key. */
enum import_state {
  IMPORT_TAKEN,    /* it is one or several keys of the job */
  IMPORT_NEEDLESS, /* the job needs no key for it */
  IMPORT_OPEN,     /* "auto": the file leaves it to the script that reads it */
  IMPORT_REFUSED,  /* there is none for it, or not with the others */
  IMPORT_UNKNOWN,  /* no such key is known */
  IMPORT_STATES
};

/* A key of a file, in the order of the file. */
struct import_row {
  const char *key; /* dotted: "zero_optimization.stage" */
  const struct spec_node *value;
  struct location where; /* of the value */
  enum import_state state;
  const char **keys; /* of the job that it sets */
  int n_keys;
  const char *says; /* why, or what differs; NULL: nothing */
};

struct import_file {
  const char *path;             /* as the user named it */
  const struct name_file *kind; /* what it is */
  struct import_row *items;
  int count, capacity;
};

struct import {
  struct arena *arena;
  const json_t *schema; /* of a job */
  struct names names;
  struct name_files kinds;
  struct import_file *items; /* in the order in which they were read */
  int count, capacity;
  struct spec_node *job;  /* a document with the keys that were found */
  const char *missing[8]; /* keys that a job must have and that no file says */
  int n_missing;
};

/* Nothing imported yet. `schema` is that of a job, and outlives the import. */
struct import import_in(struct arena *arena, const json_t *schema);

/* Adds the keys of a file, and of the files that it names. `kind`: as what the file is read, a word of names.yaml's
 * files; NULL: found by its keys. False with an error in `diags` where it cannot be read, or is of no known kind. */
bool import_add(struct import *import, const char *path, const char *kind, struct diagnostics *diags);

/* Checks the keys together, as a job's. A row whose key a job cannot have with the others becomes IMPORT_REFUSED, and
 * its keys are removed. Then job is a valid document but for what `missing` lists. False with errors in `diags` where
 * keys that are of no file contradict. Call once, after all files. */
bool import_check(struct import *import, struct diagnostics *diags);

/* How many rows of all files are in this state. */
int import_count(const struct import *import, enum import_state state);

#endif
