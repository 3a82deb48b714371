#include "fuzz/relations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "conformance/cases/slots.h"
#include "fuzz/index_definition.h"
#include "fuzz/record_decoder.h"
#include "reference/layout/paged.h"

namespace kvcts {
namespace {

using integer = std::int64_t;
using calls = relation_calls;

constexpr relation_outcome outcome_of(bool holds) {
  return holds ? relation_outcome::holds : relation_outcome::broken;
}

integer attribute(const test_case& c, const char* name, integer otherwise = 0) {
  const auto found = c.attributes.find(name);
  return found == c.attributes.end() ? otherwise : std::get<integer>(found->second);
}
bool is_text(const test_case& c, const char* name, std::string_view text) {
  const auto found = c.attributes.find(name);
  return found != c.attributes.end() && std::get<std::string>(found->second) == text;
}
buffer& input_of(test_case& c, std::string_view name) {
  for (buffer& b : c.inputs) {
    if (b.name == name) return b;
  }
  throw std::logic_error(c.kernel + " has no input " + std::string(name));
}
bool same_bytes(const buffer& a, const buffer& b) { return a.bytes == b.bytes; }

// --- Tokens and what belongs to them.

// Requests are what a gather's rows are shared out by.
std::string_view unit_of(std::string_view kernel) {
  return kernel == "dequantize_and_gather_k_cache" ? "request" : "token";
}

// The axis that counts tokens, or -1.
int token_axis(const test_case& c, std::string_view argument) {
  const argument_spec* spec = contract_of(c.kernel).argument(argument);
  if (spec == nullptr) return -1;
  const std::vector<std::string_view> axes = list_of(spec->axes);
  const auto at = std::find(axes.begin(), axes.end(), unit_of(c.kernel));
  return at == axes.end() ? -1 : static_cast<int>(at - axes.begin());
}

// Kernels whose tokens do not know one another.
bool tokens_are_free(const test_case& c) {
  if (c.kernel == "combine_topk_swa_indices" || c.kernel == "fused_layout" ||
      c.kernel == "build_flashinfer_mixed_sparse_indices") {
    return false;
  }
  return c.kernel != "fused_save_compress_norm" || attribute(c, "compress_ratio") == 1;
}

integer tokens_of(const test_case& c) {
  if (c.attributes.count("num_tokens") != 0) return attribute(c, "num_tokens");
  if (const buffer* rows = c.input("q_c")) return rows->at.shape[0];
  integer tokens = std::numeric_limits<integer>::max();
  for (const buffer& b : c.inputs) {
    if (token_axis(c, b.name) == 0) tokens = std::min(tokens, b.at.shape[0]);
  }
  return tokens;
}

// Bytes of a row, one index of the first axis, without gaps.
std::vector<std::byte> row_bytes(const tensor_view& v, integer row) {
  std::vector<std::byte> bytes;
  const std::size_t size = size_of(v.type);
  const integer columns = v.rank() > 1 ? v.dim(1) : 1, depth = v.rank() > 2 ? v.dim(2) : 1;
  for (integer i = 0; i < columns; ++i) {
    for (integer j = 0; j < depth; ++j) {
      const std::byte* at = v.rank() == 1   ? v.element(row)
                            : v.rank() == 2 ? v.element(row, i)
                                            : v.element(row, i, j);
      bytes.insert(bytes.end(), at, at + size);
    }
  }
  return bytes;
}

// The call of some of the tokens, in this order.
test_case call_of(const test_case& c, const std::vector<integer>& tokens) {
  test_case made = c;
  for (buffer& b : made.inputs) {
    if (token_axis(c, b.name) != 0) continue;
    const tensor_view from = c.input(b.name)->view();
    std::vector<integer> shape = b.at.shape;
    shape[0] = static_cast<integer>(tokens.size());
    b.at = dense(shape);
    b.bytes.clear();
    for (const integer t : tokens) {
      std::vector<std::byte> row;
      if (t < from.dim(0)) {
        row = row_bytes(from, t);
      } else {  // past the mapping
        row.resize(sizeof(integer));
        store(row.data(), integer{-1});
      }
      b.bytes.insert(b.bytes.end(), row.begin(), row.end());
    }
  }
  if (made.attributes.count("num_tokens") != 0) {
    made.attributes["num_tokens"] = static_cast<integer>(tokens.size());
  }
  return made;
}

// What a result holds of a token; `tokens` are those of the call. Empty: nothing, as a cache does.
std::vector<std::byte> of_token(const test_case& c, const buffer& result, integer tokens,
                                integer token) {
  const tensor_view v = result.view();
  std::vector<std::byte> bytes;
  const auto take = [&](integer element) {
    const std::byte* at = v.element(element);
    bytes.insert(bytes.end(), at, at + size_of(v.type));
  };
  if (result.name == "scales") {  // [groups, inner, tokens rounded up to 4]
    const integer stride = (tokens + 3) / 4 * 4;
    for (integer i = token; i < v.dim(0); i += stride) take(i);
    return bytes;
  }
  if (result.name == "q_scales") {
    const integer groups = c.input("qr")->at.shape[1] / 32;
    for (integer g = 0; g < groups; ++g) take(swizzled_offset(token, g, groups));
    return bytes;
  }
  const int axis = token_axis(c, result.name);
  if (axis == 0) return row_bytes(v, token);
  if (axis != 1) return bytes;
  for (integer i = 0; i < v.dim(0); ++i) {
    const std::byte* at = v.element(i, token, 0);
    bytes.insert(bytes.end(), at, at + static_cast<std::size_t>(v.dim(2)) * size_of(v.type));
  }
  return bytes;
}

bool has_tokens(const test_case& c, const buffer& result) {
  return result.name == "scales" || result.name == "q_scales" || token_axis(c, result.name) >= 0;
}

// Results of `part`, a call of these tokens, against those of the whole.
bool part_agrees(const test_case& c, const std::vector<buffer>& whole, integer all,
                 const std::vector<buffer>& part, const std::vector<integer>& tokens) {
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (!has_tokens(c, whole[i])) continue;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      if (of_token(c, part[i], static_cast<integer>(tokens.size()), static_cast<integer>(t)) !=
          of_token(c, whole[i], all, tokens[t])) {
        return false;
      }
    }
  }
  return true;
}

