/* A layer comes in blocks (extents.h). Blocks that the system has in its cache are converted from there; others are
 * read into buffers, several at a time, and converted when they are there. The thread that reads begins with what will
 * be wanted next as soon as all of a layer has been begun, so the disk has no pauses; who waits for a layer helps. */
#define _GNU_SOURCE /* O_DIRECT, mincore */
#include "runtime/weights/streamed.h"

#include "include/accel/reads.h"
#include "runtime/files/mapping.h"
#include "runtime/files/transfers.h"
#include "runtime/process/fail.h"
#include "runtime/process/thread.h"
#include "runtime/weights/extents.h"
#include "runtime/weights/tensor_parts.h"

#include <fcntl.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads that are begun; blocks that are read at a time; pages that are looked up in the system's cache for a block;
 * bytes of the thread's stack. */
enum { MOST = 8, BUFFERS = 4, SAMPLES = 8, STACK = 1 << 18 };

static const char cure[] = "start again, and leave the file as it is while the program runs";

struct request {
  size_t first, bytes;
  char *values;
};

/* A file, by its two ways: past the system's cache, and so that the cache has it afterwards. */
struct source_file {
  const char *path;
  struct stat status; /* as it was when it was opened */
  struct transfer_file past, through;
};

/* A row of the program's reads. */
struct layer {
  struct extents extents;
  int after;   /* the layer that was wanted after this one the last time */
  int misses;  /* times that it was not in the cache */
  bool missed; /* this time */
};

enum buffer_state { BUFFER_FREE, BUFFER_READS, BUFFER_BUSY };

/* A block on its way, of the layer that is the number-th to come. */
struct buffer {
  enum buffer_state state;
  uint64_t number;
  int layer;
  struct block block;
  uint64_t order;
};

static struct {
  const struct accel_program *program;
  char *weights;
  int held; /* the layer that was read last, for hold; -1: none */
  struct weights_file file;
  struct source_file *files;
  struct extent_file *open_files;
  int n_files;
  bool cacheable; /* all layers together, without most of what the system has in its cache */
  struct layer *layers;
  char *memory; /* of the buffers */
  struct transfers *transfers;
  pthread_t thread;
  pthread_mutex_t mutex; /* of all that follows, and of the layers */
  pthread_cond_t changed;
  struct request requests[MOST];
  int count;        /* that are not done yet */
  bool active;      /* the first one is being read */
  uint64_t current; /* its number, or that of the next one */
  struct {          /* the block that is begun next */
    int layer;      /* -1: none is known */
    uint64_t number;
    struct extent_place place;
    bool stopped; /* it is in the cache, and no request for it has come yet */
  } next;
  int expected[BUFFERS + 2]; /* layers by their number, from the current one up to the next block's */
  struct buffer buffers[BUFFERS];
  uint64_t begun;
  bool runs, ends, failed;
  struct problem problem;
} reader = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* ---- Whether files are as they were ---- */

static bool is_same(const struct stat *a, const struct stat *b) {
  return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Of what was opened: another file that has its name now is none of this run's. */
static bool check_files(struct problem *problem) {
  for (int i = 0; i < reader.n_files; i++) {
    const struct source_file *file = &reader.files[i];
    struct stat now;
    if (fstat(file->past.file, &now) == 0 && is_same(&now, &file->status)) continue;
    rt_problem(problem, "%s: it was changed while layers were read from it", file->path);
    return rt_help(problem, "%s", cure);
  }
  return true;
}

/* ---- Parameters that no file has as they are wanted ---- */

/* What a rank has of a parameter is pieces of it. */
static bool read_parts(const struct extents *extents, const struct request *request) {
  const struct accel_program *program = rt_rank_program(reader.program);
  for (int i = 0; i < extents->n_others; i++) {
    char *to = request->values + (program->tensors[extents->others[i]].offset - request->first);
    if (!rt_tensor_part_read(reader.program, &reader.file, extents->others[i], (float *)to)) return false;
  }
  return true;
}

static bool read_others(const struct extents *extents, const struct request *request, struct problem *problem) {
  if (rt_divides_tensors(reader.program))
    return read_parts(extents, request) || rt_problem(problem, "no memory for a tensor that ranks divide");
  for (int i = 0; i < extents->n_others; i++)
    rt_weights_make(reader.program, &reader.file, extents->others[i], request->values - request->first);
  return true;
}

/* ---- Blocks ---- */

/* By some of its pages: to ask for each would take as long as a part of the copy. What is missing then is read when it
 * is copied. */
static bool is_cached(const struct mapping *mapping) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), last = (mapping->size - 1) / page;
  unsigned char state;
  for (size_t i = 0; i < SAMPLES; i++) {
    void *at = (void *)((uintptr_t)mapping->bytes + last * i / (SAMPLES - 1) * page);
    if (mincore(at, 1, &state) != 0 || !(state & 1)) return false;
  }
  return true;
}

