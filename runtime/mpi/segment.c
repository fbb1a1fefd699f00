#define _GNU_SOURCE /* memfd_create */
#include "runtime/mpi/segment.h"

#include "runtime/base/problem.h"
#include "runtime/mpi/channel.h"
#include "runtime/process/fail.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HEAD = 64 << 10 }; /* whole pages, of any size */

/* Where another process finds a rank's segment, and by what it knows that it is the one. */
struct address {
  int64_t process, file; /* file: -1: there is none */
  uint64_t key;
};

static bool map(int file, size_t bytes, struct segment *segment) {
  struct stat found;
  if (fstat(file, &found) != 0 || found.st_size != (off_t)(HEAD + bytes)) return false;
  void *at = mmap(NULL, HEAD + bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (at == MAP_FAILED) return false;
  *segment = (struct segment){at, (char *)at + HEAD};
  return true;
}

/* The arena's own pages there, which nobody has touched, are no more. Where the system cannot, they stay. */
static bool map_in_arena(int file, char *arena, struct accel_byte_range in_arena) {
  if (in_arena.bytes == 0) return true;
  return mmap(arena + in_arena.first, in_arena.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
              file, (off_t)(HEAD + in_arena.first)) != MAP_FAILED;
}

static struct address make(size_t bytes, struct segment *own, char *arena, struct accel_byte_range in_arena) {
  struct timespec now;
  int file = memfd_create("accel", MFD_CLOEXEC);
  clock_gettime(CLOCK_REALTIME, &now);
  struct address address = {getpid(), -1, ((uint64_t)getpid() << 40) ^ (uint64_t)now.tv_nsec};
  if (file >= 0 && ftruncate(file, (off_t)(HEAD + bytes)) == 0 && map(file, bytes, own) &&
      map_in_arena(file, arena, in_arena)) {
    own->progress->key = address.key;
    address.file = file;
  } else if (file >= 0) {
    close(file);
  }
  return address;
}

/* By what the system shows of the other process. One in another namespace of processes has another key, or none. */
static bool find(const struct address *address, size_t bytes, struct segment *segment) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)address->process, (long long)address->file);
  int file = address->file < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  bool mapped = map(file, bytes, segment);
  close(file);
  return mapped && segment->progress->key == address->key;
}

static bool all_agree(MPI_Comm channel, bool good) {
  MPI_Request request;
  int own = good, all = 0;
  rt_mpi_check(MPI_Iallreduce(&own, &all, 1, MPI_INT, MPI_MIN, channel, &request), "start");
  rt_mpi_wait(&request, "the ranks of this machine");
  return all != 0;
}

bool rt_segments_open(MPI_Comm channel, struct segment *segments, char *arena, size_t bytes,
                      struct accel_byte_range in_arena) {
  MPI_Request request;
  int ranks, own;
  MPI_Comm_size(channel, &ranks);
  MPI_Comm_rank(channel, &own);
  struct address address = make(bytes, &segments[own], arena, in_arena), *all = calloc((size_t)ranks, sizeof *all);
  struct problem problem;
  rt_problem(&problem, "no memory to start");
  if (all == NULL) rt_fail(&problem, 1);
  int size = (int)sizeof address;
  rt_mpi_check(MPI_Iallgather(&address, size, MPI_BYTE, all, size, MPI_BYTE, channel, &request), "start");
  rt_mpi_wait(&request, "the ranks of this machine");
  bool good = address.file >= 0;
  for (int r = 0; r < ranks && good; r++) good = r == own || find(&all[r], bytes, &segments[r]);
  good = all_agree(channel, good);
  if (address.file >= 0) close((int)address.file);
  free(all);
  if (!good) rt_segments_close(segments, ranks, bytes);
  return good;
}

void rt_segments_close(struct segment *segments, int count, size_t bytes) {
  for (int r = 0; r < count; r++)
    if (segments[r].progress != NULL) munmap(segments[r].progress, HEAD + bytes);
}
