/* The folder of a run as one of Hugging Face: next to the weights all that from_pretrained needs, of the folder that
 * checkpoint.folder_of names, or of the model's own config. Only processes that write files have it. */
#ifndef RUNTIME_RUN_FOLDER_H
#define RUNTIME_RUN_FOLDER_H

#include "runtime/base/problem.h"
#include "runtime/weights/adapters.h"
#include "runtime/weights/tensors.h"

#include <jansson.h>

struct accel_run;

struct folder {
  char of[4096];            /* the whole path of the folder that is named; empty: the job names none */
  json_t *config;           /* its config.json with what training changed, or the program's own; NULL: there is none */
  const char *class;        /* of transformers or diffusers, in `config`; "": it does not say */
  char **names;             /* that the parameters have in the weights to start from; NULL: in another file */
  struct adapter_base base; /* for the adapters */
};

/* Reads what the end of the run needs of the folder and of the weights, so that the run ends before its first step
 * where they are not right. Nothing where the job names no folder and the program has no config. */
bool rt_folder_open(struct accel_run *run, struct problem *problem);

/* What the file of the run's weights is called without .safetensors: by diffusers' name where config.json is of its
 * classes, which have `_class_name` there. */
const char *rt_folder_stem(const struct accel_run *run);

/* The path of that file, in `path` of `size` bytes. */
bool rt_folder_model(const struct accel_run *run, char *path, size_t size, struct problem *problem);

/* Gives tensors that have the parameters' names those of the weights to start from. */
bool rt_folder_rename(const struct accel_run *run, struct tensor_list *tensors, struct problem *problem);

/* What the adapters belong to; NULL: the job does not say. */
const struct adapter_base *rt_folder_base(const struct accel_run *run);

/* Writes config.json into the project folder, and copies or makes the files of the tokenizer and of generation. */
bool rt_folder_leave(const struct accel_run *run, struct problem *problem);

/* Writes the model cards, README.md, after the last line of metrics.jsonl. One that no run has written stays. */
bool rt_folder_describe(const struct accel_run *run, struct problem *problem);

void rt_folder_close(struct accel_run *run);

#endif
