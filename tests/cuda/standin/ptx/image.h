/* Programs that nvcc has compiled with their PTX, as the stand-ins launch them. */
#ifndef TESTS_CUDA_PTX_IMAGE_H
#define TESTS_CUDA_PTX_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The PTX in a fat binary that an object registers, as `nvcc --compress-mode none` puts it there; NULL: it has none. */
const char *image_text(const void *fat_binary, size_t *length);

/* PTX that stands in a file, in place of that: of the same kernels. */
const char *image_file(const char *path, size_t *length);

struct kernel;

/* A launch as it is put into a stream: struct ptx_launch, then the bytes of the kernel's parameters. */
struct ptx_launch {
  struct kernel *kernel;
  uint32_t grid[3], block[3];
  uint32_t shared;    /* bytes, in addition to those of the program */
  uint32_t operation; /* operations.h */
};

/* The bytes of a launch of the kernel, with what is copied of its arguments: the addresses of its parameters. A fault
 * where the kernel does not take such blocks. */
void *ptx_launch_of(struct kernel *kernel, const uint32_t grid[3], const uint32_t block[3], uint32_t shared,
                    void **arguments, size_t *bytes);

/* Runs it: a work_run. */
void ptx_launch_run(const void *launch);

#endif
