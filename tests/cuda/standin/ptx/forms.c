/* The table of operations on single lanes. */
#include <string.h>

#include "tests/cuda/standin/ptx/program.h"

/* "add_rn_f32" is add.rn.f32. */
static bool is_name(const char *row, const char *name) {
  while (*row != '\0' && (*row == *name || (*row == '_' && *name == '.'))) row++, name++;
  return *row == '\0' && *name == '\0';
}

const struct form *form_of(const char *name) {
  const struct forms *const all[] = {&arithmetic_forms, &integer_forms, &comparison_forms, &conversion_forms};
  for (size_t t = 0; t < sizeof all / sizeof *all; t++)
    for (int i = 0; i < all[t]->count; i++)
      if (is_name(all[t]->items[i].name, name)) return &all[t]->items[i];
  return NULL;
}
