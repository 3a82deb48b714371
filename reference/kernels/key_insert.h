// The indexer key insert, standalone and in a prologue: LayerNorm, quantization, record.
#pragma once

#include <optional>

#include "reference/kernels/norm.h"
#include "reference/kernels/page_access.h"

namespace kvcts {

enum class key_record : std::uint8_t {
  mxfp4,  // D/2 E2M1 bytes, D/32 UE8M0
  fp8,    // D E4M3, one f32 scale
};

struct key_insert {
  key_record record = key_record::mxfp4;
  fp8_format format = fp8_format::e4m3fn;  // of the fp8 record
  layer_norm norm;
};

// The slot of row t where the rules insert it. `slots` may be absent (null).
std::optional<std::int64_t> slot_of_row(const tensor_view* slots, std::int64_t t,
                                        const Rules& rules);
// What a row's slot is to the rules that look at it alone: -1 past the mapping's end.
std::int64_t mapped_slot(const tensor_view* slots, std::int64_t t);

// k [N, D] bf16, cache [pages, B, record] u8, slots [S] i64.
void insert_keys(const tensor_view& k, const tensor_view& cache, const tensor_view& slots,
                 std::int64_t tokens, const key_insert& how, const Rules& rules);

// Fills a token's row of the top-k buffer [R, K] i32.
void fill_topk_row(const tensor_view& topk, std::int64_t t, std::int64_t slot, const Rules& rules);

// "e4m3fn" (also where absent) or "e4m3fnuz".
fp8_format fp8_format_of(const call& c);

// A whole standalone kernel: the arguments of key_insert_contract().
void run_key_insert(const call& c, const kernel_contract& contract, key_record record,
                    const Rules& rules);

}  // namespace kvcts
