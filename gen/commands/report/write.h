/* Pages: one file of HTML, by a template of share/report. */
#ifndef ACCEL_COMMANDS_REPORT_WRITE_H
#define ACCEL_COMMANDS_REPORT_WRITE_H

#include "gen/commands/cli/inputs.h"
#include "gen/commands/cli/options.h"
#include "gen/jinja/jinja.h"

/* A text for a page: bytes that are no UTF-8, and control characters, become '?'. */
struct jinja_value page_text(struct arena *arena, const char *text);

/* A JSON text for the inside of a script element, which nothing in it ends. */
struct jinja_value page_json(struct arena *arena, const char *json);

/* The page of a template, such as "plan.html.j2", with the version and the style in addition to its values. `state`: of
 * a page that is served, which names what it was made of; NULL of one that stands alone. False after a message on
 * standard error. */
bool page_render(struct arena *arena, const char *name, struct jinja_value page, const char *state,
                 struct jinja_output *output);

/* Writes one that stands alone. A status; all but STATUS_OK after a message on standard error. */
int page_write(const struct options *options, const char *name, struct jinja_value page, const struct inputs *inputs,
               const char *path);

#endif
