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
    {"quantize_and_insert_k_cache", add_quantize_and_insert_k_cache_cases},
};

}  // namespace

std::vector<case_spec> cases_of(std::string_view kernel, level up_to, std::uint64_t seed) {
  std::vector<case_spec> cases;
  for (const builder& b : builders) {
    if (b.kernel == kernel) b.add(cases, seed);
  }
  add_sparse_cases(cases, kernel, seed);
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
      {"AllNaN", "blocks whose elements are all NaN"},
      {"AllSlotsNegative", "no token is inserted: the cache must not change"},
      {"AmaxFloor", "amax at the op's floor and beside it"},
      {"AnyBits", "every finite bit pattern, exponents of the whole range"},
      {"CacheOffset", "the cache's first page does not start at the first byte of its storage"},
      {"DistinctScales",
       "neighbouring blocks have different scales, so that a permuted scale shows"},
      {"EmptyBatch", "zero tokens: nothing is written"},
      {"ExactPowerOfTwoScale", "amax = limit * 2^e: the quotient is exactly a power of two"},
      {"F32Weights", "index_weights are f32"},
      {"FlatPages", "the cache is given as [blocks, block bytes]"},
      {"Fnuz", "E4M3 FNUZ codes and the limit 224 (derived by rule, not captured)"},
      {"GuardBytes", "the storage is longer than the tensor: the rest must not change"},
      {"HeadMajor", "heads are the slowest dimension in memory"},
      {"HugeAmax", "the largest two exponents of bf16"},
      {"LongBatch", "a thousand tokens or more"},
      {"MixedBlocks", "each block draws its kind of content"},
      {"NegativeSlot", "slots below 0 (-1, -7, the smallest i64): the token is not inserted"},
      {"NonFinite", "NaNs of any sign and payload, or infinities"},
      {"OddBlockSize", "tokens a page are not a power of two"},
      {"OneTokenPage", "one token a page"},
      {"PaddedHeads", "more heads in the outputs than in the input: the rest is zero"},
      {"Past2GiB", "byte offsets past 2^31"},
      {"Past4GiB", "byte offsets past 2^32"},
      {"PowerOfTwo", "elements are powers of two"},
      {"Saturation", "values past the largest code"},
      {"ScaleBoundary", "amax one ulp below, at and above limit * 2^e"},
      {"SequentialSlots", "slots 0, 1, 2, ... as in a prefill"},
      {"ShortMapping", "the slot mapping is shorter than k: the rest is not inserted"},
      {"SignedZero", "zeros of both signs"},
      {"Strided", "tokens, heads or rows lie apart; the bytes between belong to others"},
      {"StridedPage", "pages lie apart; the bytes between belong to others and must not change"},
      {"StridedWeights", "rows of index_weights lie apart"},
      {"SubnormalAmax", "blocks of bf16 subnormals"},
      {"TieToEven", "every midpoint of two codes, and its neighbours +-1 ulp"},
      {"Unaligned", "rows or pages that start at addresses which are not multiples of 16 bytes"},
      {"WarmCache", "the cache holds other records before the call"},
      {"WeightScale", "weight_scale is not an f32 number, negative, zero or subnormal"},
      {"ZeroBlock", "blocks of zeros"},
  };
  return table;
}

}  // namespace kvcts
