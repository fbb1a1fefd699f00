/* cmocka with what it wants included before it. */
#ifndef TESTS_SPEC_CMOCKA_ALL_H
#define TESTS_SPEC_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
