/* touch: how long a machine takes to give a process memory, in the way that trainers ask for it: anonymous, in huge
 * pages where the system has them, first touched by all threads, each in a part of its own.
 *
 * usage: touch BYTES THREADS
 *
 * Prints the seconds. */
#define _DEFAULT_SOURCE
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  const size_t bytes = (size_t)strtoull(argv[1], NULL, 10), huge = (size_t)2 << 20;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  omp_set_num_threads(atoi(argv[2]));
#pragma omp parallel
  (void)omp_get_thread_num(); /* the threads are there before the clock runs */
  const double began = omp_get_wtime();
  char *mapping = mmap(NULL, bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return 1;
  char *base = (char *)(((uintptr_t)mapping + huge - 1) / huge * huge);
#ifdef MADV_HUGEPAGE
  (void)madvise(base, bytes, MADV_HUGEPAGE);
#endif
#pragma omp parallel for schedule(static)
  for (size_t at = 0; at < bytes; at += page) *(volatile char *)(base + at) = 1;
  printf("%.6f\n", omp_get_wtime() - began);
  return 0;
}
