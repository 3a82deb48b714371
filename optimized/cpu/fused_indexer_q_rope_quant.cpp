#include "optimized/kernels/fused_indexer_q_rope_quant.h"

#include "optimized/cpu/kernel.h"

namespace kvcts::KVCTS_TARGET {

template <query_codes Form>
static void quantize_tokens(const fused_indexer_q_rope_quant_arguments& a, std::int64_t first,
                            std::int64_t last) {
  const bool usual = is_usual_query(a);
  for (std::int64_t token = first; token < last; ++token) {
    const unsigned char* row = query_angles<group, false>(a, token);
    if (usual) {
      const angles<group> turned = load_angles<group, false>(row, 0, 2, a.table.is_f32);
      for (std::int64_t head = 0; head < a.heads; head += 2) {
        quantize_query_heads<group, Form, false, 1>(a, turned, token, head);
      }
    } else {
      for (std::int64_t head = 0; head < a.heads; ++head) {
        quantize_any_query_head<group, Form>(a, row, token, head);
      }
    }
    if constexpr (Form == query_codes::mxfp4) {
      for (std::int64_t head = 0; head < a.heads; head += 32) {
        scale_query_weights<group, false>(a, token, head, 32);
      }
    }
  }
}

void fused_indexer_q_rope_quant(const fused_indexer_q_rope_quant_arguments& a, profile /*p*/,
                                std::int64_t first, std::int64_t last) {
  switch (a.form) {
    case query_codes::e4m3fn:
      return quantize_tokens<query_codes::e4m3fn>(a, first, last);
    case query_codes::e4m3fnuz:
      return quantize_tokens<query_codes::e4m3fnuz>(a, first, last);
    case query_codes::mxfp4:
      return quantize_tokens<query_codes::mxfp4>(a, first, last);
  }
}

}  // namespace kvcts::KVCTS_TARGET
