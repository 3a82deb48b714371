#include "reference/kernels/indexer_k_norm_rope_store.h"

#include <vector>

#include "reference/contract/registry.h"
#include "reference/kernels/cos_sin.h"
#include "reference/kernels/fp8_block.h"
#include "reference/kernels/group_rows.h"
#include "reference/kernels/mxfp4_block.h"
#include "reference/kernels/norm.h"
#include "reference/kernels/page_access.h"
#include "reference/numerics/rope.h"

namespace kvcts {
namespace {

constexpr std::int64_t head_dim = 128;
constexpr std::int64_t rope_dim = 64;
constexpr std::int64_t dims_per_scale = 32;  // MXFP4
const fp8_form key_form = {float_of(0x38D1B717) /* 1e-4 */, quotient::mul, fp8_scaling::multiply,
                           true};

void store_mxfp4(const Rules& rules, const std::vector<float>& x, const token_record& record) {
  for (std::int64_t b = 0; b < head_dim / dims_per_scale; ++b) {
    const mxfp4_block block =
        quantize_mxfp4_block(x.data() + b * dims_per_scale, rules, indexer_key_mxfp4);
    for (std::int64_t i = 0; i < 16; ++i) {
      record.set_data(b * 16 + i, std::byte{block.packed[static_cast<std::size_t>(i)]});
    }
    record.set_scale(b, std::byte{block.scale});
  }
}

void store_fp8(const Rules& rules, const std::vector<float>& x, const token_record& record,
               bool tiled, std::int64_t position) {
  std::uint8_t codes[head_dim];
  const float exponent =
      quantize_fp8_block(rules, key_form, x.data(), head_dim, fp8_format::e4m3fn, codes);
  for (std::int64_t d = 0; d < head_dim; ++d) {
    // set_data() counts from the token's own row.
    const std::int64_t in_tiles = rules.tiled_offset(position, d, head_dim) - position * head_dim;
    record.set_data(tiled ? in_tiles : d, std::byte{codes[d]});
  }
  const std::uint32_t scale = bits_of(rules.exp2_int(exponent));
  for (std::int64_t i = 0; i < 4; ++i) {
    record.set_scale(i, static_cast<std::byte>(scale >> (8 * i) & 0xFF));
  }
}

}  // namespace

void indexer_k_norm_rope_store(const call& c, const Rules& rules) {
  const tensor_view& k_pre = c.tensor("k_pre");            // [N, 128] bf16
  const tensor_view& positions = c.tensor("positions");    // [P] i64
  const tensor_view& table = c.tensor("cos_sin_cache");    // [max_pos, 64] f32 or bf16
  const tensor_view& cache = c.tensor("k_cache");          // [blocks, B, 68 or 132] u8
  const tensor_view& slots = c.tensor("kv_slot_mapping");  // [S] i64
  const std::int64_t ratio = c.integer("compress_ratio");
  const bool use_fp4 = c.integer("use_fp4_cache") != 0;
  const bool tiled = c.integer("shuffle") != 0;
  const record_size size =
      use_fp4 ? record_size{cache.dim(1), head_dim / 2, 4} : record_size{cache.dim(1), head_dim, 4};
  const rms_norm norm = {
      .weight = read_vector(c.tensor("rms_norm_weight")),
      .eps = c.real("rms_norm_eps"),
      .tree = contract_tree(indexer_k_norm_rope_store_contract(), "RMSNorm of k_pre", {}, rules),
  };

  for (const group_row& at : rows_at_group_ends(rules, slots, positions, k_pre.dim(0), ratio)) {
    std::vector<float> x = norm.of(read_row(k_pre, at.row), rules);
    for (float& value : x) value = rules.through_bf16(value);
    pass_through(rules, rope_form::store, x.data(), head_dim, rope_dim);
    const std::vector<float> cos_sin = cos_sin_row(table, rules.rope_position(at.position, ratio));
    rotate(rules, rope_form::store, x.data(), head_dim, cos_sin.data(), rope_dim);
    for (float& value : x) value = rules.through_bf16(value);

    const token_record record = record_of_slot(cache, rules, size, at.slot);
    if (use_fp4) {
      store_mxfp4(rules, x, record);
    } else {
      store_fp8(rules, x, record, tiled, position_of(at.slot, cache.dim(1)));
    }
  }
}

}  // namespace kvcts
