#include "reference/kernels/page_access.h"

#include <limits>

namespace kvcts {

std::int64_t page_start(const tensor_view& cache, const Rules& rules, std::int64_t page,
                        std::int64_t block_size, std::int64_t record_bytes) {
  if (page < 0 || page >= cache.dim(0)) return std::numeric_limits<std::int64_t>::min() / 2;
  const auto element = static_cast<std::int64_t>(size_of(cache.type));
  return cache.at.offset * element +
         rules.page_offset(page, cache.stride(0) * element, block_size, record_bytes);
}

token_record::token_record(const tensor_view& cache, const Rules& rules, const record_size& size,
                           std::int64_t page, std::int64_t position)
    : cache_(cache),
      rules_(rules),
      size_(size),
      page_start_(
          page_start(cache, rules, page, size.block_size, size.data_bytes + size.scale_bytes)),
      position_(position) {}

token_record record_of_slot(const tensor_view& cache, const Rules& rules, const record_size& size,
                            std::int64_t slot) {
  const std::int64_t page = rules.page_of(slot, size.block_size, cache.dim(0));
  return {cache, rules, size, page, position_of(slot, size.block_size)};
}

}  // namespace kvcts
