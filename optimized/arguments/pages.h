// A paged cache as plain data: pages of `block_size` tokens, first the data of all tokens, then
// their scales.
#pragma once

#include <cstdint>

namespace kvcts {

struct tensor_view;

struct page_view {
  unsigned char* start;      // of page 0
  std::int64_t page_stride;  // bytes
  std::int64_t block_size;   // tokens a page, at least 1
  int block_shift;           // log2(block_size), or -1 where it is no power of two
};

page_view pages_of(const tensor_view& cache, std::int64_t block_size);

}  // namespace kvcts
