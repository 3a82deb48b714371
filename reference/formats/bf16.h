// BF16: the upper half of an f32.
#pragma once

#include <cstdint>

namespace kvcts {

// Nearest even, subnormals kept, overflow to infinity, every NaN -> 0x7FFF.
std::uint16_t encode_bf16(float x);
// Exact; NaN payloads kept.
float decode_bf16(std::uint16_t bits);

}  // namespace kvcts
