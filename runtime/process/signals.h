/* Signals that ask a run to save and end: SIGTERM, SIGUSR1, SIGHUP, SIGINT. */
#ifndef RUNTIME_PROCESS_SIGNALS_H
#define RUNTIME_PROCESS_SIGNALS_H

/* From here on such a signal is noted, whatever the calling thread and those that it starts are at; they leave it to a
 * thread of its own. A second SIGINT ends the process immediately, and a SIGHUP that is ignored (nohup) stays so.
 * Called once; ends the process when there is no thread. */
void rt_signals_watch(void);

/* The number of the signal that came; 0: none. */
int rt_signals_came(void);

/* Its name ("SIGTERM"); NULL: of none. */
const char *rt_signal_name(int number);

/* The status of a run that it ended: 128 and its number, as shells give it of a process that a signal ends. */
int rt_signal_status(int number);

#endif
