/* Functions of a model whose names other parts of the generator have, too: included first by what defines or lists
 * them.
 */
#ifndef ACCEL_VERIFY_NAMES_H
#define ACCEL_VERIFY_NAMES_H

#define normalize reading_normalize
#define parameter_of reading_parameter_of

#endif
