#include "conformance/cases/cases.h"

#include <algorithm>

#include "conformance/cases/build.h"

namespace kvcts {
namespace {

struct builder {
  std::string_view kernel;
  void (*add)(std::vector<case_spec>&, std::uint64_t);
};
constexpr builder builders[] = {
    {"mxfp4_q_quant", add_mxfp4_q_quant_cases},
    {"mxfp4_k_norm_quant_insert", add_mxfp4_k_norm_quant_insert_cases},
    {"mxfp4_fused_prologue", add_mxfp4_fused_prologue_cases},
    {"indexer_k_norm_quant_insert", add_indexer_k_norm_quant_insert_cases},
    {"dsa_fused_prologue", add_dsa_fused_prologue_cases},
    {"quantize_and_insert_k_cache", add_quantize_and_insert_k_cache_cases},
    {"fused_indexer_q_rope_quant", add_fused_indexer_q_rope_quant_cases},
    {"fused_inv_rope_fp8_quant", add_fused_inv_rope_fp8_quant_cases},
    {"indexer_k_norm_rope_store", add_indexer_k_norm_rope_store_cases},
    {"fused_q_kv_rmsnorm_quant", add_fused_q_kv_rmsnorm_quant_cases},
};

}  // namespace

std::vector<case_spec> cases_of(std::string_view kernel, level up_to, std::uint64_t seed) {
  std::vector<case_spec> cases;
  for (const builder& b : builders) {
    if (b.kernel == kernel) b.add(cases, seed);
  }
  cases.erase(std::remove_if(cases.begin(), cases.end(),
                             [&](const case_spec& c) { return c.from > up_to; }),
              cases.end());
  std::sort(cases.begin(), cases.end(),
            [](const case_spec& a, const case_spec& b) { return a.name < b.name; });
  return cases;
}

buffer make_buffer(std::string_view name, dtype type, extent at, std::int64_t guard) {
  buffer made;
  made.name = name;
  made.type = type;
  made.bytes.assign(static_cast<std::size_t>(reach(at) + guard) * size_of(type), canary);
  made.at = std::move(at);
  return made;
}

void add_flags(std::vector<std::string>& to, const std::vector<std::string_view>& flags) {
  for (const std::string_view flag : flags) {
    if (std::find(to.begin(), to.end(), flag) == to.end()) to.emplace_back(flag);
  }
  std::sort(to.begin(), to.end());
}

const std::vector<flag_text>& flag_table() {
  static const std::vector<flag_text> table = {
      {"AbsentArgument", "an optional cache or mapping is not given: that insert is left out"},
      {"AllNaN", "blocks whose elements are all NaN"},
      {"AllSlotsNegative", "no token is inserted: the cache must not change"},
      {"AmaxFloor", "amax at the op's floor and beside it"},
      {"AnyBits", "every finite bit pattern, exponents of the whole range"},
      {"Bf16Parameters", "norm weights and biases are bf16"},
      {"Bf16Table", "the cosines and sines are bf16"},
      {"Bf16WeightsOut", "weights_out are bf16"},
      {"CacheOffset", "the cache's first page does not start at the first byte of its storage"},
      {"DistinctScales",
       "neighbouring blocks have different scales, so that a permuted scale shows"},
      {"EmptyBatch", "zero tokens: nothing is written"},
      {"EmptyTopk", "the top-k rows have no columns"},
      {"ExactPowerOfTwoScale", "amax = limit * 2^e: the quotient is exactly a power of two"},
      {"ExactTurns", "rotations by 0, a quarter and a half, which pass the values through"},
      {"F32Weights", "the weights are f32"},
      {"FlatPages", "the cache is given as [blocks, block bytes]"},
      {"FmaContraction",
       "results beside a rounding border: each way to contract a*b + c*d gives other bytes"},
      {"Fnuz", "E4M3 FNUZ codes and the limit 224 (derived by rule, not captured)"},
      {"GroupBoundary", "two tokens a group: only the second one's row is stored"},
      {"GuardBytes", "the storage is longer than the tensor: the rest must not change"},
      {"HeadMajor", "heads are the slowest dimension in memory"},
      {"HugeAmax", "the largest two exponents of bf16"},
      {"LongBatch", "a thousand tokens or more"},
      {"LongMapping", "the slot mapping is longer than the tokens: the rest is not inserted"},
      {"MixedBlocks", "each block draws its kind of content"},
      {"NegativeSlot", "slots below 0 (-1, -7, the smallest i64): the token is not inserted"},
      {"NonFinite", "NaNs of any sign and payload, or infinities"},
      {"NonFiniteTurns", "cosines and sines of every bit pattern, infinities and NaNs among them"},
      {"NormBypass", "the norm's parameters carry the content: weight 0, or rows of +-2^n"},
      {"OddBlockSize", "tokens a page are not a power of two"},
      {"OddWidth", "head dims that are no multiple of 32"},
      {"OneTokenPage", "one token a page"},
      {"OrderSensitive", "magnitudes so far apart that another order of the sum gives other bytes"},
      {"PackedScales", "scales are UE8M0 bytes, four in an i32"},
      {"PaddedGroups", "blocks a row are no multiple of 4: the scales between are zero"},
      {"PaddedHeads", "more heads in the outputs than in the input: the rest is zero"},
      {"PaddedRows", "the scale buffer has more rows than tokens: the rest is zero"},
      {"Past2GiB", "byte offsets past 2^31"},
      {"Pow2TileScale", "fp8_ds_mla scales are powers of two"},
      {"PowerOfTwo", "elements are powers of two"},
      {"Saturation", "values past the largest code"},
      {"ScaleBoundary", "amax one ulp below, at and above limit * 2^e"},
      {"ScaleExponentWindow", "an f32 amax within a few ulp of limit * 2^e"},
      {"SequentialSlots", "slots 0, 1, 2, ... as in a prefill"},
      {"ShortMapping", "the slot mapping is shorter than k: the rest is not inserted"},
      {"SignedZero", "zeros of both signs"},
      {"Strided", "tokens, heads or rows lie apart; the bytes between belong to others"},
      {"StridedEntry", "entries of a page lie apart; the bytes between must not change"},
      {"StridedPage", "pages lie apart; the bytes between belong to others and must not change"},
      {"StridedTable", "rows of the cosine/sine table lie apart"},
      {"StridedTopk", "top-k rows lie apart; the bytes between must not change"},
      {"StridedWeights", "rows of index_weights lie apart"},
      {"SubnormalAmax", "blocks of bf16 subnormals"},
      {"TieToEven", "every midpoint of two codes, and its neighbours +-1 ulp"},
      {"Tiled", "the cache's values lie in tiles of 16 tokens x 16 dims"},
      {"Unaligned", "rows or pages that start at addresses which are not multiples of 16 bytes"},
      {"Unquantized", "bf16 values instead of codes and scales"},
      {"WarmCache", "the cache holds other records before the call"},
      {"WarpCount", "num_warps is given: the tree of the index key's LayerNorm"},
      {"WeightScale", "weight_scale is not an f32 number, negative, zero or subnormal"},
      {"WideLaunch", "the longer row takes 8 warps"},
      {"ZeroBlock", "blocks of zeros"},
  };
  return table;
}

}  // namespace kvcts
