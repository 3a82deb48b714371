// The declarations that the indexer key inserts share: standalone ones, and prologues that insert
// keys among other things.
#pragma once

#include <string_view>

#include "reference/contract/contract.h"

namespace kvcts {

// What the MXFP4 and the FP8 form of a kernel differ in.
struct key_record_form {
  std::string_view bytes;        // expression of the record's bytes a token
  std::string_view record_name;  // of reference/layout/paged.h
  std::string_view meaning;
  bool f32_scales = false;
};
constexpr key_record_form mxfp4_key_form = {"D/2 + D/32", "mxfp4_indexer",
                                            "paged index keys: the E2M1 codes of a page's tokens, "
                                            "then their UE8M0 scales, one per 32 dims"};
constexpr key_record_form fp8_key_form = {
    "D + 4", "fp8_indexer",
    "paged index keys: the E4M3 codes of a page's tokens, then their f32 scales, one a token",
    true};

// Names of reductions.
constexpr std::string_view key_layer_norm = "LayerNorm of the index key";
constexpr std::string_view query_rms_norm = "RMSNorm of q_c";
constexpr std::string_view kv_rms_norm = "RMSNorm of kv_c";

struct key_kernel {
  std::string_view name, summary, captured, derived;
  key_record_form form;
};
kernel_contract key_insert_contract(const key_kernel& kernel);
kernel_contract prologue_contract(const key_kernel& kernel);

}  // namespace kvcts
