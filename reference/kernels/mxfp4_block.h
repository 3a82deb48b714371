// MXFP4 of one block of 32 values: docs/numerics.md, "From a block to its scale and codes".
#pragma once

#include <array>
#include <cstdint>

#include "reference/numerics/rules.h"

namespace kvcts {

struct mxfp4_block {
  std::array<std::uint8_t, 16> packed;  // two codes a byte
  std::uint8_t scale;                   // UE8M0
};

// Where sources differ.
struct mxfp4_form {
  quotient scale_as_written;
  bool inverse_divides;  // DIV(1, 2^e), which keeps a subnormal 2^-127; otherwise 2^-e
};
constexpr mxfp4_form kimi_mxfp4 = {quotient::div, true};
constexpr mxfp4_form indexer_query_mxfp4 = {quotient::mul, true};
constexpr mxfp4_form indexer_key_mxfp4 = {quotient::mul, false};

mxfp4_block quantize_mxfp4_block(const float values[32], const Rules& rules,
                                 const mxfp4_form& form = kimi_mxfp4);

}  // namespace kvcts