bool caches_agree(const test_case& c, const std::vector<buffer>& a, const std::vector<buffer>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!has_tokens(c, a[i]) && !same_bytes(a[i], b[i])) return false;
  }
  return true;
}

std::vector<integer> numbers(integer first, integer end) {
  std::vector<integer> made(static_cast<std::size_t>(end - first));
  std::iota(made.begin(), made.end(), first);
  return made;
}

relation_outcome permuted_tokens(const test_case& c, draw& from, const calls& by) {
  if (!tokens_are_free(c)) return relation_outcome::does_not_apply;
  const integer tokens = tokens_of(c);
  if (tokens < 2) return relation_outcome::does_not_apply;
  std::vector<integer> order = numbers(0, tokens);
  for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[from.below(i + 1)]);
  const std::vector<buffer> whole = by.run(c);
  const std::vector<buffer> permuted = by.run(call_of(c, order));
  return outcome_of(part_agrees(c, whole, tokens, permuted, order) &&
                    caches_agree(c, whole, permuted));
}

relation_outcome split_batch(const test_case& c, draw& from, const calls& by) {
  if (!tokens_are_free(c)) return relation_outcome::does_not_apply;
  const integer tokens = tokens_of(c);
  if (tokens < 2) return relation_outcome::does_not_apply;
  const integer cut = from.between(1, tokens - 1);
  const std::vector<integer> first = numbers(0, cut), rest = numbers(cut, tokens);
  const std::vector<buffer> whole = by.run(c);
  const std::vector<buffer> before = by.run(call_of(c, first));
  test_case second = call_of(c, rest);
  for (const buffer& b : before) {
    const argument_spec* spec = contract_of(c.kernel).argument(b.name);
    if (spec->direction == role::updated && !has_tokens(c, b)) input_of(second, b.name) = b;
  }
  const std::vector<buffer> after = by.run(second);
  return outcome_of(part_agrees(c, whole, tokens, before, first) &&
                    part_agrees(c, whole, tokens, after, rest) && caches_agree(c, whole, after));
}

// --- Padded heads.

