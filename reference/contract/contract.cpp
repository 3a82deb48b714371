#include "reference/contract/contract.h"

#include "reference/contract/registry.h"

namespace kvcts {

const argument_spec* kernel_contract::argument(std::string_view argument_name) const {
  for (const argument_spec& spec : arguments) {
    if (spec.name == argument_name) return &spec;
  }
  return nullptr;
}

const attribute_spec* kernel_contract::attribute(std::string_view attribute_name) const {
  for (const attribute_spec& spec : attributes) {
    if (spec.name == attribute_name) return &spec;
  }
  return nullptr;
}

const std::vector<const kernel_contract*>& contracts() {
  static const std::vector<const kernel_contract*> all = {
      &mxfp4_q_quant_contract(),
      &quantize_and_insert_k_cache_contract(),
  };
  return all;
}

const kernel_contract& contract_of(std::string_view kernel) {
  std::string known;
  for (const kernel_contract* contract : contracts()) {
    if (contract->name == kernel) return *contract;
    known += (known.empty() ? "" : ", ") + std::string(contract->name);
  }
  throw input_error("unknown kernel '" + std::string(kernel) + "': the kernels are " + known);
}

}  // namespace kvcts
