// Pieces that the case builders share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/cases/cases.h"
#include "conformance/cases/draw.h"

namespace kvcts {

// Registry of the builders: one function a kernel, in cases/<kernel>.cpp.
void add_fused_indexer_q_rope_quant_cases(std::vector<case_spec>& to, std::uint64_t seed);
void add_fused_inv_rope_fp8_quant_cases(std::vector<case_spec>& to, std::uint64_t seed);
void add_indexer_k_norm_rope_store_cases(std::vector<case_spec>& to, std::uint64_t seed);
void add_fused_save_compress_norm_cases(std::vector<case_spec>& to, std::uint64_t seed);
void add_rope_quant_insert_cases(std::vector<case_spec>& to, std::uint64_t seed);
void add_mxfp4_q_quant_cases(std::vector<case_spec>& to, std::uint64_t seed);
void add_mxfp4_k_norm_quant_insert_cases(std::vector<case_spec>& to, std::uint64_t seed);
void add_mxfp4_fused_prologue_cases(std::vector<case_spec>& to, std::uint64_t seed);
void add_indexer_k_norm_quant_insert_cases(std::vector<case_spec>& to, std::uint64_t seed);
void add_dsa_fused_prologue_cases(std::vector<case_spec>& to, std::uint64_t seed);
void add_fused_q_kv_rmsnorm_quant_cases(std::vector<case_spec>& to, std::uint64_t seed);
void add_quantize_and_insert_k_cache_cases(std::vector<case_spec>& to, std::uint64_t seed);
void add_dequantize_and_gather_k_cache_cases(std::vector<case_spec>& to, std::uint64_t seed);
void add_compute_global_topk_indices_and_lens_cases(std::vector<case_spec>& to, std::uint64_t seed);
void add_combine_topk_swa_indices_cases(std::vector<case_spec>& to, std::uint64_t seed);
void add_build_flashinfer_mixed_sparse_indices_cases(std::vector<case_spec>& to,
                                                     std::uint64_t seed);
void add_fused_layout_cases(std::vector<case_spec>& to, std::uint64_t seed);
// Those of a kernel's caches past 2^31 and 2^32 bytes; none where it has no cache.
void add_sparse_cases(std::vector<case_spec>& to, std::string_view kernel, std::uint64_t seed);

// A buffer full of canary. `guard` elements follow the last one that the extent reaches.
buffer make_buffer(std::string_view name, dtype type, extent at, std::int64_t guard = 0);

// One spec for each of the options: {.from = level, ...}, its name, flags and case.
template <class Options, class Name, class Flags, class Build>
void add_specs(std::vector<case_spec>& to, std::string_view kernel, std::uint64_t seed,
               const std::vector<Options>& all, Name name_of_options, Flags flags_of_options,
               Build build) {
  for (const Options& o : all) {
    case_spec spec;
    spec.kernel = kernel;
    spec.name = name_of_options(o);
    spec.flags = flags_of_options(o);
    spec.from = o.from;
    spec.build = [o, seed, build, id = spec.kernel, name = spec.name, flags = spec.flags] {
      test_case made = build(o, name, seed);
      made.kernel = id;
      made.name = name;
      made.flags = flags;
      return made;
    };
    to.push_back(std::move(spec));
  }
}

// Adds each flag once.
void add_flags(std::vector<std::string>& to, const std::vector<std::string_view>& flags);

}  // namespace kvcts
