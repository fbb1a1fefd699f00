/* Text: between texts and the numbers of their tokens, from standard input to standard output, for programs that write
 * text in numbers. */
#ifndef ACCEL_COMMANDS_DATA_TEXT_H
#define ACCEL_COMMANDS_DATA_TEXT_H

#include "runtime/base/problem.h"

/* Prints the tokens of the text on standard input as numbers in a line, by a tokenizer.json. False with a problem. */
bool text_encode(const char *tokenizer, struct problem *problem);

/* Prints the text of the numbers on standard input, each as it comes. */
bool text_decode(const char *tokenizer, struct problem *problem);

#endif
