#include "optimized/arguments/pages.h"

#include "optimized/arguments/common.h"

namespace kvcts {

page_view pages_of(const tensor_view& cache, std::int64_t block_size) {
  return {first_element(cache), byte_stride(cache, 0), block_size, shift_of(block_size)};
}

}  // namespace kvcts
