/* What `accel-gen verify` links into the trainer that it runs: the trainer's own text is compiled as it is, and the
 * linker sends some of its calls of the runtime through here (--wrap). The run is short, has data that are made here,
 * and saves every step; what the program asks of its data, and what it reports, is written down. */
#include "draw.h"

#include <accel/process.h>
#include <accel/trainer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first step of this run, how many it takes, and the samples of its data. */
static int64_t first, steps, samples;

static FILE *record;
static struct accel_program changed;
static const struct accel_input *own_inputs; /* the program's */

static void fail(const char *what) {
  perror(what);
  exit(3);
}

static int64_t number_of(const char *name) {
  const char *text = getenv(name);
  return text != NULL ? atoll(text) : 0;
}

/* ---- The record ---- */

enum record { RECORD_LOAD = 1, RECORD_MICRO_BATCHES, RECORD_REPORT };

/* A line of the record: what, where, how much of it, and so many bytes of numbers after it. */
static void put(enum record kind, int64_t split, int64_t position, int64_t count, bool whole, const char *name,
                const void *bytes, size_t size) {
  struct {
    int64_t numbers[6];
    char name[64];
  } head = {{kind, split, position, count, whole, (int64_t)size}, ""};
  snprintf(head.name, sizeof head.name, "%s", name);
  if (record == NULL) {
    char path[64];
    snprintf(path, sizeof path, "record_%d.bin", accel_process()->index);
    record = fopen(path, "wb");
  }
  if (record == NULL || fwrite(&head, sizeof head, 1, record) != 1) fail("record");
  if (size > 0 && fwrite(bytes, 1, size, record) != size) fail("record");
  if (fflush(record) != 0) fail("record");
}

/* ---- The data ---- */

/* Every token as often as any other one, as nearly as there is space: the vocabulary in a new order, again and again.
 */
static void draw_tokens(int32_t *tokens, int64_t vocabulary, int64_t count) {
  int32_t *order = calloc((size_t)vocabulary, sizeof *order);
  if (order == NULL) fail("data");
  for (int64_t i = 0; i < vocabulary; i++) order[i] = (int32_t)i;
  for (int64_t i = 0; i < count; i++) {
    const int64_t at = i % vocabulary, other = at + (int64_t)(verify_draw() % (uint64_t)(vocabulary - at));
    tokens[i] = order[other];
    order[other] = order[at];
    order[at] = tokens[i];
  }
  free(order);
}

/* Each rank writes the data, which are the same, in a file of its own that then gets their name. */
static const char *own_data(void) {
  static char path[64];
  snprintf(path, sizeof path, "data_%ld", (long)getpid());
  return path;
}

static void end_data(FILE *file) {
  if (fclose(file) != 0 || rename(own_data(), "data") != 0) fail("data");
}

static void write_data(const void *head, size_t head_size, const void *rest, size_t rest_size) {
  FILE *file = fopen(own_data(), "wb");
  if (file == NULL || fwrite(head, 1, head_size, file) != head_size || fwrite(rest, 1, rest_size, file) != rest_size)
    fail("data");
  end_data(file);
}

static void write_tokens(int64_t vocabulary, int64_t count) {
  int32_t *tokens = calloc((size_t)count, sizeof *tokens);
  char head[128];
  if (tokens == NULL) fail("data");
  draw_tokens(tokens, vocabulary, count);
  memset(head, ' ', sizeof head);
  memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
  const int length = snprintf(head + 10, sizeof head - 10,
                              "{'descr': '<u4', 'fortran_order': False, 'shape': (%lld,), }", (long long)count);
  head[10 + length] = ' ';
  head[127] = '\n';
  write_data(head, sizeof head, tokens, (size_t)count * sizeof *tokens);
  free(tokens);
}

/* The runtime's, which files of tokens have (docs/data.md). */
uint64_t rt_checksum(const void *bytes, size_t size);

/* Documents of 1 to `longest` tokens, `count` tokens and `documents` documents or more of both; a last one that is not
 * whole. */
