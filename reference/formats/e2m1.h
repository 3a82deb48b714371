// E2M1 (FP4): sign, two exponent bits (bias 1), one mantissa bit. Values 0 .5 1 1.5 2 3 4 6.
#pragma once

#include <cstdint>

namespace kvcts {

// f32 -> code 0..15. Nearest, ties to the even code; saturates to +-6, infinities too; the sign of
// zero and of underflow is kept; a NaN of either sign gives 7 (+6).
std::uint8_t encode_e2m1(float x);
// Code 0..15 -> f32, exact. The high four bits must be zero.
float decode_e2m1(std::uint8_t code);

// Two codes in a byte: the even element in the low nibble.
std::uint8_t pack_e2m1(std::uint8_t even, std::uint8_t odd);

}  // namespace kvcts
