#include "conformance/compare/token.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e4m3.h"
#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

struct number {
  std::string bits;
  double value = 0;
};

number number_of(dtype type, const std::byte* at) {
  const auto byte = load<std::uint8_t>(at);
  switch (type) {
    case dtype::f8e4m3fn:
      return {fmt::format("0x{:02X}", byte), decode_e4m3(byte, fp8_format::e4m3fn)};
    case dtype::f8e4m3fnuz:
      return {fmt::format("0x{:02X}", byte), decode_e4m3(byte, fp8_format::e4m3fnuz)};
    case dtype::ue8m0:
      return {fmt::format("0x{:02X}", byte), byte == 0xFF ? std::numeric_limits<double>::quiet_NaN()
                                                          : std::ldexp(1.0, byte - 127)};
    case dtype::bf16: {
      const auto bits = load<std::uint16_t>(at);
      return {fmt::format("0x{:04X}", bits), decode_bf16(bits)};
    }
    case dtype::f32: {
      const auto bits = load<std::uint32_t>(at);
      return {fmt::format("0x{:08X}", bits), float_of(bits)};
    }
    default:
      throw std::logic_error("no record holds such elements");
  }
}

}  // namespace

const std::byte* token_bytes::data(std::int64_t byte) const {
  constexpr std::int64_t tile = 16;
  const std::int64_t each = view_.record.data_bytes;
  if (view_.record.interleaved) return page_ + position_ * view_.entry_stride + byte;
  if (!view_.tiled) return page_ + position_ * each + byte;
  return page_ + position_ / tile * tile * each + byte / tile * tile * tile +
         position_ % tile * tile + byte % tile;
}

const std::byte* token_bytes::scale(std::int64_t byte) const {
  if (view_.record.interleaved) return data(byte);
  return page_ + view_.block_size * view_.record.data_bytes + position_ * view_.record.scale_bytes +
         byte;
}

decoded_token decode_token(const paged_view& view, const std::byte* storage, std::int64_t page,
                           std::int64_t position, std::int64_t block_dims) {
  const paged_record& record = view.record;
  const token_bytes bytes(view, storage, page, position);
  const record_region* scales = nullptr;
  std::int64_t meant = 0;  // bytes of scales that mean something
  for (const auto* regions : {&record.data, &record.scales}) {
    for (const record_region& r : *regions) {
      if (r.kind != region_kind::scale) continue;
      scales = &r;
      meant = r.elements * static_cast<std::int64_t>(size_of(r.type));
    }
  }
  const std::int64_t scaled_dims =
      scales == nullptr ? 0 : scales->elements * scales->dims_per_element;

  decoded_token token;
  for (const record_region& r : record.data) {
    if (r.kind != region_kind::value) continue;
    const std::int64_t dims = r.elements * r.dims_per_element;
    const auto element = static_cast<std::int64_t>(size_of(r.type));
    for (std::int64_t i = 0; i < dims; ++i) {
      const std::int64_t dim = r.first_dim + i;
      const bool scaled = scales != nullptr && dim < scaled_dims;
      if (i % (scaled ? scales->dims_per_element : block_dims) == 0) {
        decoded_block block;
        block.first_dim = dim;
        block.type = r.type;
        if (scaled) {
          const std::int64_t at =
              scales->first_byte +
              dim / scales->dims_per_element * static_cast<std::int64_t>(size_of(scales->type));
          const number scale = number_of(scales->type, bytes.scale(at));
          block.scale_bits = scale.bits;
          block.scale = scale.value;
        }
        token.blocks.push_back(std::move(block));
      }
      decoded_block& block = token.blocks.back();
      const std::byte* at = bytes.data(r.first_byte + i / r.dims_per_element * element);
      number code;
      if (r.type == dtype::e2m1x2) {
        const auto nibble = static_cast<std::uint8_t>(load<std::uint8_t>(at) >> 4 * (i % 2) & 0xF);
        code = {fmt::format("0x{:X}", nibble), decode_e2m1(nibble)};
      } else {
        code = number_of(r.type, at);
      }
      block.code_bits.push_back(code.bits);
      block.codes.push_back(code.value);
      block.values.push_back(code.value * block.scale);
    }
  }
  for (std::int64_t i = meant; !record.interleaved && i < record.scale_bytes; ++i) {
    token.pad.push_back(load<std::uint8_t>(bytes.scale(i)));
  }
  return token;
}

}  // namespace kvcts
