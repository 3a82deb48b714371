// Faults of layout: packing, slots, pages, padding, swizzles.
#include "conformance/faults/parts.h"
#include "reference/formats/e2m1.h"
#include "reference/layout/paged.h"

namespace kvcts::fault_parts {
namespace {

std::uint8_t nibbles_swapped(std::uint8_t even, std::uint8_t odd) { return pack_e2m1(odd, even); }

std::int64_t first_page(std::int64_t slot, std::int64_t block_size, std::int64_t) {
  return slot < 0 ? 0 : slot / block_size;
}
std::int64_t last_pages(std::int64_t slot, std::int64_t block_size, std::int64_t pages) {
  if (slot >= 0) return slot / block_size;
  return slot / block_size - (slot % block_size != 0 ? 1 : 0) + pages;
}

std::int64_t dense_pages(std::int64_t page, std::int64_t, std::int64_t block_size,
                         std::int64_t bytes) {
  return page * block_size * bytes;
}
std::int64_t offset_i32(std::int64_t page, std::int64_t stride, std::int64_t, std::int64_t) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(page * stride));
}
std::int64_t offset_u32(std::int64_t page, std::int64_t stride, std::int64_t, std::int64_t) {
  return static_cast<std::uint32_t>(page * stride);
}

std::int64_t data_interleaved(std::int64_t position, std::int64_t index, std::int64_t,
                              std::int64_t data, std::int64_t scales) {
  return position * (data + scales) + index;
}
std::int64_t scales_interleaved(std::int64_t position, std::int64_t index, std::int64_t,
                                std::int64_t data, std::int64_t scales) {
  return position * (data + scales) + data + index;
}
std::int64_t scales_transposed(std::int64_t position, std::int64_t index, std::int64_t block_size,
                               std::int64_t data, std::int64_t) {
  return block_size * data + index * block_size + position;
}

std::int64_t swizzle_of_rows(std::int64_t row, std::int64_t group, std::int64_t groups) {
  return row * ((groups + 3) / 4 * 4) + group;
}
std::int64_t swizzle_rows_straight(std::int64_t row, std::int64_t group, std::int64_t groups) {
  return swizzled_offset(row / 128 * 128, group / 4 * 4, groups) + row % 128 * 4 + group % 4;
}

std::int64_t values_in_rows(std::int64_t position, std::int64_t dim, std::int64_t dims) {
  return position * dims + dim;
}
std::int64_t tiles_transposed(std::int64_t position, std::int64_t dim, std::int64_t dims) {
  return position / 16 * 16 * dims + dim / 16 * 256 + dim % 16 * 16 + position % 16;
}

std::int64_t scales_by_token(std::int64_t k, std::int64_t token, std::int64_t inner, std::int64_t) {
  return token * inner + k;
}
std::int64_t scales_unpadded(std::int64_t k, std::int64_t token, std::int64_t inner,
                             std::int64_t padded) {
  // Columns as long as the buffer is wide: a stride taken from the wrong axis.
  return (k * inner + token) % (inner * padded);
}

constexpr names slot_users = {key_mxfp4, key_fp8,  prologue_mxfp4, prologue_fp8,
                              insert,    key_rope, rope_insert,    compress};
constexpr names pages = {key_mxfp4, key_fp8,  prologue_mxfp4, prologue_fp8,
                         insert,    key_rope, rope_insert,    gather};
constexpr names mapped = {key_mxfp4, key_fp8,  prologue_mxfp4, prologue_fp8,
                          insert,    key_rope, rope_insert};
constexpr names nibbles = {q_quant, key_mxfp4, prologue_mxfp4, query, key_rope, rope_insert};

}  // namespace

