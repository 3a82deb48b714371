#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/nearest.h"
#include "reference/formats/ue8m0.h"
#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// Magnitude bits, sorted: in every binade (subnormals, infinity and NaNs are binades of the field
// too) each point that can be a value or a tie of a format up to 7 mantissa bits, and its two
// neighbours; for subnormals each single bit and its neighbours as well.
std::vector<std::uint32_t> structured_magnitudes() {
  std::set<std::uint32_t> bits;
  const auto with_neighbours = [&bits](std::uint32_t at) {
    bits.insert(at);
    bits.insert((at + 1) & 0x7FFFFFFF);
    if (at > 0) {
      bits.insert(at - 1);
    }
  };
  for (std::uint32_t field = 0; field < 256; ++field) {
    for (std::uint32_t point = 0; point < 512; ++point) {
      with_neighbours(field << 23 | point << 14);
    }
  }
  for (int bit = 0; bit < 23; ++bit) {
    with_neighbours(1u << bit);
  }
  with_neighbours(0x7FFFFFFF);  // NaN, all ones
  with_neighbours(0x7FC00000);  // the quiet NaN
  with_neighbours(0x7F800001);  // the first signalling NaN
  return {bits.begin(), bits.end()};
}

template <class Encode>
void expect_nearest(Encode encode, const definition::encoding& wanted) {
  std::vector<std::uint32_t> bits = structured_magnitudes();
  ASSERT_GT(bits.size(), 256u * 1024u);
  for (const bool negative : {false, true}) {
    definition::nearest_code nearest(wanted.values);
    for (const std::uint32_t magnitude : bits) {
      const std::uint32_t input = negative ? magnitude | 0x80000000 : magnitude;
      const bool nan = magnitude > 0x7F800000;
      const std::uint32_t expected =
          nan ? wanted.nan
              : wanted.with_sign(nearest(static_cast<double>(definition::from_bits(magnitude))),
                                 negative);
      ASSERT_EQ(encode(float_of(input)), expected) << std::hex << "input bits 0x" << input;
    }
  }
}

TEST(formats, e2m1_is_the_nearest_on_structured_inputs) {
  expect_nearest(encode_e2m1, definition::e2m1_encoding());
}
TEST(formats, e4m3fn_is_the_nearest_on_structured_inputs) {
  expect_nearest(encode_e4m3fn, definition::e4m3fn_encoding());
}
TEST(formats, e4m3fnuz_is_the_nearest_on_structured_inputs) {
  expect_nearest(encode_e4m3fnuz, definition::e4m3fnuz_encoding());
}
TEST(formats, bf16_is_the_nearest_on_structured_inputs) {
  expect_nearest(encode_bf16, definition::bf16_encoding());
}

struct known {
  float x;
  int code;
};

TEST(formats, e2m1_known_codes) {
  const known cases[] = {{0.0f, 0},     {-0.0f, 8},    {0.25f, 0},     {0.75f, 2},
                         {1.25f, 2},    {1.75f, 4},    {2.5f, 4},      {3.5f, 6},
                         {5.0f, 6},     {6.0f, 7},     {-0.25f, 8},    {-0.75f, 0xA},
                         {-1.25f, 0xA}, {-1.75f, 0xC}, {-2.5f, 0xC},   {-3.5f, 0xE},
                         {-5.0f, 0xE},  {-6.0f, 0xF},  {0x1p-149f, 0}, {-0x1p-149f, 8},
                         {7.0f, 7},     {-1e30f, 0xF}, {infinity, 7},  {-infinity, 0xF}};
  for (const known& k : cases) {
    EXPECT_EQ(encode_e2m1(k.x), k.code) << k.x;
  }
  EXPECT_EQ(encode_e2m1(float_of(0x7FC00000)), 7);
  EXPECT_EQ(encode_e2m1(float_of(0xFFC00001)), 7);
}

TEST(formats, e4m3fn_known_codes) {
  const known cases[] = {{260.0f, 0x78},
                         {300.0f, 0x79},
                         {1.0625f, 0x38},
                         {1.0f, 0x38},
                         {-0.0f, 0x80},
                         {448.0f, 0x7E},
                         {449.0f, 0x7E},
                         {464.0f, 0x7E},
                         {480.0f, 0x7E},
                         {-1e30f, 0xFE},
                         {infinity, 0x7E},
                         {-infinity, 0xFE},
                         {0x1p-9f, 0x01},
                         {0x1p-10f, 0x00},
                         {0x1.8p-9f, 0x02},
                         {0x1.000002p-10f, 0x01},
                         {-0x1p-10f, 0x80},
                         {0x1.Ep-7f, 0x08},
                         {float_of(0x3F880800), 0x39},
                         {float_of(0x3F97F800), 0x39}};
  for (const known& k : cases) {
    EXPECT_EQ(encode_e4m3fn(k.x), k.code) << k.x;
  }
  EXPECT_EQ(encode_e4m3fn(float_of(0x7F800001)), 0x7F);
  EXPECT_EQ(encode_e4m3fn(float_of(0xFFFFFFFF)), 0x7F);
}

