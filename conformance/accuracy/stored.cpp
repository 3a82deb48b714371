#include "conformance/accuracy/stored.h"

#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "conformance/compare/token.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/ue8m0.h"

namespace kvcts {
namespace {

using e4m3_table = std::array<stored_number, 256>;

e4m3_table table_of(fp8_format format) {
  const double largest = fp8_limit(format);  // FNUZ: kernels clamp at 224, not at 240
  const double smallest_normal = format == fp8_format::e4m3fn ? 0x1p-6 : 0x1p-7;
  e4m3_table table;
  for (int code = 0; code < 256; ++code) {
    const double value = decode_e4m3(static_cast<std::uint8_t>(code), format);
    table[static_cast<std::size_t>(code)] = {value, std::abs(value) < smallest_normal,
                                             std::abs(value) >= largest};
  }
  return table;
}

stored_number of_float(double value, double smallest_normal, double largest) {
  return {value, std::abs(value) < smallest_normal, std::abs(value) == largest};
}

// Region of the scales of a record; null where it has none.
const record_region* scales_of(const paged_record& record) {
  for (const auto* regions : {&record.data, &record.scales}) {
    for (const record_region& r : *regions) {
      if (r.kind == region_kind::scale) return &r;
    }
  }
  return nullptr;
}

}  // namespace

stored_number stored_at(dtype type, const std::byte* element) {
  static const e4m3_table ocp = table_of(fp8_format::e4m3fn);
  static const e4m3_table fnuz = table_of(fp8_format::e4m3fnuz);
  constexpr double smallest = std::numeric_limits<float>::min();
  switch (type) {
    case dtype::f8e4m3fn:
      return ocp[load<std::uint8_t>(element)];
    case dtype::f8e4m3fnuz:
      return fnuz[load<std::uint8_t>(element)];
    case dtype::ue8m0:
      return {decode_ue8m0(load<std::uint8_t>(element)), false, false};
    case dtype::bf16:
      return of_float(decode_bf16(load<std::uint16_t>(element)), smallest, decode_bf16(0x7F7F));
    case dtype::f32:
      return of_float(load<float>(element), smallest, std::numeric_limits<float>::max());
    default:
      throw std::logic_error("no number of a quantized tensor");
  }
}

stored_number stored_e2m1(std::uint8_t code) {
  const double value = decode_e2m1(code);
  return {value, std::abs(value) < 1, std::abs(value) == 6};
}

stored_number scaled(stored_number code, double scale) {
  code.value *= scale;
  return code;
}

std::vector<stored_number> stored_record(const paged_view& view, const std::byte* storage,
                                         std::int64_t slot, double tensor_scale) {
  const paged_record& record = view.record;
  const token_bytes bytes(view, storage, slot / view.block_size, slot % view.block_size);
  const record_region* scales = scales_of(record);
  const std::int64_t scaled_dims =
      scales == nullptr ? record.dims : scales->elements * scales->dims_per_element;
  std::vector<stored_number> values;
  values.reserve(static_cast<std::size_t>(record.dims));
  for (const record_region& r : record.data) {
    if (r.kind != region_kind::value || r.first_dim >= scaled_dims) continue;
    const auto element = static_cast<std::int64_t>(size_of(r.type));
    double scale = tensor_scale;
    for (std::int64_t i = 0; i < r.elements * r.dims_per_element; ++i) {
      const std::int64_t dim = r.first_dim + i;
      if (scales != nullptr && dim % scales->dims_per_element == 0) {
        const auto size = static_cast<std::int64_t>(size_of(scales->type));
        const std::int64_t at = scales->first_byte + dim / scales->dims_per_element * size;
        scale = stored_at(scales->type, bytes.scale(at)).value;
      }
      const std::byte* at = bytes.data(r.first_byte + i / r.dims_per_element * element);
      const stored_number code =
          r.type == dtype::e2m1x2
              ? stored_e2m1(static_cast<std::uint8_t>(load<std::uint8_t>(at) >> 4 * (i % 2) & 0xF))
              : stored_at(r.type, at);
      values.push_back(scaled(code, scale));
    }
  }
  return values;
}

}  // namespace kvcts
