#include "optimized/arguments/prologue.h"

#include <algorithm>

#include "optimized/arguments/common.h"

namespace kvcts {
namespace {

constexpr int row_warps = 4;  // of the two RMSNorms, whatever num_warps is

std::int64_t rows_with_slots(const tensor_view* cache, const tensor_view* slots,
                             std::int64_t tokens) {
  return cache == nullptr || slots == nullptr ? 0 : std::min(tokens, slots->dim(0));
}

norm_rows rows_of(const call& c, std::string_view from, std::string_view to,
                  std::string_view weight) {
  const tensor_view& rows = c.tensor(from);
  return norm_rows_of(rows, c.tensor(to), c.tensor(weight),
                      row_norm_of(rows.dim(1), rows.dim(1), row_warps, c.real("eps")));
}

}  // namespace

prologue_arguments prologue_of(const call& c) {
  prologue_arguments a{};
  a.tokens = c.tensor("q_c").dim(0);
  a.q = rows_of(c, "q_c", "q_c_normed", "q_norm_weight");
  a.kv = rows_of(c, "kv_c", "kv_c_normed", "kv_norm_weight");
  a.topk = topk_rows_of(c.tensor("topk_indices_buffer"));

  const tensor_view& k_pe = c.tensor("k_pe");
  const tensor_view* mla_cache = c.find("mla_cache");
  const tensor_view* mla_slots = c.find("mla_slot_mapping");
  a.mla.rows = rows_with_slots(mla_cache, mla_slots, a.tokens);
  a.mla.slots = first_element(mla_slots);
  if (mla_cache != nullptr) {
    a.mla.cache = pages_of(*mla_cache, mla_cache->dim(1));
    a.mla.entry_stride = byte_stride(*mla_cache, 1);
  }
  a.mla.k_pe = first_element(k_pe);
  a.mla.k_pe_stride = byte_stride(k_pe, 0);
  a.mla.pow2_scales = c.text_or("mla_scale_rule", "amax") == "pow2";
  a.mla.fnuz = fp8_is_fnuz(c);

  const tensor_view& k = c.tensor("index_k");
  const tensor_view* key_cache = c.find("index_cache");
  const tensor_view* key_slots = c.find("index_slot_mapping");
  a.keys.rows = rows_with_slots(key_cache, key_slots, a.tokens);
  a.keys.slots = first_element(key_slots);
  if (key_cache != nullptr) a.keys.cache = pages_of(*key_cache, key_cache->dim(1));
  a.keys.k = first_element(k);
  a.keys.k_row_stride = byte_stride(k, 0);
  a.keys.weight = norm_vector_of(c.tensor("k_norm_weight"));
  a.keys.bias = norm_vector_of(c.tensor("k_norm_bias"));
  a.keys.norm = row_norm_of(k.dim(1), k.dim(1), static_cast<int>(c.integer_or("num_warps", 4)),
                            c.real("eps"));
  a.keys.fnuz = fp8_is_fnuz(c);
  return a;
}

}  // namespace kvcts
