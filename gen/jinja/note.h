/* Tells a scope which names its code reads and writes, in the order of the text and without entering inner scopes. */
#ifndef ACCEL_JINJA_NOTE_H
#define ACCEL_JINJA_NOTE_H

#include "gen/jinja/scope.h"

/* NULL: there is nothing. */
void jj_note(struct scope *scope, const struct node *node);
void jj_note_all(struct scope *scope, const struct nodes *nodes);

#endif
