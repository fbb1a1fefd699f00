/* What the readers of a module share. */
#ifndef TESTS_CUDA_PTX_DECODE_H
#define TESTS_CUDA_PTX_DECODE_H

#include "tests/cuda/standin/ptx/program.h"

/* The bytes of a register or a number of the type that the text begins with: ".b32", ".f64"; PREDICATE of ".pred". */
size_t bytes_of_type(const char *type);

/* The variable, or the parameter, that a declaration is of, without an address. */
struct variable variable_of(struct arena *arena, const char *text);

/* Decodes a kernel's body, with the functions that it calls put where it calls them. */
void kernel_decode(struct kernel *kernel);

/* Finds what the addresses of a kernel's instructions derive from, which `arena` has memory for while it does. */
void kernel_derive(struct kernel *kernel, struct arena *arena);

#endif
