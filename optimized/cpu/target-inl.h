// The body of a target's source file, which defines KVCTS_TARGET and KVCTS_VECTOR_BYTES first. All
// functions are static or inlined.
#include "optimized/cpu/targets.h"
#include "optimized/kernels/mxfp4_q_quant.h"
#include "optimized/kernels/quantize_and_insert_k_cache.h"

namespace kvcts::KVCTS_TARGET {

using cpu_group = group<1>;

template <profile P>
static void mxfp4_q_quant_tokens(const mxfp4_q_quant_arguments& a, std::int64_t first,
                                 std::int64_t last) {
  for (std::int64_t token = first; token < last; ++token) {
    for (std::int64_t head = 0; head < a.padded_heads; head += 2) {
      mxfp4_quantize_heads<cpu_group, P, false, 1>(a, token, head);
    }
    for (std::int64_t head = 0; head < a.padded_heads; head += 32) {
      mxfp4_scale_weights<cpu_group, false>(a, token, head, 32);
    }
  }
}

static void mxfp4_q_quant(const mxfp4_q_quant_arguments& a, profile p, std::int64_t first,
                          std::int64_t last) {
  const auto run = p == profile::nvidia ? mxfp4_q_quant_tokens<profile::nvidia>
                                        : mxfp4_q_quant_tokens<profile::ieee>;
  run(a, first, last);
}

template <profile P, int Bytes, bool Fnuz>
static void insert_rows(const quantize_and_insert_arguments& a, std::int64_t first,
                        std::int64_t last) {
  for (std::int64_t row = first; row < last; ++row) {
    insert_key_rows<cpu_group, P, Bytes, Fnuz, false, 1>(a, row);
  }
}

template <profile P>
static void insert_rows_of(const quantize_and_insert_arguments& a, std::int64_t first,
                           std::int64_t last) {
  if (a.bytes_per_token == 584) {
    (a.fnuz ? insert_rows<P, 584, true> : insert_rows<P, 584, false>)(a, first, last);
  } else {
    (a.fnuz ? insert_rows<P, 528, true> : insert_rows<P, 528, false>)(a, first, last);
  }
}

static void quantize_and_insert(const quantize_and_insert_arguments& a, profile p,
                                std::int64_t first, std::int64_t last) {
  const auto run =
      p == profile::nvidia ? insert_rows_of<profile::nvidia> : insert_rows_of<profile::ieee>;
  run(a, first, last);
}

#define KVCTS_TEXT_OF(x) #x
#define KVCTS_TEXT(x) KVCTS_TEXT_OF(x)
const cpu_kernels kernels = {KVCTS_TEXT(KVCTS_TARGET), mxfp4_q_quant, quantize_and_insert};

}  // namespace kvcts::KVCTS_TARGET
