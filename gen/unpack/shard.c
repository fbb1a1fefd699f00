#include "gen/unpack/shard.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gen/archive/archive.h"
#include "gen/unpack/unpack.h"

enum { CHUNK = 1 << 16, NAME_MOST = 4096 };

struct shard {
  const char *path;
  const char *bytes; /* of the file */
  size_t size, done;
  const char *const *wanted;
  struct unpacker *unpacker; /* of a compressed one */
  char *chunk;               /* what it unpacked last */
  struct archive_reader *reader;
  struct archive_member member; /* the first file of the next sample, where there is one */
  enum archive_found found;     /* of it */
  struct shard_sample sample;
};

/* The magic alone may be in a text. */
bool shard_is(const char *bytes, size_t size) {
  enum { MAGIC_AT = 257, SUM_AT = 148, SUM = 8 };
  if (size < SHARD_HEADER || memcmp(bytes + MAGIC_AT, "ustar", 5) != 0) return false;
  unsigned sum = SUM * ' ', wanted = 0; /* of the bytes, with blanks in place of the sum */
  for (int i = 0; i < SHARD_HEADER; i++)
    if (i < SUM_AT || i >= SUM_AT + SUM) sum += (unsigned char)bytes[i];
  for (int i = SUM_AT; i < SUM_AT + SUM - 1; i++)
    if (bytes[i] >= '0' && bytes[i] <= '7') wanted = 8 * wanted + (unsigned)(bytes[i] - '0');
  return sum == wanted;
}

/* ---- The archive ---- */

static bool read_more(void *context, const void **bytes, size_t *size, struct problem *problem) {
  struct shard *of = context;
  if (of->unpacker != NULL) {
    *bytes = of->chunk;
    return unpacker_read(of->unpacker, of->chunk, CHUNK, size, problem);
  }
  *bytes = of->bytes + of->done;
  *size = of->size - of->done < CHUNK ? of->size - of->done : CHUNK;
  of->done += *size;
  return true;
}

static bool open_archive(struct shard *of, struct problem *problem) {
  if (packed_as(of->bytes, of->size) != NOT_PACKED) {
    of->chunk = malloc(CHUNK);
    if (of->chunk == NULL) return rt_problem(problem, "%s: no memory to unpack it", of->path);
    of->unpacker = unpacker_new(of->path, of->bytes, of->size, problem);
    if (of->unpacker == NULL) return false;
  }
  of->reader = archive_reader_new(of->path, read_more, of, problem);
  return of->reader != NULL;
}

struct shard *shard_new(const char *path, const char *bytes, size_t size, const char *const *wanted,
                        struct problem *problem) {
  struct shard *of = calloc(1, sizeof *of);
  if (of == NULL) {
    rt_problem(problem, "%s: no memory to read it", path);
    return NULL;
  }
  *of = (struct shard){.path = path, .bytes = bytes, .size = size, .wanted = wanted};
  if (open_archive(of, problem)) {
    of->found = archive_reader_next(of->reader, &of->member, problem);
    if (of->found != ARCHIVE_BAD) return of;
  }
  shard_free(of);
  return NULL;
}

void shard_free(struct shard *shard) {
  if (shard == NULL) return;
  archive_reader_free(shard->reader);
  unpacker_free(shard->unpacker);
  free(shard->chunk);
  free(shard->sample.key);
  free(shard->sample.content);
  free(shard);
}

uint64_t shard_position(const struct shard *shard) {
  return shard->found == ARCHIVE_MEMBER ? shard->member.at : UINT64_MAX;
}

size_t shard_done(const struct shard *shard) {
  const size_t done = shard->unpacker != NULL ? unpacker_done(shard->unpacker) : shard->done;
  return done > CHUNK ? done - CHUNK : 0; /* the last one may be in use */
}

bool shard_seek(struct shard *shard, uint64_t at, struct problem *problem) {
  while (shard->found == ARCHIVE_MEMBER && shard->member.at < at)
    shard->found = archive_reader_next(shard->reader, &shard->member, problem);
  return shard->found != ARCHIVE_BAD;
}

/* ---- Samples ---- */

/* The length of a member's key, before the first dot of its last name, and its ending in small letters. 0: it belongs
 * to no sample. */
static size_t key_of(const char *name, char ending[SHARD_ENDING]) {
  const char *last = strrchr(name, '/'), *file = last != NULL ? last + 1 : name, *dot = strchr(file, '.');
  const size_t first = strcspn(name, "/"); /* of its folders, or the file */
  if (first >= 4 && strncmp(name, "__", 2) == 0 && strncmp(name + first - 2, "__", 2) == 0) return 0;
  if (dot == NULL || dot == file || strlen(dot + 1) >= SHARD_ENDING || (size_t)(dot - name) > NAME_MOST) return 0;
  size_t at = 0;
  for (; dot[at + 1] != '\0'; at++) ending[at] = (char)tolower((unsigned char)dot[at + 1]);
  ending[at] = '\0';
  return (size_t)(dot - name);
}

