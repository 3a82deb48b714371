#include "vectors/suite.h"

namespace kvcts {

tensor_view buffer::view() { return {bytes.data(), bytes.size(), type, at}; }

tensor_view buffer::view() const {
  return {const_cast<std::byte*>(bytes.data()), bytes.size(), type, at};
}

const buffer* test_case::input(std::string_view argument) const {
  for (const buffer& b : inputs) {
    if (b.name == argument) return &b;
  }
  return nullptr;
}

}  // namespace kvcts