/* Maps a block if the system has it in its cache. */
static bool map_cached(const struct block *block, struct mapping *mapping) {
  const uint8_t *at;
  if (!rt_map_part(mapping, reader.files[block->file].past.file, block->first, block->bytes, &at)) return false;
  if (is_cached(mapping)) return true;
  rt_unmap(mapping);
  return false;
}

static char *memory_of(const struct buffer *buffer) {
  return reader.memory + (size_t)(buffer - reader.buffers) * EXTENT_MOST;
}

static void convert(const struct buffer *buffer, const uint8_t *bytes, const struct request *request) {
  rt_block_convert(&buffer->block, &reader.layers[buffer->layer].extents, reader.program, &reader.file, bytes,
                   request->first, request->values);
}

/* What is left of a page at a file's end does not go past the cache. */
static void start_transfer(struct buffer *buffer, bool through) {
  struct source_file *source = &reader.files[buffer->block.file];
  struct transfer_file *file = through ? &source->through : &source->past;
  const size_t rest = buffer->block.bytes % EXTENT_PAGE, whole = buffer->block.bytes - rest;
  rt_transfers_read(reader.transfers, file, buffer->block.first, memory_of(buffer), whole);
  rt_transfers_read(reader.transfers, file, buffer->block.first + whole, memory_of(buffer) + whole, rest);
}

static void fail(const struct problem *problem) {
  if (!reader.failed) reader.problem = *problem;
  reader.failed = true;
}

/* A layer that was read past the cache and is wanted again may stay there, but only if it does. */
static bool goes_through(struct layer *layer) {
  layer->missed = true;
  return layer->misses == 1 && reader.cacheable;
}

/* The block is converted, or is on its way then. The mutex is held, but not meanwhile. */
static void start_block(struct buffer *buffer, bool wanted) {
  const struct request request = reader.requests[0];
  struct layer *layer = &reader.layers[buffer->layer];
  struct mapping mapping;
  buffer->state = BUFFER_BUSY;
  pthread_mutex_unlock(&reader.mutex);
  const bool cached = wanted && map_cached(&buffer->block, &mapping);
  if (cached) {
    convert(buffer, mapping.bytes, &request);
    rt_unmap(&mapping);
  }
  pthread_mutex_lock(&reader.mutex);
  if (cached) {
    buffer->state = BUFFER_FREE;
  } else {
    start_transfer(buffer, goes_through(layer));
    buffer->state = BUFFER_READS;
    buffer->order = reader.begun++;
  }
}

/* The mutex is held, but not meanwhile. */
static void finish_block(struct buffer *buffer) {
  const struct request request = reader.requests[0];
  struct problem problem, change;
  buffer->state = BUFFER_BUSY;
  pthread_mutex_unlock(&reader.mutex);
  const bool good = rt_transfers_wait(reader.transfers, memory_of(buffer), buffer->block.bytes, &problem);
  if (good) convert(buffer, (const uint8_t *)memory_of(buffer), &request);
  pthread_mutex_lock(&reader.mutex);
  buffer->state = BUFFER_FREE;
  if (!good) fail(check_files(&change) ? &problem : &change);
}

