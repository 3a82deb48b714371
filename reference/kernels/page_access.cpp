#include "reference/kernels/page_access.h"

namespace kvcts {

token_record::token_record(const tensor_view& cache, const Rules& rules, const record_size& size,
                           std::int64_t page, std::int64_t position)
    : cache_(cache),
      rules_(rules),
      size_(size),
      page_start_(cache.at.offset + rules.page_offset(page, cache.stride(0), size.block_size,
                                                      size.data_bytes + size.scale_bytes)),
      position_(position) {}

token_record record_of_slot(const tensor_view& cache, const Rules& rules, const record_size& size,
                            std::int64_t slot) {
  const std::int64_t page = rules.page_of(slot, size.block_size);
  // slot % block_size, for whatever page the rule gives a negative slot too.
  const std::int64_t rest = slot % size.block_size;
  return {cache, rules, size, page, rest < 0 ? rest + size.block_size : rest};
}

}  // namespace kvcts
