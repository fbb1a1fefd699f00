#include "runtime/data/prefetch.h"

#include "runtime/process/thread.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PAGE = 4096, SHORTEST = 200000, LONGEST = 50000000 }; /* bytes; nanoseconds between two looks */

static void touch(const uint8_t *from, size_t size) {
  for (size_t at = 0; at < size; at += PAGE) (void)*(const volatile uint8_t *)(from + at);
  if (size > 0) (void)*(const volatile uint8_t *)(from + size - 1);
}

static void touch_sample(const struct data *data, int64_t position) {
  const struct data_split *split = &data->split[ACCEL_TRAIN];
  struct sample sample;
  if (!rt_mixture_peek(&split->mixture, rt_data_position(data, ACCEL_TRAIN, position), &sample)) return;
  const struct data_file *file = &split->source->files[sample.part];
  const struct tokens *tokens = &file->tokens;
  const struct rows *rows = &file->rows;
  if (file->padded) {
    int64_t first = rt_tokens_start(tokens, sample.start), has = rt_tokens_start(tokens, sample.start + 1) - first;
    if (has > data->program->sequence_length + 1) has = data->program->sequence_length + 1;
    touch(tokens->bytes + first * tokens->width, (size_t)(has * tokens->width));
    return;
  }
  if (!rt_format_is_rows(file->format)) {
    touch(tokens->bytes + sample.start * tokens->width, (size_t)((data->program->sequence_length + 1) * tokens->width));
    return;
  }
  for (int i = 0; i < rows->n_inputs; i++) {
    const struct field *field = &rows->fields[i];
    size_t width = (size_t)rt_npy_width(field->type);
    touch(field->elements + (size_t)(sample.start * field->stride) * width, (size_t)rows->inputs[i].width * width);
  }
}

/* Looks at where steps are, as often as they move. */
static void *read_ahead(void *argument) {
  struct prefetch *prefetch = argument;
  int64_t seen = -1, done = 0;
  long pause = SHORTEST;
  while (!atomic_load_explicit(&prefetch->ends, memory_order_relaxed)) {
    int64_t at = atomic_load_explicit(&prefetch->at, memory_order_relaxed);
    if (at != seen) {
      if (done < at) done = at;
      for (; done < at + prefetch->ahead; done++) touch_sample(prefetch->data, done);
      pause = pause / 2 > SHORTEST ? pause / 2 : SHORTEST;
    } else {
      pause = pause * 2 < LONGEST ? pause * 2 : LONGEST;
    }
    seen = at;
    nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
  }
  return NULL;
}

bool rt_prefetch_start(struct prefetch *prefetch, const struct data *data, int64_t ahead, struct problem *problem) {
  const struct data_files *source = data->split[ACCEL_TRAIN].source;
  prefetch->data = data;
  prefetch->ahead = ahead;
  atomic_store(&prefetch->at, -1);
  if (ahead == 0 || source->files[0].mapping.bytes == NULL) return true;
  const int error = rt_thread_start(&prefetch->thread, 0, read_ahead, prefetch);
  prefetch->runs = error == 0;
  if (prefetch->runs) return true;
  rt_problem(problem, "no thread to read data ahead: %s", strerror(error));
  return rt_help(problem, "set data.prefetch: 0 in the job");
}

void rt_prefetch_advance(struct prefetch *prefetch, int64_t position) {
  atomic_store_explicit(&prefetch->at, position, memory_order_relaxed);
}

void rt_prefetch_end(struct prefetch *prefetch) {
  if (!prefetch->runs) return;
  atomic_store(&prefetch->ends, true);
  pthread_join(prefetch->thread, NULL);
  prefetch->runs = false;
}
