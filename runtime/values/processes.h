/* What user code learns of its process: include/accel/process.h. */
#ifndef RUNTIME_VALUES_PROCESSES_H
#define RUNTIME_VALUES_PROCESSES_H

#include "include/accel/program.h"

/* What accel_process reports of the device, and of what ranks divide, is of this program from now on. It is kept. */
void rt_process_runs(const struct accel_program *program);

#endif
