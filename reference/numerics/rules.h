// A profile as one value: one field a rule. Every reference kernel takes it; a fault edits a field.
// What an op fixes by itself (its amax floor, its quotient form, its clamp) the kernel passes in,
// so that the field can pass it on (every profile) or change it (a fault).
#pragma once

#include <cstdint>
#include <string_view>

#include "reference/formats/e4m3.h"
#include "reference/numerics/reduction_tree.h"

namespace kvcts {

enum class profile : std::uint8_t { nvidia, ieee };
constexpr int profile_version = 1;
std::string_view name_of(profile p);

// How an op's source writes the quotient that its scale comes from.
enum class quotient : std::uint8_t {
  div,       // amax / limit, the source's plain division: Rules::div
  mul,       // amax * RN(1/limit)
  true_div,  // RN(amax / limit) in every profile
};

// How a tile of an fp8_ds_mla entry is scaled.
enum class tile_rule : std::uint8_t {
  amax,  // max(amax * RN(1/limit), 2^-126)
  pow2,  // 2^ceil-log2(max(amax * RN(1/limit), 1e-4))
};

// Two dimensions of a head that rotate together.
struct rope_pair {
  std::int64_t even;
  std::int64_t odd;
};

struct Rules {
  std::string_view name;

  // Approximate or exact operations.
  float (*rsqrt)(float x);
  float (*div)(float a, float b);       // the source's plain division, DIV in docs/numerics.md
  float (*true_div)(float a, float b);  // RN(a/b) in both profiles
  float (*exp)(float x);
  float (*exp2_int)(float n);            // 2^n as a factor; n integral, or +-inf
  float (*scale_of_byte)(std::uint8_t);  // a UE8M0 byte read as a factor

  // Scales.
  float (*floor_amax)(float amax, float floor);  // max(amax, floor)
  float (*scale_quotient)(const Rules&, float amax, float limit, quotient as_written);
  float (*scale_exponent)(float quotient);  // ceil-log2
  float (*limit_exponent)(float exponent, float lowest, float highest);
  std::uint8_t (*exponent_byte)(float exponent);  // exponent + 127

  // Elements.
  std::uint8_t (*encode_e2m1)(float x);
  std::uint8_t (*encode_e4m3)(float x, fp8_format format);
  float (*decode_e4m3)(std::uint8_t code, fp8_format format);
  float (*clamp_before_encode)(float x, float limit);
  std::uint16_t (*round_bf16)(float x);
  fp8_format (*cache_format)(fp8_format asked);  // the table that a writer uses
  fp8_format (*read_format)(fp8_format asked);   // the table that a reader uses

  // Layout.
  std::uint8_t (*pack_nibbles)(std::uint8_t even, std::uint8_t odd);
  std::uint32_t (*pack_scales)(const std::uint8_t bytes[4]);  // four UE8M0 bytes in an i32
  bool (*slot_is_live)(std::int64_t slot);
  // Page of a live slot, of `pages`. A page that the cache lacks, which only a fault gives, is
  // neither read nor written.
  std::int64_t (*page_of)(std::int64_t slot, std::int64_t block_size, std::int64_t pages);
  // First byte of a page, from the cache's first byte.
  std::int64_t (*page_offset)(std::int64_t page, std::int64_t block_stride, std::int64_t block_size,
                              std::int64_t record_bytes);
  // Byte `index` of a token's data, and of its scales, counted from the page's first byte.
  std::int64_t (*data_offset)(std::int64_t position, std::int64_t index, std::int64_t block_size,
                              std::int64_t data_bytes, std::int64_t scale_bytes);
  std::int64_t (*scale_offset)(std::int64_t position, std::int64_t index, std::int64_t block_size,
                               std::int64_t data_bytes, std::int64_t scale_bytes);
  bool zero_padded_heads = true;
  bool write_pad_byte = true;
  bool rows_past_mapping = false;  // true: insert rows at or past the slot mapping's length

  // Row norms.
  // The tree of a row of n elements of `element_bytes` bytes in memory, whose launch covers
  // `padded` elements with `warps` warps.
  reduction_tree (*tree)(std::int64_t padded, int element_bytes, int warps);
  float (*sum)(const reduction_tree&, const float* x, std::int64_t n);
  // As the lane that owns `element` holds it.
  float (*sum_of_squares)(const reduction_tree&, const float* x, std::int64_t n,
                          std::int64_t element);
  float (*variance)(float sum_of_squares, std::int64_t n, float eps);    // S/n + eps
  float (*scale_and_shift)(float normalized, float weight, float bias);  // LayerNorm's last step
  float (*scale_row)(float x, float r, float weight);  // RMSNorm's last step: RN(RN(x*r) * w)
  float (*norm_parameter)(float parameter);            // a weight or bias as it is used
  bool norm_every_row = true;  // false: outputs of a row norm only for rows that are inserted

