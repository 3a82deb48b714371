// An NVFP4 code needs x / d no better than on the right side of E2M1's rounding boundaries, so that
// optimized kernels multiply by 1/d in two parts. Here with exact roundings, for every scale: in
// f32 around every boundary, in bf16, two at once on the device, for every number.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e4m3.h"

namespace kvcts {
namespace {

std::vector<float> scales() {
  std::vector<float> r;
  for (int code = 1; code < 0x7F; ++code) {
    r.push_back(decode_e4m3fn(static_cast<std::uint8_t>(code)));
  }
  return r;
}

// The float `steps` places above a positive one.
float stepped(float x, int steps) {
  const float to = steps < 0 ? 0.0F : std::numeric_limits<float>::infinity();
  for (int i = 0; i < std::abs(steps); ++i) x = std::nextafter(x, to);
  return x;
}

float quotient(float x, float inverse, float rest) { return std::fma(x, inverse, x * rest); }

TEST(Nvfp4Quotient, F32IsOnTheSideOfTheQuotient) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  int differences = 0;
  for (const float d : scales()) {
    const float nearest = 1.0F / d;
    for (int error = -1; error <= 1; ++error) {
      const float inverse = stepped(nearest, error);
      const float rest = std::fma(-inverse, d, 1.0F) * nearest;
      for (const float boundary : {0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5.0F}) {
        for (int steps = -40; steps <= 40; ++steps) {
          const float x = stepped(boundary * d, steps);
          if (encode_e2m1(quotient(x, inverse, rest)) != encode_e2m1(x / d)) ++differences;
        }
      }
      if (error >= 0) continue;
      // From below, signs of zeros and infinities stay.
      for (const float x : {0.0F, -0.0F, inf, -inf, 1e-45F, -1e-45F, 3e38F, -3e38F}) {
        if (encode_e2m1(quotient(x, inverse, rest)) != encode_e2m1(x / d)) ++differences;
      }
    }
  }
  EXPECT_EQ(differences, 0);
}

// RN to 8 significant bits; what is no normal bf16 is far from all boundaries.
double to_bf16(double x) {
  if (x == 0.0 || std::isinf(x)) return x;
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(x, 8 - exponent)), exponent - 8);
}
double upper_bf16(float x) { return static_cast<double>(decode_bf16(encode_bf16(x))); }

TEST(Nvfp4Quotient, PairsOfBf16GiveTheCode) {
  int differences = 0;
  for (const float d : scales()) {
    for (int error = -1; error <= 1; ++error) {  // that of the device's reciprocal
      const float inverse = stepped(1.0F / d, error);
      const double high = upper_bf16(inverse);
      const double low = upper_bf16(inverse - static_cast<float>(high));
      for (std::uint16_t bits = 0; bits < 0x7F80; ++bits) {
        const float x = decode_bf16(bits);
        const auto m = static_cast<double>(x);
        const double y = to_bf16(m * high + to_bf16(m * low));
        const double count = std::min({to_bf16(2.0 * y + 252.0), to_bf16(y + 256.0), 262.0});
        // 252 has the bits 0x437C, 256 0x4380.
        const int code = (encode_bf16(static_cast<float>(count)) & 7) ^ 4;
        if (code != encode_e2m1(x / d) && ++differences <= 5) {
          ADD_FAILURE() << x << " / " << d << ": " << code;
        }
      }
    }
  }
  EXPECT_EQ(differences, 0);
}

}  // namespace
}  // namespace kvcts
