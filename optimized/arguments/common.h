// From tensors to addresses and byte strides.
#pragma once

#include "reference/layout/tensor.h"

namespace kvcts {

// The element at index 0. A tensor without elements may have no memory; addresses are computed from
// it all the same.
unsigned char* first_element(const tensor_view& v);
// The same, and null for an absent tensor.
unsigned char* first_element(const tensor_view* v);
std::int64_t byte_stride(const tensor_view& v, std::size_t axis);
// log2(n), or -1 where n is no power of two.
int shift_of(std::int64_t n);

}  // namespace kvcts
