/* Version: of the generator, the runtime and everything installed with them; defined here alone. */
#ifndef ACCEL_BASE_VERSION_H
#define ACCEL_BASE_VERSION_H

#define ACCEL_VERSION "0.1.0"

#endif
