// The expected bytes of a case, by the reference.
#pragma once

#include <vector>

#include "reference/contract/contract.h"
#include "reference/numerics/rules.h"
#include "vectors/suite.h"

namespace kvcts {

// A call of `inputs`, with `results` in place of updated arguments and as outputs. The buffers stay
// where they are while the call is used.
call make_call(std::string_view kernel, const attribute_map& attributes,
               std::vector<buffer>& inputs, std::vector<buffer>& results);

// Every output and updated argument as it is before a call: outputs full of `fill`, updated ones as
// in `inputs`. In the contract's order. Outputs are dense, or lie as those of `like` do. Checks the
// inputs: throws input_error.
std::vector<buffer> initial_results(const kernel_contract& contract,
                                    const attribute_map& attributes, std::vector<buffer>& inputs,
                                    std::byte fill, const std::vector<buffer>& like = {});

// The same after the call. Throws input_error where the inputs break the contract, and where the
// kernel has no reference.
std::vector<buffer> expected_results(const kernel_contract& contract,
                                     const attribute_map& attributes, std::vector<buffer>& inputs,
                                     std::byte fill, const Rules& rules,
                                     const std::vector<buffer>& like = {});

// Fills `expected` of a built case.
void fill_expected(test_case& c, profile p);

}  // namespace kvcts
