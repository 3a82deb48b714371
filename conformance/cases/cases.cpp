#include "conformance/cases/cases.h"

#include <algorithm>
#include <iterator>

#include "conformance/cases/build.h"
#include "conformance/cases/smoke.h"

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
    {"fused_save_compress_norm", add_fused_save_compress_norm_cases},
    {"rope_quant_insert", add_rope_quant_insert_cases},
    {"dequantize_and_gather_k_cache", add_dequantize_and_gather_k_cache_cases},
    {"compute_global_topk_indices_and_lens", add_compute_global_topk_indices_and_lens_cases},
    {"combine_topk_swa_indices", add_combine_topk_swa_indices_cases},
    {"build_flashinfer_mixed_sparse_indices", add_build_flashinfer_mixed_sparse_indices_cases},
    {"fused_layout", add_fused_layout_cases},
};

// The level smoke, as `kvcts adequacy --reduce` prints it:
//   build/kvcts adequacy --reduce | grep '^{' > conformance/cases/smoke.inc
struct smoke_case {
  std::string_view kernel, name;
};
constexpr smoke_case smoke[] = {
#include "conformance/cases/smoke.inc"
};

bool is_smoke(const case_spec& c) {
  return std::any_of(std::begin(smoke), std::end(smoke),
                     [&](const smoke_case& s) { return s.kernel == c.kernel && s.name == c.name; });
}

// `from` as the builders have it: smoke where a case is small enough for that level.
std::vector<case_spec> built_cases(std::string_view kernel, std::uint64_t seed) {
  std::vector<case_spec> cases;
  for (const builder& b : builders) {
    if (b.kernel == kernel) b.add(cases, seed);
  }
  add_sparse_cases(cases, kernel, seed);
  std::sort(cases.begin(), cases.end(),
            [](const case_spec& a, const case_spec& b) { return a.name < b.name; });
  return cases;
}

}  // namespace

std::vector<case_spec> cases_of(std::string_view kernel, level up_to, std::uint64_t seed) {
  std::vector<case_spec> cases = built_cases(kernel, seed);
  for (case_spec& c : cases) {
    if (is_smoke(c)) {
      c.from = level::smoke;
    } else if (c.from == level::smoke) {
      c.from = level::acceptance;
    }
  }
  cases.erase(std::remove_if(cases.begin(), cases.end(),
                             [&](const case_spec& c) { return c.from > up_to; }),
              cases.end());
  return cases;
}

std::vector<case_spec> smoke_candidates(std::string_view kernel, std::uint64_t seed) {
  std::vector<case_spec> cases = built_cases(kernel, seed);
  cases.erase(
      std::remove_if(cases.begin(), cases.end(),
                     [](const case_spec& c) { return c.from != level::smoke && !is_smoke(c); }),
      cases.end());
  return cases;
}

