// Files of the schema `kvcts-reduction-trees` (docs/vectors.md): what hardware computed for sums,
// variances and normalized rows, by row length and number of warps.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vectors/suite.h"

namespace kvcts {

struct reduction_tree_group {
  std::string name;      // "d256_w4"
  std::int64_t dim = 0;  // D, elements a row
  std::int64_t num_warps = 0;
  double eps = 0;
  buffer x;                      // [rows, D] bf16
  buffer weight, bias;           // [D] f32
  buffer sum, sum_sq_dev, rstd;  // [rows] f32; deviations are from sum / D
  std::optional<buffer> y;       // [rows, D] f32: the normalized rows
  std::int64_t rows() const { return x.at.shape[0]; }
};

class reduction_tree_file {
 public:
  // Throws input_error: not HDF5, truncated, another schema or version.
  explicit reduction_tree_file(const std::string& path);
  ~reduction_tree_file();
  reduction_tree_file(reduction_tree_file&&) noexcept;

  const std::string& producer() const;
  // By D, then by warps.
  const std::vector<std::string>& groups() const;
  // Every dataset is dense, of its dtype and shape.
  reduction_tree_group read(const std::string& group) const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace kvcts
