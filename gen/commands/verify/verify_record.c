/* What a run has left: its record, and its checkpoints. */
#include <stdio.h>
#include <string.h>

#include "gen/base/file.h"
#include "gen/commands/verify/verify.h"
#include "runtime/files/mapping.h"
#include "runtime/weights/safetensors.h"

/* As share/verify/record.c writes it. */
enum record { RECORD_LOAD = 1, RECORD_MICRO_BATCHES, RECORD_REPORT };
struct head {
  int64_t kind, split, position, count, whole, size;
  char name[64];
};

/* ---- Micro-batches ---- */

/* The extents of an input of a sample, as the job says. */
static void set_extents(const struct verification *verify, const struct head *head, struct loaded *loaded) {
  const int64_t each = head->count > 0 ? head->size / 4 / head->count : 0;
  loaded->dim[loaded->rank++] = head->count;
  for (int i = 0; i < verify->job->data.n_inputs; i++) {
    const struct data_input *input = &verify->job->data.inputs[i];
    if (strcmp(input->name, head->name) != 0) continue;
    for (int k = 0; k < input->rank; k++) loaded->dim[loaded->rank++] = input->dims[k];
    return;
  }
  loaded->dim[loaded->rank++] = each;
}

static int64_t elements_of(const struct loaded *loaded) {
  int64_t count = 1;
  for (int k = 0; k < loaded->rank; k++) count *= loaded->dim[k];
  return count;
}

static void note_tokens(struct verification *verify, const struct head *head, const int32_t *numbers) {
  if (verify->job->data.n_inputs > 0 || strcmp(head->name, "tokens") != 0) return;
  for (int64_t i = 0; i < head->size / 4; i++) {
    if (numbers[i] < 0 || numbers[i] >= verify->tokens || verify->seen[numbers[i]]) continue;
    verify->seen[numbers[i]] = true;
    verify->tokens_seen++;
  }
}

/* A load belongs to the micro-batch at hand, or, of a tensor that this one has already, to the next. */
static bool add_load(struct verification *verify, struct recorded_step *step, int64_t rank, const struct head *head,
                     const void *numbers) {
  const int64_t ranks = job_batch_ranks(verify->job), each = verify->job->devices.ranks / ranks;
  struct micro_batch *batch = step->n_batches > 0 ? &step->batches[step->n_batches - 1] : NULL;
  for (int i = 0; batch != NULL && i < batch->count; i++)
    if (strcmp(batch->tensors[i].name, head->name) == 0) batch = NULL;
  if (batch == NULL) {
    struct {
      struct micro_batch *items;
      int count, capacity;
    } list = {step->batches, step->n_batches, step->batches_capacity};
    ARENA_PUSH(verify->arena, list, (struct micro_batch){.count = 0});
    step->batches = list.items;
    step->n_batches = list.count;
    step->batches_capacity = list.capacity;
    batch = &step->batches[step->n_batches - 1];
  }
  if (batch->count == MOST_TENSORS_OF_BATCH) return verify_unknown(verify, "a batch has too many tensors");
  struct loaded *loaded = &batch->tensors[batch->count++];
  *loaded = (struct loaded){.name = arena_string(verify->arena, head->name), .whole = head->whole != 0};
  set_extents(verify, head, loaded);
  if (elements_of(loaded) != (int64_t)(head->size / 4))
    return verify_unknown(verify, "a batch has other extents than the job's");
  loaded->values = arena_alloc(verify->arena, (size_t)(head->size / 4) * sizeof(double));
  for (int64_t i = 0; i < head->size / 4; i++) {
    int32_t whole;
    float number;
    memcpy(&whole, (const char *)numbers + 4 * i, 4);
    memcpy(&number, &whole, 4);
    loaded->values[i] = head->whole != 0 ? (double)whole : (double)number;
  }
  const int64_t batch_size = verify->job->data.batch_size, first = step->at * verify->job->accumulation.num_steps;
  const int64_t from = step->expected >= 0 ? step->first_expected : first;
  const double expected = (double)((from + step->n_batches - 1) * batch_size);
  batch->number = (from + step->n_batches - 1) * ranks + rank / each;
  verify_number(verify, SUBJECT_SAMPLES, expected, expected, expected, head->split == 0 ? (double)head->position : -1,
                "step %lld, %s of micro-batch %d of rank %lld", (long long)step->at, head->name, step->n_batches - 1,
                (long long)rank);
  verify_number(verify, SUBJECT_SAMPLES, (double)batch_size, (double)batch_size, (double)batch_size,
                (double)head->count, "step %lld, the samples of %s", (long long)step->at, head->name);
  return true;
}

