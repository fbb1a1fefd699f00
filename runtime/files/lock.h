/* A folder that one process at a time may write in: what says so is a lock of fcntl(2) on the file run.lock in it,
 * which the system lets go of when the process ends in whatever way. */
#ifndef RUNTIME_FILES_LOCK_H
#define RUNTIME_FILES_LOCK_H

#include "runtime/base/problem.h"

/* Makes the folder where it is missing and locks it until this process ends; one folder a process. False when another
 * process has it and does not end within two seconds; the problem names its host and its number. Where the file system
 * has no locks that is warned of, and all else is the same. At a regular end of the process run.lock is removed, and so
 * are the folders that were made for it, if nothing was written in them. */
bool rt_lock_folder(const char *folder, struct problem *problem);

/* Whether another process has a folder. */
bool rt_folder_is_locked(const char *folder);

#endif
