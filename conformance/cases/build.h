// Pieces that the case builders share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/cases/cases.h"
#include "conformance/cases/draw.h"

namespace kvcts {

// Registry of the builders: one function a kernel, in cases/<kernel>.cpp.
void add_mxfp4_q_quant_cases(std::vector<case_spec>& to, std::uint64_t seed);
void add_quantize_and_insert_k_cache_cases(std::vector<case_spec>& to, std::uint64_t seed);
// Those of a kernel's caches past 2^31 and 2^32 bytes; none where it has no cache.
void add_sparse_cases(std::vector<case_spec>& to, std::string_view kernel, std::uint64_t seed);

// A buffer full of canary. `guard` elements follow the last one that the extent reaches.
buffer make_buffer(std::string_view name, dtype type, extent at, std::int64_t guard = 0);

// Adds each flag once.
void add_flags(std::vector<std::string>& to, const std::vector<std::string_view>& flags);

}  // namespace kvcts
