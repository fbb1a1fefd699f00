/* Prints the kinds of the operation table that have C text, one a line: views, parts and calls have none. */
#include <stdio.h>

#include "gen/ir/op.h"

int main(void) {
  for (int i = 0; i < op_file_count; i++)
    for (int k = 0; op_files[i]->kinds != NULL && op_files[i]->kinds[k] != NULL; k++)
      if (op_files[i]->kinds[k]->class == OP_ELEMENTWISE || op_files[i]->kinds[k]->class == OP_KERNEL)
        puts(op_files[i]->kinds[k]->name);
  return 0;
}