static void write_documents(int64_t vocabulary, int64_t count, int64_t documents, int64_t longest) {
  const int64_t most = count + documents * longest;
  unsigned char *bytes = calloc((size_t)most * 12 + 80, 1);
  uint64_t *starts = calloc((size_t)most, sizeof *starts), head[8] = {0};
  int64_t tokens = 0, begun = 0;
  if (bytes == NULL || starts == NULL) fail("data");
  while (tokens < count || begun < documents) {
    starts[begun++] = (uint64_t)tokens;
    tokens += 1 + (int64_t)(verify_draw() % (uint64_t)longest);
  }
  const size_t size = ((size_t)tokens * 4 + 7) / 8 * 8, rest = size + (size_t)begun * 8;
  draw_tokens((int32_t *)(void *)bytes, vocabulary, tokens);
  memcpy(bytes + size, starts, (size_t)begun * 8);
  memcpy(head, "ACCELTOK", 8);
  head[1] = (uint64_t)4 << 32 | 1;
  head[2] = (uint64_t)tokens;
  head[3] = (uint64_t)vocabulary;
  head[5] = (uint64_t)begun;
  memcpy(bytes + rest, head, sizeof head);
  head[4] = rt_checksum(bytes, rest + sizeof head);
  write_data(head, sizeof head, bytes, rest);
  free(starts);
  free(bytes);
}

/* The numbers below which number `at` of a row's float32 numbers is an index; 0: it is none. */
static int64_t index_below(int64_t at) {
  for (int i = 0; i < changed.n_indices; i++)
    if (at >= changed.indices[i].first && at < changed.indices[i].first + changed.indices[i].count)
      return changed.indices[i].below;
  return 0;
}

static void write_number(FILE *file, const struct accel_input *input, int64_t at) {
  int64_t below = input->dtype == ACCEL_INT32 ? input->below : index_below(at);
  if (input->dtype == ACCEL_INT32 && below == 0) below = 2;
  if (below == 0 && strstr(input->name, "mask") != NULL) below = 2; /* what else a mask is, its model does not say */
  if (below > 0)
    fprintf(file, "%lld,", (long long)(verify_draw() % (uint64_t)below));
  else
    fprintf(file, "%.6g,", ((double)(verify_draw() >> 40) + (double)(verify_draw() >> 40)) * 0x1p-23 - 2);
}

static void write_rows(int64_t count) {
  FILE *file = fopen(own_data(), "wb");
  if (file == NULL) fail("data");
  for (int64_t row = 0; row < count; row++) {
    int64_t at = 0;
    for (int i = 0; i < changed.n_inputs; i++)
      for (int64_t k = 0; k < changed.inputs[i].width; k++) write_number(file, &changed.inputs[i], at++);
    fseek(file, -1, SEEK_CUR);
    fputc('\n', file);
  }
  end_data(file);
}

/* ---- The run ---- */

/* The program without what is not of a step: evaluations, hooks of a run's end, trackers, older checkpoints. */
static void shorten(const struct accel_program *program) {
  changed = *program;
  changed.steps = first + steps;
  changed.save_every = changed.log_every = 1;
  changed.eval_every = 0;
  changed.log_epochs = changed.eval_epochs = changed.save_epochs = (struct accel_epochs){0};
  changed.eval_on_start = false;
  changed.eval_fraction = 0;
  changed.stopping = (struct accel_stopping){0};
  memset(changed.metrics, 0, sizeof changed.metrics);
  changed.samples = changed.prefetch = 0;
  changed.checkpoint.minutes = 0;
  changed.checkpoint.total_limit = changed.checkpoint.max_shard_bytes = 0;
  changed.checkpoint.automatic_naming = false;
  changed.checkpoint.resume = "never";
  changed.checkpoint.folder_of = NULL;
  changed.checkpoint.dtype = ACCEL_FLOAT32;
  changed.tracking = (struct accel_tracking){0};
  changed.project_dir = "run";
  changed.start = (struct accel_start_file){.path = "start.safetensors"};
  memset(changed.parts, 0, sizeof changed.parts);
  changed.source[ACCEL_TRAIN] =
      (struct accel_source){"data", program->n_inputs > 0                  ? ACCEL_CSV
                                    : program->packing != ACCEL_NOT_PACKED ? ACCEL_TOKENS
                                                                           : ACCEL_NPY_TOKENS};
  changed.source[ACCEL_EVAL] = (struct accel_source){0};
}

struct accel_run *__real_accel_start(const struct accel_program *program, int argc, char **argv);

