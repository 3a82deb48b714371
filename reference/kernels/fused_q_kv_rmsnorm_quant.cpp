#include "reference/kernels/fused_q_kv_rmsnorm_quant.h"

#include <vector>

#include "reference/contract/registry.h"
#include "reference/kernels/fp8_block.h"
#include "reference/kernels/norm.h"

namespace kvcts {
namespace {

constexpr std::int64_t dims_per_scale = 32;
constexpr fp8_format format = fp8_format::e4m3fn;

rms_norm norm_of(const call& c, const Rules& rules, std::string_view weight,
                 std::string_view reduction) {
  const bindings widths = {{"Q", c.tensor("qr").dim(1)}, {"K", c.tensor("kv").dim(1)}};
  return {
      .weight = read_vector(c.tensor(weight)),
      .eps = c.real("eps"),
      .tree = contract_tree(fused_q_kv_rmsnorm_quant_contract(), reduction, widths, rules),
  };
}

}  // namespace

void fused_q_kv_rmsnorm_quant(const call& c, const Rules& rules) {
  const tensor_view& qr = c.tensor("qr");            // [T, Q] bf16
  const tensor_view& kv = c.tensor("kv");            // [T, K] bf16
  const tensor_view& q_quant = c.tensor("q_quant");  // [T, Q] E4M3
  const tensor_view& scales = c.tensor("q_scales");  // UE8M0, swizzled
  const tensor_view& kv_out = c.tensor("kv_out");    // [T, K] bf16
  const std::int64_t tokens = qr.dim(0);
  const std::int64_t groups = qr.dim(1) / dims_per_scale;
  const rms_norm q_norm = norm_of(c, rules, "q_weight", "RMSNorm of qr");
  const rms_norm kv_norm = norm_of(c, rules, "kv_weight", "RMSNorm of kv");

  for (std::int64_t i = 0; rules.zero_padding_rows && i < scales.dim(0); ++i) {
    store(scales.element(i), std::uint8_t{0});
  }
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::vector<float> y = kv_norm.of(read_row(kv, t), rules);
    for (std::int64_t d = 0; d < kv.dim(1); ++d) {
      store(kv_out.element(t, d), rules.round_bf16(y[static_cast<std::size_t>(d)]));
    }

    std::vector<float> q = q_norm.of(read_row(qr, t), rules);
    for (float& value : q) value = rules.through_bf16(value);
    for (std::int64_t g = 0; g < groups; ++g) {
      const float* x = q.data() + g * dims_per_scale;
      const float amax = block_amax(rules, x, dims_per_scale);
      const float n = rules.scale_quotient(rules, amax, fp8_limit(format), quotient::mul);
      const std::uint8_t scale = rules.integer_scale(n);
      const float multiplier = rules.integer_multiplier(scale);
      for (std::int64_t i = 0; i < dims_per_scale; ++i) {
        store(q_quant.element(t, g * dims_per_scale + i),
              rules.encode_e4m3(mul(x[i], multiplier), format));
      }
      store(scales.element(rules.swizzled_offset(t, g, groups)), scale);
    }
  }
}

}  // namespace kvcts
