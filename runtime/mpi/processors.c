/* The topology is hwloc's; built without it, processors are counted and none can be bound. */
#include "runtime/mpi/processors.h"

#include "runtime/mpi/channel.h"
#include "runtime/process/fail.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What one rank may run on and has taken, as the others of its machine see it. */
struct claim {
  char allowed[256]; /* processors, as a list: 0-3,8-11 */
  char taken[256];   /* where it stays, for people; empty: on no part of its own */
};

static void exchange(const struct claim *own, struct claim *all) {
  MPI_Request request;
  int size = (int)sizeof *own;
  rt_mpi_check(MPI_Iallgather(own, size, MPI_BYTE, all, size, MPI_BYTE, rt_channel_here(), &request), "start");
  rt_mpi_wait(&request, "the ranks of this machine");
}

/* ---- One line for all ranks of the machine ---- */

static void describe(const struct claim *all, char *text, size_t size) {
  enum { SHOWN = 8 };
  int first = rt_world()->rank, count = rt_world()->local_ranks;
  size_t at = 0;
  text[0] = '\0';
  for (int i = 0; i < count && i < SHOWN && at < size; i++) {
    if (all[i].taken[0] == '\0') continue;
    at += (size_t)snprintf(text + at, size - at, "%s rank %d to %s", at == 0 ? "bound:" : ",", first + i, all[i].taken);
  }
  if (count > SHOWN && at > 0 && at < size) snprintf(text + at, size - at, ", ...");
}

#ifdef RUNTIME_HWLOC
#include <hwloc.h>

/* Of the ranks that may run where this one may: how many there are, and how many before it. */
static int ranks_alike(const struct claim *all, int *before) {
  int own = rt_world()->local_rank, count = 0;
  for (int i = 0; i < rt_world()->local_ranks; i++) {
    if (strcmp(all[i].allowed, all[own].allowed) != 0) continue;
    if (i < own) ++*before;
    count++;
  }
  return count;
}

/* Part i of n of the topology's cores, whose order keeps near ones together; a core is divided only among more ranks
 * than there are cores. Parts are equal but for one core, as all ranks wait for the slowest. */
static hwloc_bitmap_t part_of(hwloc_topology_t topology, int i, int n) {
  int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
  hwloc_obj_type_t type = cores >= n ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  int count = cores >= n ? cores : hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
  int first = (int)((long long)count * i / n), end = (int)((long long)count * (i + 1) / n);
  hwloc_bitmap_t part = count > 0 ? hwloc_bitmap_alloc() : NULL;
  for (int k = first; part != NULL && (k < end || k == first); k++)
    hwloc_bitmap_or(part, part, hwloc_get_obj_by_type(topology, type, (unsigned)k)->cpuset);
  return part;
}

static void name_part(hwloc_topology_t topology, hwloc_const_bitmap_t part, char *text, size_t size) {
  char list[128], nodes[64];
  hwloc_bitmap_t memory = hwloc_bitmap_alloc();
  hwloc_cpuset_to_nodeset(topology, part, memory);
  hwloc_bitmap_list_snprintf(list, sizeof list, part);
  hwloc_bitmap_list_snprintf(nodes, sizeof nodes, memory);
  hwloc_bitmap_free(memory);
  snprintf(text, size, "processors %s (memory node %s)", list, nodes);
}

static bool fail(struct problem *problem, const char *why) {
  rt_problem(problem, "devices.numa_affinity: %s", why);
  return rt_help(problem, "set devices.numa_affinity: false, and let what starts the processes bind them");
}

static bool open_topology(hwloc_topology_t *topology, hwloc_bitmap_t allowed) {
  if (hwloc_topology_init(topology) != 0) return false;
  if (hwloc_topology_load(*topology) == 0 && hwloc_get_cpubind(*topology, allowed, HWLOC_CPUBIND_PROCESS) == 0) {
    hwloc_bitmap_and(allowed, allowed, hwloc_topology_get_allowed_cpuset(*topology));
    return true;
  }
  hwloc_topology_destroy(*topology);
  return false;
}

/* What one rank takes of `allowed`, which it and others with the same claim share. */
static bool take(hwloc_topology_t topology, hwloc_const_bitmap_t allowed, bool bind, struct claim *all,
                 struct processors *taken, struct problem *problem) {
  struct claim *own = &all[rt_world()->local_rank];
  int before = 0, count = ranks_alike(all, &before);
  bool whole = hwloc_bitmap_isequal(allowed, hwloc_topology_get_allowed_cpuset(topology)) != 0;
  hwloc_topology_restrict(topology, allowed, 0);
  hwloc_bitmap_t part = part_of(topology, before, count);
  if (part == NULL) return !bind || fail(problem, "this machine's topology has no processors");
  int cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology, part, HWLOC_OBJ_CORE);
  taken->cores = cores > 0 ? cores : 1;
  bool good = !bind || count == 1 || hwloc_set_cpubind(topology, part, HWLOC_CPUBIND_PROCESS) == 0;
  if (good && (bind || !whole)) name_part(topology, bind ? part : allowed, own->taken, sizeof own->taken);
  hwloc_bitmap_free(part);
  return good || fail(problem, "this system does not bind a process to processors");
}

bool rt_processors_take(bool bind, struct processors *taken, struct problem *problem) {
  hwloc_topology_t topology;
  hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
  struct claim own = {"", ""}, *all = calloc((size_t)rt_world()->local_ranks, sizeof *all);
  *taken = (struct processors){0};
  rt_problem(problem, "no memory to start");
  if (all == NULL || allowed == NULL) rt_fail(problem, 1);
  bool known = open_topology(&topology, allowed), good = known || !bind;
  if (!good) fail(problem, "the processors of this machine are not known");
  if (bind && omp_get_proc_bind() != omp_proc_bind_false) good = fail(problem, "OMP_PROC_BIND binds threads, too");
  if (known) hwloc_bitmap_list_snprintf(own.allowed, sizeof own.allowed, allowed);
  exchange(&own, all);
  if (known && good) good = take(topology, allowed, bind, all, taken, problem);
  own = all[rt_world()->local_rank];
  exchange(&own, all);
  describe(all, taken->machine, sizeof taken->machine);
  if (known) hwloc_topology_destroy(topology);
  hwloc_bitmap_free(allowed);
  free(all);
  return good;
}

#else

bool rt_processors_take(bool bind, struct processors *taken, struct problem *problem) {
  int local = rt_world()->local_ranks, processors = omp_get_num_procs();
  *taken = (struct processors){0};
  if (local > 1) taken->cores = processors > local ? processors / local : 1;
  if (!bind) return true;
  rt_problem(problem, "devices.numa_affinity: this runtime was built without hwloc");
  return rt_help(problem, "install libhwloc-dev and build accel-gen again, or set devices.numa_affinity: false");
}

#endif
