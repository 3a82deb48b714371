// A block of values that share one power-of-two scale, as E4M3: docs/numerics.md, "From a block to
// its scale and codes".
#pragma once

#include <cstdint>

#include "reference/formats/e4m3.h"
#include "reference/numerics/arithmetic.h"
#include "reference/numerics/rules.h"

namespace kvcts {

// How a source scales a value before the encode.
enum class fp8_scaling : std::uint8_t {
  divide,       // DIV(x, 2^e)
  true_divide,  // RN(x / 2^e)
  multiply,     // RN(x * 2^-e)
};

struct fp8_form {
  float amax_floor;
  quotient scale_as_written;
  fp8_scaling scaling;
  bool clamped;
};

// max |x|, NaN ignored; NaN where all are.
float block_amax(const Rules& rules, const float* x, std::int64_t n);

// Writes n codes. Gives the scale's exponent e: integral, or +inf.
float quantize_fp8_block(const Rules& rules, const fp8_form& form, const float* x, std::int64_t n,
                         fp8_format format, std::uint8_t* codes);

}  // namespace kvcts
