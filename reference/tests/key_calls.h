// Calls of the kernels that insert index keys, for their tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/tests/call_builder.h"

namespace kvcts {

// bf16 bits that are all finite and spread over 16 binades, from a counter.
inline std::uint16_t key_bits(std::uint64_t n) {
  std::uint64_t z = (n + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z ^= z >> 27;
  return static_cast<std::uint16_t>((z & 0x807F) | ((119 + (z >> 20) % 16) << 7));
}

// Row r, element i of a bf16 argument [rows, width] with a row stride of width + 8, offset 8.
template <class Bits>
void add_rows(call_builder& b, const std::string& name, std::int64_t rows, std::int64_t width,
              Bits bits) {
  tensor_view& v = b.add(name, dtype::bf16, {{rows, width}, {width + 8, 1}, 8});
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < width; ++i) store(v.element(r, i), bits(r, i));
  }
}

inline void add_f32(call_builder& b, const std::string& name, std::int64_t n, float value) {
  b.add(name, dtype::f32, {n}, std::vector<float>(static_cast<std::size_t>(n), value));
}

struct key_options {
  std::int64_t dims = 128;
  std::int64_t warps = 0;  // 0: the attribute is absent
  std::vector<std::int64_t> slots = {0};
  std::int64_t tokens = 1;
  float weight = 1, bias = 0;
  double eps = 0;
  bool fnuz = false;
  std::int64_t pages = 2, block_size = 2, page_gap = 0;
  std::int64_t columns = 3;
};

inline std::int64_t key_record_bytes(const std::string& kernel, std::int64_t dims) {
  const bool mxfp4 = kernel.rfind("mxfp4", 0) == 0;
  return mxfp4 ? dims / 2 + dims / 32 : dims + 4;
}

// One page view at offset 8, pages `gap` bytes apart.
inline void add_pages(call_builder& b, const std::string& name, const key_options& o,
                      std::int64_t record) {
  b.add(name, dtype::u8,
        {{o.pages, o.block_size, record}, {o.block_size * record + o.page_gap, record, 1}, 8});
}

// mxfp4_k_norm_quant_insert or indexer_k_norm_quant_insert.
template <class Bits>
call_builder standalone_call(const std::string& kernel, const key_options& o, Bits bits) {
  call_builder b(kernel);
  add_rows(b, "k", o.tokens, o.dims, bits);
  add_f32(b, "norm_weight", o.dims, o.weight);
  add_f32(b, "norm_bias", o.dims, o.bias);
  b.i64("slot_mapping", o.slots);
  add_pages(b, "kv_cache", o, key_record_bytes(kernel, o.dims));
  b.add("topk_indices_buffer", dtype::i32, {{o.tokens + 1, o.columns}, {o.columns + 2, 1}, 1});
  b.get().attributes["norm_eps"] = o.eps;
  b.get().attributes["num_tokens"] = o.tokens;
  if (o.warps != 0) b.get().attributes["num_warps"] = o.warps;
  if (o.fnuz) b.get().attributes["fp8_format"] = std::string("e4m3fnuz");
  return b;
}

// A bf16 argument's bits at (row, element) for the four rows inputs of a prologue.
struct prologue_rows {
  std::uint16_t (*q)(std::int64_t, std::int64_t) = [](std::int64_t, std::int64_t) {
    return std::uint16_t{0x4000};  // 2
  };
  std::uint16_t (*kv)(std::int64_t, std::int64_t) = [](std::int64_t, std::int64_t) {
    return std::uint16_t{0x4000};
  };
  std::uint16_t (*k_pe)(std::int64_t, std::int64_t) = [](std::int64_t t, std::int64_t i) {
    return static_cast<std::uint16_t>(0x7F80 + t * 64 + i);  // infinity and NaN payloads
  };
  std::uint16_t (*k)(std::int64_t, std::int64_t) = [](std::int64_t t, std::int64_t i) {
    return key_bits(static_cast<std::uint64_t>(t * 4096 + i));
  };
};

struct prologue_options {
  key_options key;  // its slots are index_slot_mapping
  std::int64_t query_dims = 96;
  std::vector<std::int64_t> mla_slots = {0};
  float kv_weight = 1;
  std::string tile_rule;  // empty: absent
  bool mla_cache = true, mla_mapping = true, index_cache = true, index_mapping = true;
};

// mxfp4_fused_prologue or dsa_fused_prologue. mla_cache has entries 16 bytes apart and pages 32.
inline call_builder prologue_call(const std::string& kernel, const prologue_options& o,
                                  const prologue_rows& rows = {}) {
  call_builder b(kernel);
  const key_options& key = o.key;
  add_rows(b, "q_c", key.tokens, o.query_dims, rows.q);
  add_rows(b, "kv_c", key.tokens, 512, rows.kv);
  add_rows(b, "k_pe", key.tokens, 64, rows.k_pe);
  add_rows(b, "index_k", key.tokens, key.dims, rows.k);
  add_f32(b, "q_norm_weight", o.query_dims, 1);
  add_f32(b, "kv_norm_weight", 512, o.kv_weight);
  add_f32(b, "k_norm_weight", key.dims, key.weight);
  add_f32(b, "k_norm_bias", key.dims, key.bias);
  b.add("topk_indices_buffer", dtype::i32,
        {{key.tokens + 1, key.columns}, {key.columns + 2, 1}, 1});
  if (o.mla_cache) {
    b.add("mla_cache", dtype::u8,
          {{key.pages, key.block_size, 656}, {key.block_size * 672 + 32, 672, 1}, 4});
  }
  if (o.mla_mapping) b.i64("mla_slot_mapping", o.mla_slots);
  if (o.index_cache) add_pages(b, "index_cache", key, key_record_bytes(kernel, key.dims));
  if (o.index_mapping) b.i64("index_slot_mapping", key.slots);
  b.get().attributes["eps"] = key.eps;
  b.get().attributes["fp8_format"] = std::string(key.fnuz ? "e4m3fnuz" : "e4m3fn");
  if (key.warps != 0) b.get().attributes["num_warps"] = key.warps;
  if (!o.tile_rule.empty()) b.get().attributes["mla_scale_rule"] = o.tile_rule;
  return b;
}

}  // namespace kvcts
