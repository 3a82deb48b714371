// f32 arithmetic whose every bit is defined: one rounding (nearest even) an operation, nothing
// flushed, and each NaN made by an operation is 0x7FFFFFFF (CPUs differ; NVIDIA GPUs do this).
#pragma once

#include <cstdint>

namespace kvcts {

std::uint32_t bits_of(float x);
float float_of(std::uint32_t bits);
constexpr std::uint32_t canonical_nan_bits = 0x7FFFFFFF;

float add(float a, float b);
float sub(float a, float b);
float mul(float a, float b);
float fma(float a, float b, float c);
// RN(a/b).
float true_div(float a, float b);
// The operand that is not NaN; canonical NaN if both are; +0 > -0.
float max(float a, float b);
float min(float a, float b);
// |x|: the sign bit cleared, NaN payload kept.
float abs(float x);
// Magnitude min(|x|, limit) with the sign of x; a NaN becomes +limit.
float clamp_magnitude(float x, float limit);

}  // namespace kvcts
