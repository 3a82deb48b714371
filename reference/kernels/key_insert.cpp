#include "reference/kernels/key_insert.h"

#include <algorithm>

#include "reference/contract/key_insert.h"
#include "reference/kernels/mxfp4_block.h"
#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

const float fp8_amax_floor = float_of(0x38D1B717);  // 1e-4

record_size size_of_record(key_record record, std::int64_t dims, std::int64_t block_size) {
  if (record == key_record::mxfp4) return {block_size, dims / 2, dims / 32};
  return {block_size, dims, 4};
}

void write_mxfp4(const std::vector<float>& y, const token_record& record, const Rules& rules) {
  const auto dims = static_cast<std::int64_t>(y.size());
  for (std::int64_t block = 0; block < dims / 32; ++block) {
    const mxfp4_block made = quantize_mxfp4_block(&y[static_cast<std::size_t>(block * 32)], rules);
    for (std::int64_t i = 0; i < 16; ++i) {
      record.set_data(block * 16 + i, std::byte{made.packed[static_cast<std::size_t>(i)]});
    }
    record.set_scale(block, std::byte{made.scale});
  }
}

void write_fp8(const std::vector<float>& y, fp8_format format, const token_record& record,
               const Rules& rules) {
  float amax = abs(y[0]);
  for (const float value : y) amax = rules.amax(amax, value);
  const float floored = rules.floor_amax(amax, fp8_amax_floor);
  const float q = rules.scale_quotient(rules, floored, fp8_limit(format), quotient::true_div);
  const float scale = rules.exp2_int(rules.scale_exponent(q));
  const fp8_format table = rules.cache_format(format);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::uint8_t code = rules.encode_e4m3(rules.true_div(y[i], scale), table);
    record.set_data(static_cast<std::int64_t>(i), std::byte{code});
  }
  std::byte bytes[4];
  store(bytes, scale);
  for (std::int64_t i = 0; i < 4; ++i) record.set_scale(i, bytes[i]);
}

}  // namespace

std::int64_t mapped_slot(const tensor_view* slots, std::int64_t t) {
  if (slots == nullptr || t >= slots->dim(0)) return -1;
  return load<std::int64_t>(slots->element(t));
}

std::optional<std::int64_t> slot_of_row(const tensor_view* slots, std::int64_t t,
                                        const Rules& rules) {
  if (slots == nullptr) return std::nullopt;
  if (t >= slots->dim(0)) {
    // Only a fault goes past the mapping; there the row's number stands for the slot it finds.
    return rules.rows_past_mapping ? std::optional(t) : std::nullopt;
  }
  const std::int64_t slot = load<std::int64_t>(slots->element(t));
  return rules.slot_is_live(slot) ? std::optional(slot) : std::nullopt;
}

void insert_keys(const tensor_view& k, const tensor_view& cache, const tensor_view& slots,
                 std::int64_t tokens, const key_insert& how, const Rules& rules) {
  const record_size size = size_of_record(how.record, k.dim(1), cache.dim(1));
  for (std::int64_t t = 0; t < std::min(tokens, k.dim(0)); ++t) {
    const std::optional<std::int64_t> slot = slot_of_row(&slots, t, rules);
    if (!slot) continue;
    std::vector<float> y = how.norm.of(read_row(k, t), rules);
    for (float& value : y) value = rules.kept_f32(value);
    const token_record record = record_of_slot(cache, rules, size, *slot);
    if (how.record == key_record::mxfp4) {
      write_mxfp4(y, record, rules);
    } else {
      write_fp8(y, how.format, record, rules);
    }
  }
}

void fill_topk_row(const tensor_view& topk, std::int64_t t, std::int64_t slot, const Rules& rules) {
  if (!rules.topk_row_filled(slot)) return;
  const std::byte* end = topk.storage + topk.storage_bytes;
  for (std::int64_t column = 0; column < rules.topk_columns_filled(topk.dim(1)); ++column) {
    std::byte* element = topk.element(t, column);
    // A fault's last column may lie behind the buffer.
    if (element + sizeof(std::int32_t) <= end) store(element, rules.topk_fill);
  }
}

fp8_format fp8_format_of(const call& c) {
  return c.text_or("fp8_format", "e4m3fn") == "e4m3fnuz" ? fp8_format::e4m3fnuz
                                                         : fp8_format::e4m3fn;
}

void run_key_insert(const call& c, const kernel_contract& contract, key_record record,
                    const Rules& rules) {
  const tensor_view& k = c.tensor("k");                       // [N, D] bf16
  const tensor_view& slots = c.tensor("slot_mapping");        // [S] i64
  const tensor_view& topk = c.tensor("topk_indices_buffer");  // [R, K] i32
  const std::int64_t tokens = c.integer("num_tokens");
  const bindings names = {{"D", k.dim(1)}, {"num_warps", integer_of(contract, c, "num_warps")}};

  key_insert how;
  how.record = record;
  how.format = fp8_format_of(c);
  how.norm = {.weight = read_vector(c.tensor("norm_weight")),
              .bias = read_vector(c.tensor("norm_bias")),
              .eps = c.real("norm_eps"),
              .tree = contract_tree(contract, key_layer_norm, names, rules)};
  insert_keys(k, c.tensor("kv_cache"), slots, tokens, how, rules);
  for (std::int64_t t = 0; t < tokens; ++t) fill_topk_row(topk, t, mapped_slot(&slots, t), rules);
}

}  // namespace kvcts
