#include "fuzz/record_decoder.h"

#include <bit>
#include <cmath>
#include <limits>

namespace kvcts {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

double e4m3_value(unsigned code, bool fnuz) {
  if (fnuz ? code == 0x80 : (code & 0x7F) == 0x7F) return not_a_number;
  const int exponent = static_cast<int>(code >> 3 & 15), mantissa = static_cast<int>(code & 7);
  const int bias = fnuz ? 8 : 7;
  const double size = exponent == 0 ? std::ldexp(mantissa, -2 - bias)
                                    : std::ldexp(8 + mantissa, exponent - 3 - bias);
  return (code & 0x80) != 0 ? -size : size;
}

double e2m1_value(unsigned code) {
  constexpr double sizes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return (code & 8) != 0 ? -sizes[code & 7] : sizes[code & 7];
}

double ue8m0_value(unsigned code) {
  return code == 255 ? not_a_number : std::ldexp(1.0, static_cast<int>(code) - 127);
}

unsigned byte_at(const std::byte* at, std::int64_t i) { return std::to_integer<unsigned>(at[i]); }

double bf16_value(unsigned bits) { return double{std::bit_cast<float>(bits << 16)}; }

}  // namespace

std::vector<double> decode_record(const std::byte* page, std::int64_t block_size,
                                  std::int64_t record, std::int64_t position, bool fnuz) {
  const std::int64_t data_bytes = record == 584 ? 576 : record == 528 ? 512 : 256;
  const std::byte* data = page + position * data_bytes;
  const std::byte* scales = page + block_size * data_bytes + position * (record - data_bytes);
  std::vector<double> row;
  for (std::int64_t d = 0; d < 512; ++d) {
    if (record == 584 && d >= 448) {
      const std::int64_t at = 448 + 2 * (d - 448);
      row.push_back(bf16_value(byte_at(data, at) | byte_at(data, at + 1) << 8));
    } else if (record == 288) {
      const double scale = e4m3_value(byte_at(scales, d / 16), false);
      // The reader takes the code of -0 for +0.
      const double value = e2m1_value(byte_at(data, d / 2) >> (d % 2 * 4) & 15);
      row.push_back((value == 0 ? 0.0 : value) * scale);
    } else {
      row.push_back(e4m3_value(byte_at(data, d), fnuz) *
                    ue8m0_value(byte_at(scales, d / (record == 584 ? 64 : 32))));
    }
  }
  return row;
}

}  // namespace kvcts
