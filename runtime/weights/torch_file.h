/* Files of torch.save with a flat dict of tensors, such as pytorch_model.bin: a ZIP archive of a pickle and of
 * storages. Nothing of it is run. Knows nothing of models and of files, so that it can be fuzzed. */
#ifndef RUNTIME_WEIGHTS_TORCH_FILE_H
#define RUNTIME_WEIGHTS_TORCH_FILE_H

#include "runtime/weights/safetensors.h"

/* Whether a file begins as one of torch.save does, of any version of PyTorch. */
bool rt_torch_is(const uint8_t *bytes, size_t size);

/* Reads the file in `bytes` and proves that the elements of every tensor are inside. Tensors that are contiguous in
 * their storage point into `bytes`, and `file` has copies of others; several may share bytes. All else than such a dict
 * is an error, which names what is not read and the command that converts it. */
bool rt_torch_read(struct safetensors *file, const char *path, const uint8_t *bytes, size_t size,
                   struct problem *problem);

#endif
