/* cmocka with what it wants included before it. */
#ifndef TESTS_RUNTIME_CMOCKA_ALL_H
#define TESTS_RUNTIME_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
