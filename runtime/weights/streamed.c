#include "runtime/weights/streamed.h"

#include "include/accel/reads.h"
#include "runtime/files/mapping.h"
#include "runtime/process/fail.h"
#include "runtime/process/thread.h"

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Reads that are begun; elements after which a file's memory is given back; bytes of the thread's stack. */
enum { MOST = 8, CHUNK = 1 << 18, STACK = 1 << 18 };

struct request {
  size_t first, bytes;
  char *values;
};

/* A file as it was when it was opened. */
struct version {
  const char *path;
  bool known;
  struct stat status;
};

static struct {
  const struct accel_program *program;
  struct weights_file file;
  struct version *versions;
  int n_versions;
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  struct request requests[MOST];
  int count; /* that are not done yet */
  bool runs, ends, failed;
  struct problem problem;
} reader = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

bool rt_is_streamed(const struct accel_program *program, const struct accel_tensor *tensor) {
  return program->n_reads > 0 && tensor->offset >= program->reads[0].first;
}

bool rt_streams(const struct accel_program *program) {
  return program->n_reads > 0;
}

/* ---- Whether files are as they were ---- */

static bool note_versions(struct problem *problem) {
  const struct sources *sources = &reader.file.sources;
  for (int i = 0; i < sources->count; i++) reader.n_versions += sources->items[i].count;
  reader.versions = calloc((size_t)reader.n_versions + 1, sizeof *reader.versions);
  if (reader.versions == NULL) return rt_problem(problem, "no memory for the list of files");
  struct version *version = reader.versions;
  for (int i = 0; i < sources->count; i++)
    for (int k = 0; k < sources->items[i].count; k++, version++) {
      version->path = sources->items[i].items[k].path;
      version->known = stat(version->path, &version->status) == 0;
    }
  return true;
}

static bool is_same(const struct stat *a, const struct stat *b) {
  return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Another file under the name is none of this run's, which has the one that it opened. */
static bool check_versions(struct problem *problem) {
  for (int i = 0; i < reader.n_versions; i++) {
    const struct version *version = &reader.versions[i];
    struct stat now;
    if (!version->known || stat(version->path, &now) != 0) continue;
    if (now.st_dev != version->status.st_dev || now.st_ino != version->status.st_ino) continue;
    if (is_same(&now, &version->status)) continue;
    rt_problem(problem, "%s: it was changed while layers were read from it", version->path);
    return rt_help(problem, "start again, and leave the file as it is while the program runs");
  }
  return true;
}

/* ---- Reading ---- */

/* In chunks, so that no more than one of the file counts as this process's memory. */
static void read_tensor(int index, float *values) {
  const struct accel_tensor *tensor = &reader.program->tensors[index];
  const struct named_tensor *named = reader.file.matched[index];
  const int64_t count = rt_shape_count(tensor->rank, tensor->shape);
  if (named == NULL) {
    rt_weights_read(reader.program, &reader.file, index, 0, count, values);
    return;
  }
  const size_t size = rt_stored_size(named->tensor->dtype),
               wide = size < sizeof(float) && tensor->dtype == ACCEL_FLOAT32 ? sizeof(float) : size;
  for (int64_t at = 0; at < count; at += CHUNK) {
    const int64_t length = count - at < CHUNK ? count - at : CHUNK;
    rt_weights_read(reader.program, &reader.file, index, at, length, (float *)((char *)values + (size_t)at * wide));
    rt_map_forget(named->tensor->bytes + (size_t)at * size, (size_t)length * size);
  }
  rt_map_forget(named->tensor->bytes, named->tensor->size);
}

static bool serve(const struct request *request, struct problem *problem) {
  const struct accel_program *program = reader.program;
  if (!check_versions(problem)) return false;
  for (int i = 0; i < program->n_tensors; i++) {
    const size_t offset = program->tensors[i].offset;
    if (offset < request->first || offset >= request->first + request->bytes) continue;
    read_tensor(i, (float *)(request->values + (offset - request->first)));
  }
  return true;
}

static void *serve_all(void *argument) {
  (void)argument;
  omp_set_num_threads(1); /* the others compute */
  pthread_mutex_lock(&reader.mutex);
  while (!reader.ends) {
    if (reader.count == 0 || reader.failed) {
      pthread_cond_wait(&reader.changed, &reader.mutex);
      continue;
    }
    const struct request request = reader.requests[0];
    struct problem problem;
    pthread_mutex_unlock(&reader.mutex);
    const bool good = serve(&request, &problem);
    pthread_mutex_lock(&reader.mutex);
    reader.failed = !good;
    if (!good) reader.problem = problem;
    reader.count--;
    memmove(reader.requests, reader.requests + 1, (size_t)reader.count * sizeof *reader.requests);
    pthread_cond_broadcast(&reader.changed);
  }
  pthread_mutex_unlock(&reader.mutex);
  return NULL;
}

void accel_start_read(size_t first, void *values, size_t bytes) {
  if (bytes == 0) return;
  pthread_mutex_lock(&reader.mutex);
  while (reader.count == MOST && !reader.failed) pthread_cond_wait(&reader.changed, &reader.mutex);
  if (!reader.failed) reader.requests[reader.count++] = (struct request){first, bytes, values};
  pthread_cond_broadcast(&reader.changed);
  pthread_mutex_unlock(&reader.mutex);
}

void accel_wait_reads(void) {
  pthread_mutex_lock(&reader.mutex);
  while (reader.count > 0 && !reader.failed) pthread_cond_wait(&reader.changed, &reader.mutex);
  const bool failed = reader.failed;
  pthread_mutex_unlock(&reader.mutex);
  if (failed) rt_fail(&reader.problem, 1);
}

/* ---- The thread ---- */

bool rt_streamed_begin(const struct accel_program *program, const struct weights_file *file, struct problem *problem) {
  reader.program = program;
  reader.file = *file;
  if (!note_versions(problem)) return false;
  const int error = rt_thread_start(&reader.thread, STACK, serve_all, NULL);
  reader.runs = error == 0;
  return reader.runs || rt_problem(problem, "no thread to read layers: %s", strerror(error));
}

void rt_streamed_end(void) {
  if (!reader.runs) return;
  pthread_mutex_lock(&reader.mutex);
  reader.ends = true;
  pthread_cond_broadcast(&reader.changed);
  pthread_mutex_unlock(&reader.mutex);
  pthread_join(reader.thread, NULL);
  rt_weights_close(&reader.file);
  free(reader.versions);
  reader.runs = false;
}
