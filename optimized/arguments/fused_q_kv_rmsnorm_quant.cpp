#include "optimized/arguments/fused_q_kv_rmsnorm_quant.h"

#include <algorithm>

#include "optimized/arguments/common.h"

namespace kvcts {

fused_q_kv_rmsnorm_quant_arguments fused_q_kv_rmsnorm_quant_of(const call& c) {
  const tensor_view& q = c.tensor("qr");
  const tensor_view& kv = c.tensor("kv");
  const float eps = c.real("eps");
  // One launch for both rows: the longer one makes its block and its warps.
  const std::int64_t covered = std::max(q.dim(1), kv.dim(1));
  const int warps = covered > 1024 ? 8 : 4;
  fused_q_kv_rmsnorm_quant_arguments a{};
  a.q = norm_rows_of(q, c.tensor("q_quant"), c.tensor("q_weight"),
                     row_norm_of(q.dim(1), covered, warps, eps));
  a.kv = norm_rows_of(kv, c.tensor("kv_out"), c.tensor("kv_weight"),
                      row_norm_of(kv.dim(1), covered, warps, eps));
  a.scales = first_element(c.tensor("q_scales"));
  a.tokens = q.dim(0);
  a.scale_rows = (a.tokens + 127) / 128 * 128;
  a.blocks = q.dim(1) / 32;
  a.tiles = (a.blocks + 3) / 4;
  return a;
}

}  // namespace kvcts
