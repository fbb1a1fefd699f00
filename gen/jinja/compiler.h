/* Compiler: annotates a parsed tree so that the evaluator looks nothing up twice. Every variable gets its slot, every
 * scope the list of what it must set when it is entered, every filter and test its function. */
#ifndef ACCEL_JINJA_COMPILER_H
#define ACCEL_JINJA_COMPILER_H

#include "gen/jinja/ast.h"
#include "gen/jinja/lexer.h"

/* Annotates the template in place; unknown filters and tests end it with a syntax error. */
void jj_annotate(struct jinja_env *env, struct syntax_fault *fault, struct template *template);

#endif
