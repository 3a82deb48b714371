// Every f32 through every encoder, on two threads: against the independent definition of nearest.h,
// and where the CUDA toolkit is there against its host conversions.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <iomanip>
#include <thread>

#ifdef KVCTS_CUDA_CONVERSIONS
#include <cuda_bf16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#endif

#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e4m3.h"
#include "reference/tests/nearest.h"

namespace kvcts {
namespace {

constexpr std::uint64_t inputs_of_a_sign = std::uint64_t{1} << 31;

struct finding {
  std::uint64_t checked = 0;
  std::uint64_t wrong = 0;
  std::uint32_t first_wrong = 0;

  void add(std::uint32_t bits, bool equal) {
    checked += 1;
    if (!equal) {
      first_wrong = wrong == 0 ? bits : first_wrong;
      wrong += 1;
    }
  }
};

// check(negative) walks the 2^31 inputs of one sign.
template <class Check>
void both_signs(Check check) {
  std::array<finding, 2> found;
  std::thread negative([&] { found[1] = check(true); });
  found[0] = check(false);
  negative.join();
  EXPECT_EQ(found[0].checked + found[1].checked, 2 * inputs_of_a_sign);
  for (const finding& f : found) {
    EXPECT_EQ(f.wrong, 0u) << "the first at input bits 0x" << std::hex << f.first_wrong;
  }
}

template <class Encode>
void sweep_nearest(Encode encode, const test::encoding& wanted) {
  both_signs([&](bool negative) {
    finding f;
    test::nearest_code nearest(wanted.values);
    for (std::uint64_t i = 0; i < inputs_of_a_sign; ++i) {
      const auto magnitude = static_cast<std::uint32_t>(i);
      const std::uint32_t bits = negative ? magnitude | 0x80000000 : magnitude;
      const std::uint32_t expected =
          magnitude > 0x7F800000 ? wanted.nan
                                 : wanted.with_sign(nearest(test::from_bits(magnitude)), negative);
      f.add(bits, encode(test::from_bits(bits)) == expected);
    }
    return f;
  });
}

TEST(format_sweep, e2m1_nearest) { sweep_nearest(encode_e2m1, test::e2m1_encoding()); }
TEST(format_sweep, e4m3fn_nearest) { sweep_nearest(encode_e4m3fn, test::e4m3fn_encoding()); }
TEST(format_sweep, e4m3fnuz_nearest) { sweep_nearest(encode_e4m3fnuz, test::e4m3fnuz_encoding()); }
TEST(format_sweep, bf16_nearest) { sweep_nearest(encode_bf16, test::bf16_encoding()); }

#ifdef KVCTS_CUDA_CONVERSIONS
template <class Encode, class Toolkit>
void sweep_toolkit(Encode encode, Toolkit toolkit) {
  both_signs([&](bool negative) {
    finding f;
    for (std::uint64_t i = 0; i < inputs_of_a_sign; ++i) {
      const auto magnitude = static_cast<std::uint32_t>(i);
      const std::uint32_t bits = negative ? magnitude | 0x80000000 : magnitude;
      const float x = test::from_bits(bits);
      f.add(bits, encode(x) == toolkit(x));
    }
    return f;
  });
}

TEST(format_sweep, e2m1_toolkit) {
  sweep_toolkit(encode_e2m1, [](float x) {
    return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest) & 0xF;
  });
}
TEST(format_sweep, e4m3fn_toolkit) {
  sweep_toolkit(encode_e4m3fn,
                [](float x) { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3); });
}
TEST(format_sweep, bf16_toolkit) {
  sweep_toolkit(encode_bf16, [](float x) {
    const __nv_bfloat16_raw raw = __float2bfloat16_rn(x);
    return raw.x;
  });
}
#endif

}  // namespace
}  // namespace kvcts
