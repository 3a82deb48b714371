#include "reference/kernels/prologue.h"

#include "reference/contract/key_insert.h"
#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

constexpr std::int64_t kv_dims = 512;
constexpr std::int64_t rope_dims = 64;
constexpr std::int64_t tile_dims = 128;
constexpr std::int64_t entry_bytes = 656;  // fp8_ds_mla
constexpr std::int64_t scales_at = 512;    // four f32
constexpr std::int64_t rope_at = 528;      // 64 bf16

// An entry of a page view with a page and an entry stride. Bytes outside the buffer are not
// written: a checked call has none, a fault's addresses may.
class mla_entry {
 public:
  mla_entry(const tensor_view& cache, std::int64_t slot, const Rules& rules)
      : cache_(cache),
        first_(page_start(cache, rules, rules.page_of(slot, cache.dim(1), cache.dim(0)),
                          cache.dim(1), entry_bytes) +
               position_of(slot, cache.dim(1)) * cache.stride(1)) {}

  void set(std::int64_t byte, std::byte value) const {
    const std::int64_t at = first_ + byte;
    if (at >= 0 && static_cast<std::uint64_t>(at) < cache_.storage_bytes) {
      cache_.storage[at] = value;
    }
  }

 private:
  const tensor_view& cache_;
  std::int64_t first_;
};

// y [512] f32, before the output's rounding; k_pe [T, 64] bf16.
void insert_mla(const std::vector<float>& y, const tensor_view& k_pe, std::int64_t t,
                const mla_entry& entry, fp8_format format, tile_rule rule, const Rules& rules) {
  const fp8_format table = rules.cache_format(format);
  for (std::int64_t first = 0; first < kv_dims; first += tile_dims) {
    const float* tile = &y[static_cast<std::size_t>(first)];
    float amax = abs(rules.kept_f32(tile[0]));
    for (std::int64_t i = 1; i < tile_dims; ++i) amax = rules.amax(amax, rules.kept_f32(tile[i]));
    const float scale = rules.tile_scale(rules, amax, fp8_limit(format), rule);
    for (std::int64_t i = 0; i < tile_dims; ++i) {
      const float scaled = rules.div(rules.kept_f32(tile[i]), scale);
      entry.set(first + i, std::byte{rules.encode_e4m3(scaled, table)});
    }
    std::byte bytes[4];
    store(bytes, scale);
    for (std::int64_t i = 0; i < 4; ++i) {
      entry.set(scales_at + first / tile_dims * 4 + i, bytes[i]);
    }
  }
  for (std::int64_t dim = 0; dim < rope_dims; ++dim) {
    entry.set(rope_at + 2 * dim, k_pe.element(t, dim)[0]);
    entry.set(rope_at + 2 * dim + 1, k_pe.element(t, dim)[1]);
  }
}

void store_bf16_row(const tensor_view& out, std::int64_t t, const std::vector<float>& y,
                    const Rules& rules) {
  for (std::int64_t i = 0; i < out.dim(1); ++i) {
    store(out.element(t, i), rules.round_bf16(y[static_cast<std::size_t>(i)]));
  }
}

}  // namespace

void run_prologue(const call& c, const kernel_contract& contract, key_record record,
                  const Rules& rules) {
  const tensor_view& q_c = c.tensor("q_c");                   // [T, Q] bf16
  const tensor_view& kv_c = c.tensor("kv_c");                 // [T, 512] bf16
  const tensor_view& k_pe = c.tensor("k_pe");                 // [T, 64] bf16
  const tensor_view& index_k = c.tensor("index_k");           // [T, D] bf16
  const tensor_view& topk = c.tensor("topk_indices_buffer");  // [R, K] i32
  const tensor_view* mla_cache = c.find("mla_cache");         // [pages, B, 656] u8
  const tensor_view* mla_slots = mla_cache != nullptr ? c.find("mla_slot_mapping") : nullptr;
  const tensor_view* index_cache = c.find("index_cache");  // [pages, B, record] u8
  const tensor_view* index_slots = index_cache != nullptr ? c.find("index_slot_mapping") : nullptr;
  const std::int64_t tokens = q_c.dim(0);
  const float eps = c.real("eps");
  const fp8_format format = fp8_format_of(c);
  const tile_rule rule =
      c.text_or("mla_scale_rule", "amax") == "pow2" ? tile_rule::pow2 : tile_rule::amax;
  const bindings names = {{"D", index_k.dim(1)},
                          {"Q", q_c.dim(1)},
                          {"num_warps", integer_of(contract, c, "num_warps")}};
  const rms_norm q_norm = {.weight = read_vector(c.tensor("q_norm_weight")),
                           .eps = eps,
                           .tree = contract_tree(contract, query_rms_norm, names, rules)};
  const rms_norm kv_norm = {.weight = read_vector(c.tensor("kv_norm_weight")),
                            .eps = eps,
                            .tree = contract_tree(contract, kv_rms_norm, names, rules)};

  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::optional<std::int64_t> slot = slot_of_row(mla_slots, t, rules);
    const std::vector<float> kv = kv_norm.of(read_row(kv_c, t), rules);
    if (slot && mla_cache != nullptr) {
      insert_mla(kv, k_pe, t, mla_entry(*mla_cache, *slot, rules), format, rule, rules);
    }
    if (slot || rules.norm_every_row) {
      store_bf16_row(c.tensor("kv_c_normed"), t, kv, rules);
      store_bf16_row(c.tensor("q_c_normed"), t, q_norm.of(read_row(q_c, t), rules), rules);
    }
    const tensor_view* slots = index_slots != nullptr ? index_slots : mla_slots;
    fill_topk_row(topk, t, mapped_slot(slots, t), rules);
  }

  if (index_slots == nullptr) return;
  key_insert how;
  how.record = record;
  how.format = format;
  how.norm = {.weight = read_vector(c.tensor("k_norm_weight")),
              .bias = read_vector(c.tensor("k_norm_bias")),
              .eps = eps,
              .tree = contract_tree(contract, key_layer_norm, names, rules)};
  insert_keys(index_k, *index_cache, *index_slots, tokens, how, rules);
}

}  // namespace kvcts
