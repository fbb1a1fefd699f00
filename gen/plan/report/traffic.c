#include "gen/plan/report/traffic.h"

#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/plan/ranks/collectives.h"
#include "gen/plan/ranks/sequence.h"

static long long ranks_of(const struct program *program, const struct collective *collective) {
  return (long long)program->job->parallelism.axes[collective->axis];
}

const char *traffic_summary(const struct program *program) {
  int64_t bytes = 0;
  int times = 0;
  const char *often = "a step";
  for (int i = 0; i < program->ranks.collectives.count; i++) {
    const struct collective *collective = &program->ranks.collectives.items[i];
    if (collective->until > 0) continue;
    bytes += collective_bytes(collective);
    times += (int)collective->times;
    if (collective->every > 0) often = arena_printf(program->arena, "each %lld steps", (long long)collective->every);
  }
  if (bytes == 0) return "traffic   none (1 rank)\n";
  return arena_printf(program->arena, "traffic   %s %s from each of %lld ranks, in %d collectives\n",
                      bytes_text(program->arena, bytes), often, (long long)program->job->devices.ranks, times);
}

/* The statement of the backward after which it begins. */
static const char *beginning(const struct program *program, const struct collective *collective) {
  return collective->after != NULL ? step_label(program, collective->after, collective->iteration) : NULL;
}

const char *traffic_text(const struct program *program) {
  struct text text = text_in(program->arena);
  for (int i = 0; i < program->ranks.collectives.count; i++) {
    const struct collective *c = &program->ranks.collectives.items[i];
    const char *most = c->by_data ? "at most " : "";
    text_printf(&text, "  %3d  %s %s%lld bytes over %s (%lld ranks): %s", i + 1, collective_name(c->kind), most,
                (long long)(c->count * c->width), job_axis_names[c->axis], ranks_of(program, c), c->what);
    if (c->after != NULL) text_printf(&text, ", after %s", beginning(program, c));
    if (c->chained) text_printf(&text, ", after %d", i);
    if (c->overlaps != NULL) text_printf(&text, ", overlaps %s", c->overlaps);
    if (c->until > 0) text_printf(&text, ", in the first %lld steps", (long long)c->until);
    if (c->from > 0) text_printf(&text, ", from step %lld on", (long long)c->from + 1);
    if (c->every > 0) text_printf(&text, ", each %lld steps", (long long)c->every);
    if (c->times > 1) text_printf(&text, ", %lld times", (long long)c->times);
    text_puts(&text, "\n");
  }
  return text_string(&text);
}

json_t *traffic_json(const struct program *program) {
  json_t *list = json_array();
  for (int i = 0; i < program->ranks.collectives.count; i++) {
    const struct collective *c = &program->ranks.collectives.items[i];
    json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:s*, s:s*, s:b}", "kind",
                                          collective_name(c->kind), "axis", job_axis_names[c->axis], "ranks",
                                          (json_int_t)ranks_of(program, c), "what", c->what, "bytes",
                                          (json_int_t)(c->count * c->width), "times", (json_int_t)c->times, "from",
                                          (json_int_t)c->from, "until", (json_int_t)c->until, "every",
                                          (json_int_t)(c->every > 0 ? c->every : 1), "after", beginning(program, c),
                                          "overlaps", c->overlaps, "chained", c->chained));
  }
  return list;
}