/* ---- Which block is next ---- */

static struct buffer *find_free(void) {
  for (int i = 0; i < BUFFERS; i++)
    if (reader.buffers[i].state == BUFFER_FREE) return &reader.buffers[i];
  return NULL;
}

/* The block of the current layer that was begun first. */
static struct buffer *find_oldest(void) {
  struct buffer *oldest = NULL;
  for (int i = 0; i < BUFFERS; i++) {
    struct buffer *buffer = &reader.buffers[i];
    if (buffer->state != BUFFER_READS || buffer->number != reader.current) continue;
    if (oldest == NULL || buffer->order < oldest->order) oldest = buffer;
  }
  return oldest;
}

static void expect(int layer, uint64_t number) {
  reader.next.layer = layer;
  reader.next.number = number;
  reader.next.place = (struct extent_place){0};
  reader.expected[number % (BUFFERS + 2)] = layer;
}

/* All of a layer is begun; that of the next one may be. */
static void go_on(void) {
  struct layer *layer = &reader.layers[reader.next.layer];
  layer->misses += layer->missed;
  layer->missed = false;
  expect(layer->after, reader.next.number + 1);
}

/* Begins with a block, where a buffer is free. False: nothing was done. */
static bool start_next(bool helps) {
  const bool wanted = reader.active && reader.next.number == reader.current;
  struct buffer *buffer = find_free();
  struct mapping mapping;
  if (buffer == NULL || reader.next.layer < 0 || reader.next.number > reader.current + BUFFERS) return false;
  if (!wanted && (helps || reader.next.stopped)) return false;
  const struct extent_place place = reader.next.place;
  buffer->layer = reader.next.layer;
  buffer->number = reader.next.number;
  if (!rt_block_next(&reader.layers[buffer->layer].extents, &reader.file, reader.open_files, &reader.next.place,
                     &buffer->block)) {
    go_on();
    return true;
  }
  if (!wanted && map_cached(&buffer->block, &mapping)) {
    rt_unmap(&mapping);
    reader.next.place = place;
    reader.next.stopped = true;
    return true;
  }
  start_block(buffer, wanted);
  return true;
}

/* Does a part of what is to be done, by the thread that reads or one that helps it. False: nothing is, until something
 * changes. The mutex is held. */
static bool advance(bool helps) {
  if (!start_next(helps)) {
    struct buffer *buffer = reader.active ? find_oldest() : NULL;
    if (buffer == NULL) return false;
    finish_block(buffer);
  }
  pthread_cond_broadcast(&reader.changed);
  return true;
}

/* ---- Requests ---- */

static int layer_of(size_t first) {
  int layer = 0;
  while (layer + 1 < reader.program->n_reads && reader.program->reads[layer].first != first) layer++;
  return layer;
}

/* What was expected was another layer: its blocks are no use. */
static void start_over(int layer) {
  struct problem ignored;
  pthread_mutex_unlock(&reader.mutex);
  rt_transfers_wait(reader.transfers, NULL, 0, &ignored);
  pthread_mutex_lock(&reader.mutex);
  for (int i = 0; i < BUFFERS; i++) reader.buffers[i].state = BUFFER_FREE;
  expect(layer, reader.current);
}

static void begin_request(void) {
  const struct request request = reader.requests[0];
  const int layer = layer_of(request.first);
  struct problem problem;
  if (reader.next.layer < 0 || reader.expected[reader.current % (BUFFERS + 2)] != layer) start_over(layer);
  if (reader.current > 0) reader.layers[reader.expected[(reader.current - 1) % (BUFFERS + 2)]].after = layer;
  reader.next.stopped = false;
  pthread_mutex_unlock(&reader.mutex);
  const bool good = read_others(&reader.layers[layer].extents, &request, &problem);
  pthread_mutex_lock(&reader.mutex);
  if (!good) fail(&problem);
  reader.active = true;
}

