/* Rows of a table that several layers have alike: rows(i) are those of layer i, which the program defines. */
#ifndef ACCEL_REPEAT_H
#define ACCEL_REPEAT_H

/* Those of as many layers as the name says, from number i. */
#define ACCEL_REPEAT_1(rows, i) rows(i)
#define ACCEL_REPEAT_2(rows, i) ACCEL_REPEAT_1(rows, i), ACCEL_REPEAT_1(rows, (i) + 1)
#define ACCEL_REPEAT_4(rows, i) ACCEL_REPEAT_2(rows, i), ACCEL_REPEAT_2(rows, (i) + 2)
#define ACCEL_REPEAT_8(rows, i) ACCEL_REPEAT_4(rows, i), ACCEL_REPEAT_4(rows, (i) + 4)
#define ACCEL_REPEAT_16(rows, i) ACCEL_REPEAT_8(rows, i), ACCEL_REPEAT_8(rows, (i) + 8)
#define ACCEL_REPEAT_32(rows, i) ACCEL_REPEAT_16(rows, i), ACCEL_REPEAT_16(rows, (i) + 16)
#define ACCEL_REPEAT_64(rows, i) ACCEL_REPEAT_32(rows, i), ACCEL_REPEAT_32(rows, (i) + 32)
#define ACCEL_REPEAT_128(rows, i) ACCEL_REPEAT_64(rows, i), ACCEL_REPEAT_64(rows, (i) + 64)
#define ACCEL_REPEAT_256(rows, i) ACCEL_REPEAT_128(rows, i), ACCEL_REPEAT_128(rows, (i) + 128)
#define ACCEL_REPEAT_512(rows, i) ACCEL_REPEAT_256(rows, i), ACCEL_REPEAT_256(rows, (i) + 256)

#endif