static void add_report(struct recorded_step *step, const double *numbers) {
  step->loss = numbers[0];
  step->rate = numbers[1];
  step->norm = numbers[2];
  step->scale = numbers[3];
  step->skipped = numbers[4] > 0;
  step->reported = true;
}

/* The record of a rank. */
static bool read_rank(struct verification *verify, const char *folder, int64_t rank, struct recording *recording) {
  size_t length = 0, at = 0;
  const char *path = arena_printf(verify->arena, "%s/record_%lld.bin", folder, (long long)rank);
  const char *bytes = read_bytes(verify->arena, path, &length);
  struct recorded_step step = {.expected = -1, .at = verify->steps[verify->n_steps - 1]};
  struct head head;
  if (bytes == NULL) return verify_unknown(verify, "the program loaded no data");
  for (; at + sizeof head <= length; at += (size_t)head.size) {
    memcpy(&head, bytes + at, sizeof head);
    head.name[sizeof head.name - 1] = '\0';
    at += sizeof head;
    if (head.size < 0 || (size_t)head.size > length - at) return verify_unknown(verify, "the record is cut off");
    if (head.kind == RECORD_MICRO_BATCHES && step.expected < 0) {
      step.first_expected = head.position;
      step.expected = head.count;
    } else if (head.kind == RECORD_LOAD) {
      if (!add_load(verify, &step, rank, &head, bytes + at)) return false;
      note_tokens(verify, &head, (const int32_t *)(const void *)(bytes + at));
    } else if (head.kind == RECORD_REPORT) {
      add_report(&step, (const double *)(const void *)(bytes + at));
      const double expected = step.expected >= 0 ? (double)step.expected : (double)verify->job->accumulation.num_steps;
      /* A rank of a pipeline's middle loads nothing. */
      if (step.n_batches > 0 || verify->job->parallelism.axes[AXIS_PP] < 2)
        verify_number(verify, SUBJECT_SAMPLES, expected, expected, expected, step.n_batches,
                      "step %lld, the micro-batches of rank %lld", (long long)step.at, (long long)rank);
      ARENA_PUSH(verify->arena, *recording, step);
      step = (struct recorded_step){.expected = -1, .at = step.at + 1};
    }
  }
  return recording->count > 0 || verify_unknown(verify, "the program reported no step");
}

/* ---- Ranks ---- */

/* How many elements of a tensor two ranks have differently; -1: it has other extents. */
static int64_t count_different(const struct loaded *a, const struct loaded *b) {
  const int64_t count = elements_of(a);
  int64_t different = 0;
  if (a->rank != b->rank || memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) != 0) return -1;
  for (int64_t k = 0; k < count; k++) different += a->values[k] != b->values[k];
  return different;
}

/* Adds what a rank has of a micro-batch that several have. */
static bool join_batch(struct verification *verify, struct micro_batch *batch, const struct micro_batch *other,
                       int64_t at) {
  for (int i = 0; i < other->count; i++) {
    const struct loaded *one = NULL, *loaded = &other->tensors[i];
    for (int k = 0; k < batch->count; k++)
      if (strcmp(batch->tensors[k].name, loaded->name) == 0) one = &batch->tensors[k];
    if (one != NULL) {
      verify_number(verify, SUBJECT_SAMPLES, 0, 0, 0, (double)count_different(one, loaded),
                    "step %lld: the number of elements of %s that ranks have differently", (long long)at, loaded->name);
      continue;
    }
    if (batch->count == MOST_TENSORS_OF_BATCH) return verify_unknown(verify, "a batch has too many tensors");
    batch->tensors[batch->count++] = *loaded;
  }
  return true;
}

