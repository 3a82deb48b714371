#include "reference/kernels/combine_topk_swa_indices.h"

#include <algorithm>

#include "reference/kernels/index_rows.h"

namespace kvcts {
namespace {

// One request's rows of a gathered KV buffer [R, M]: N compressed entries, then the window.
struct gathered {
  std::int64_t first;         // M * request
  std::int64_t compressed;    // N
  std::int64_t gather_start;  // position of the first window entry
};

void combine_row(const call& c, const Rules& rules, std::int64_t token, std::int64_t position,
                 const gathered& kv) {
  const tensor_view& topk_indices = c.tensor("topk_indices");
  const tensor_view& combined = c.tensor("combined_indices");
  const std::int64_t wanted =
      rules.topk_length(position, c.integer("compress_ratio"), c.integer("topk"));
  const std::int64_t topk_len =
      std::clamp(wanted, std::int64_t{0}, std::min(topk_indices.dim(1), combined.dim(1)));
  std::int64_t column = 0;
  for (std::int64_t i = 0; i < topk_len; ++i) {
    const std::int64_t local = index_at(topk_indices, token, i);
    const bool valid = rules.index_is_live(local) && (!rules.bound_topk || local < kv.compressed);
    if (!valid && rules.compact_topk) continue;
    set_index(combined, token, column++, valid ? local + kv.first : -1);
  }
  const std::int64_t first = rules.window_start(position, c.integer("window_size"),
                                                std::max(std::int64_t{0}, kv.gather_start));
  for (std::int64_t p = first; p <= position && column < combined.dim(1); ++p) {
    set_index(combined, token, column++, kv.first + kv.compressed + p - kv.gather_start);
  }
  set_index(c.tensor("combined_lens"), token, column);
}

}  // namespace

void combine_topk_swa_indices(const call& c, const Rules& rules) {
  const tensor_view& starts = c.tensor("query_start_loc");     // [R+1] i32
  const tensor_view& seq_lens = c.tensor("seq_lens");          // [R] i32
  const tensor_view& gather_lens = c.tensor("gather_lens");    // [R] i32
  const tensor_view& combined = c.tensor("combined_indices");  // [T, ceil128(topk + window)] i32
  const tensor_view& lens = c.tensor("combined_lens");         // [T] i32

  for (std::int64_t t = 0; t < combined.dim(0); ++t) {
    for (std::int64_t i = 0; i < combined.dim(1); ++i) set_index(combined, t, i, rules.topk_fill);
    set_index(lens, t, 0);
  }
  const std::int64_t base = index_at(starts, 0);
  for (std::int64_t r = 0; r < seq_lens.dim(0); ++r) {
    const std::int64_t start = index_at(starts, r) - base;
    const std::int64_t end = index_at(starts, r + 1) - base;
    const std::int64_t seq_len = index_at(seq_lens, r);
    const gathered kv = {rules.gathered_base(r, c.integer("M")), c.integer("N"),
                         seq_len - index_at(gather_lens, r)};
    for (std::int64_t t = start; t < end; ++t) {
      combine_row(c, rules, t, seq_len - (end - start) + (t - start), kv);
    }
  }
}

}  // namespace kvcts
