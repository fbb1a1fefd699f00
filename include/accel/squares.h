/* Sums of squares, or of sizes, that are the same in whatever order, and by whomever, they are added up. */
#ifndef ACCEL_SQUARES_H
#define ACCEL_SQUARES_H

/* The integers of a sum, of 32 positions of a number each. */
enum { ACCEL_SQUARES = 65 };

#endif