static bool is_complete(void) {
  bool complete = reader.next.number > reader.current;
  for (int i = 0; i < BUFFERS; i++)
    complete &= reader.buffers[i].state == BUFFER_FREE || reader.buffers[i].number != reader.current;
  return complete;
}

/* Files are looked at when all of a layer has been read, so that no change of them before that is missed. */
static void end_request(void) {
  struct problem problem;
  if (!check_files(&problem)) fail(&problem);
  reader.count--;
  reader.current++;
  reader.active = false;
  memmove(reader.requests, reader.requests + 1, (size_t)reader.count * sizeof *reader.requests);
}

/* One thing that there is to do; false: nothing is. */
static bool serve(void) {
  if (reader.failed) return false;
  if (reader.count > 0 && !reader.active) {
    begin_request();
  } else if (advance(false)) {
    return true;
  } else if (reader.active && is_complete()) {
    end_request();
  } else {
    return false;
  }
  pthread_cond_broadcast(&reader.changed);
  return true;
}

static void *serve_all(void *argument) {
  (void)argument;
  omp_set_num_threads(1); /* the others compute */
  pthread_mutex_lock(&reader.mutex);
  while (!reader.ends)
    if (!serve()) pthread_cond_wait(&reader.changed, &reader.mutex);
  pthread_mutex_unlock(&reader.mutex);
  return NULL;
}

void accel_start_read(size_t first, void *values, size_t bytes) {
  if (bytes == 0) return;
  reader.held = -1;
  pthread_mutex_lock(&reader.mutex);
  while (reader.count == MOST && !reader.failed) pthread_cond_wait(&reader.changed, &reader.mutex);
  if (!reader.failed) reader.requests[reader.count++] = (struct request){first, bytes, values};
  pthread_cond_broadcast(&reader.changed);
  pthread_mutex_unlock(&reader.mutex);
}

/* Threads that would only wait take blocks, each its own: all but the one whose processor the reading thread has. What
 * they convert is not divided once more. The number of threads is that of the next parallel regions again. */
static void help(void) {
  const int threads = omp_get_max_threads(), others = threads > 2 ? threads - 1 : 1;
#pragma omp parallel num_threads(others)
  {
    omp_set_num_threads(1);
    pthread_mutex_lock(&reader.mutex);
    while (reader.active && !reader.failed && advance(true)) {
    }
    pthread_mutex_unlock(&reader.mutex);
  }
  omp_set_num_threads(threads);
}

void accel_wait_reads(void) {
  bool failed, done;
  do {
    help();
    pthread_mutex_lock(&reader.mutex);
    failed = reader.failed;
    done = reader.count == 0;
    if (!failed && !done) pthread_cond_wait(&reader.changed, &reader.mutex);
    pthread_mutex_unlock(&reader.mutex);
  } while (!failed && !done);
  if (failed) rt_fail(&reader.problem, 1);
}

static const void *hold(int tensor) {
  const size_t offset = reader.program->tensors[tensor].offset;
  int layer = reader.program->n_from_host;
  while (offset - reader.program->reads[layer].first >= reader.program->reads[layer].bytes) layer++;
  const struct accel_read *read = &reader.program->reads[layer];
  if (reader.held != layer) {
    accel_start_read(read->first, reader.weights + read->at, read->bytes);
    accel_wait_reads();
    reader.held = layer;
  }
  return reader.weights + read->at + (offset - read->first);
}

static bool wait_alone(struct problem *problem) {
  pthread_mutex_lock(&reader.mutex);
  while (reader.count > 0 && !reader.failed) pthread_cond_wait(&reader.changed, &reader.mutex);
  const bool failed = reader.failed;
  if (failed) *problem = reader.problem;
  pthread_mutex_unlock(&reader.mutex);
  return !failed;
}

/* ---- Beginning and end ---- */

static int open_direct(int file) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  return open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
}

