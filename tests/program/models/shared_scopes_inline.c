/* The same without functions of the program. */
#define SMALL inline
#include "shared_scopes.c"