TEST(formats, e4m3fnuz_known_codes) {
  const known cases[] = {{130.0f, 0x78},    {1.0f, 0x40},      {0.0f, 0x00},     {-0.0f, 0x00},
                         {-0x1p-11f, 0x00}, {-0x1p-10f, 0x81}, {224.0f, 0x7E},   {240.0f, 0x7F},
                         {1000.0f, 0x7F},   {-1000.0f, 0xFF},  {infinity, 0x7F}, {-infinity, 0xFF}};
  for (const known& k : cases) {
    EXPECT_EQ(encode_e4m3fnuz(k.x), k.code) << k.x;
  }
  EXPECT_EQ(encode_e4m3fnuz(float_of(0x7FC00000)), 0x80);
  EXPECT_EQ(encode_e4m3fnuz(float_of(0xFF800001)), 0x80);
}

TEST(formats, e2m1_codes_round_trip) {
  const definition::magnitudes values = definition::e2m1_magnitudes();
  for (int code = 0; code < 16; ++code) {
    const float x = decode_e2m1(static_cast<std::uint8_t>(code));
    const double magnitude = values[static_cast<std::size_t>(code) & 7];
    EXPECT_EQ(bits_of(x), bits_of(static_cast<float>(code < 8 ? magnitude : -magnitude)));
    EXPECT_EQ(encode_e2m1(x), code);
  }
}

TEST(formats, e4m3_bytes_round_trip) {
  const definition::magnitudes fn = definition::e4m3fn_magnitudes();
  const definition::magnitudes fnuz = definition::e4m3fnuz_magnitudes();
  for (int byte = 0; byte < 256; ++byte) {
    const auto code = static_cast<std::uint8_t>(byte);
    const std::size_t magnitude = code & 0x7Fu;
    const float sign = byte < 128 ? 1.0f : -1.0f;
    const float as_fn = decode_e4m3(code, fp8_format::e4m3fn);
    if (magnitude == 0x7F) {
      EXPECT_EQ(bits_of(as_fn), canonical_nan_bits);
      EXPECT_EQ(encode_e4m3(as_fn, fp8_format::e4m3fn), 0x7F);
    } else {
      EXPECT_EQ(bits_of(as_fn), bits_of(sign * static_cast<float>(fn[magnitude])));
      EXPECT_EQ(encode_e4m3(as_fn, fp8_format::e4m3fn), code);
    }
    const float as_fnuz = decode_e4m3(code, fp8_format::e4m3fnuz);
    if (byte == 0x80) {
      EXPECT_EQ(bits_of(as_fnuz), canonical_nan_bits);
    } else {
      EXPECT_EQ(bits_of(as_fnuz), bits_of(sign * static_cast<float>(fnuz[magnitude])));
    }
    EXPECT_EQ(encode_e4m3(as_fnuz, fp8_format::e4m3fnuz), code);
  }
  EXPECT_EQ(fp8_limit(fp8_format::e4m3fn), 448.0f);
  EXPECT_EQ(fp8_limit(fp8_format::e4m3fnuz), 224.0f);
}

TEST(formats, bf16_values_round_trip) {
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    EXPECT_EQ(bits_of(decode_bf16(bits)), code << 16);  // payloads too
    const bool nan = (code & 0x7FFF) > 0x7F80;
    EXPECT_EQ(encode_bf16(decode_bf16(bits)), nan ? 0x7FFF : bits);
  }
}

TEST(formats, ue8m0_bytes_round_trip) {
  for (int byte = 0; byte < 255; ++byte) {
    const auto code = static_cast<std::uint8_t>(byte);
    EXPECT_EQ(static_cast<double>(decode_ue8m0(code)), std::ldexp(1.0, byte - 127));
    EXPECT_EQ(encode_ue8m0(decode_ue8m0(code)), code);
  }
  EXPECT_EQ(bits_of(decode_ue8m0(0xFF)), canonical_nan_bits);
}

// Bytes 0 to 254 in order are magnitudes 2^-127 to 2^127.
TEST(formats, ue8m0_is_the_nearest_power_of_two) {
  definition::magnitudes powers;
  for (int byte = 0; byte < 255; ++byte) {
    powers.push_back(std::ldexp(1.0, byte - 127));
  }
  definition::nearest_code nearest(powers);
  for (const std::uint32_t bits : structured_magnitudes()) {
    const float x = float_of(bits);
    const bool number = bits < 0x7F800000;
    const std::uint32_t expected = number ? nearest(static_cast<double>(x)) : 0xFF;
    ASSERT_EQ(encode_ue8m0(x), expected) << std::hex << bits;
  }
  EXPECT_EQ(encode_ue8m0(-0.0f), 0);
  EXPECT_EQ(encode_ue8m0(-1.0f), 0xFF);
  EXPECT_EQ(encode_ue8m0(-infinity), 0xFF);
  EXPECT_EQ(encode_ue8m0(0x1.8p0f), 128);   // tie between bytes 127 and 128
  EXPECT_EQ(encode_ue8m0(0x1.8p-1f), 126);  // tie between 126 and 127
  EXPECT_EQ(encode_ue8m0(std::numeric_limits<float>::max()), 254);
}

TEST(formats, the_even_element_is_in_the_low_nibble) {
  EXPECT_EQ(pack_e2m1(encode_e2m1(1.0f), encode_e2m1(6.0f)), 0x72);
  for (int even = 0; even < 16; ++even) {
    for (int odd = 0; odd < 16; ++odd) {
      EXPECT_EQ(pack_e2m1(static_cast<std::uint8_t>(even), static_cast<std::uint8_t>(odd)),
                even + 16 * odd);
    }
  }
}

}  // namespace
}  // namespace kvcts
