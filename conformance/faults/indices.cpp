// Faults of indices, groups of tokens, windows and row orders.
#include <algorithm>

#include "conformance/faults/parts.h"

namespace kvcts::fault_parts {
namespace {

std::int64_t length_unclamped(std::int64_t position, std::int64_t ratio, std::int64_t) {
  return ratio > 0 ? (position + 1) / ratio : 0;
}
std::int64_t length_of_position(std::int64_t position, std::int64_t ratio, std::int64_t topk) {
  return ratio > 0 ? std::min(position / ratio, topk) : 0;
}
std::int64_t length_rounded_up(std::int64_t position, std::int64_t ratio, std::int64_t topk) {
  return ratio > 0 ? std::min((position + ratio) / ratio, topk) : 0;
}
std::int64_t remap_skipped(std::int64_t index, std::int64_t, std::int64_t) {
  return index < 0 ? -1 : index;
}
std::int64_t remap_negative(std::int64_t index, std::int64_t block_size, std::int64_t span) {
  return index / block_size * span + index % block_size;
}
// Pages taken to have as many entries as their span would be remap_skipped: i/s*s + i%s = i.
std::int64_t remap_back(std::int64_t index, std::int64_t block_size, std::int64_t span) {
  return index < 0 ? -1 : index / span * block_size + index % span;
}

std::int64_t window_long(std::int64_t position, std::int64_t window, std::int64_t lowest) {
  return std::max(position - window, lowest);
}
std::int64_t window_short(std::int64_t position, std::int64_t window, std::int64_t lowest) {
  return std::max(position - window + 2, lowest);
}
std::int64_t window_unbounded(std::int64_t position, std::int64_t window, std::int64_t) {
  return std::max(position - window + 1, std::int64_t{0});
}

std::int64_t rows_in_16s(std::int64_t head, std::int64_t dim, std::int64_t heads, std::int64_t,
                         std::int64_t chunk) {
  const std::int64_t other = chunk == 16 ? 32 : chunk == 32 ? 16 : 2;
  return (dim / other * heads + head) * other + dim % other;
}
std::int64_t rows_back(std::int64_t head, std::int64_t dim, std::int64_t heads, std::int64_t dims,
                       std::int64_t chunk) {
  // The source of the row that should be written: the inverse of the order.
  const std::int64_t row = head * dims + dim;
  const std::int64_t of_chunk = row / chunk;
  return of_chunk % heads * dims + of_chunk / heads * chunk + row % chunk;
}
std::int64_t rows_unmoved(std::int64_t head, std::int64_t dim, std::int64_t, std::int64_t dims,
                          std::int64_t) {
  return head * dims + dim;
}
std::int64_t rows_transposed(std::int64_t head, std::int64_t dim, std::int64_t heads, std::int64_t,
                             std::int64_t) {
  return dim * heads + head;
}

constexpr names fillers = {key_mxfp4, key_fp8, prologue_mxfp4, prologue_fp8};
constexpr names grouped = {key_rope, rope_insert, compress};
constexpr names windows = {combine, mixed};

}  // namespace

void add_indices(std::vector<fault>& to) {
  const std::vector<fault> part = {
      {"topk_filled_with_zero",
       "top-k rows are filled with 0, not with -1",
       {key_mxfp4, key_fp8, prologue_mxfp4, prologue_fp8, combine},
       [](Rules& r) { r.topk_fill = 0; }},
      {"topk_fill_skips_padding", "top-k rows of tokens without a slot are not filled", fillers,
       [](Rules& r) { r.topk_row_filled = [](std::int64_t slot) { return slot >= 0; }; }},
      {"topk_fill_short", "the last column of the top-k rows is not filled", fillers,
       [](Rules& r) { r.topk_columns_filled = [](std::int64_t n) { return n - 1; }; }},
      {"topk_fill_long", "the top-k fill goes one column past the row", fillers,
       [](Rules& r) { r.topk_columns_filled = [](std::int64_t n) { return n + 1; }; }},
      {"topk_not_clamped", "the compressed length is not limited to topk", windows,
       [](Rules& r) { r.topk_length = length_unclamped; }},
      {"length_of_position", "the compressed length is position / ratio, not (position+1) / ratio",
       windows, [](Rules& r) { r.topk_length = length_of_position; }},
      {"length_rounded_up", "an incomplete group counts as a compressed entry", windows,
       [](Rules& r) { r.topk_length = length_rounded_up; }},
      {"window_long", "the sliding window holds one token too many", windows,
       [](Rules& r) { r.window_start = window_long; }},
      {"window_short", "the sliding window holds one token too few", windows,
       [](Rules& r) { r.window_start = window_short; }},
      {"window_lower_end_ignored", "the window goes below its first gathered or replayed token",
       windows, [](Rules& r) { r.window_start = window_unbounded; }},
      {"topk_compacted",
       "invalid columns are squeezed out, not written as -1",
       {combine, global_topk},
       [](Rules& r) { r.compact_topk = true; }},
      {"topk_unbounded",
       "entries past the compressed rows are taken for valid",
       {combine},
       [](Rules& r) { r.bound_topk = false; }},
      {"indices_below_minus_one",
       "only index -1 is invalid, not every negative one",
       {global_topk, combine, mixed},
       [](Rules& r) { r.index_is_live = [](std::int64_t index) { return index != -1; }; }},
      {"index_zero_invalid",
       "index 0 is taken for invalid",
       {global_topk, combine, mixed},
       [](Rules& r) { r.index_is_live = [](std::int64_t index) { return index > 0; }; }},
      {"padding_tokens_counted",
       "padding tokens have lengths, not 0",
       {global_topk, mixed},
       [](Rules& r) { r.count_padding = true; }},
      {"padding_tokens_skipped",
       "index rows of padding tokens are not written",
       {global_topk},
       [](Rules& r) { r.translate_padding = false; }},
      {"request_base_missing",
       "indices do not start at their request's gathered rows",
       {combine},
       [](Rules& r) {
         r.gathered_base = [](std::int64_t, std::int64_t) { return std::int64_t{0}; };
       }},
      {"remap_skipped",
       "indices are not moved to the pages' spans",
       {mixed},
       [](Rules& r) { r.remap_index = remap_skipped; }},
      {"remap_negative",
       "negative indices are moved too, not written as -1",
       {mixed},
       [](Rules& r) { r.remap_index = remap_negative; }},
      {"remap_back",
       "indices are moved the other way, from the pages' spans to their entries",
       {mixed},
       [](Rules& r) { r.remap_index = remap_back; }},
      {"gather_from_front",
       "a partial gather takes the first tokens, not the last",
       {gather},
       [](Rules& r) {
         r.first_gathered = [](std::int64_t, std::int64_t) { return std::int64_t{0}; };
       }},
      {"group_at_first_token", "a group is stored at its first token, not at its last", grouped,
       [](Rules& r) {
         r.group_ends_at = [](std::int64_t p, std::int64_t ratio) { return p % ratio == 0; };
       }},
      {"group_at_every_token", "every token of a group is stored", grouped,
       [](Rules& r) { r.group_ends_at = [](std::int64_t, std::int64_t) { return true; }; }},
      {"ring_keeps_all",
       "a chunk longer than the ring overwrites its own rows",
       {compress},
       [](Rules& r) {
         r.first_kept_token = [](std::int64_t start, std::int64_t, std::int64_t) { return start; };
       }},
      {"ring_keeps_none",
       "raw rows are not kept in the ring",
       {compress},
       [](Rules& r) {
         r.first_kept_token = [](std::int64_t, std::int64_t end, std::int64_t) { return end; };
       }},
      {"ring_keeps_last",
       "only a chunk's last raw row is kept",
       {compress},
       [](Rules& r) {
         r.first_kept_token = [](std::int64_t start, std::int64_t end, std::int64_t) {
           return std::max(start, end - 1);
         };
       }},
      {"rows_unmoved",
       "rows are copied, not permuted",
       {layout},
       [](Rules& r) { r.interleaved_row = rows_unmoved; }},
      {"rows_permuted_back",
       "the permutation is applied the other way",
       {layout},
       [](Rules& r) { r.interleaved_row = rows_back; }},
      {"rows_transposed",
       "heads and dims are transposed row by row, not chunk by chunk",
       {layout},
       [](Rules& r) { r.interleaved_row = rows_transposed; }},
      {"rows_other_chunk",
       "chunks of 32 rows and of 16 are mixed up",
       {layout},
       [](Rules& r) { r.interleaved_row = rows_in_16s; }},
  };
  to.insert(to.end(), part.begin(), part.end());
}

}  // namespace kvcts::fault_parts
