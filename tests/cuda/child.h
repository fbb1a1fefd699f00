/* A case in a process of its own: what the stand-ins find, and what the runtime refuses, ends it. */
#ifndef TESTS_CUDA_CHILD_H
#define TESTS_CUDA_CHILD_H

/* Runs `body` in a child, whose end is exit(0), with an environment of NAME=VALUE words, and gives its status. What it
 * said on standard error stands at `text`. */
int in_child(void (*body)(void), const char *environment, char *text, int size);

#endif
