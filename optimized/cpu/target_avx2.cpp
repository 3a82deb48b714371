#define KVCTS_TARGET avx2
#define KVCTS_VECTOR_BYTES 32
#include "optimized/cpu/target-inl.h"
