#include "gen/model/subset.h"

#include "gen/model/ctype.h"

static const struct outside *unknown(const struct syntax *node) {
  static const struct outside reasons[] = {
      [UNKNOWN_EXPRESSION] = {"this expression", "write it in plain C"},
      [UNKNOWN_STATEMENT] = {"this statement", "write it with if, for, while, switch and calls"},
      [UNKNOWN_CONSTANT] = {"this constant", "write a number"},
      [UNKNOWN_FOR] = {"a for without all of its parts inside a macro", "write the loop outside the macro"},
      [UNKNOWN_MEMBER] = {"a member of an unnamed struct", "give the inner struct a name"},
      [UNKNOWN_SELECTION] = {"_Generic", "call the function for the type that you have"},
      [UNKNOWN_COMPLEX] = {"a complex number", "a model has real numbers"},
      [UNKNOWN_DEEP_EXPRESSION] = {"an expression nested this deep", "keep parts of it in variables"},
      [UNKNOWN_DEEP_STATEMENT] = {"a statement nested this deep", "take parts out into functions"},
  };
  return &reasons[node->unknown];
}

static const struct outside *operation(const struct syntax *node) {
  static const struct outside address = {"an address", "pass the value, and return what changes in a struct"};
  static const struct outside strange = {"this operator", "a model has real numbers and integers"};
  if (node->operation == OPERATOR_ADDRESS) return &address;
  return node->operation == OPERATOR_OTHER ? &strange : NULL;
}

static const struct outside *member(const struct syntax *node) {
  static const struct outside strange = {"a member of a union, or of a struct with bit-fields or unnamed parts",
                                         "write a plain struct"};
  const struct syntax *base = node->parts[0];
  if (subset_outside(base) != NULL) return NULL; /* then the base is what to change */
  return ctype_of(base->type) == CTYPE_STRUCT && node->text[0] != '\0' ? NULL : &strange;
}

static const struct outside *choice(const struct syntax *node) {
  static const struct outside bare = {"a switch without a block", "write switch (value) { case ...: ... }"};
  return node->n_parts == 2 && node->parts[1]->kind == SYNTAX_BLOCK ? NULL : &bare;
}

const struct outside *subset_label(void) {
  static const struct outside inside = {"a case inside another statement of the switch",
                                        "put each case directly into the block of the switch"};
  return &inside;
}

const struct outside *subset_outside(const struct syntax *node) {
  static const struct outside wide = {"a wide string", "write \"...\""};
  static const struct outside name = {"a function that is not called", "call functions by their names"};
  static const struct outside foreign = {"a variable of the system", "a model knows only its own values"};
  static const struct outside pointer = {"a call through a pointer", "call functions by their names"};
  static const struct outside range = {"a range of cases", "write one case for each value, or an if"};
  static const struct outside block = {"a statement inside an expression", "write a function"};
  static const struct outside jump = {"goto", "write a loop with break, or return from a function"};
  static const struct outside assembler = {"assembler", "a model is read, not run: use tensor functions"};
  switch (node->kind) {
  case SYNTAX_UNKNOWN:
    return unknown(node);
  case SYNTAX_STRING:
    return node->text[0] == '"' ? NULL : &wide;
  case SYNTAX_FUNCTION:
    return &name;
  case SYNTAX_VARIABLE:
    return node->variable->is_system ? &foreign : NULL;
  case SYNTAX_CALL:
    return node->function == NULL ? &pointer : NULL;
  case SYNTAX_UNARY:
  case SYNTAX_BINARY:
    return operation(node);
  case SYNTAX_MEMBER:
    return member(node);
  case SYNTAX_SWITCH:
    return choice(node);
  case SYNTAX_CASE:
    return node->n_parts == 2 ? NULL : &range;
  case SYNTAX_STATEMENTS:
    return &block;
  case SYNTAX_GOTO:
  case SYNTAX_LABEL:
    return &jump;
  case SYNTAX_ASSEMBLER:
    return &assembler;
  default:
    return NULL;
  }
}
