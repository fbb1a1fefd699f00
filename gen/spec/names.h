/* Names: what other trainers call something, and what it is here, as schemas/names.yaml says. */
#ifndef ACCEL_SPEC_NAMES_H
#define ACCEL_SPEC_NAMES_H

#include <jansson.h>

#include "gen/base/diag.h"
#include "gen/spec/node.h"

enum name_state { NAME_WORKS, NAME_NEEDLESS, NAME_REFUSED, NAME_ABSENT };

struct name {
  const char *word;  /* as others write it: "gather", "clip_grad_norm_"; of a member without its class */
  const char *of;    /* the class of a member, or the key of the job that a value was meant for; else NULL */
  const char *path;  /* with its class, as names_find compares it: "accelerator.gather" */
  const char *alias; /* the same of a member under its class's prefix: "fsdp_sharding_strategy"; else NULL */
  bool is_class, is_value;
  enum name_state state;
  const char **at; /* what it leads to: keys, functions, commands, files; see schemas/names.yaml */
  int at_count;
  const char *says;  /* NULL: nothing more than its state and what it leads to */
  const char *as;    /* how a value of it becomes one of the job, a word of gen/import/convert.h; NULL: as it is */
  const char **also; /* more keys of the job that a value of it sets: "optimizer.state_dtype=8bit" */
  int also_count;
};

struct names {
  const struct name **items;
  int count, capacity;
};

/* A kind of file with another trainer's names. */
struct name_file {
  const char *kind, *says; /* "deepspeed", "a configuration of DeepSpeed" */
  const char *class;       /* of its keys; those in groups are its members by their whole paths */
  const char *base;        /* the class of keys that this one does not have; NULL: none */
  const char *ending;      /* of the names of all such files, and of no others: ".py"; NULL: any */
  struct name_section {
    const char *key, *class;
  } *sections; /* groups of such a file whose keys are another class's */
  int section_count;
  const struct spec_node *defaults; /* a map of its keys: what they are in a file that has their groups, but not them;
                                       NULL: none */
};

struct name_files {
  struct name_file *items;
  int count, capacity;
};

/* All names of schemas/names.yaml, in its order. Sets *files to its kinds of files, unless `files` is NULL. */
struct names names_of(struct arena *arena, struct name_files *files);

/* Those that a person may mean by `topic`: with a class or without, dashes or underscores, letters of any case. */
struct names names_find(struct arena *arena, const struct names *all, const char *topic);

/* The members of a class, in their order. */
struct names names_members(struct arena *arena, const struct names *all, const struct name *class);

/* The member of a class at a dotted path, or under the class's prefix; else one that ends with * and begins as the path
 * does, the longest; NULL for none. */
const struct name *names_member(struct arena *arena, const struct names *all, const char *class, const char *path);

/* What is said of a value of the key at `path`, in letters of any case; NULL for nothing. */
const struct name *names_value(struct arena *arena, const struct names *all, const char *path, const char *word);

/* The same for names_find and names_value: "--X-y" and "x_y" are one. */
const char *names_normal(struct arena *arena, const char *word);

/* The end of a sentence that begins with the name: "is optimizer.lr here", "is not needed: ...". `root`: the job's
 * schema. */
const char *name_sentence(struct arena *arena, const json_t *root, const struct name *name);

/* What a name leads to, in a few words: "optimizer.lr", "not needed". */
const char *name_brief(struct arena *arena, const json_t *root, const struct name *name);

/* The name with its class: "Accelerator.gather". */
const char *name_full(struct arena *arena, const struct name *name);

#endif
