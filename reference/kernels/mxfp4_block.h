// MXFP4 of one block of 32 values in the Kimi form: docs/numerics.md, "MXFP4 of a block of 32".
#pragma once

#include <array>
#include <cstdint>

#include "reference/numerics/rules.h"

namespace kvcts {

struct mxfp4_block {
  std::array<std::uint8_t, 16> packed;  // two codes a byte
  std::uint8_t scale;                   // UE8M0
};

mxfp4_block quantize_mxfp4_block(const float values[32], const Rules& rules);

}  // namespace kvcts
