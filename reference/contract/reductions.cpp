#include <stdexcept>
#include <string>

#include "reference/contract/contract.h"
#include "reference/numerics/reduction_tree.h"

namespace kvcts {

const reduction_spec& kernel_contract::reduction(std::string_view reduction_name) const {
  for (const reduction_spec& spec : reductions) {
    if (spec.name == reduction_name) return spec;
  }
  throw std::logic_error(std::string(name) + " has no reduction '" + std::string(reduction_name) +
                         "'");
}

row_reduction row_of(const reduction_spec& spec, const bindings& names) {
  const call no_call;  // the expressions read names only
  return {.width = evaluate(spec.width, names, no_call),
          .padded = next_power_of_two(evaluate(spec.padded, names, no_call)),
          .element_bytes = spec.element_bytes,
          .warps = static_cast<int>(evaluate(spec.warps, names, no_call))};
}

std::int64_t integer_of(const kernel_contract& contract, const call& context,
                        std::string_view attribute) {
  const attribute_spec* spec = contract.attribute(attribute);
  if (context.attributes.count(attribute) != 0) return context.integer(attribute);
  if (spec == nullptr || spec->fallback.empty()) {
    throw std::logic_error(std::string(contract.name) + " has no fallback for '" +
                           std::string(attribute) + "'");
  }
  return evaluate(spec->fallback, {}, context);
}

}  // namespace kvcts
