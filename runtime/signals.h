/* Signals that ask a run to save and end: SIGTERM, SIGUSR1, SIGINT. */
#ifndef RUNTIME_SIGNALS_H
#define RUNTIME_SIGNALS_H

/* From here on such a signal is noted. A second SIGINT ends the process at once. */
void rt_signals_watch(void);

/* The name of the signal that came ("SIGTERM"); NULL: none. */
const char *rt_signals_came(void);

#endif
