#include "vectors/suite.h"

namespace kvcts {

tensor_view buffer::view() { return {bytes.data(), bytes.size(), type, at}; }

tensor_view buffer::view() const {
  return {const_cast<std::byte*>(bytes.data()), bytes.size(), type, at};
}

const buffer* test_case::input(std::string_view argument) const {
  return find_buffer(inputs, argument);
}

const buffer* find_buffer(const std::vector<buffer>& in, std::string_view name) {
  for (const buffer& b : in) {
    if (b.name == name) return &b;
  }
  return nullptr;
}

const kernel_contract* find_contract(std::string_view kernel) {
  for (const kernel_contract* contract : contracts()) {
    if (contract->name == kernel) return contract;
  }
  return nullptr;
}

}  // namespace kvcts
