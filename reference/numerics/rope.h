// Rotation of a row's pairs of dims (GPT-J RoPE): docs/numerics.md, "RoPE".
#pragma once

#include <cstdint>

#include "reference/numerics/rules.h"

namespace kvcts {

// Which sums of products an op's source writes. Each is one fma of a product and a rounded product;
// they differ in the product that is not rounded.
enum class rope_form : std::uint8_t {
  store,    // forward, odd: fma(odd, c, RN(even*s)); keys and latents
  query,    // forward, odd: fma(even, s, RN(odd*c)); fused_indexer_q_rope_quant
  inverse,  // even: fma(even, c, RN(odd*s)); odd: fma(odd, c, -RN(even*s))
};

// Rotates the last `rope_dims` dims of x [dims] in place, in f32, unrounded. `cos_sin` is the
// position's row: rope_dims/2 cosines, then rope_dims/2 sines.
void rotate(const Rules& rules, rope_form form, float* x, std::int64_t dims, const float* cos_sin,
            std::int64_t rope_dims);

// The same formula with c = 1 and s = 0 on the pairs of the other dims: -0 can become +0, and an
// infinity or NaN spoils its partner.
void pass_through(const Rules& rules, rope_form form, float* x, std::int64_t dims,
                  std::int64_t rope_dims);

}  // namespace kvcts
