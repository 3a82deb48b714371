#include "reference/contract/key_insert.h"

#include <algorithm>

#include "reference/contract/indices.h"

namespace kvcts {
namespace {

const std::vector<dtype> norm_dtypes = {dtype::f32, dtype::bf16};

constexpr std::string_view one_of_the_warps = "num_warps == 1 || num_warps == 2 || num_warps == 4";
constexpr std::string_view one_of_the_dims =
    "D == 32 || D == 64 || D == 128 || D == 256 || D == 512 || D == 1024";
constexpr std::string_view dims_message =
    "has {D} dims, must have a power of two of them from 32 to 1024";

attribute_spec warps_attribute(std::string_view fallback) {
  return {.name = "num_warps",
          .kind = attribute_kind::integer,
          .meaning = "warps of the launch, 1, 2 or 4: the tree of the index key's LayerNorm",
          .optional = true,
          .fallback = fallback};
}

attribute_spec fp8_attribute(bool optional) {
  return {.name = "fp8_format",
          .kind = attribute_kind::text,
          .meaning = "E4M3 table of the codes: OCP (limit 448) or FNUZ (limit 224)",
          .optional = optional,
          .fallback = optional ? std::string_view("e4m3fn") : std::string_view(),
          .choices = {"e4m3fn", "e4m3fnuz"}};
}

reduction_spec key_reduction() {
  return {.name = key_layer_norm,
          .width = "D",
          .padded = "D",
          .warps = "num_warps",
          .element_bytes = 2};
}

argument_spec vector_argument(std::string_view name, std::string_view length,
                              std::string_view meaning) {
  return {.name = name, .dtypes = norm_dtypes, .shape = length, .axes = "dim", .meaning = meaning};
}

argument_spec topk_argument() {
  return {.name = "topk_indices_buffer",
          .direction = role::updated,
          .dtypes = {dtype::i32},
          .shape = "R, K",
          .axes = "token, column",
          .strides = stride_rule::rows,
          .meaning = "top-k indices: the K columns of each token's row are set to -1"};
}

// Tokens whose slot is looked at. A prologue has no num_tokens: there its rows count.
std::int64_t tokens_of(const call& c) {
  return c.attributes.count("num_tokens") != 0 ? c.integer("num_tokens") : c.tensor("q_c").dim(0);
}

void check_mapping(const call& c, std::string_view mapping, std::string_view cache) {
  if (c.find(mapping) == nullptr || c.find(cache) == nullptr) return;
  check_slots(c, mapping, cache, c.tensor(cache).dim(1), tokens_of(c));
}

void check_standalone(const call& c) { check_mapping(c, "slot_mapping", "kv_cache"); }
void check_standalone_fp8(const call& c) {
  check_f32_alignment(c, "kv_cache", false);
  check_standalone(c);
}

void check_prologue(const call& c) {
  check_f32_alignment(c, "mla_cache", true);
  check_mapping(c, "mla_slot_mapping", "mla_cache");
  check_mapping(c, "index_slot_mapping", "index_cache");
}
void check_prologue_fp8(const call& c) {
  check_f32_alignment(c, "index_cache", false);
  check_prologue(c);
}

std::vector<content_rule> prologue_contents(bool f32_scales) {
  std::vector<content_rule> rules = {
      {"mla_slot_mapping", slots_rule},
      {"index_slot_mapping", slots_rule},
      {"mla_cache",
       "offset, page stride and entry stride are multiples of 4 bytes: f32 scales lie inside"}};
  if (f32_scales) rules.push_back({"index_cache", f32_alignment_rule});
  return rules;
}

}  // namespace

kernel_contract key_insert_contract(const key_kernel& kernel) {
  kernel_contract contract = {
      .name = kernel.name,
      .family = "Kimi K3.1",
      .summary = kernel.summary,
      .arguments =
          {
              {.name = "k",
               .dtypes = {dtype::bf16},
               .shape = "N, D",
               .axes = "token, dim",
               .strides = stride_rule::rows,
               .meaning = "index keys before their LayerNorm"},
              vector_argument("norm_weight", "D", "weight of the LayerNorm"),
              vector_argument("norm_bias", "D", "bias of the LayerNorm"),
              {.name = "slot_mapping",
               .dtypes = {dtype::i64},
               .shape = "S",
               .axes = "token",
               .meaning = "slot of each token; negative, or past its length: not inserted"},
              {.name = "kv_cache",
               .direction = role::updated,
               .dtypes = {dtype::u8},
               .shape = kernel.form.f32_scales ? "blocks, B, D + 4" : "blocks, B, D/2 + D/32",
               .axes = "page, position, byte",
               .strides = stride_rule::pages,
               .meaning = kernel.form.meaning,
               .record = kernel.form.bytes,
               .record_name = kernel.form.record_name},
              topk_argument(),
          },
      .attributes =
          {
              {.name = "norm_eps",
               .kind = attribute_kind::real,
               .meaning = "added to the variance, rounded to f32"},
              {.name = "num_tokens",
               .kind = attribute_kind::integer,
               .meaning = "tokens: rows of topk_indices_buffer that are filled"},
              warps_attribute("1"),
          },
      .preconditions =
          {
              {.argument = "num_tokens",
               .holds = "num_tokens >= 0",
               .message = "is {num_tokens}, must not be negative"},
              {.argument = "num_warps",
               .holds = one_of_the_warps,
               .message = "is {num_warps}, must be 1, 2 or 4"},
              {.argument = "k", .holds = one_of_the_dims, .message = dims_message},
              {.argument = "k",
               .holds = "min(num_tokens, S) <= N",
               .message =
                   "has {N} rows, must have one for each of the {num_tokens} tokens that the "
                   "{S} slots of slot_mapping name"},
              {.argument = "topk_indices_buffer",
               .holds = "num_tokens <= R",
               .message = "has {R} rows, must have at least the {num_tokens} of num_tokens"},
              {.argument = "kv_cache",
               .holds = "B >= 1",
               .message = "has pages of {B} tokens, must have at least 1"},
          },
      .captured = kernel.captured,
      .derived = kernel.derived,
      .check_indices = kernel.form.f32_scales ? check_standalone_fp8 : check_standalone,
      .contents = {{"slot_mapping", slots_rule}},
      .reductions = {key_reduction()},
  };
  if (kernel.form.f32_scales) {
    contract.attributes.push_back(fp8_attribute(true));
    contract.contents.push_back({"kv_cache", f32_alignment_rule});
  }
  return contract;
}

kernel_contract prologue_contract(const key_kernel& kernel) {
  return {
      .name = kernel.name,
      .family = "Kimi K3.1",
      .summary = kernel.summary,
      .arguments =
          {
              {.name = "q_c",
               .dtypes = {dtype::bf16},
               .shape = "T, Q",
               .axes = "token, dim",
               .strides = stride_rule::rows,
               .meaning = "compressed query"},
              {.name = "kv_c",
               .dtypes = {dtype::bf16},
               .shape = "T, 512",
               .axes = "token, dim",
               .strides = stride_rule::rows,
               .meaning = "compressed KV"},
              {.name = "k_pe",
               .dtypes = {dtype::bf16},
               .shape = "T, 64",
               .axes = "token, dim",
               .strides = stride_rule::rows,
               .meaning = "rotated key dims, copied bit for bit"},
              {.name = "index_k",
               .dtypes = {dtype::bf16},
               .shape = "T, D",
               .axes = "token, dim",
               .strides = stride_rule::rows,
               .meaning = "index keys before their LayerNorm"},
              vector_argument("q_norm_weight", "Q", "weight of the RMSNorm of q_c"),
              vector_argument("kv_norm_weight", "512", "weight of the RMSNorm of kv_c"),
              vector_argument("k_norm_weight", "D", "weight of the LayerNorm of index_k"),
              vector_argument("k_norm_bias", "D", "bias of the LayerNorm of index_k"),
              topk_argument(),
              {.name = "mla_cache",
               .direction = role::updated,
               .dtypes = {dtype::u8},
               .shape = "mla_blocks, mla_block_size, 656",
               .axes = "page, position, byte",
               .strides = stride_rule::pages,
               .meaning = "fp8_ds_mla entries: 512 E4M3, four f32 scales (128 dims each), 64 BF16",
               .optional = true,
               .record = "656",
               .record_name = "fp8_ds_mla"},
              {.name = "mla_slot_mapping",
               .dtypes = {dtype::i64},
               .shape = "mla_slots",
               .axes = "token",
               .meaning =
                   "slot of each token in mla_cache; negative, or past its length: not inserted",
               .optional = true},
              {.name = "index_cache",
               .direction = role::updated,
               .dtypes = {dtype::u8},
               .shape = kernel.form.f32_scales ? "index_blocks, index_block_size, D + 4"
                                               : "index_blocks, index_block_size, D/2 + D/32",
               .axes = "page, position, byte",
               .strides = stride_rule::pages,
               .meaning = kernel.form.meaning,
               .optional = true,
               .record = kernel.form.bytes,
               .record_name = kernel.form.record_name},
              {.name = "index_slot_mapping",
               .dtypes = {dtype::i64},
               .shape = "index_slots",
               .axes = "token",
               .meaning =
                   "slot of each token in index_cache; negative, or past its length: not inserted",
               .optional = true},
              {.name = "q_c_normed",
               .direction = role::output,
               .dtypes = {dtype::bf16},
               .shape = "T, Q",
               .axes = "token, dim",
               .meaning = "RMSNorm of q_c, every row"},
              {.name = "kv_c_normed",
               .direction = role::output,
               .dtypes = {dtype::bf16},
               .shape = "T, 512",
               .axes = "token, dim",
               .meaning = "RMSNorm of kv_c, every row"},
          },
      .attributes =
          {
              {.name = "eps",
               .kind = attribute_kind::real,
               .meaning = "added to every variance, rounded to f32"},
              fp8_attribute(false),
              warps_attribute("4"),
              {.name = "mla_scale_rule",
               .kind = attribute_kind::text,
               .meaning = "scale of an mla_cache tile: amax/limit itself, or a power of two",
               .optional = true,
               .fallback = "amax",
               .choices = {"amax", "pow2"}},
          },
      .preconditions =
          {
              {.argument = "num_warps",
               .holds = one_of_the_warps,
               .message = "is {num_warps}, must be 1, 2 or 4"},
              {.argument = "q_c", .holds = "Q >= 1", .message = "has no dims, must have some"},
              {.argument = "index_k", .holds = one_of_the_dims, .message = dims_message},
              {.argument = "topk_indices_buffer",
               .holds = "T <= R",
               .message = "has {R} rows, must have at least the {T} of q_c"},
              {.argument = "mla_cache",
               .holds = "!has(mla_cache) || mla_block_size >= 1",
               .message = "has pages of {mla_block_size} tokens, must have at least 1"},
              {.argument = "index_cache",
               .holds = "!has(index_cache) || index_block_size >= 1",
               .message = "has pages of {index_block_size} tokens, must have at least 1"},
          },
      .captured = kernel.captured,
      .derived = kernel.derived,
      .check_indices = kernel.form.f32_scales ? check_prologue_fp8 : check_prologue,
      .contents = prologue_contents(kernel.form.f32_scales),
      .reductions =
          {key_reduction(),
           {.name = query_rms_norm, .width = "Q", .padded = "Q", .warps = "4", .element_bytes = 2},
           {.name = kv_rms_norm,
            .width = "512",
            .padded = "512",
            .warps = "4",
            .element_bytes = 2}},
  };
}

}  // namespace kvcts
