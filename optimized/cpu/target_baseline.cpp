#define KVCTS_TARGET baseline
#define KVCTS_VECTOR_BYTES 16
#include "optimized/cpu/target-inl.h"
