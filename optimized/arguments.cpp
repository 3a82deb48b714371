#include "optimized/arguments.h"

namespace kvcts {
namespace {

// The element at index 0. A tensor without elements may have no memory; addresses are computed from
// it all the same.
unsigned char* first(const tensor_view& v) {
  static unsigned char none;
  if (v.storage == nullptr) return &none;
  return reinterpret_cast<unsigned char*>(v.storage) +
         v.at.offset * static_cast<std::int64_t>(size_of(v.type));
}

std::int64_t byte_stride(const tensor_view& v, std::size_t axis) {
  return v.stride(axis) * static_cast<std::int64_t>(size_of(v.type));
}

int shift_of(std::int64_t block_size) {
  for (int shift = 0; shift < 63; ++shift) {
    if (block_size == std::int64_t{1} << shift) return shift;
  }
  return -1;
}

}  // namespace

mxfp4_q_quant_arguments mxfp4_q_quant_of(const call& c) {
  const tensor_view& q = c.tensor("index_q");
  const tensor_view& w = c.tensor("index_weights");
  const tensor_view& packed = c.tensor("q_packed");
  mxfp4_q_quant_arguments a{};
  a.q = first(q);
  a.q_token_stride = byte_stride(q, 0);
  a.q_head_stride = byte_stride(q, 1);
  a.index_weights = first(w);
  a.weights_token_stride = byte_stride(w, 0);
  a.q_packed = first(packed);
  a.q_scale = first(c.tensor("q_scale"));
  a.weights = first(c.tensor("weights"));
  a.tokens = q.dim(0);
  a.heads = q.dim(1);
  a.padded_heads = packed.dim(1);
  a.weight_scale = c.real("weight_scale");
  a.weights_are_f32 = w.type == dtype::f32;
  return a;
}

quantize_and_insert_arguments quantize_and_insert_of(const call& c) {
  const tensor_view& k = c.tensor("k");
  const tensor_view& slots = c.tensor("slot_mapping");
  const tensor_view& cache = c.tensor("k_cache");
  quantize_and_insert_arguments a{};
  a.k = first(k);
  a.k_row_stride = byte_stride(k, 0);
  a.slots = first(slots);
  a.rows = slots.dim(0);
  a.cache = first(cache);
  a.page_stride = byte_stride(cache, 0);
  a.block_size = c.integer("block_size");
  a.block_shift = shift_of(a.block_size);
  a.bytes_per_token = static_cast<int>(c.integer("bytes_per_token"));
  a.fnuz = c.integer("use_fnuz") != 0;
  return a;
}

}  // namespace kvcts