void add_layout(std::vector<fault>& to) {
  const std::vector<fault> part = {
      {"nibbles_swapped", "the even FP4 code is in the high nibble", nibbles,
       [](Rules& r) { r.pack_nibbles = nibbles_swapped; }},
      {"slots_below_minus_one", "only slot -1 is skipped: -2 is written to page 0", slot_users,
       [](Rules& r) {
         r.slot_is_live = [](std::int64_t slot) { return slot != -1; };
         r.page_of = first_page;
       }},
      {"negative_slots_to_page_0", "negative slots are written to the first page", slot_users,
       [](Rules& r) {
         r.slot_is_live = [](std::int64_t) { return true; };
         r.page_of = first_page;
       }},
      {"negative_slots_to_last_page", "negative slots count from the cache's end, as in Python",
       slot_users,
       [](Rules& r) {
         r.slot_is_live = [](std::int64_t) { return true; };
         r.page_of = last_pages;
       }},
      {"slot_zero_skipped", "slot 0 is taken for padding", slot_users,
       [](Rules& r) { r.slot_is_live = [](std::int64_t slot) { return slot > 0; }; }},
      {"rows_past_mapping", "rows past the slot mapping's end are inserted", mapped,
       [](Rules& r) { r.rows_past_mapping = true; }},
      {"dense_pages", "a page's stride is tokens * record, whatever the cache's stride is", pages,
       [](Rules& r) { r.page_offset = dense_pages; }},
      {"page_offset_i32", "page offsets in 32 bits: wrong past 2^31 bytes", pages,
       [](Rules& r) { r.page_offset = offset_i32; }, std::nullopt, true},
      {"page_offset_u32", "page offsets in 32 unsigned bits: wrong past 2^32 bytes", pages,
       [](Rules& r) { r.page_offset = offset_u32; }, std::nullopt, true},
      {"records_interleaved", "each token's scales follow its data, not all of the page's data",
       pages,
       [](Rules& r) {
         r.data_offset = data_interleaved;
         r.scale_offset = scales_interleaved;
       }},
      {"scales_interleaved", "scales are sought behind their token's data", pages,
       [](Rules& r) { r.scale_offset = scales_interleaved; }},
      {"scales_transposed", "a page's scales lie block after block, not token after token", pages,
       [](Rules& r) { r.scale_offset = scales_transposed; }},
      {"pad_byte_left",
       "a record's pad byte is left as it was",
       {insert, rope_insert},
       [](Rules& r) { r.write_pad_byte = false; }},
      {"padded_heads_left",
       "outputs of padded heads are left as they were",
       {q_quant},
       [](Rules& r) { r.zero_padded_heads = false; }},
      {"padding_rows_left",
       "rows that only alignment adds to a scale buffer are left as they were",
       {inverse, norm_quant},
       [](Rules& r) { r.zero_padding_rows = false; }},
      {"rows_of_skipped_tokens_left",
       "tokens without a slot leave their normalized rows unwritten",
       {prologue_mxfp4, prologue_fp8},
       [](Rules& r) { r.norm_every_row = false; }},
      {"swizzle_missing",
       "scales lie row after row, not in tiles of 128 x 4",
       {norm_quant},
       [](Rules& r) { r.swizzled_offset = swizzle_of_rows; }},
      {"swizzle_rows_straight",
       "rows of a 128 x 4 tile are not interleaved by 32",
       {norm_quant},
       [](Rules& r) { r.swizzled_offset = swizzle_rows_straight; }},
      {"tiles_missing",
       "a page's values lie token after token, not in 16 x 16 tiles",
       {key_rope},
       [](Rules& r) { r.tiled_offset = values_in_rows; }},
      {"tiles_transposed",
       "16 x 16 tiles hold dim after dim, not token after token",
       {key_rope},
       [](Rules& r) { r.tiled_offset = tiles_transposed; }},
      {"scales_by_token",
       "the scale buffer is token after token, not block after block",
       {inverse},
       [](Rules& r) { r.scale_place = scales_by_token; }},
      {"scales_other_stride",
       "the scale buffer's stride is that of the other axis",
       {inverse},
       [](Rules& r) { r.scale_place = scales_unpadded; }},
  };
  to.insert(to.end(), part.begin(), part.end());
}

}  // namespace kvcts::fault_parts
