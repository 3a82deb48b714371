#include "vectors/suite.h"

#include <algorithm>
#include <utility>

namespace kvcts {

tensor_view buffer::view() { return std::as_const(*this).view(); }

tensor_view buffer::view() const {
  return {const_cast<std::byte*>(data()), size(), type, at, holes()};
}

bool test_case::is_sparse() const {
  const auto sparse = [](const buffer& b) { return b.is_sparse(); };
  return std::any_of(inputs.begin(), inputs.end(), sparse) ||
         std::any_of(expected.begin(), expected.end(), sparse);
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
