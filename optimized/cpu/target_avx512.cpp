#define KVCTS_TARGET avx512
#define KVCTS_VECTOR_BYTES 64
#include "optimized/cpu/target-inl.h"
