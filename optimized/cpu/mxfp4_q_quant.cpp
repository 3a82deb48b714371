#include "optimized/kernels/mxfp4_q_quant.h"

#include "optimized/cpu/kernel.h"

namespace kvcts::KVCTS_TARGET {

template <profile P>
static void quantize_tokens(const mxfp4_q_quant_arguments& a, std::int64_t first,
                            std::int64_t last) {
  for (std::int64_t token = first; token < last; ++token) {
    for (std::int64_t head = 0; head < a.padded_heads; head += 2) {
      mxfp4_quantize_heads<group, P, false, 1>(a, token, head);
    }
    for (std::int64_t head = 0; head < a.padded_heads; head += 32) {
      mxfp4_scale_weights<group, false>(a, token, head, 32);
    }
  }
}

void mxfp4_q_quant(const mxfp4_q_quant_arguments& a, profile p, std::int64_t first,
                   std::int64_t last) {
  const auto run =
      p == profile::nvidia ? quantize_tokens<profile::nvidia> : quantize_tokens<profile::ieee>;
  run(a, first, last);
}

}  // namespace kvcts::KVCTS_TARGET