relation_outcome padded_heads(const test_case& c, draw& from, const calls& by) {
  if (c.kernel != "mxfp4_q_quant") return relation_outcome::does_not_apply;
  const integer heads = c.input("index_q")->at.shape[1];
  test_case wider = c;
  wider.attributes["padded_num_heads"] = attribute(c, "padded_num_heads") + from.between(1, 9);
  const std::vector<buffer> narrow = by.run(c), wide = by.run(wider);
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    const tensor_view a = narrow[i].view(), b = wide[i].view();
    const integer size = a.stride(1) * static_cast<integer>(size_of(a.type));
    const auto at = [](const tensor_view& v, integer t, integer h) {
      return v.rank() == 3 ? v.element(t, h, 0) : v.element(t, h);
    };
    for (integer t = 0; t < a.dim(0); ++t) {
      for (integer h = 0; h < b.dim(1); ++h) {
        const std::byte* wide_row = at(b, t, h);
        if (h < heads) {
          if (std::memcmp(at(a, t, h), wide_row, static_cast<std::size_t>(size)) != 0) {
            return relation_outcome::broken;
          }
        } else if (std::any_of(wide_row, wide_row + size,
                               [](std::byte x) { return x != std::byte{0}; })) {
          return relation_outcome::broken;
        }
      }
    }
  }
  return relation_outcome::holds;
}

// --- Powers of two.

// Multiplies blocks of bf16 by 2^k where that is exact and stays above the floor of the scale.
// Gives for each block whether it was.
struct scaled_blocks {
  integer k;
  std::vector<bool> scaled;
};

bool scale_block(std::byte* block, integer elements, integer k, integer lowest_amax) {
  integer largest = -1000;
  for (integer i = 0; i < elements; ++i) {
    const auto bits = load<std::uint16_t>(block + 2 * i);
    if ((bits & 0x7FFF) == 0) continue;
    const integer exponent = (bits >> 7 & 0xFF) - 127;
    if (exponent < -126 || exponent > 127) return false;  // subnormal; infinity and NaN
    if (exponent + k < -126 || exponent + k > 120) return false;
    largest = std::max(largest, exponent);
  }
  if (largest <= lowest_amax || largest + k <= lowest_amax) return false;
  for (integer i = 0; i < elements; ++i) {
    const auto bits = load<std::uint16_t>(block + 2 * i);
    if ((bits & 0x7FFF) == 0) continue;
    store(block + 2 * i, static_cast<std::uint16_t>(bits + (k << 7)));
  }
  return true;
}

relation_outcome scaled_query(const test_case& c, draw& from, const calls& by) {
  const integer k = from.one_in(2) ? from.between(1, 8) : -from.between(1, 8);
  test_case louder = c;
  const tensor_view q = input_of(louder, "index_q").view();
  std::vector<bool> scaled;
  for (integer t = 0; t < q.dim(0); ++t) {
    for (integer h = 0; h < q.dim(1); ++h) {
      for (integer b = 0; b < 4; ++b) {
        scaled.push_back(scale_block(q.element(t, h, 32 * b), 32, k, -100));
      }
    }
  }
  const std::vector<buffer> before = by.run(c), after = by.run(louder);
  const tensor_view a = before[1].view(), b = after[1].view();
  std::size_t block = 0;
  for (integer t = 0; t < q.dim(0); ++t) {
    for (integer h = 0; h < q.dim(1); ++h) {
      for (integer i = 0; i < 4; ++i, ++block) {
        const integer was = std::to_integer<int>(a.element(t, h)[i]);
        const integer is = std::to_integer<int>(b.element(t, h)[i]);
        if (is - was != (scaled[block] ? k : 0)) return relation_outcome::broken;
      }
    }
  }
  return outcome_of(same_bytes(before[0], after[0]) && same_bytes(before[2], after[2]));
}

