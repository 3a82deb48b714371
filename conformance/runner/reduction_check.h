// The reference's reduction trees against the rows of a `kvcts-reduction-trees` file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvcts {

struct reduction_check {
  struct row {
    std::string group;  // "d256_w4"
    std::int64_t rows = 0;
    std::uint64_t compared = 0, different = 0;  // f32 values: sum, sum_sq_dev, rstd, y
    std::string first;                          // the first value that differs, in words
  };
  std::vector<row> rows;
};

// Profile nvidia. Throws input_error where the file is not of the schema.
reduction_check check_reduction_trees(const std::string& path);

}  // namespace kvcts
