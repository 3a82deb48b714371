// UE8M0: an unsigned power of two, 2^(byte-127); 0xFF is NaN.
#pragma once

#include <cstdint>

namespace kvcts {

// By the OCP standard: 2^(byte-127) exactly (byte 0 is the subnormal 2^-127), 0xFF the NaN
// 0x7FFFFFFF. What a kernel makes of bytes 0 and 255 is its profile's: Rules::scale_of_byte.
float decode_ue8m0(std::uint8_t byte);
// Positive finite x -> the byte of the nearest power of two, ties to the even byte, limited to
// [0, 254]; NaN, infinities and negative numbers -> 0xFF; zeros -> 0. A conversion for its own
// sake: the kernels store exponent + 127.
std::uint8_t encode_ue8m0(float x);

}  // namespace kvcts
