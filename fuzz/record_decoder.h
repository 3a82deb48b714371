// Segregated K records read by a decoder of its own, in doubles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvcts {

// The 512 values of a token at `position` of a page of records of 584, 528 or 288 bytes. A code or
// scale that is a NaN gives one.
std::vector<double> decode_record(const std::byte* page, std::int64_t block_size,
                                  std::int64_t record, std::int64_t position, bool fnuz);

}  // namespace kvcts
