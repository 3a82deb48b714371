#include "reference/numerics/mufu.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "reference/numerics/arithmetic.h"
#include "reference/numerics/mufu_tables.h"
#include "reference/tests/captured_bytes.h"

namespace kvcts {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr std::uint32_t one = 0x3F800000;
const float odd_nan = float_of(0xFF812345);

float scaled(float x, int exponent) { return std::ldexp(x, exponent); }

TEST(rcp_approx_ftz, equals_the_hardware_on_all_of_one_to_two) {
  constexpr std::uint32_t count = 1u << 23;
  const std::vector<std::int8_t> measured = test::captured_bytes("rcp.i8.gz", count);
  ASSERT_EQ(measured.size(), count);
  std::uint32_t not_correctly_rounded = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const float x = float_of(one + i);
    const std::uint32_t hardware =
        bits_of(1.0f / x) + static_cast<std::uint32_t>(static_cast<int>(measured[i]));
    ASSERT_EQ(bits_of(rcp_approx_ftz(x)), hardware) << std::hex << one + i;
    not_correctly_rounded += measured[i] != 0;
  }
  EXPECT_GT(not_correctly_rounded, count / 8);  // 13%: the data is not all zeros
}

TEST(rcp_approx_ftz, moves_with_the_exponent_and_keeps_the_sign) {
  for (std::uint32_t mantissa = 0; mantissa < 0x800000; mantissa += 0x1235) {
    const float base = rcp_approx_ftz(float_of(one + mantissa));
    for (int e = -126; e <= 127; ++e) {
      const float x = float_of((static_cast<std::uint32_t>(e + 127) << 23) + mantissa);
      const float exact = scaled(base, -e);
      const float expected = exact < 0x1p-126f ? 0.0f : exact;
      ASSERT_EQ(bits_of(rcp_approx_ftz(x)), bits_of(expected)) << x;
      ASSERT_EQ(bits_of(rcp_approx_ftz(-x)), bits_of(-expected)) << x;
    }
  }
}

TEST(rcp_approx_ftz, specials) {
  EXPECT_EQ(bits_of(rcp_approx_ftz(odd_nan)), canonical_nan_bits);
  EXPECT_EQ(rcp_approx_ftz(0.0f), infinity);
  EXPECT_EQ(rcp_approx_ftz(-0.0f), -infinity);
  EXPECT_EQ(rcp_approx_ftz(float_of(0x007FFFFF)), infinity);
  EXPECT_EQ(rcp_approx_ftz(float_of(0x80000001)), -infinity);
  EXPECT_EQ(bits_of(rcp_approx_ftz(infinity)), 0u);
  EXPECT_EQ(bits_of(rcp_approx_ftz(-infinity)), 0x80000000u);
  EXPECT_EQ(rcp_approx_ftz(0x1p126f), 0x1p-126f);
  EXPECT_EQ(bits_of(rcp_approx_ftz(-0x1.000002p126f)), 0x80000000u);
}

TEST(rsqrt_approx_ftz, equals_the_hardware_on_both_octaves) {
  constexpr std::uint32_t count = 1u << 24;
  const std::vector<std::int8_t> measured = test::captured_bytes("rsq.i8.gz", count);
  ASSERT_EQ(measured.size(), count);
  std::uint32_t not_nearest = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const float x = float_of(one + i);
    const auto nearest = static_cast<float>(1.0 / std::sqrt(static_cast<double>(x)));
    const std::uint32_t hardware =
        bits_of(nearest) + static_cast<std::uint32_t>(static_cast<int>(measured[i]));
    ASSERT_EQ(bits_of(rsqrt_approx_ftz(x)), hardware) << std::hex << one + i;
    not_nearest += measured[i] != 0;
  }
  EXPECT_GT(not_nearest, count / 5);  // 22%
}

TEST(rsqrt_approx_ftz, moves_with_every_fourth_power) {
  for (std::uint32_t i = 0; i < 0x1000000; i += 0x2467) {
    const float base = rsqrt_approx_ftz(float_of(one + i));
    for (int k = -63; k <= 63; ++k) {
      const float x = scaled(float_of(one + i), 2 * k);
      ASSERT_EQ(bits_of(rsqrt_approx_ftz(x)), bits_of(scaled(base, -k))) << x;
    }
  }
}

