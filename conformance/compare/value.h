// How stored bytes read: the element, and its text in messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "reference/layout/tensor.h"

namespace kvcts {

enum class value_kind : std::uint8_t {
  byte,
  e2m1_pair,
  e4m3fn,
  e4m3fnuz,
  ue8m0,
  bf16,
  f32,
  i32,
  i64,
  boolean
};
value_kind kind_of(dtype type);
std::size_t size_of(value_kind kind);
// "0x7E (2^-1)", "0x72 (1, 6)", "0x3F80 (1)", "-1", "0xCC".
std::string text_of(value_kind kind, const std::byte* at);

}  // namespace kvcts
