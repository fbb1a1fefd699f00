/* Tensors in one safetensors file, or in several with an index, as Hugging Face lays them out:
 * model-00001-of-00002.safetensors … and model.safetensors.index.json. */
#ifndef RUNTIME_WEIGHTS_SHARDS_H
#define RUNTIME_WEIGHTS_SHARDS_H

#include "runtime/files/manifest.h"
#include "runtime/files/mapping.h"
#include "runtime/weights/parts.h"
#include "runtime/weights/safetensors.h"
#include "runtime/weights/tensors.h"

/* Writes the tensors into `folder` as STEM.safetensors, or in shards of at most `most` bytes of tensors (a larger
 * tensor has a shard of its own; 0: no limit), and adds the files to the manifest unless that is NULL. Names that a
 * former write left, which would hide this one's, are removed at the end. */
bool rt_shards_write(const char *folder, const char *stem, const struct tensor_list *tensors, uint64_t most,
                     struct manifest *manifest, struct problem *problem);

/* Removes what a former write left there, so that the folder is not read as that. */
bool rt_shards_remove(const char *folder, const char *stem, struct problem *problem);

struct shard {
  char path[4096];
  int file; /* open, of files that are not mapped; else -1 */
  struct mapping mapping;
  struct safetensors tensors;
};

/* The tensors of one file, of all that an index names, or of the parts of ranks (parts.h). */
struct shards {
  bool unmapped;
  struct shard *items;
  int count;
  struct joined joined; /* of parts that ranks wrote */
  const struct stored_tensor **by_name;
  int n_tensors;
};

/* What diffusers calls the weights of a folder, where transformers says "model". */
extern const char rt_diffusers_stem[];

/* The file or the index of a folder's model, in `path` of `size` bytes: model.safetensors, else
 * diffusion_pytorch_model.safetensors, else pytorch_model.bin or diffusion_pytorch_model.bin. False: it has none. */
bool rt_shards_of_folder(const char *folder, char *path, size_t size);

/* Opens a file of safetensors or of torch.save, an index (….index.json, ….parts.json), or a folder's model. No tensor
 * may be in two files. `cure` is the help where the file is missing. */
bool rt_shards_open(struct shards *shards, const char *path, const char *cure, struct problem *problem);

/* The same of files that stay open instead of being mapped: of safetensors, tensors are in memory as long as a window
 * is (window.h). Files of torch.save and those of ranks are mapped. */
bool rt_shards_open_unmapped(struct shards *shards, const char *path, const char *cure, struct problem *problem);

/* The same for STEM.safetensors or one of its indices in `folder`. */
bool rt_shards_open_in(struct shards *shards, const char *folder, const char *stem, const char *cure,
                       struct problem *problem);

/* Lets go of the memory that holds what was read of a tensor, where that is a mapped file's (rt_map_forget). */
void rt_shards_forget(const struct shards *shards, const struct stored_tensor *tensor);

/* NULL: there is none of this name. */
const struct stored_tensor *rt_shards_find(const struct shards *shards, const char *name);

void rt_shards_close(struct shards *shards);

#endif
