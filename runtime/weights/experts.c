#include "runtime/weights/experts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct accel_expert_tensor *rt_expert_tensor_of(const struct accel_program *program, int tensor) {
  for (int i = 0; i < program->n_expert_tensors; i++)
    if (program->expert_tensors[i].tensor == tensor) return &program->expert_tensors[i];
  return NULL;
}

/* A part of a name between dots, counted from the end. */
static const char *part_of(const char *name, int part) {
  const char *at = name + strlen(name);
  for (int dots = 0; at > name && !(at[-1] == '.' && dots++ == part); at--) continue;
  return at;
}

char *rt_expert_name(const struct accel_expert_tensor *expert, const char *name, int rank) {
  const char *at = part_of(name, expert->number);
  size_t size = strlen(name) + 12;
  char *made = malloc(size), *rest;
  long number = strtol(at, &rest, 10) + (long)rank * expert->count;
  if (made != NULL) snprintf(made, size, "%.*s%ld%s", (int)(at - name), name, number, rest);
  return made;
}
