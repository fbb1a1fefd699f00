/* A program that runs a trained model forward alone, on one process or on ranks that divide its tensors. */
#ifndef RUNTIME_WEIGHTS_TRAINED_H
#define RUNTIME_WEIGHTS_TRAINED_H

#include "include/accel/trainer.h"

/* Joins the other ranks, before anything else is done. The program with each layer's rows and with whole tensors, as
 * files have them, which belongs to the process. Ends it where there is no memory. */
const struct accel_program *rt_trained_join(const struct accel_program *program);

/* Forms the groups of the program's mesh and sets the number of threads. Ends all ranks where they are not as many as
 * the program is for. */
void rt_trained_divide(const struct accel_program *program);

/* Reads the parameters as rt_weights_load_trained does; where ranks divide tensors, this rank's parts. Ends all ranks
 * where one cannot. All ranks call it. */
void rt_trained_read(const struct accel_program *program, const char *path, void *weights);

/* Leaves the other ranks, at a good end. */
void rt_trained_leave(const struct accel_program *program);

#endif
