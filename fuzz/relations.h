// What holds between calls and between kernels, for any case of a generator.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/cases/draw.h"
#include "vectors/suite.h"

namespace kvcts {

// How a relation makes its calls: results in the contract's order, by the candidate that is
// examined.
struct relation_calls {
  std::function<std::vector<buffer>(const test_case&)> run;
  std::function<bool(std::string_view)> supports;
};

enum class relation_outcome : std::uint8_t { does_not_apply, holds, broken };

struct relation {
  std::string_view name;  // "permuted_tokens"
  std::string_view text;  // "tokens in another order give ..."
  relation_outcome (*check)(const test_case&, draw&, const relation_calls&);
};

const std::vector<relation>& relations();
const relation& relation_of(std::string_view name);

}  // namespace kvcts
