#include "conformance/runner/oracle.h"

#include "reference/kernels/kernels.h"

namespace kvcts {

call make_call(std::string_view kernel, const attribute_map& attributes,
               std::vector<buffer>& inputs, std::vector<buffer>& results) {
  call made;
  made.kernel = kernel;
  made.attributes = attributes;
  for (buffer& b : inputs) made.tensors[b.name] = b.view();
  for (buffer& b : results) made.tensors[b.name] = b.view();
  return made;
}

std::vector<buffer> initial_results(const kernel_contract& contract,
                                    const attribute_map& attributes, std::vector<buffer>& inputs,
                                    std::byte fill, const std::vector<buffer>& like) {
  std::vector<buffer> none;
  const call context = make_call(contract.name, attributes, inputs, none);
  const bindings names = check(contract, context, false);
  const std::vector<output_shape> outputs = outputs_of(contract, context, names);
  std::vector<buffer> results;
  for (const argument_spec& argument : contract.arguments) {
    if (argument.direction == role::updated) {
      for (const buffer& b : inputs) {
        if (b.name == argument.name) results.push_back(b);
      }
    }
    for (const output_shape& o : outputs) {
      if (o.spec->name != argument.name || argument.direction != role::output) continue;
      buffer made;
      made.name = argument.name;
      made.type = o.type;
      const buffer* other = find_buffer(like, made.name);
      made.at = other != nullptr ? other->at : dense(o.shape);
      const std::size_t dense_size = static_cast<std::size_t>(count(o.shape)) * size_of(made.type);
      made.bytes.assign(other != nullptr ? other->size() : dense_size, fill);
      results.push_back(std::move(made));
    }
  }
  return results;
}

std::vector<buffer> expected_results(const kernel_contract& contract,
                                     const attribute_map& attributes, std::vector<buffer>& inputs,
                                     std::byte fill, const Rules& rules,
                                     const std::vector<buffer>& like) {
  const reference_function reference = reference_of(contract.name);
  if (reference == nullptr) {
    throw input_error(std::string(contract.name) + ": not implemented in this version");
  }
  std::vector<buffer> results = initial_results(contract, attributes, inputs, fill, like);
  const call c = make_call(contract.name, attributes, inputs, results);
  check(contract, c, true);
  reference(c, rules);
  return results;
}

void fill_expected(test_case& c, profile p) {
  c.expected =
      expected_results(contract_of(c.kernel), c.attributes, c.inputs, canary, rules_for(p));
}

}  // namespace kvcts
