// LayerNorm and RMSNorm of one row: docs/numerics.md, "LayerNorm", "RMSNorm", "Reduction trees".
#pragma once

#include <vector>

#include "reference/contract/contract.h"
#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

// A bf16 or f32 element of `v`, exact.
float read_element(const tensor_view& v, const std::byte* element);
// A row of bf16 or f32 elements: row `row` of a 2-D argument, or the whole of a 1-D one.
std::vector<float> read_row(const tensor_view& v, std::int64_t row);
std::vector<float> read_vector(const tensor_view& v);

// The tree of a contract's reduction, for the names that its expressions read.
reduction_tree contract_tree(const kernel_contract& contract, std::string_view reduction,
                             const bindings& names, const Rules& rules);

// y = fma(RN(d*r), weight, bias) of d = RN(x - mean); y stays f32. D is a power of two.
struct layer_norm {
  std::vector<float> weight, bias;  // [D]
  float eps = 0;
  reduction_tree tree;

  std::vector<float> of(const std::vector<float>& x, const Rules& rules) const;
};

// y = RN(RN(x*r) * weight); y stays f32.
struct rms_norm {
  std::vector<float> weight;  // [n]
  float eps = 0;
  reduction_tree tree;

  std::vector<float> of(const std::vector<float>& x, const Rules& rules) const;
};

}  // namespace kvcts