/* Adds a step of all ranks: what rank 0 reported, over the micro-batches of all in the order of their numbers. */
static bool join_step(struct verification *verify, const struct recording *ranks, int i, struct recording *recording) {
  struct recorded_step step = ranks[0].items[i];
  const int64_t among = job_batch_ranks(verify->job), most = verify_micro_batches(verify->job);
  step.batches = arena_alloc(verify->arena, (size_t)most * sizeof *step.batches);
  step.n_batches = 0;
  for (int64_t r = 0; r < verify->job->devices.ranks; r++) {
    const struct recorded_step *own = &ranks[r].items[i];
    for (int k = 0; k < own->n_batches; k++) {
      const int64_t first = own->batches[0].number / among * among, place = own->batches[k].number - first;
      if (place < 0 || place >= most) continue; /* which the number of micro-batches says */
      step.batches[place].number = own->batches[k].number;
      if (!join_batch(verify, &step.batches[place], &own->batches[k], own->at)) return false;
      if (place >= step.n_batches) step.n_batches = (int)place + 1;
    }
  }
  ARENA_PUSH(verify->arena, *recording, step);
  return true;
}

bool verify_record(struct verification *verify, const char *folder, struct recording *recording) {
  const int64_t count = verify->job->devices.ranks > 1 ? verify->job->devices.ranks : 1;
  if (count == 1) return read_rank(verify, folder, 0, recording);
  struct recording *ranks = arena_alloc(verify->arena, (size_t)count * sizeof *ranks);
  for (int64_t r = 0; r < count; r++) {
    if (!read_rank(verify, folder, r, &ranks[r])) return false;
    if (ranks[r].count != ranks[0].count) return verify_unknown(verify, "ranks report other numbers of steps");
  }
  for (int i = 0; i < ranks[0].count; i++)
    if (!join_step(verify, ranks, i, recording)) return false;
  return true;
}

/* ---- Checkpoints ---- */

static bool to_double(const struct stored_tensor *tensor, int64_t count, double *values) {
  if (strcmp(tensor->dtype, "F32") == 0 && tensor->size == (size_t)count * 4) {
#pragma omp parallel for schedule(static) if (count > 100000)
    for (int64_t i = 0; i < count; i++) {
      float number;
      memcpy(&number, tensor->bytes + 4 * i, 4);
      values[i] = (double)number;
    }
    return true;
  }
  if (strcmp(tensor->dtype, "I64") == 0 && tensor->size == (size_t)count * 8) {
    for (int64_t i = 0; i < count; i++) {
      int64_t number;
      memcpy(&number, tensor->bytes + 8 * i, 8);
      values[i] = (double)number;
    }
    return true;
  }
  return false;
}

double *verify_tensor(struct verification *verify, const char *file, const char *name, int64_t count) {
  struct mapping mapping;
  struct safetensors tensors;
  struct problem problem;
  double *values = NULL;
  if (!rt_map(&mapping, file, "", &problem)) {
    verify_unknown(verify, "%s", problem.what);
    return NULL;
  }
  if (!rt_safetensors_read(&tensors, file, mapping.bytes, mapping.size, &problem)) {
    verify_unknown(verify, "%s", problem.what);
    rt_unmap(&mapping);
    return NULL;
  }
  for (int i = 0; i < tensors.count && values == NULL; i++) {
    if (strcmp(tensors.tensors[i].name, name) != 0) continue;
    values = arena_alloc(verify->scratch, (size_t)(count + 1) * sizeof *values);
    if (!to_double(&tensors.tensors[i], count, values)) values = NULL;
  }
  rt_safetensors_free(&tensors);
  rt_unmap(&mapping);
  return values;
}
