/* Formatting: the printf style of "%" and the brace style of str.format. */
#ifndef ACCEL_JINJA_FORMAT_H
#define ACCEL_JINJA_FORMAT_H

#include "gen/jinja/tables.h"

/* format % value, where value is a tuple of arguments, a map, or one argument. */
struct jinja_value jj_format_percent(struct run *run, struct jinja_value format, struct jinja_value value);

/* format.format(...). */
struct jinja_value jj_format_braces(struct run *run, struct jinja_value format, const struct call *call);

/* The first place of `needle` in the bytes, or NULL. */
const char *jj_find_bytes(const char *bytes, size_t length, const char *needle, size_t needle_length);

#endif
