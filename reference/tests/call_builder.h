// Calls for tests: buffers that the builder owns, with guards of canary bytes before and after.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "reference/contract/contract.h"
#include "reference/formats/bf16.h"
#include "reference/kernels/kernels.h"
#include "reference/layout/tensor.h"

namespace kvcts {

class call_builder {
 public:
  explicit call_builder(std::string kernel) { call_.kernel = std::move(kernel); }

  call& get() { return call_; }
  const kernel_contract& contract() const { return contract_of(call_.kernel); }

  // A buffer of `e`'s reach and 16 guard bytes, all 0xCC.
  tensor_view& add(const std::string& name, dtype type, extent e) {
    const std::size_t bytes = static_cast<std::size_t>(reach(e)) * size_of(type) + 16;
    buffers_.push_back(std::make_unique<std::vector<std::byte>>(bytes, std::byte{0xCC}));
    tensor_view view{buffers_.back()->data(), bytes, type, std::move(e)};
    return call_.tensors[name] = view;
  }
  tensor_view& add(const std::string& name, dtype type, std::vector<std::int64_t> shape) {
    return add(name, type, dense(std::move(shape)));
  }
  template <class T>
  tensor_view& add(const std::string& name, dtype type, std::vector<std::int64_t> shape,
                   const std::vector<T>& elements) {
    tensor_view& view = add(name, type, std::move(shape));
    if (!elements.empty()) {
      std::memcpy(view.storage, elements.data(), elements.size() * sizeof(T));
    }
    return view;
  }
  tensor_view& i32(const std::string& name, std::vector<std::int64_t> shape,
                   const std::vector<std::int32_t>& elements) {
    return add(name, dtype::i32, std::move(shape), elements);
  }
  tensor_view& i64(const std::string& name, const std::vector<std::int64_t>& elements) {
    return add(name, dtype::i64, {static_cast<std::int64_t>(elements.size())}, elements);
  }

  // Adds the outputs, checks the call as a whole and computes it.
  void run(const Rules& rules) {
    const bindings names = check(contract(), call_, false);
    for (const output_shape& output : outputs_of(contract(), call_, names)) {
      add(std::string(output.spec->name), output.type, output.shape);
    }
    check(contract(), call_, true);
    reference_of(call_.kernel)(call_, rules);
  }

  // The message of the input_error that the check throws; empty where it passes.
  std::string refusal(bool outputs_too = false) const {
    try {
      check(contract(), call_, outputs_too);
    } catch (const input_error& e) {
      return e.what();
    }
    return "";
  }

  std::vector<std::uint8_t> bytes(const std::string& name) const {
    const tensor_view& v = call_.tensor(name);
    std::vector<std::uint8_t> copy(v.storage_bytes);
    std::memcpy(copy.data(), v.storage, v.storage_bytes);
    return copy;
  }
  // The elements of a dense tensor.
  template <class T>
  std::vector<T> elements(const std::string& name) const {
    const tensor_view& v = call_.tensor(name);
    std::vector<T> copy(static_cast<std::size_t>(count(v.at.shape)));
    if (copy.empty()) return copy;
    std::memcpy(copy.data(), v.storage + v.at.offset * static_cast<std::int64_t>(sizeof(T)),
                copy.size() * sizeof(T));
    return copy;
  }

 private:
  call call_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> buffers_;
};

}  // namespace kvcts
