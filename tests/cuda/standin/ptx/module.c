/* Reading a module: its functions as statements, its variables as memory. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/standin/core.h"
#include "tests/cuda/standin/ptx/checks.h"
#include "tests/cuda/standin/ptx/decode.h"

size_t bytes_of_type(const char *type) {
  size_t length = strcspn(type, " ,;[");
  if (length >= 5 && strncmp(type, ".pred", 5) == 0) return PREDICATE;
  while (length > 0 && isdigit((unsigned char)type[length - 1])) length--;
  return (size_t)strtoul(type + length, NULL, 10) / 8;
}

static enum space space_of(const char *text) {
  if (strstr(text, ".shared") != NULL) return SHARED;
  if (strstr(text, ".local") != NULL) return LOCAL;
  if (strstr(text, ".const ") != NULL) return CONSTANT;
  return strstr(text, ".param") != NULL ? PARAMETER : GLOBAL;
}

/* The last word of ".shared .align 4 .b8 name[128]", with its type and length. */
struct variable variable_of(struct arena *arena, const char *text) {
  struct variable made = {.space = space_of(text), .align = 1};
  const char *align = strstr(text, ".align "), *type = NULL;
  const size_t whole = strcspn(text, "=");
  for (const char *at = text; at < text + whole; at++)
    if (*at == '.' && strchr("bsuf", at[1]) != NULL && isdigit((unsigned char)at[2])) type = at;
  if (type == NULL) fault("ptx: no type in '%.80s'", text);
  if (align != NULL && align > type) align = NULL; /* of what it points to */
  if (align != NULL) made.align = (size_t)strtoul(align + 7, NULL, 10);
  const char *name = type + strcspn(type, " ");
  name += strspn(name, " ");
  while (*name == '.' || isdigit((unsigned char)*name)) { /* .ptr .global .align 4, what a parameter points to */
    name += strcspn(name, " ");
    name += strspn(name, " ");
  }
  made.name = arena_copy(arena, name, strcspn(name, " [,;=)"));
  made.bytes = bytes_of_type(type);
  if (align == NULL) made.align = made.bytes;
  for (const char *at = strchr(name, '['); at != NULL && at < text + whole; at = strchr(at + 1, '['))
    made.bytes *= (size_t)strtoul(at + 1, NULL, 10); /* of []: as many bytes as a launch says */
  return made;
}

/* The bytes that stand after "=": numbers of the type's size, in braces or alone. */
static void fill(char *memory, const struct variable *of, const char *text) {
  const char *type = NULL, *at = strchr(text, '=');
  for (const char *dot = text; dot < at; dot++)
    if (*dot == '.' && strchr("bsuf", dot[1]) != NULL && isdigit((unsigned char)dot[2])) type = dot;
  const size_t size = bytes_of_type(type);
  size_t filled = 0;
  for (at++; *at != '\0' && filled < of->bytes;) {
    at += strspn(at, " {,}");
    if (*at == '\0') break;
    if (isalpha((unsigned char)*at))
      fault("ptx: the variable %s begins as an address, which is not known here", of->name);
    char *next;
    const uint64_t value = at[0] == '0' && (at[1] == 'f' || at[1] == 'F' || at[1] == 'd' || at[1] == 'D')
                               ? strtoull(at + 2, &next, 16)
                               : (uint64_t)(*at == '-' ? strtoll(at, &next, 0) : (long long)strtoull(at, &next, 0));
    memcpy(memory + filled, &value, size);
    filled += size;
    at = next;
  }
}

static void add_variable(struct module *module, const char *text) {
  struct variable made = variable_of(module->arena, text);
  if (made.space == SHARED) {
    module->shared_bytes = (module->shared_bytes + made.align - 1) / made.align * made.align;
    made.address = module->shared_bytes;
    module->shared_bytes += made.bytes;
  } else {
    char *memory = aligned_alloc(256, (made.bytes + 511) / 256 * 256);
    if (memory == NULL) fault("no memory");
    memset(memory, 0, made.bytes);
    if (strchr(text, '=') != NULL) fill(memory, &made, text);
    made.address = (uint64_t)(uintptr_t)memory;
    checks_know(memory, made.bytes);
  }
  ARENA_PUSH(module->arena, module->variables, made);
}

static bool is_variable(const char *text) {
  return strstr(text, ".func") == NULL && strstr(text, ".entry") == NULL &&
         (strstr(text, ".global") != NULL || strstr(text, ".shared") != NULL || strstr(text, ".const") != NULL);
}

struct module *module_read(const char *file, const char *text, size_t length) {
  struct arena *arena = arena_new();
  struct module *module = arena_alloc(arena, sizeof *module);
  struct ptx_reader before = ptx_open(arena, file, text, length), reader = before;
  while (ptx_next(&before).kind != PTX_END) continue; /* for the names of sources, which come last */
  reader.files = before.files;
  struct function *now = NULL;
  module->arena = arena;
  module->file = file;
  for (;;) {
    const struct ptx_statement statement = ptx_next(&reader);
    if (statement.kind == PTX_END) return module;
    if (statement.kind == PTX_BROKEN) fault("ptx: %s:%d: no statement", file, statement.line);
    if (statement.kind == PTX_FUNCTION) {
      struct function made = {statement.name, statement.text, statement.is_kernel, {NULL, 0, 0}};
      ARENA_PUSH(arena, module->functions, made);
      now = &module->functions.items[module->functions.count - 1];
    } else if (now == NULL) {
      if (is_variable(statement.text)) add_variable(module, statement.text);
    } else if (statement.kind == PTX_CLOSE) {
      now = NULL;
    } else {
      ARENA_PUSH(arena, now->body, statement);
    }
  }
}

struct kernel *module_kernel(struct module *module, const char *name) {
  struct kernel *at = module->kernels;
  while (at != NULL && strcmp(at->name, name) != 0) at = at->next;
  for (int i = 0; i < module->functions.count && at == NULL; i++) {
    const struct function *function = &module->functions.items[i];
    if (!function->is_kernel || strcmp(function->name, name) != 0) continue;
    at = arena_alloc(module->arena, sizeof *at);
    at->name = name;
    at->function = function;
    at->module = module;
    at->next = module->kernels;
    module->kernels = at;
  }
  if (at != NULL && !at->is_decoded) kernel_decode(at);
  return at;
}
