/* Screen: a whole terminal for one picture, given back as it was. */
#ifndef ACCEL_COMMANDS_WATCH_SCREEN_H
#define ACCEL_COMMANDS_WATCH_SCREEN_H

#include <stdbool.h>
#include <termios.h>

struct screen {
  bool has_keys; /* standard input is a terminal, too */
  struct termios before;
};

/* What ends a wait. */
enum screen_event { SCREEN_TIME, SCREEN_RESIZED, SCREEN_KEY, SCREEN_ENDS };

/* Whether standard output is a terminal that can be drawn on. */
bool screen_is_there(void);

/* Takes the terminal. Signals that end the process end a wait from now on. */
void screen_open(struct screen *screen);

/* Gives the terminal back; where a signal had ended the last wait, the process ends by it. */
void screen_close(const struct screen *screen);

/* The columns and rows that there are now. */
void screen_size(int *columns, int *rows);

/* Draws lines from the top on, in place of what was there. */
void screen_draw(const char *text);

/* Waits for so many seconds; *key: the key that was pressed. */
enum screen_event screen_wait(const struct screen *screen, double seconds, char *key);

#endif