TEST(rsqrt_approx_ftz, specials) {
  EXPECT_EQ(bits_of(rsqrt_approx_ftz(odd_nan)), canonical_nan_bits);
  EXPECT_EQ(bits_of(rsqrt_approx_ftz(-1.0f)), canonical_nan_bits);
  EXPECT_EQ(bits_of(rsqrt_approx_ftz(-infinity)), canonical_nan_bits);
  EXPECT_EQ(rsqrt_approx_ftz(0.0f), infinity);
  EXPECT_EQ(rsqrt_approx_ftz(-0.0f), -infinity);
  EXPECT_EQ(rsqrt_approx_ftz(float_of(0x007FFFFF)), infinity);
  EXPECT_EQ(rsqrt_approx_ftz(float_of(0x807FFFFF)), -infinity);
  EXPECT_EQ(bits_of(rsqrt_approx_ftz(infinity)), 0u);
  EXPECT_EQ(rsqrt_approx_ftz(1.0f), 1.0f);
  EXPECT_EQ(rsqrt_approx_ftz(0x1p-126f), 0x1p63f);
}

// CRC-32 of results in order, little-endian.
class crc_of_results {
 public:
  void add(float result) {
    const std::uint32_t bits = bits_of(result);
    const Bytef bytes[4] = {static_cast<Bytef>(bits), static_cast<Bytef>(bits >> 8),
                            static_cast<Bytef>(bits >> 16), static_cast<Bytef>(bits >> 24)};
    crc_ = crc32(crc_, bytes, 4);
  }
  std::uint32_t value() const { return static_cast<std::uint32_t>(crc_); }

 private:
  uLong crc_ = 0;
};

// The CRCs were taken of the hardware's results (kvcts_mufu_sweep prints them on a GPU).
TEST(ex2_approx_ftz, results_have_the_checksums_of_the_hardware) {
  crc_of_results positive;
  crc_of_results negative;
  for (std::uint32_t i = 0; i < 1u << 23; ++i) {
    positive.add(ex2_approx_ftz(float_of(one + i)));
    negative.add(ex2_approx_ftz(-float_of(one + i)));
  }
  EXPECT_EQ(positive.value(), 0x676486CDu);
  EXPECT_EQ(negative.value(), 0xC99445CDu);
}

TEST(ex2_approx_ftz, is_exact_at_integers_and_flushes_below) {
  for (int n = -126; n <= 127; ++n) {
    EXPECT_EQ(ex2_approx_ftz(static_cast<float>(n)), std::ldexp(1.0f, n));
  }
  EXPECT_EQ(bits_of(ex2_approx_ftz(-127.0f)), 0u);
  EXPECT_EQ(bits_of(ex2_approx_ftz(-0x1.F80002p6f)), 0u);  // the next below -126
  EXPECT_EQ(ex2_approx_ftz(128.0f), infinity);
  EXPECT_EQ(ex2_approx_ftz(infinity), infinity);
  EXPECT_EQ(bits_of(ex2_approx_ftz(-infinity)), 0u);
  EXPECT_EQ(bits_of(ex2_approx_ftz(odd_nan)), canonical_nan_bits);
  EXPECT_EQ(ex2_approx_ftz(-0.0f), 1.0f);
  EXPECT_EQ(ex2_approx_ftz(0x1p-149f), 1.0f);
}

TEST(ex2_approx_ftz, is_close_to_two_to_the_x) {
  for (std::uint32_t bits = 0; bits < 0x43000000; bits += 0x3331) {
    for (const float x : {float_of(bits), -float_of(bits)}) {
      const double exact = std::exp2(static_cast<double>(x));
      if (exact >= 0x1p-126) {
        ASSERT_NEAR(ex2_approx_ftz(x) / exact, 1.0, 0x1p-21) << x;
      }
    }
  }
}

// Below -126 the square of 2^(x/2), so that not even powers of two are exact.
TEST(ex2_approx, keeps_subnormal_results) {
  EXPECT_EQ(ex2_approx(-126.0f), 0x1p-126f);
  EXPECT_EQ(bits_of(ex2_approx(-127.0f)), 0x003FFFFFu);  // one unit below 2^-127
  EXPECT_EQ(bits_of(ex2_approx(-128.0f)), 0x00200000u);
  EXPECT_EQ(bits_of(ex2_approx(-149.0f)), 1u);
  EXPECT_EQ(bits_of(ex2_approx(-151.0f)), 0u);
  EXPECT_EQ(bits_of(ex2_approx(-infinity)), 0u);
  EXPECT_EQ(bits_of(ex2_approx(-odd_nan)), canonical_nan_bits);
}

TEST(exp_approx, known_values) {
  EXPECT_EQ(exp_approx(0.0f), 1.0f);
  EXPECT_EQ(bits_of(exp_approx(-infinity)), 0u);
  EXPECT_EQ(exp_approx(infinity), infinity);
  EXPECT_EQ(bits_of(exp_approx(odd_nan)), canonical_nan_bits);
  // One rounded product, then ex2: the product's constant is RN(log2(e)).
  for (int i = 0; i < 500; ++i) {
    const float x = -100.0f + 0.37f * static_cast<float>(i);
    ASSERT_EQ(bits_of(exp_approx(x)), bits_of(ex2_approx(x * 0x1.715476p0f))) << x;
  }
  EXPECT_GT(exp_approx(-100.0f), 0.0f);
  EXPECT_LT(exp_approx(-100.0f), 0x1p-126f);
}

