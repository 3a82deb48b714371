#include "conformance/compare/value.h"

#include <fmt/format.h>

#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e4m3.h"
#include "reference/numerics/arithmetic.h"

namespace kvcts {

value_kind kind_of(dtype type) {
  switch (type) {
    case dtype::bf16:
      return value_kind::bf16;
    case dtype::f32:
      return value_kind::f32;
    case dtype::f8e4m3fn:
      return value_kind::e4m3fn;
    case dtype::f8e4m3fnuz:
      return value_kind::e4m3fnuz;
    case dtype::ue8m0:
      return value_kind::ue8m0;
    case dtype::e2m1x2:
      return value_kind::e2m1_pair;
    case dtype::u8:
      return value_kind::byte;
    case dtype::i32:
      return value_kind::i32;
    case dtype::i64:
      return value_kind::i64;
    case dtype::boolean:
      return value_kind::boolean;
  }
  return value_kind::byte;
}

std::size_t size_of(value_kind kind) {
  switch (kind) {
    case value_kind::bf16:
      return 2;
    case value_kind::f32:
    case value_kind::i32:
      return 4;
    case value_kind::i64:
      return 8;
    default:
      return 1;
  }
}

std::string text_of(value_kind kind, const std::byte* at) {
  const auto byte = load<std::uint8_t>(at);
  switch (kind) {
    case value_kind::byte:
    case value_kind::boolean:
      return fmt::format("0x{:02X}", byte);
    case value_kind::e2m1_pair:
      return fmt::format("0x{:02X} ({}, {})", byte,
                         decode_e2m1(static_cast<std::uint8_t>(byte & 0xF)),
                         decode_e2m1(static_cast<std::uint8_t>(byte >> 4)));
    case value_kind::e4m3fn:
      return fmt::format("0x{:02X} ({})", byte, decode_e4m3(byte, fp8_format::e4m3fn));
    case value_kind::e4m3fnuz:
      return fmt::format("0x{:02X} ({})", byte, decode_e4m3(byte, fp8_format::e4m3fnuz));
    case value_kind::ue8m0:
      if (byte == 0xFF) return "0xFF (NaN)";
      return fmt::format("0x{:02X} (2^{})", byte, static_cast<int>(byte) - 127);
    case value_kind::bf16: {
      const auto bits = load<std::uint16_t>(at);
      return fmt::format("0x{:04X} ({})", bits, decode_bf16(bits));
    }
    case value_kind::f32: {
      const auto bits = load<std::uint32_t>(at);
      return fmt::format("0x{:08X} ({})", bits, float_of(bits));
    }
    case value_kind::i32:
      return fmt::format("{}", load<std::int32_t>(at));
    case value_kind::i64:
      return fmt::format("{}", load<std::int64_t>(at));
  }
  return {};
}

}  // namespace kvcts
