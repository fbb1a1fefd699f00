/* Threads that the runtime starts for work beside the one that computes. */
#ifndef RUNTIME_PROCESS_THREAD_H
#define RUNTIME_PROCESS_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* Starts a thread that no signal of another process reaches: those are the business of the thread that computes. A
 * signal of its own fault does, so that a mapped file that becomes shorter ends the process with a message
 * (runtime/files/mapping.h). stack: bytes; 0: as the system gives them. 0, or an error as of pthread_create. */
int rt_thread_start(pthread_t *thread, size_t stack, void *(*work)(void *argument), void *argument);

#endif