TEST(div_full, by_a_power_of_two_is_exact) {
  for (int e = -126; e <= 127; ++e) {
    for (const float a : {1.0f, -1.75f, 0x1.FFFFFEp0f, 3.0e-38f, 448.0f}) {
      const float b = std::ldexp(1.0f, e);
      ASSERT_EQ(bits_of(div_full(a, b)), bits_of(a / b)) << a << " / 2^" << e;
    }
  }
  EXPECT_EQ(bits_of(div_full(1.0f, 0x1p127f)), 0x00400000u);  // the subnormal 2^-127
  EXPECT_EQ(div_full(1.0f, 0x1p-127f), 0x1p127f);             // a subnormal divisor
}

// rcp.approx is correctly rounded at the limits that scales divide by; the quotient still is not.
TEST(div_full, by_a_limit_multiplies_by_its_rounded_inverse) {
  std::uint32_t not_ieee = 0;
  std::uint32_t checked = 0;
  for (std::uint32_t bits = one; bits < one + 0x800000; bits += 5, ++checked) {
    const float a = float_of(bits);
    ASSERT_EQ(bits_of(div_full(a, 6.0f)), bits_of(a * float_of(0x3E2AAAAB)));
    ASSERT_EQ(bits_of(div_full(a, 448.0f)), bits_of(a * float_of(0x3B124925)));
    ASSERT_EQ(bits_of(div_full(a, 224.0f)), bits_of(a * float_of(0x3B924925)));
    ASSERT_EQ(bits_of(div_full(a, 1536.0f)), bits_of(a * (1.0f / 1536.0f)));
    not_ieee += bits_of(div_full(a, 6.0f)) != bits_of(a / 6.0f);
  }
  EXPECT_GT(not_ieee, checked * 30 / 100);  // a third
  EXPECT_LT(not_ieee, checked * 37 / 100);
}

TEST(div_full, specials) {
  EXPECT_EQ(bits_of(div_full(0.0f, 0.0f)), canonical_nan_bits);
  EXPECT_EQ(bits_of(div_full(infinity, infinity)), canonical_nan_bits);
  EXPECT_EQ(bits_of(div_full(odd_nan, 1.0f)), canonical_nan_bits);
  EXPECT_EQ(bits_of(div_full(1.0f, odd_nan)), canonical_nan_bits);
  EXPECT_EQ(div_full(1.0f, 0.0f), infinity);
  EXPECT_EQ(div_full(1.0f, -0.0f), -infinity);
  EXPECT_EQ(bits_of(div_full(-1.0f, infinity)), 0x80000000u);
  EXPECT_EQ(div_full(infinity, 2.0f), infinity);
  EXPECT_EQ(div_full(1.0f, 0x1p-140f), infinity);
  EXPECT_EQ(div_full(0x1p-140f, 0x1p-140f), 1.0f);
  EXPECT_EQ(div_full(0x1.8p127f, 0x1.8p127f), 1.0f);
  EXPECT_EQ(div_full(0x1p127f, 0x1p127f), 1.0f);
}

// Readers of docs/numerics.md have no other source of the coefficients.
std::vector<mufu_segment> documented_segments() {
  std::ifstream file(KVCTS_SOURCE_DIR "/docs/numerics.md");
  std::vector<mufu_segment> segments;
  bool in_tables = false;
  for (std::string line; std::getline(file, line);) {
    in_tables = in_tables || line == "## Coefficients of the approximate instructions";
    if (!in_tables || line.rfind("    ", 0) != 0) continue;
    std::istringstream numbers(line);
    std::uint32_t c0 = 0, c1 = 0, c2 = 0;
    while (numbers >> std::hex >> c0 >> c1 >> c2) {
      segments.push_back({c0, static_cast<std::uint16_t>(c1), static_cast<std::uint16_t>(c2)});
    }
  }
  return segments;
}

TEST(mufu_tables, are_those_of_the_documentation) {
  std::vector<mufu_segment> tables(std::begin(rcp_segments), std::end(rcp_segments));
  tables.insert(tables.end(), std::begin(rsqrt_segments), std::end(rsqrt_segments));
  tables.insert(tables.end(), std::begin(ex2_segments), std::end(ex2_segments));
  const std::vector<mufu_segment> documented = documented_segments();
  ASSERT_EQ(documented.size(), tables.size());
  for (std::size_t i = 0; i < tables.size(); ++i) {
    EXPECT_EQ(documented[i].c0, tables[i].c0) << i;
    EXPECT_EQ(documented[i].c1, tables[i].c1) << i;
    EXPECT_EQ(documented[i].c2, tables[i].c2) << i;
  }
}

}  // namespace
}  // namespace kvcts
