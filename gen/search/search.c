#include "gen/search/search.h"

#include <string.h>

#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/search/space.h"

/* Plans that are made to find one that fits. */
enum { MOST_PLANS = 40 };

/* ---- Keys ---- */

static void put_axis(struct text *text, const char *name, int64_t ranks) {
  if (ranks > 1) text_printf(text, "%s%s: %lld", text->length > 1 ? ", " : "", name, (long long)ranks);
}

void mesh_keys(struct arena *arena, const struct mesh *mesh, const struct job *job, struct job_override keys[KEYS]) {
  struct text text = text_in(arena);
  const struct cut *cut = &mesh->division->cut;
  const int64_t lengths[AXES] = {1, mesh->shards, cut->cp, cut->sp, mesh->stages, cut->tp, cut->ep};
  text_puts(&text, "{");
  for (int i = 0; i < AXES; i++) put_axis(&text, job_axis_names[i], lengths[i]);
  put_axis(&text, "dp_replicate", mesh->replicas);
  const int64_t stages = mesh->stages * mesh->chunks;
  if (mesh->stages > 1) text_printf(&text, ", pp_schedule: %s", order_names[mesh->order]);
  if (mesh->zero_stage > 0) text_printf(&text, ", zero_stage: %d", mesh->zero_stage);
  if (cut->splits_sequence || mesh->chunks > 1) {
    text_puts(&text, ", megatron: {");
    if (cut->splits_sequence) text_puts(&text, "sequence_parallelism: true");
    if (mesh->chunks > 1)
      text_printf(&text, "%snum_layers_per_virtual_pipeline_stage: %lld", cut->splits_sequence ? ", " : "",
                  (long long)(mesh->division->layers / stages));
    text_puts(&text, "}");
  }
  text_puts(&text, "}");
  int64_t batch = mesh->batch;
  if (job->data.split_batches) batch *= mesh->replicas * mesh->shards * cut->ep;
  struct job way = *job;
  way.memory.activation_checkpointing = cut->checkpointing;
  keys[0] = (struct job_override){"parallelism", text_string(&text)};
  keys[1] = (struct job_override){"data.batch_size", arena_printf(arena, "%lld", (long long)batch)};
  keys[2] = (struct job_override){"accumulation.num_steps", arena_printf(arena, "%lld", (long long)mesh->steps)};
  keys[3] = (struct job_override){"memory.activation_checkpointing", job_word(&way, "memory.activation_checkpointing")};
}

/* ---- What the generator makes ---- */

struct tries {
  struct arena *arena;
  const struct planner *planner;
  const struct job_reader *reader;
  struct search_result *result;
  struct {
    struct refused {
      unsigned axes; /* that keys cannot have together, as bits */
      const char *why;
    } *items;
    int count, capacity;
  } refused;
  int n_plans;
};

/* The axes and choices of a mesh, by which keys go together or do not, whatever the lengths are. */
static unsigned kind_of(const struct mesh *mesh) {
  const struct cut *cut = &mesh->division->cut;
  const bool has[] = {cut->tp > 1,      cut->cp > 1,
                      cut->sp > 1,      cut->ep > 1,
                      mesh->stages > 1, cut->splits_sequence,
                      mesh->shards > 1, mesh->replicas > 1,
                      mesh->steps > 1,  cut->checkpointing != CHECKPOINTING_NONE};
  unsigned bits = (unsigned)mesh->order << 16 | (unsigned)mesh->zero_stage << 12;
  for (size_t i = 0; i < sizeof has / sizeof *has; i++) bits |= (unsigned)has[i] << i;
  return bits;
}

static struct job *read_keys(struct tries *tries, struct arena *arena, const struct mesh *mesh,
                             struct diagnostics *diags) {
  struct job_override keys[KEYS];
  mesh_keys(arena, mesh, tries->result->job, keys);
  return tries->reader->read(tries->reader->context, arena, keys, KEYS, diags);
}

/* Whether its keys go together: asked once of each kind. */
static const char *refusal_of(struct tries *tries, const struct mesh *mesh) {
  unsigned kind = kind_of(mesh);
  for (int i = 0; i < tries->refused.count; i++)
    if (tries->refused.items[i].axes == kind) return tries->refused.items[i].why;
  struct arena *own = arena_new();
  struct diagnostics diags = diagnostics_in(own);
  const char *why = read_keys(tries, own, mesh, &diags) == NULL ? diag_first_error(tries->arena, &diags) : NULL;
  arena_free(own);
  if (why != NULL) ARENA_PUSH(tries->arena, tries->refused, ((struct refused){kind, why}));
  return why;
}

static const char *too_large(const struct tries *tries, int64_t bytes) {
  return arena_printf(tries->arena, "its plan takes %s", bytes_text(tries->arena, bytes));
}

static void plan_candidate(struct tries *tries, struct candidate *candidate) {
  struct arena *own = arena_new();
  struct diagnostics diags = diagnostics_in(own);
  const struct job *job = read_keys(tries, own, &candidate->mesh, &diags);
  const struct program *program = job != NULL ? plan_least(own, tries->planner, job, &diags, NULL, NULL) : NULL;
  tries->n_plans++;
  if (program == NULL)
    candidate->refused = diag_first_error(tries->arena, &diags);
  else if (candidate->bytes = program->figures.bytes.total, candidate->bytes > tries->result->hardware.memory)
    candidate->refused = too_large(tries, candidate->bytes);
  arena_free(own);
}

static void try_candidate(struct tries *tries, struct candidate *candidate) {
  candidate->tried = true;
  candidate->refused = refusal_of(tries, &candidate->mesh);
  if (candidate->refused == NULL) plan_candidate(tries, candidate);
}

/* ---- The best ---- */

static bool same_mesh(const struct mesh *a, const struct mesh *b) {
  const struct cut *p = &a->division->cut, *q = &b->division->cut;
  return p->tp == q->tp && p->cp == q->cp && p->sp == q->sp && p->ep == q->ep &&
         p->splits_sequence == q->splits_sequence && a->replicas == b->replicas && a->shards == b->shards &&
         a->stages == b->stages && a->zero_stage == b->zero_stage;
}

static void find_best(struct search_result *result) {
  for (int i = 0; i < result->n_candidates && result->n_best < BEST; i++) {
    bool other = true;
    for (int k = 0; k < result->n_best && other; k++)
      other = !same_mesh(&result->best[k]->mesh, &result->candidates[i].mesh);
    if (other) result->best[result->n_best++] = &result->candidates[i];
  }
}

static void find_chosen(struct tries *tries) {
  struct search_result *result = tries->result;
  for (int i = 0; i < result->n_candidates && result->chosen == NULL && tries->n_plans < MOST_PLANS; i++) {
    struct candidate *candidate = &result->candidates[i];
    try_candidate(tries, candidate);
    if (candidate->refused == NULL) result->chosen = candidate;
  }
}

const struct search_result *search_mesh(struct arena *arena, const struct planner *planner, const struct job *job,
                                        const struct job_reader *reader, struct diagnostics *diags) {
  struct search_result *result = arena_alloc(arena, sizeof *result);
  result->job = job;
  if (!hardware_of(job, &result->hardware, diags) || !find_divisions(arena, planner, result, diags)) return NULL;
  result->model_flops = result->divisions[0]->matmul_flops;
  find_candidates(arena, result);
  find_best(result);
  struct tries tries = {.arena = arena, .planner = planner, .reader = reader, .result = result};
  find_chosen(&tries);
  for (int i = 0; i < result->n_best; i++)
    if (!result->best[i]->tried) try_candidate(&tries, result->best[i]);
  return result;
}
