/* oneDNN's interface where its versions 2 and 3 differ, and what all that the runtime makes with it shares. Statuses
 * are oneDNN's own. */
#ifndef RUNTIME_ONEDNN_ONEDNN_H
#define RUNTIME_ONEDNN_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>
#include <stddef.h>

/* The engine of the processor and the stream on it, made at the first call; ends the process with a message when oneDNN
 * does not start. */
dnnl_engine_t rt_onednn_engine(void);
dnnl_stream_t rt_onednn_stream(void);

/* Remembers what was not a success, for accel_onednn_status. */
void rt_onednn_note(dnnl_status_t found);

/* From then on oneDNN has so many threads; returns how many it had. */
int rt_set_threads(int threads);

/* A description of memory, and how oneDNN's functions take one. */
typedef dnnl_memory_desc_t rt_description;
#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t rt_described;
#else
typedef const dnnl_memory_desc_t *rt_described;
#endif

static inline rt_described rt_described_by(const rt_description *description) {
#if DNNL_VERSION_MAJOR >= 3
  return *description;
#else
  return description;
#endif
}

/* With these steps in elements; with a layout that oneDNN names, such as one of its own choice. */
static inline dnnl_status_t rt_describe(rt_description *to, int rank, const dnnl_dims_t shape, dnnl_data_type_t type,
                                        const dnnl_dims_t steps) {
#if DNNL_VERSION_MAJOR >= 3
  return dnnl_memory_desc_create_with_strides(to, rank, shape, type, steps);
#else
  return dnnl_memory_desc_init_by_strides(to, rank, shape, type, steps);
#endif
}

static inline dnnl_status_t rt_describe_as(rt_description *to, int rank, const dnnl_dims_t shape, dnnl_data_type_t type,
                                           dnnl_format_tag_t tag) {
#if DNNL_VERSION_MAJOR >= 3
  return dnnl_memory_desc_create_with_tag(to, rank, shape, type, tag);
#else
  return dnnl_memory_desc_init_by_tag(to, rank, shape, type, tag);
#endif
}

static inline void rt_forget(rt_description *description) {
#if DNNL_VERSION_MAJOR >= 3
  dnnl_memory_desc_destroy(*description);
#else
  (void)description;
#endif
}

static inline dnnl_status_t rt_make_memory(dnnl_memory_t *to, rt_described description) {
  return dnnl_memory_create(to, description, rt_onednn_engine(), DNNL_MEMORY_NONE);
}

/* A post-operation that adds the result to what is there. */
static inline dnnl_status_t rt_add_sum(dnnl_post_ops_t to) {
#if DNNL_VERSION_MAJOR >= 3
  return dnnl_post_ops_append_sum(to, 1.0f, 0, dnnl_data_type_undef);
#else
  return dnnl_post_ops_append_sum(to, 1.0f);
#endif
}

#endif
