/* Pattern: the regular expressions of the schema, of one simple form: ^ and $ around character classes, each [ ] with
 * an optional * or +. Classes hold ASCII characters, ranges, \xHH and a leading ^. No class shares a character with the
 * one before it where that repeats, so matching never has to go back. */
#ifndef ACCEL_SPEC_PATTERN_H
#define ACCEL_SPEC_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the text matches; a pattern of another form matches nothing, so that a test sees it. */
bool pattern_matches(const char *pattern, const char *text, size_t length);

#endif
