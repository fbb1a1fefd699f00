/* Origin: who wrote each line of a program: lines of templates, and the model's lines that they write about. */
#ifndef ACCEL_EMIT_ORIGIN_H
#define ACCEL_EMIT_ORIGIN_H

#include "gen/format/format.h"
#include "gen/ir/graph.h"
#include "gen/jinja/jinja.h"

struct line_origin {
  struct jinja_location *templates; /* distinct lines of templates, in the order of the text; columns are 0 */
  int n_templates, templates_capacity;
  const struct jinja_location *callers; /* of the first of them: macro calls and includes, innermost first */
  int n_callers;
  struct location *model; /* distinct lines of the model, columns 0 */
  int n_model, model_capacity;
};

/* By output line, from 0; and the templates that were read for it. */
struct origins {
  struct line_origin *lines;
  int count;
  const struct templates *templates;
};

/* Says of a template's value, a map, which line of the model it comes from; or which node. What is written while a loop
 * is at that map has this origin, unless a loop inside of it is at one with an origin of its own. More than one can be
 * said. */
void set_origin(struct arena *arena, struct jinja_value map, struct location where);
void set_node_origin(struct arena *arena, struct jinja_value map, const struct node *node);

/* Fills the lines of `origins`: those of the formatted text of an output that was rendered with its source map. */
void find_origins(struct arena *arena, const struct jinja_output *output, const struct format_output *formatted,
                  struct origins *origins);

#endif
