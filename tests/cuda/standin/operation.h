/* What a program's functions that launch kernels say of themselves, where each begins with `standin_operation
 * of("its name");`: which launches belong together, and that there is one. Included before the text of the kernels. */
#ifndef TESTS_CUDA_STANDIN_OPERATION_H
#define TESTS_CUDA_STANDIN_OPERATION_H

extern "C" void standin_operation_begin(const char *name);
extern "C" void standin_operation_end(void);

struct standin_operation {
  explicit standin_operation(const char *name) {
    standin_operation_begin(name);
  }
  ~standin_operation() {
    standin_operation_end();
  }
};

#endif
