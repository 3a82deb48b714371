#include "optimized/arguments/common.h"

namespace kvcts {

unsigned char* first_element(const tensor_view& v) {
  static unsigned char none;
  if (v.storage == nullptr) return &none;
  return reinterpret_cast<unsigned char*>(v.storage) +
         v.at.offset * static_cast<std::int64_t>(size_of(v.type));
}

unsigned char* first_element(const tensor_view* v) {
  return v == nullptr ? nullptr : first_element(*v);
}

std::int64_t byte_stride(const tensor_view& v, std::size_t axis) {
  if (v.dim(axis) <= 1) return 0;  // never used, and any number
  return v.stride(axis) * static_cast<std::int64_t>(size_of(v.type));
}

int shift_of(std::int64_t n) {
  for (int shift = 0; shift < 63; ++shift) {
    if (n == std::int64_t{1} << shift) return shift;
  }
  return -1;
}

}  // namespace kvcts
