/* What the text of a program may hold: words, macros, pragmas, attributes and headers, each by a list. What is on no
 * list is refused. */
#ifndef ACCEL_AUDIT_PROGRAM_GRAMMAR_H
#define ACCEL_AUDIT_PROGRAM_GRAMMAR_H

#include <stdbool.h>

#include "gen/base/text.h"

/* A pragma, from its first word on: exactly these directives with exactly these clauses, and no comment. */
bool grammar_has_pragma(const char *text);

/* An attribute's name, and its arguments with their brackets ("": none). */
bool grammar_has_attribute(const char *name, const char *arguments);

/* A header that is included as <name>. */
bool grammar_has_header(const char *name);

/* A name that C reserves for compilers and libraries: with two underscores, or one and a capital. */
bool grammar_is_reserved(const char *name);
bool grammar_has_reserved(const char *name, bool is_device);

/* A macro that a library's header defines. */
bool grammar_has_macro(const char *name);

/* A name that a condition of the preprocessor may ask for, other than the macros that the text defines. */
bool grammar_has_condition(const char *name);

/* A word that changes how a declaration is compiled or linked: refused wherever it stands. */
bool grammar_refuses_word(const char *word);

/* A compiler, a flag of it that leaves a text and its meaning as they are, and a package of pkg-config: what the
 * command that compiles a program may have, next to files. */
bool grammar_has_compiler(const char *name);
bool grammar_has_flag(const char *word);
bool grammar_has_package(const char *name);

/* A flag that a compiler writes into an object, by its own defaults and for -march=native: instructions, sizes of
 * caches, what hardens a program. */
bool grammar_has_machine_flag(const char *word);

/* The lists, human-readable: `accel-gen audit --grammar`. */
void grammar_write(struct text *text);

#endif