static void add_file(const struct shard *shard) {
  struct source_file *source = &reader.files[reader.n_files];
  const int file = shard->file;
  if (fstat(file, &source->status) != 0) return;
  source->path = shard->path;
  source->past = (struct transfer_file){file, open_direct(file), shard->path, cure};
  source->through = (struct transfer_file){file, -1, shard->path, cure};
  reader.open_files[reader.n_files++] = (struct extent_file){file, (size_t)source->status.st_size};
}

static bool list_files(struct problem *problem) {
  const struct sources *sources = &reader.file.sources;
  size_t count = 1;
  for (int i = 0; i < sources->count; i++) count += (size_t)sources->items[i].count;
  reader.files = calloc(count, sizeof *reader.files);
  reader.open_files = calloc(count, sizeof *reader.open_files);
  if (reader.files == NULL || reader.open_files == NULL) return rt_problem(problem, "no memory for the list of files");
  for (int i = 0; i < sources->count; i++)
    for (int k = 0; k < sources->items[i].count; k++)
      if (sources->items[i].items[k].file >= 0) add_file(&sources->items[i].items[k]);
  return true;
}

static bool list_layers(struct problem *problem) {
  const struct accel_program *program = reader.program;
  const double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  double bytes = 0;
  reader.layers = calloc((size_t)program->n_reads + 1, sizeof *reader.layers);
  if (reader.layers == NULL) return rt_problem(problem, "no memory for the list of layers");
  for (int i = program->n_from_host; i < program->n_reads; i++) {
    struct layer *layer = &reader.layers[i];
    if (!rt_extents_find(&layer->extents, program, &reader.file, reader.open_files, reader.n_files,
                         program->reads[i].first, program->reads[i].bytes, problem))
      return false;
    layer->after = i + 1 < program->n_reads && program->reads[i + 1].bytes > 0 ? i + 1 : program->n_from_host;
    for (int k = 0; k < layer->extents.count; k++) bytes += (double)layer->extents.items[k].bytes;
  }
  reader.cacheable = bytes < memory / 2;
  return true;
}

static bool begin(const struct accel_program *program, const struct weights_file *file, void *weights,
                  struct problem *problem) {
  reader.program = program;
  reader.weights = weights;
  reader.held = -1;
  reader.file = *file;
  reader.next.layer = -1;
  if (!list_files(problem) || !list_layers(problem)) return false;
  reader.memory = aligned_alloc(EXTENT_PAGE, (size_t)BUFFERS * EXTENT_MOST);
  if (reader.memory == NULL) {
    rt_problem(problem, "no memory for the %d MiB into which layers are read", BUFFERS * EXTENT_MOST >> 20);
    return rt_help(problem, "free memory, raise the limit ('ulimit -d', 'ulimit -v'), or set a larger memory.reserve");
  }
  reader.transfers = rt_transfers_open(TRANSFERS_AS_IS_BEST, problem);
  if (reader.transfers == NULL) return false;
  const int error = rt_thread_start(&reader.thread, STACK, serve_all, NULL);
  reader.runs = error == 0;
  return reader.runs || rt_problem(problem, "no thread to read layers: %s", strerror(error));
}

static void end(void) {
  if (!reader.runs) return;
  pthread_mutex_lock(&reader.mutex);
  reader.ends = true;
  pthread_cond_broadcast(&reader.changed);
  pthread_mutex_unlock(&reader.mutex);
  pthread_join(reader.thread, NULL);
  rt_transfers_close(reader.transfers);
  for (int i = 0; i < reader.n_files; i++)
    if (reader.files[i].past.direct >= 0) close(reader.files[i].past.direct);
  for (int i = 0; i < reader.program->n_reads; i++) rt_extents_free(&reader.layers[i].extents);
  rt_weights_close(&reader.file);
  free(reader.memory);
  free(reader.layers);
  free(reader.files);
  free(reader.open_files);
  reader.runs = false;
}

const struct accel_layer_reader accel_layers_from_files = {begin, accel_start_read, wait_alone, hold, end};