  // Scales of single ops.
  float (*amax)(float so_far, float x);                   // max(so_far, |x|), NaN ignored
  std::uint8_t (*nvfp4_scale)(const Rules&, float amax);  // the E4M3 byte of a block of 16
  float (*nvfp4_value)(std::uint8_t code);                // as the reader decodes it
  std::uint8_t (*integer_scale)(float n);                 // fused_q_kv_rmsnorm_quant: sf of n
  float (*integer_multiplier)(std::uint8_t scale);        // 2^(127 - sf); 0 for 0 and 254
  float (*fold_weight)(float weight, float factor);       // indexer weights times a scalar
  float (*tile_scale)(const Rules&, float amax, float limit, tile_rule rule);

  // RoPE. Pair (even, odd), c and s of the position's row.
  float (*rope_even)(float even, float odd, float c, float s);
  float (*rope_odd)(float even, float odd, float c, float s);        // stores of keys
  float (*rope_odd_query)(float even, float odd, float c, float s);  // fused_indexer_q_rope_quant
  float (*inverse_rope_even)(float even, float odd, float c, float s);
  float (*inverse_rope_odd)(float even, float odd, float c, float s);
  std::int64_t (*first_rope_dim)(std::int64_t dims, std::int64_t rope_dims);
  rope_pair (*rope_pair_of)(std::int64_t pair, std::int64_t rope_dims);  // from the first rope dim
  std::int64_t (*rope_position)(std::int64_t position, std::int64_t ratio);  // the group's first
  // bf16 between two steps: where an op's source rounds, and where it does not.
  float (*through_bf16)(float x);
  float (*kept_f32)(float x);

  // Indices.
  bool (*index_is_live)(std::int64_t index);
  std::int32_t topk_fill = -1;
  std::int64_t (*topk_columns_filled)(std::int64_t columns);
  bool (*topk_row_filled)(std::int64_t slot);  // whatever the row's slot
  // An index of pages of block_size entries to pages of `span` entries; negative to -1.
  std::int64_t (*remap_index)(std::int64_t index, std::int64_t block_size, std::int64_t span);
  // Compressed entries that a token sees: min((position+1)/ratio, topk); 0 where ratio is 0.
  std::int64_t (*topk_length)(std::int64_t position, std::int64_t ratio, std::int64_t topk);
  bool compact_topk = false;      // true: invalid columns squeezed out instead of -1
  bool bound_topk = true;         // false: entries past the compressed rows count too
  bool translate_padding = true;  // false: index rows of padding tokens stay as they were
  bool count_padding = false;     // true: padding tokens have lengths too
  // The first position of a sliding window, at or past `lowest`.
  std::int64_t (*window_start)(std::int64_t position, std::int64_t window, std::int64_t lowest);
  // A request's first row in a gathered buffer of `rows` rows a request.
  std::int64_t (*gathered_base)(std::int64_t request, std::int64_t rows);
  std::int64_t (*first_gathered)(std::int64_t seq_len, std::int64_t gather_len);
  bool zero_padding_rows = true;  // rows that only alignment adds to a scale buffer

  // Groups of `ratio` tokens, and the ring of their raw rows.
  bool (*group_ends_at)(std::int64_t position, std::int64_t ratio);
  // The first token of a chunk [start, end) whose row the ring keeps.
  std::int64_t (*first_kept_token)(std::int64_t start, std::int64_t end, std::int64_t capacity);
  // What is taken from both scores of a softmax.
  float (*softmax_shift)(float score0, float score1);
  float (*shifted_score)(float score, float shift);
  // p0*kv0 + p1*kv1 of a pair of rows.
  float (*pool_pair)(float p0, float kv0, float p1, float kv1);
  // F8_128x4: the byte of row and group; `groups` before padding.
  std::int64_t (*swizzled_offset)(std::int64_t row, std::int64_t group, std::int64_t groups);
  // A head group's scale `k` of `inner`, of a token of `padded`: fused_inv_rope_fp8_quant.
  std::int64_t (*scale_place)(std::int64_t k, std::int64_t token, std::int64_t inner,
                              std::int64_t padded);
  // fused_layout: the row that row `dim` of a head goes to, `chunk` rows of each head in turn.
  std::int64_t (*interleaved_row)(std::int64_t head, std::int64_t dim, std::int64_t heads,
                                  std::int64_t dims, std::int64_t chunk);
  // 16x16 tiles: the byte of a token's dim in the page's values.
  std::int64_t (*tiled_offset)(std::int64_t position, std::int64_t dim, std::int64_t dims);
};

Rules rules_for(profile p);

}  // namespace kvcts