relation_outcome scaled_key(const test_case& c, draw& from, const calls& by) {
  const integer k = from.one_in(2) ? from.between(1, 8) : -from.between(1, 8);
  const integer record = attribute(c, "bytes_per_token"), size = attribute(c, "block_size");
  const integer block = record == 584 ? 64 : 32, data_bytes = record == 584 ? 576 : 512;
  test_case louder = c;
  const tensor_view keys = input_of(louder, "k").view();
  const tensor_view slots = input_of(louder, "slot_mapping").view();
  std::vector<std::vector<bool>> scaled;
  for (integer t = 0; t < slots.dim(0); ++t) {
    scaled.emplace_back();
    for (integer d = 0; d < (record == 584 ? 448 : 512); d += block) {
      scaled.back().push_back(scale_block(keys.element(t, d), block, k, -13));
    }
  }
  const std::vector<buffer> before = by.run(c);
  std::vector<buffer> after = by.run(louder);
  // Scales that moved by k are moved back; then nothing may differ.
  const tensor_view pages = after[0].view(), was = before[0].view();
  for (integer t = 0; t < slots.dim(0); ++t) {
    const auto slot = load<integer>(slots.element(t));
    if (slot < 0) continue;
    for (std::size_t b = 0; b < scaled[static_cast<std::size_t>(t)].size(); ++b) {
      if (!scaled[static_cast<std::size_t>(t)][b]) continue;
      const integer at =
          size * data_bytes + slot % size * (record - data_bytes) + static_cast<integer>(b);
      std::byte* scale = pages.element(slot / size, 0, 0) + at;
      const std::byte old = was.element(slot / size, 0, 0)[at];
      if (std::to_integer<int>(*scale) - std::to_integer<int>(old) != k) {
        return relation_outcome::broken;
      }
      *scale = old;
    }
  }
  return outcome_of(same_bytes(before[0], after[0]));
}

relation_outcome scaled_by_a_power_of_two(const test_case& c, draw& from, const calls& by) {
  if (c.kernel == "mxfp4_q_quant") return scaled_query(c, from, by);
  if (c.kernel == "quantize_and_insert_k_cache") return scaled_key(c, from, by);
  return relation_outcome::does_not_apply;
}

// --- Standalone and fused.

relation_outcome standalone_is_fused(const test_case& c, draw& /*from*/, const calls& by) {
  const bool mxfp4 = c.kernel == "mxfp4_fused_prologue";
  const char* kernel = mxfp4 ? "mxfp4_k_norm_quant_insert" : "indexer_k_norm_quant_insert";
  if ((!mxfp4 && c.kernel != "dsa_fused_prologue") || c.input("index_cache") == nullptr ||
      c.input("index_slot_mapping") == nullptr || !by.supports(kernel)) {
    return relation_outcome::does_not_apply;
  }
  test_case alone;
  alone.kernel = kernel;
  alone.name = c.name;
  alone.attributes = {{"norm_eps", c.attributes.at("eps")},
                      {"num_tokens", c.input("index_k")->at.shape[0]},
                      {"num_warps", attribute(c, "num_warps", 4)}};
  if (!mxfp4) alone.attributes["fp8_format"] = c.attributes.at("fp8_format");
  for (const auto& [from, to] :
       {std::pair("index_k", "k"), std::pair("k_norm_weight", "norm_weight"),
        std::pair("k_norm_bias", "norm_bias"), std::pair("index_slot_mapping", "slot_mapping"),
        std::pair("index_cache", "kv_cache"),
        std::pair("topk_indices_buffer", "topk_indices_buffer")}) {
    alone.inputs.push_back(*c.input(from));
    alone.inputs.back().name = to;
  }
  const std::vector<buffer> fused = by.run(c), standalone = by.run(alone);
  return outcome_of(
      same_bytes(*find_buffer(fused, "index_cache"), *find_buffer(standalone, "kv_cache")) &&
      same_bytes(*find_buffer(fused, "topk_indices_buffer"),
                 *find_buffer(standalone, "topk_indices_buffer")));
}

// --- Insert, then gather.

buffer i32_buffer(const char* name, std::vector<integer> shape, integer first) {
  buffer made = make_buffer(name, dtype::i32, dense(std::move(shape)));
  for (std::size_t i = 0; i < made.bytes.size() / 4; ++i) {
    store(made.bytes.data() + 4 * i, static_cast<std::int32_t>(first + static_cast<integer>(i)));
  }
  return made;
}

std::vector<integer> inserted_slots(const test_case& c) {
  const tensor_view slots = c.input("slot_mapping")->view();
  const integer ratio = attribute(c, "compress_ratio", 1);
  std::vector<integer> inserted;
  for (integer t = 0; t < slots.dim(0); ++t) {
    const auto slot = load<integer>(slots.element(t));
    if (slot < 0) continue;
    if (ratio > 1 && load<integer>(c.input("positions")->view().element(t)) % ratio != ratio - 1) {
      continue;
    }
    inserted.push_back(slot);
  }
  return inserted;
}