struct accel_run *__wrap_accel_start(const struct accel_program *program, int argc, char **argv) {
  static struct accel_input inputs[64];
  first = number_of("VERIFY_FIRST");
  steps = number_of("VERIFY_STEPS");
  samples = number_of("VERIFY_SAMPLES");
  shorten(program);
  own_inputs = program->inputs;
  if (program->n_inputs > 64) fail("inputs");
  for (int i = 0; i < program->n_inputs; i++) {
    inputs[i] = program->inputs[i];
    inputs[i].column = NULL;
  }
  changed.inputs = program->n_inputs > 0 ? inputs : NULL;
  const int64_t vocabulary = program->vocabulary > 0 ? program->vocabulary : 256, length = program->sequence_length;
  if (program->n_inputs > 0)
    write_rows(samples);
  else if (program->packing != ACCEL_NOT_PACKED)
    write_documents(vocabulary, (samples + 1) * length + 1, samples, length + length / 2);
  else
    write_tokens(vocabulary, (samples + 1) * length + 1);
  return __real_accel_start(&changed, argc, argv);
}

int64_t __real_accel_first_step(const struct accel_run *run);

int64_t __wrap_accel_first_step(const struct accel_run *run) {
  return __real_accel_first_step(run) + first;
}

struct accel_micro_batches __real_accel_micro_batches_of(const struct accel_run *run, int64_t at);

struct accel_micro_batches __wrap_accel_micro_batches_of(const struct accel_run *run, int64_t at) {
  const struct accel_micro_batches found = __real_accel_micro_batches_of(run, at);
  put(RECORD_MICRO_BATCHES, at, found.first, found.count, true, "", NULL, 0);
  return found;
}

static void put_tokens(const char *name, int64_t split, int64_t position, int64_t count, const int32_t *tokens) {
  const size_t size = (size_t)(count * changed.sequence_length) * sizeof *tokens;
  if (tokens != NULL) put(RECORD_LOAD, split, position, count, true, name, tokens, size);
}

void __real_accel_load_sequences(struct accel_run *run, enum accel_split split, int64_t position, int64_t count,
                                 int32_t *tokens, int32_t *targets);

void __wrap_accel_load_sequences(struct accel_run *run, enum accel_split split, int64_t position, int64_t count,
                                 int32_t *tokens, int32_t *targets) {
  __real_accel_load_sequences(run, split, position, count, tokens, targets);
  put_tokens("tokens", (int64_t)split, position, count, tokens);
  put_tokens("targets", (int64_t)split, position, count, targets);
}

void __real_accel_load_masked(struct accel_run *run, enum accel_split split, int64_t position, int64_t count,
                              int32_t *tokens, int32_t *targets);

void __wrap_accel_load_masked(struct accel_run *run, enum accel_split split, int64_t position, int64_t count,
                              int32_t *tokens, int32_t *targets) {
  __real_accel_load_masked(run, split, position, count, tokens, targets);
  put_tokens("tokens", (int64_t)split, position, count, tokens);
  put_tokens("targets", (int64_t)split, position, count, targets);
}

void __real_accel_load_documents(struct accel_run *run, enum accel_split split, int64_t position, int64_t count,
                                 int32_t *tokens, int32_t *targets, int32_t *starts, int32_t *positions);

void __wrap_accel_load_documents(struct accel_run *run, enum accel_split split, int64_t position, int64_t count,
                                 int32_t *tokens, int32_t *targets, int32_t *starts, int32_t *positions) {
  __real_accel_load_documents(run, split, position, count, tokens, targets, starts, positions);
  put_tokens("tokens", (int64_t)split, position, count, tokens);
  put_tokens("targets", (int64_t)split, position, count, targets);
  put_tokens("starts", (int64_t)split, position, count, starts);
  put_tokens("positions", (int64_t)split, position, count, positions);
}

void __real_accel_load_input(struct accel_run *run, enum accel_split split, int64_t position, int64_t count,
                             const struct accel_input *input, void *values);

void __wrap_accel_load_input(struct accel_run *run, enum accel_split split, int64_t position, int64_t count,
                             const struct accel_input *input, void *values) {
  __real_accel_load_input(run, split, position, count, &changed.inputs[input - own_inputs], values);
  put(RECORD_LOAD, (int64_t)split, position, count, input->dtype == ACCEL_INT32, input->name, values,
      (size_t)(count * input->width) * 4);
}

void __real_accel_handle_events(struct accel_run *run, int64_t at, struct accel_report report);

void __wrap_accel_handle_events(struct accel_run *run, int64_t at, struct accel_report report) {
  const double numbers[] = {report.loss, report.lr, report.grad_norm, report.loss_scale, (double)report.skipped};
  put(RECORD_REPORT, 0, at, 5, false, "", numbers, sizeof numbers);
  __real_accel_handle_events(run, at, report);
}
