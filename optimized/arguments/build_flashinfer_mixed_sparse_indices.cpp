#include "optimized/arguments/build_flashinfer_mixed_sparse_indices.h"

#include "optimized/arguments/common.h"

namespace kvcts {

build_flashinfer_mixed_sparse_indices_arguments build_flashinfer_mixed_sparse_indices_of(
    const call& c) {
  const tensor_view& window = c.tensor("decode_swa_indices");
  const tensor_view* compressed = c.find("decode_compressed_indices");
  const tensor_view& prefill = c.tensor("prefill_topk_indices");
  const tensor_view& window_table = c.tensor("swa_block_table");
  const tensor_view* compressed_table = c.find("compressed_block_table");
  const tensor_view& indices = c.tensor("sparse_indices");
  const std::int64_t window_block = c.integer("swa_block_size");
  const std::int64_t compressed_block = c.integer("compressed_block_size");
  const auto span = [&](const char* attribute, std::int64_t block_size) {
    return static_cast<std::uint32_t>(c.integer_or(attribute, block_size));
  };
  build_flashinfer_mixed_sparse_indices_arguments a{};
  a.decode_window = matrix_of(window);
  a.decode_compressed = matrix_of(compressed);
  a.decode_lens = first_element(c.find("decode_compressed_topk_lens"));
  a.decode_is_valid = first_element(c.find("decode_is_valid_token"));
  a.prefill_topk = matrix_of(prefill);
  a.starts = first_element(c.tensor("query_start_loc"));
  a.seq_lens = first_element(c.tensor("seq_lens"));
  a.token_to_request = first_element(c.tensor("token_to_req_indices"));
  a.replay_start = first_element(c.tensor("replay_start"));
  a.window_pages = {matrix_of(window_table), divider_of(window_block),
                    span("swa_block_span", window_block)};
  a.compressed_pages = {matrix_of(compressed_table == nullptr ? window_table : *compressed_table),
                        divider_of(compressed_block),
                        span("compressed_block_span", compressed_block)};
  a.indices = first_element(indices);
  a.lens = first_element(c.tensor("sparse_topk_lens"));
  a.tokens = indices.dim(0);
  a.decode_tokens = window.dim(0);
  a.window_columns = window.dim(1);
  a.compressed_columns = indices.dim(1) - a.window_columns;
  a.decode_columns = compressed == nullptr ? 0 : compressed->dim(1);
  a.prefill_columns = prefill.dim(1);
  a.window = c.integer("window_size");
  a.ratio = c.integer("compress_ratio");
  a.topk = c.integer("topk");
  a.decode_is_local = c.integer_or("decode_compressed_indices_are_local", 0) != 0;
  return a;
}

}  // namespace kvcts
