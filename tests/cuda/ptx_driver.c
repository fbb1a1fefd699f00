/* Runs a kernel of a PTX file by the stand-ins' interpreter.
 *
 * usage: ptx_driver FILE KERNEL GRID BLOCK ARGUMENT...   GRID, BLOCK: X or X,Y,Z
 *        ptx_driver --kernels FILE                       decodes all kernels, and prints how many
 *        ptx_driver --forms                              which of the names on standard input are no instructions that
 * are known
 *
 * An argument is the device's memory, inout:FILE with the bytes of the file, out:FILE:BYTES with none, which is written
 * to the file in the end; or a number of the parameter's width: 12, -1, 0x3f800000. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/standin/core.h"
#include "tests/cuda/standin/ptx/image.h"
#include "tests/cuda/standin/ptx/program.h"

enum { ARGUMENTS = 64 };

struct argument {
  uint64_t value; /* or the address */
  char path[1024];
  size_t bytes;
};

static char *file_of(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) fault("%s cannot be read", path);
  fseek(file, 0, SEEK_END);
  *length = (size_t)ftell(file);
  rewind(file);
  char *text = malloc(*length + 1);
  if (text == NULL || fread(text, 1, *length, file) != *length) fault("%s cannot be read", path);
  fclose(file);
  return text;
}

static struct argument argument_of(const char *word) {
  struct argument made = {0, "", 0};
  const bool is_given = strncmp(word, "inout:", 6) == 0;
  if (!is_given && strncmp(word, "out:", 4) != 0) {
    made.value = *word == '-' ? (uint64_t)strtoll(word, NULL, 0) : strtoull(word, NULL, 0);
    return made;
  }
  const char *path = strchr(word, ':') + 1;
  size_t length = is_given ? strlen(path) : strcspn(path, ":");
  snprintf(made.path, sizeof made.path, "%.*s", (int)length, path);
  void *memory;
  char *content = is_given ? file_of(made.path, &made.bytes) : NULL;
  if (!is_given) made.bytes = (size_t)strtoull(path + length + 1, NULL, 0);
  cudaMalloc(&memory, made.bytes);
  if (is_given) cudaMemcpy(memory, content, made.bytes, cudaMemcpyHostToDevice);
  free(content);
  made.value = (uint64_t)(uintptr_t)memory;
  return made;
}

static void give_back(const struct argument *argument) {
  if (argument->path[0] == '\0') return;
  FILE *file = fopen(argument->path, "wb");
  void *memory = (void *)(uintptr_t)argument->value;
  if (file == NULL || fwrite(memory, 1, argument->bytes, file) != argument->bytes)
    fault("%s cannot be written", argument->path);
  fclose(file);
  cudaFree(memory);
}

static void sizes_of(const char *word, uint32_t *sizes) {
  char *at = (char *)(uintptr_t)word;
  for (int i = 0; i < 3; i++) {
    sizes[i] = *at == '\0' ? 1 : (uint32_t)strtoul(at, &at, 10);
    if (*at == ',') at++;
  }
}

static int say_forms(void) {
  char name[256];
  while (scanf("%255s", name) == 1) {
    struct instruction into = {0};
    if (form_of(name) == NULL && !decode_memory(name, &into) && !decode_collective(name, &into) &&
        !decode_matrix(name, &into))
      puts(name);
  }
  return 0;
}

static struct module *module_of(const char *path) {
  size_t length;
  char *text = file_of(path, &length);
  return module_read(path, text, length);
}

static int decode_all(const char *path) {
  struct module *module = module_of(path);
  int count = 0;
  for (int i = 0; i < module->functions.count; i++)
    if (module->functions.items[i].is_kernel) module_kernel(module, module->functions.items[i].name), count++;
  printf("%d\n", count);
  return 0;
}

int main(int count, char **words) {
  if (count == 2 && strcmp(words[1], "--forms") == 0) return say_forms();
  if (count == 3 && strcmp(words[1], "--kernels") == 0) return decode_all(words[2]);
  if (count < 5 || count > 5 + ARGUMENTS) fault("usage: ptx_driver FILE KERNEL GRID BLOCK ARGUMENT...");
  struct argument arguments[ARGUMENTS];
  void *addresses[ARGUMENTS];
  uint32_t grid[3], block[3];
  size_t bytes;
  host_clock();
  struct kernel *kernel = module_kernel(module_of(words[1]), words[2]);
  if (kernel == NULL) fault("%s has no kernel %s", words[1], words[2]);
  if (kernel->parameters.count != count - 5) fault("%s has %d parameters", words[2], kernel->parameters.count);
  sizes_of(words[3], grid);
  sizes_of(words[4], block);
  for (int i = 0; i < count - 5; i++) {
    arguments[i] = argument_of(words[i + 5]);
    addresses[i] = &arguments[i].value;
  }
  void *launch = ptx_launch_of(kernel, grid, block, 0, addresses, &bytes);
  standin_launch(NULL, kernel->name, ptx_launch_run, launch, bytes);
  cudaDeviceSynchronize();
  free(launch);
  for (int i = 0; i < count - 5; i++) give_back(&arguments[i]);
  return 0;
}