std::vector<std::pair<std::string_view, std::string_view>> smoke_list() {
  std::vector<std::pair<std::string_view, std::string_view>> list;
  for (const smoke_case& c : smoke) list.emplace_back(c.kernel, c.name);
  return list;
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
      {"AllNegative", "every index of some tokens is negative: such a token reads no table row"},
      {"AllSlotsNegative", "no token is inserted: the cache must not change"},
      {"AmaxFloor", "amax at the op's floor and beside it"},
      {"AnyBits", "every finite bit pattern, exponents of the whole range"},
      {"AnyBytes", "records of any bytes"},
      {"Bf16Parameters", "norm weights and biases are bf16"},
      {"Bf16Table", "the cosines and sines are bf16"},
      {"Bf16WeightsOut", "weights_out are bf16"},
      {"CacheOffset", "the cache's first page does not start at the first byte of its storage"},
      {"ChunkRows", "a row stands for a chunk of 32 dims, as scales have it"},
      {"CodeWalk", "blocks walk through all pairs of element code and scale byte"},
      {"DistinctScales",
       "neighbouring blocks have different scales, so that a permuted scale shows"},
      {"EmptyBatch", "zero tokens: nothing is written"},
      {"EmptyRequest", "requests without tokens, between others"},
      {"EmptyRows", "no rows, or rows of no elements"},
      {"EmptyTopk", "the top-k rows have no columns"},
      {"ExactPowerOfTwoScale", "amax = limit * 2^e: the quotient is exactly a power of two"},
      {"ExactTurns", "rotations by 0, a quarter and a half, which pass the values through"},
      {"F32Weights", "the weights are f32"},
      {"FarScores", "scores so far apart that an exponential is subnormal or zero"},
      {"FlatPages", "the cache is given as [blocks, block bytes]"},
      {"FmaContraction",
       "results beside a rounding border: each way to contract a*b + c*d gives other bytes"},
      {"Fnuz", "E4M3 FNUZ codes and the limit 224 (derived by rule, not captured)"},
      {"FurtherDims", "rows have further dimensions"},
      {"GatherOffset",
       "gathered rows do not begin at row 0 of out: the rows before must not change"},
      {"GivenLens", "decode_compressed_topk_lens is there"},
      {"GroupBoundary", "two tokens a group: only the second one's row is stored"},
      {"GuardBytes", "the storage is longer than the tensor: the rest must not change"},
      {"HeadMajor", "heads are the slowest dimension in memory"},
      {"HugeAmax", "the largest two exponents of bf16"},
      {"HugeScale", "the largest scale bytes, NaN among them"},
      {"LargeIds", "ids close to the largest i32"},
      {"LocalIndices", "the compressed indices of decode tokens are entries of the request"},
      {"LongBatch", "a thousand tokens or more"},
      {"LongContext", "positions close to the largest i32"},
      {"LongMapping", "the slot mapping is longer than the tokens: the rest is not inserted"},
      {"ManyGroups", "several groups of heads"},
      {"MixedBlocks", "each block draws its kind of content"},
      {"NegativeIndex", "indices below 0 (-1 and the smallest i32) among others"},
      {"NegativePage",
       "block table entries below 0: ordinary arithmetic, which gives negative slots"},
      {"NegativePosition", "more queries than tokens: the first positions are below 0"},
      {"NegativeSlot", "slots below 0 (-1, -7, the smallest i64): the token is not inserted"},
      {"NoCompressedIndices", "decode_compressed_indices is absent"},
      {"NoCompressedTable", "compressed_block_table is absent: swa_block_table serves"},
      {"NoCompression", "compress_ratio 0: no top-k part"},
      {"NoGatherLens", "gather_lens is absent: all tokens are gathered"},
      {"NonFinite", "NaNs of any sign and payload, or infinities"},
      {"NonFiniteScores", "scores that are infinite or NaN"},
      {"NonFiniteTurns", "cosines and sines of every bit pattern, infinities and NaNs among them"},
      {"NormBypass", "the norm's parameters carry the content: weight 0, or rows of +-2^n"},
      {"OddBlockSize", "tokens a page are not a power of two"},
      {"OddHeads", "the number of heads is not a power of two"},
      {"OddWidth", "head dims that are no multiple of 32"},
      {"OneTokenPage", "one token a page"},
      {"OrderSensitive", "magnitudes so far apart that another order of the sum gives other bytes"},
      {"OtherStart", "query_start_loc does not begin at 0"},
      {"PackedScales", "scales are UE8M0 bytes, four in an i32"},
      {"PaddedGroups", "blocks a row are no multiple of 4: the scales between are zero"},
      {"PaddedHeads", "more heads in the outputs than in the input: the rest is zero"},
      {"PaddedRows", "the scale buffer has more rows than tokens: the rest is zero"},
      {"PaddingTokens", "tokens that only pad the batch"},
      {"PageBorder", "indices at the first and last entries of pages"},
      {"PartialGather", "only the last tokens of a request are gathered, from inside a page too"},
      {"PartialWindow", "the gathered window is shorter than the sliding one, or longer, or empty"},
      {"Past2GiB", "byte offsets past 2^31"},
      {"Past4GiB", "byte offsets past 2^32"},
      {"PastCount", "indices at or past the number of compressed rows"},
      {"Pow2TileScale", "fp8_ds_mla scales are powers of two"},
      {"PowerOfTwo", "elements are powers of two"},
      {"RecordEdges", "zeros, the largest codes, NaN codes and NaN scales of both signs"},
      {"Replay", "replay_start cuts windows short, down to none"},
      {"Ring", "rows are kept in, and taken from, the ring of raw rows"},
      {"Saturation", "values past the largest code"},
      {"ScaleBoundary", "amax one ulp below, at and above limit * 2^e"},
      {"ScaleExponentWindow", "an f32 amax within a few ulp of limit * 2^e"},
      {"ScaleTie", "amax / 6 at and beside the midpoint of two E4M3 scales"},
      {"SequentialSlots", "slots 0, 1, 2, ... as in a prefill"},
      {"SharedPages", "requests share pages"},
      {"ShortMapping", "the slot mapping is shorter than k: the rest is not inserted"},
      {"SignedZero", "zeros of both signs"},
      {"SpanDiffers", "pages take other numbers of ids than they have entries"},
      {"Straddle", "groups that began in an earlier chunk: their first row is in the ring"},
      {"Strided", "tokens, heads or rows lie apart; the bytes between belong to others"},
      {"StridedEntry", "entries of a page lie apart; the bytes between must not change"},
      {"StridedPage", "pages lie apart; the bytes between belong to others and must not change"},
      {"StridedRing", "ring rows or pages lie apart"},
      {"StridedTable", "rows of the cosine/sine table lie apart"},
      {"StridedTables", "rows of the block tables lie apart"},
      {"StridedTopk", "top-k rows lie apart; the bytes between must not change"},
      {"StridedWeights", "rows of index_weights lie apart"},
      {"SubnormalAmax", "blocks of bf16 subnormals"},
      {"SubnormalResult", "scale bytes that make subnormal values, roundings and zeros"},
      {"SubnormalRow", "rows of f32 subnormals, or whose squares underflow"},
      {"SumOverflow", "rows whose sum of squares overflows"},
      {"TensorScale", "fp8_scale is not 1: any f32, among them 0, an infinity and a NaN"},
      {"TieToEven", "every midpoint of two codes, and its neighbours +-1 ulp"},
      {"Tiled", "the cache's values lie in tiles of 16 tokens x 16 dims"},
      {"Unaligned", "rows or pages that start at addresses which are not multiples of 16 bytes"},
      {"Unquantized", "bf16 values instead of codes and scales"},
      {"UnreadColumns", "index columns past a token's count: any number, past every table too"},
      {"UnreadEntries", "block table entries that no token needs: negative and past the cache"},
      {"UnusedRing", "the ring is given at one token a group: it must not change"},
      {"ValidTokens", "decode_is_valid_token is there"},
      {"WarmCache", "the cache holds other records before the call"},
      {"WarpCount", "num_warps is given: the tree of the index key's LayerNorm"},
      {"WeightScale", "weight_scale is not an f32 number, negative, zero or subnormal"},
      {"WideLaunch", "the longer row takes 8 warps"},
      {"ZeroBlock", "blocks of zeros"},
      {"ZeroWidth", "arguments of no columns"},
  };
  return table;
}

}  // namespace kvcts
