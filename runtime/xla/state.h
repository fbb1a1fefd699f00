/* What the files of runtime/xla share. */
#ifndef RUNTIME_XLA_STATE_H
#define RUNTIME_XLA_STATE_H

#include "runtime/xla/pjrt.h"
#include "runtime/xla/xla.h"

struct xla {
  const PJRT_Api *api;
  PJRT_Client *client;
  PJRT_Device *const *addressable; /* `devices` of them; the client's */
  char *platform, *version;
  int devices;
  long long size, changed; /* of the plugin's file: its version alone does not tell builds apart */
};

struct xla_program {
  struct xla *xla;
  PJRT_LoadedExecutable *loaded;
  PJRT_Executable *executable;
  size_t results;
  int replicas;
  bool kept;
};

/* The arguments of a call of the API: the structure's size, which tells the plugin what members there are, and others.
 */
#define RT_PJRT(type, ...) ((type){.struct_size = type##_STRUCT_SIZE, __VA_ARGS__})

/* Whether a call has succeeded. If not, the problem is that `what` cannot be done, with the plugin's reason; the error
 * is freed. */
bool rt_xla_good(const PJRT_Api *api, PJRT_Error *error, const char *what, struct problem *problem);

/* Waits for an event, NULL being none, and frees it. */
bool rt_xla_await(const PJRT_Api *api, PJRT_Event *event, const char *what, struct problem *problem);

/* From here to rt_xla_loud, what is written to standard error is dropped: plugins log there what nobody asked for.
 * Gives what rt_xla_loud takes. */
int rt_xla_quiet(void);
void rt_xla_loud(int kept);

/* Reads the compiled program of the module from the folder; false: it is not there, or of another plugin or number of
 * replicas, which is that of the program. */
bool rt_xla_read_kept(struct xla *xla, const char *module, const char *folder, struct xla_program *program);

/* Keeps it there. */
void rt_xla_keep(const struct xla_program *program, const char *module, const char *folder);

#endif