static bool is_wanted(const struct shard *of, const char *ending) {
  for (int i = 0; of->wanted[i] != NULL; i++)
    if (strcasecmp(of->wanted[i], ending) == 0) return true;
  return false;
}

const struct shard_file *shard_file_of(const struct shard_sample *sample, const char *ending) {
  for (int i = 0; i < sample->n_files; i++)
    if (strcasecmp(sample->files[i].ending, ending) == 0) return &sample->files[i];
  return NULL;
}

/* A problem with the sample that is read. */
static bool bad(const struct shard *of, const char *what, const char *remedy, struct problem *problem) {
  rt_problem(problem, "%s: %.300s: %s", of->path, of->sample.key, what);
  return rt_help(problem, "%s", remedy);
}

static bool make_space(struct shard_sample *sample, size_t more) {
  size_t capacity = sample->capacity > 0 ? sample->capacity : CHUNK;
  while (capacity < sample->size + more) capacity *= 2;
  if (capacity == sample->capacity) return true;
  char *grown = realloc(sample->content, capacity);
  if (grown == NULL) return false;
  sample->content = grown;
  sample->capacity = capacity;
  return true;
}

/* Adds the newest member to the sample. */
static bool add_file(struct shard *of, const char *ending, struct problem *problem) {
  struct shard_sample *sample = &of->sample;
  const uint64_t size = of->member.size;
  if (shard_file_of(sample, ending) != NULL)
    return bad(of, "the sample has a file twice", "give each file of a sample another ending", problem);
  if (sample->n_files == SHARD_FILES || size > SHARD_SAMPLE || size + sample->size > SHARD_SAMPLE)
    return bad(of, "the sample has more than 64 MiB", "make its files smaller", problem);
  if (!make_space(sample, (size_t)size + 1)) return bad(of, "no memory for the sample", "", problem);
  if (!archive_reader_read(of->reader, sample->content + sample->size, (size_t)size, problem)) return false;
  struct shard_file *file = &sample->files[sample->n_files++];
  *file = (struct shard_file){.from = sample->size, .size = (size_t)size};
  memcpy(file->ending, ending, strlen(ending) + 1);
  sample->size += (size_t)size;
  sample->content[sample->size++] = '\0';
  return true;
}

/* Begins with the sample of a member. */
static bool begin_sample(struct shard *of, size_t key, struct problem *problem) {
  struct shard_sample *sample = &of->sample;
  free(sample->key);
  sample->key = strndup(of->member.name, key);
  sample->at = of->member.at;
  sample->size = 0;
  sample->n_files = 0;
  if (sample->key == NULL) return rt_problem(problem, "%s: no memory for a sample", of->path);
  for (char *at = sample->key; *at != '\0'; at++) {
    if (!iscntrl((unsigned char)*at)) continue;
    *at = '\0'; /* a message is one line */
    return bad(of, "the name of a file has a control character after this", "give it another name", problem);
  }
  return true;
}

/* Goes to the next member that belongs to a sample. Returns the length of its key; 0: there is none. */
static size_t next_file(struct shard *of, char ending[SHARD_ENDING], struct problem *problem) {
  while (of->found == ARCHIVE_MEMBER) {
    const size_t key = key_of(of->member.name, ending);
    if (key > 0) return key;
    of->found = archive_reader_next(of->reader, &of->member, problem);
  }
  return 0;
}

/* Adds the files in a row that have the key of the first one. */
static bool read_sample(struct shard *of, struct problem *problem) {
  char ending[SHARD_ENDING];
  const size_t first = next_file(of, ending, problem);
  if (first == 0 || !begin_sample(of, first, problem)) return false;
  for (size_t key = first; key == first && memcmp(of->member.name, of->sample.key, first) == 0;) {
    if (is_wanted(of, ending) && !add_file(of, ending, problem)) return false;
    of->found = archive_reader_next(of->reader, &of->member, problem);
    key = next_file(of, ending, problem);
  }
  return of->found != ARCHIVE_BAD;
}

enum shard_found shard_next(struct shard *shard, const struct shard_sample **sample, struct problem *problem) {
  *sample = &shard->sample;
  if (shard->found == ARCHIVE_MEMBER && read_sample(shard, problem)) return SHARD_NEXT;
  if (shard->found == ARCHIVE_NO_MEMBER) return SHARD_NONE;
  shard->found = ARCHIVE_BAD;
  return SHARD_BAD;
}