relation_outcome gather_gives_back_records(const test_case& c, draw& /*from*/, const calls& by) {
  const bool rotates = c.kernel == "rope_quant_insert";
  if ((!rotates && c.kernel != "quantize_and_insert_k_cache") ||
      !by.supports("dequantize_and_gather_k_cache") || is_text(c, "record", "bf16") ||
      is_text(c, "record", "fp8")) {
    return relation_outcome::does_not_apply;
  }
  buffer cache = by.run(c).at(0);
  const tensor_view pages = cache.view();
  const integer blocks = pages.dim(0), size = pages.dim(1), record = pages.dim(2);
  const integer rows = blocks * size;
  if (rows > 400) return relation_outcome::does_not_apply;
  const bool fnuz = attribute(c, "use_fnuz") != 0;
  test_case gather;
  gather.kernel = "dequantize_and_gather_k_cache";
  gather.name = c.name;
  gather.attributes = {
      {"block_size", size}, {"offset", integer{0}}, {"use_fnuz", integer{fnuz ? 1 : 0}}};
  gather.inputs.push_back(make_buffer("out", dtype::bf16, dense({1, rows, 512})));
  gather.inputs.push_back(cache);
  gather.inputs.back().name = "k_cache";
  gather.inputs.push_back(i32_buffer("seq_lens", {1}, rows));
  gather.inputs.push_back(i32_buffer("block_table", {1, blocks}, 0));
  const std::vector<buffer> out = by.run(gather);
  const tensor_view got = out.at(0).view();
  for (const integer slot : inserted_slots(c)) {
    const std::vector<double> want =
        decode_record(pages.element(slot / size, 0, 0), size, record, slot % size, fnuz);
    for (integer d = 0; d < 512; ++d) {
      const double value = want[static_cast<std::size_t>(d)];
      const auto rounded = static_cast<float>(value);
      std::uint32_t bits = 0;
      std::memcpy(&bits, &rounded, sizeof bits);
      // NaN, and products that bf16 does not hold.
      if (std::isnan(value) || double{rounded} != value || (bits & 0xFFFF) != 0) continue;
      if (load<std::uint16_t>(got.element(0, slot, d)) != bits >> 16) {
        return relation_outcome::broken;
      }
    }
  }
  return relation_outcome::holds;
}

// --- Indices.

relation_outcome indices_by_definition(const test_case& c, draw& /*from*/, const calls& by) {
  index_outputs (*define)(const test_case&) = nullptr;
  if (c.kernel == "compute_global_topk_indices_and_lens") define = define_global_topk;
  if (c.kernel == "combine_topk_swa_indices") define = define_combined;
  if (c.kernel == "build_flashinfer_mixed_sparse_indices") define = define_mixed;
  if (define == nullptr) return relation_outcome::does_not_apply;
  const index_outputs wanted = define(c);
  const std::vector<buffer> got = by.run(c);
  return outcome_of(numbers_of(got.at(0)) == wanted.ids && numbers_of(got.at(1)) == wanted.lens);
}

}  // namespace

const std::vector<relation>& relations() {
  static const std::vector<relation> all = {
      {"permuted_tokens", "tokens in another order write the same, in that order", permuted_tokens},
      {"split_batch", "a batch in two calls writes what one call writes", split_batch},
      {"padded_heads", "more padded heads are zeros and change nothing else", padded_heads},
      {"power_of_two", "values times 2^k move the UE8M0 scale by k and nothing else",
       scaled_by_a_power_of_two},
      {"standalone_is_fused", "the key insert alone writes what the fused one writes",
       standalone_is_fused},
      {"gather_of_insert", "a gather gives back what the inserted records say",
       gather_gives_back_records},
      {"indices_by_definition", "ids and lens are the sets that define them",
       indices_by_definition},
  };
  return all;
}

const relation& relation_of(std::string_view name) {
  for (const relation& r : relations()) {
    if (r.name == name) return r;
  }
  throw std::logic_error("no relation " + std::string(name));
}

}  // namespace kvcts
