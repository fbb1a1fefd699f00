#include "runtime/nccl/groups.h"

#include "include/accel/gpu/collectives.h"
#include "runtime/gpu/state.h"
#include "runtime/process/world.h"

#include <stdlib.h>

/* A segment of the arena that is registered with NCCL. */
struct registration {
  void *registered; /* NULL: it was not taken */
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  ncclWindow_t window; /* NULL: none */
#endif
};

/* A group of ranks, and what is registered of the arena with NCCL. */
struct group {
  ncclComm_t comm; /* NULL: the axis has one rank */
  int length, stride;
  struct registration *registrations; /* of the arena's segments; NULL: none are */
};

static struct group groups[ACCEL_AXES];
static ncclComm_t all_ranks;

void rt_nccl_check(ncclResult_t result, const char *call, const char *file, int line) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  struct refusal refusal = {"NCCL", call, file, line, ncclGetErrorString(result), ncclGetLastError(NULL)};
  rt_refused(&refusal, "NCCL_DEBUG=WARN in the environment makes NCCL say more");
}

ncclComm_t rt_nccl_along(enum accel_axis axis) {
  return groups[axis].comm;
}

static int index_in(const struct group *group, int rank) {
  return rank / group->stride % group->length;
}

bool rt_nccl_is_in_group(enum accel_axis axis, int rank) {
  const struct group *group = &groups[axis];
  int own = rt_world()->rank;
  if (group->comm == NULL) return rank == own;
  return rank - index_in(group, rank) * group->stride == own - index_in(group, own) * group->stride;
}

/* ---- The arena ---- */

/* NCCL then reads and writes there itself, and with windows of equal offsets all at once (NVLink SHARP); where it
 * cannot, it copies through buffers of its own. All ranks get the same answer. */
static void register_segment(ncclComm_t comm, char *first, size_t bytes, struct registration *registration) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  int version = 0;
  RT_NCCL(ncclGetVersion(&version));
  if (version >= NCCL_VERSION(2, 27, 0) &&
      ncclCommWindowRegister(comm, first, bytes, &registration->window, NCCL_WIN_COLL_SYMMETRIC) == ncclSuccess &&
      registration->window != NULL)
    return;
  registration->window = NULL;
#endif
  if (ncclCommRegister(comm, first, bytes, &registration->registered) != ncclSuccess) registration->registered = NULL;
}

/* Ranks of a group register alike: those of different stages have different segments. */
static void register_arena(struct group *group, enum accel_axis axis) {
  const struct cuda_device *device = rt_cuda_device();
  if (axis == ACCEL_PP) return;
  group->registrations = calloc((size_t)device->n_segments, sizeof *group->registrations);
  for (int i = 0; group->registrations != NULL && i < device->n_segments; i++)
    register_segment(group->comm, device->arena + device->segments[i].first, device->segments[i].bytes,
                     &group->registrations[i]);
}

static void forget_arena(struct group *group) {
  for (int i = 0; group->registrations != NULL && i < rt_cuda_device()->n_segments; i++) {
    const struct registration *registration = &group->registrations[i];
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
    if (registration->window != NULL) RT_NCCL(ncclCommWindowDeregister(group->comm, registration->window));
#endif
    if (registration->registered != NULL) RT_NCCL(ncclCommDeregister(group->comm, registration->registered));
  }
  free(group->registrations);
}

/* ---- Beginning and end ---- */

/* Sums in switches (NVLS) may differ from call to call, says NVIDIA/nccl's issue 1497. */
static void forbid_switches(void) {
  if (rt_cuda_device()->plan.deterministic) setenv("NCCL_NVLS_ENABLE", "0", 0);
}

static ncclComm_t join_all(void) {
  const struct world *world = rt_world();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclUniqueId id;
  ncclComm_t comm;
  if (world->rank == 0) RT_NCCL(ncclGetUniqueId(&id));
  rt_world_broadcast(&id, sizeof id);
  RT_NCCL(ncclCommInitRankConfig(&comm, world->ranks, id, world->rank, &config));
  return comm;
}

/* Groups share what NCCL holds for all ranks. */
static void divide(const struct accel_program *program) {
  int rank = rt_world()->rank;
  for (int i = ACCEL_AXES - 1; i >= 0; i--) {
    struct group *group = &groups[i];
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.splitShare = 1;
    *group = (struct group){.length = program->mesh[i] > 1 ? program->mesh[i] : 1,
                            .stride = rt_stride_along(program, (enum accel_axis)i)};
    if (group->length == 1) continue;
    int along = index_in(group, rank);
    RT_NCCL(ncclCommSplit(all_ranks, rank - along * group->stride, along, &group->comm, &config));
    register_arena(group, (enum accel_axis)i);
  }
}

static void close_collectives(void) {
  rt_nccl_watch_end();
  rt_nccl_close_stages();
  for (int i = 0; i < ACCEL_AXES; i++) {
    if (groups[i].comm == NULL) continue;
    forget_arena(&groups[i]);
    RT_NCCL(ncclCommFinalize(groups[i].comm));
    RT_NCCL(ncclCommDestroy(groups[i].comm));
    groups[i].comm = NULL;
  }
  RT_NCCL(ncclCommFinalize(all_ranks));
  RT_NCCL(ncclCommDestroy(all_ranks));
  rt_nccl_close_order();
}

void accel_gpu_open_collectives(const struct accel_program *program) {
  rt_cuda_close_collectives = close_collectives;
  rt_nccl_open_order(2 * (size_t)program->sharding.n_rows); /* two of each row at most: along two axes */
  forbid_switches();
  all_ranks = join_all();
  divide(program);
  rt_nccl_watch(all_ranks);
  for (int i = 0; i < ACCEL_AXES; i++)
    if (groups[i].comm != NULL) rt_nccl_watch(groups[i].comm);
  if (groups[ACCEL_PP].comm != NULL) rt_nccl_open_stages(groups[ACCEL_PP].comm, program);
}
