/* Search: the mesh of a job with `parallelism: auto`.
 *
 * Divisions of a layer are planned once each. The model of cost (gen/search/mesh.h) then says of every mesh of the
 * job's ranks what a step takes, and what memory. Of those that fit, from the fastest on, it is tried whether the
 * generator makes the program: whether its keys go together, and whether the plan of it fits. */
#ifndef ACCEL_SEARCH_SEARCH_H
#define ACCEL_SEARCH_SEARCH_H

#include <jansson.h>

#include "gen/search/mesh.h"

/* Reads the job again with other keys: gen/commands does, who has its text. */
struct job_reader {
  /* In `arena`; NULL with errors in `diags` where they do not go together. */
  struct job *(*read)(void *context, struct arena *arena, const struct job_override *keys, int n_keys,
                      struct diagnostics *diags);
  void *context;
};

/* One way to run the job. */
struct candidate {
  struct mesh mesh;
  struct estimate estimate;
  int number;          /* in the order of the search */
  bool tried;          /* whether the generator makes it */
  const char *refused; /* why it does not; NULL: it does */
  int64_t bytes;       /* of its plan; 0: it was not planned */
};

enum { BEST = 10, KEYS = 4 };

struct search_result {
  const struct job *job;
  struct hardware hardware;
  double model_flops; /* of a sample */
  int64_t n_meshes;   /* that the model of cost has seen */
  int64_t n_fitting;  /* of them: that it takes to fit */
  const struct division **divisions;
  int n_divisions;
  struct candidate *candidates; /* the fastest of each mesh, recomputation and order that fits; from the fastest on */
  int n_candidates;
  struct candidate *best[BEST]; /* of different meshes */
  int n_best;
  const struct candidate *chosen; /* the fastest that the generator makes; NULL: there is none */
  int64_t least;                  /* bytes of the mesh that takes the least, whether it fits or not */
};

/* Searches. NULL with errors in `diags` where the hardware is not known or the job cannot be planned at all. */
const struct search_result *search_mesh(struct arena *arena, const struct planner *planner, const struct job *job,
                                        const struct job_reader *reader, struct diagnostics *diags);

/* The keys of a job that runs so: KEYS of them. */
void mesh_keys(struct arena *arena, const struct mesh *mesh, const struct job *job, struct job_override keys[KEYS]);

/* "tp 8 + sequence, pp 4 (1f1b), dp_shard 2 (zero 1)": the axes of several ranks. */
const char *mesh_text(struct arena *arena, const struct mesh *mesh);

/* The ten best with why, human-readable; and the result as an object, as schemas/plan.schema.json describes it. */
const char *search_text(struct arena *arena, const struct search_result *result);
json_t *search_json(const struct search_result *result);

#endif
