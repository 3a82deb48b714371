// E4M3 in its two forms: OCP "fn" (bias 7, max 448, one NaN pattern a sign, no infinity) and FNUZ
// (bias 8, max 240, one zero, NaN only as 0x80).
#pragma once

#include <cstdint>

namespace kvcts {

enum class fp8_format : std::uint8_t { e4m3fn, e4m3fnuz };

// Nearest, ties to even; saturates to +-448 (infinities too); -0 kept; NaN of either sign -> 0x7F.
std::uint8_t encode_e4m3fn(float x);
// Exact. 0x7F and 0xFF give the f32 NaN 0x7FFFFFFF.
float decode_e4m3fn(std::uint8_t byte);

// Nearest, ties to even; saturates to +-240; any zero result -> 0x00; NaN -> 0x80.
std::uint8_t encode_e4m3fnuz(float x);
// Exact. 0x80 gives the f32 NaN 0x7FFFFFFF.
float decode_e4m3fnuz(std::uint8_t byte);

std::uint8_t encode_e4m3(float x, fp8_format format);
float decode_e4m3(std::uint8_t byte, fp8_format format);
// The largest magnitude that scale rules divide by and clamps limit to: 448 or 224 (not 240).
float fp8_limit(fp8_format format);

}  // namespace kvcts
