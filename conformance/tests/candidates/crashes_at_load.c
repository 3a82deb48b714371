/* Dies while it is loaded. */
#include <stdlib.h>

__attribute__((constructor)) static void at_load(void) { abort(); }
