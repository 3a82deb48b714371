// The reference behind the interface of kvcts_candidate.h: a candidate of all kernels that
// conforms. As a candidate for CUDA it works with the tests' stand-in for the driver alone.
#include <exception>
#include <vector>

#include "conformance/candidate/kvcts_candidate.h"
#include "reference/contract/contract.h"
#include "reference/kernels/kernels.h"

namespace {

using namespace kvcts;

dtype dtype_of(kvcts_dtype number) {
  switch (number) {
    case KVCTS_BF16:
      return dtype::bf16;
    case KVCTS_F32:
      return dtype::f32;
    case KVCTS_F8E4M3FN:
      return dtype::f8e4m3fn;
    case KVCTS_F8E4M3FNUZ:
      return dtype::f8e4m3fnuz;
    case KVCTS_UE8M0:
      return dtype::ue8m0;
    case KVCTS_E2M1X2:
      return dtype::e2m1x2;
    case KVCTS_I32:
      return dtype::i32;
    case KVCTS_I64:
      return dtype::i64;
    case KVCTS_BOOL:
      return dtype::boolean;
    default:
      return dtype::u8;
  }
}

call call_of(const kvcts_call& from) {
  call made;
  made.kernel = from.kernel;
  for (int i = 0; i < from.argument_count; ++i) {
    const kvcts_argument& a = from.arguments[i];
    tensor_view view;
    view.storage = static_cast<std::byte*>(a.tensor.data);
    view.type = dtype_of(a.type);
    view.at.shape.assign(a.tensor.shape, a.tensor.shape + a.tensor.ndim);
    view.at.strides.assign(a.tensor.strides, a.tensor.strides + a.tensor.ndim);
    view.storage_bytes = static_cast<std::size_t>(reach(view.at)) * size_of(view.type);
    made.tensors[a.name] = view;
  }
  for (int i = 0; i < from.attribute_count; ++i) {
    const kvcts_attribute& a = from.attributes[i];
    if (a.kind == KVCTS_INTEGER) made.attributes[a.name] = a.integer;
    if (a.kind == KVCTS_REAL) made.attributes[a.name] = a.real;
    if (a.kind == KVCTS_TEXT) made.attributes[a.name] = std::string(a.text);
  }
  return made;
}

}  // namespace

KVCTS_EXPORT const kvcts_candidate_info* kvcts_candidate_describe(void) {
  static kvcts_candidate_info info{};
  static std::vector<std::string> names;
  static std::vector<const char*> kernels;
  for (const kernel_contract* c : contracts()) names.emplace_back(c->name);
  for (const std::string& name : names) kernels.push_back(name.c_str());
  kernels.push_back(nullptr);
  info.abi_version = KVCTS_ABI_VERSION;
  info.struct_bytes = sizeof info;
  info.name = "reference library";
  info.version = "1";
  info.vendor = "KVCTS";
  info.device = {KVCTS_TEST_DEVICE, 0};
  info.kernels = kernels.data();
  return &info;
}

KVCTS_EXPORT kvcts_answer kvcts_candidate_run(const kvcts_call* asked) {
  try {
    const profile p = std::string_view(asked->profile) == "ieee" ? profile::ieee : profile::nvidia;
    const call c = call_of(*asked);
    // What it is handed must be a call as the contract has it.
    check(contract_of(c.kernel), c, true);
    reference_of(c.kernel)(c, rules_for(p));
    return KVCTS_OK;
  } catch (const std::exception& error) {
    return kvcts_say(asked, KVCTS_ERROR, error.what());
  }
}
