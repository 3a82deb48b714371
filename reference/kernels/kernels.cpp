#include "reference/kernels/kernels.h"

#include <utility>

#include "reference/kernels/mxfp4_q_quant.h"
#include "reference/kernels/quantize_and_insert_k_cache.h"

namespace kvcts {
namespace {

constexpr std::pair<std::string_view, reference_function> references[] = {
    {"mxfp4_q_quant", mxfp4_q_quant},
    {"quantize_and_insert_k_cache", quantize_and_insert_k_cache},
};

}  // namespace

reference_function reference_of(std::string_view kernel) {
  for (const auto& [name, function] : references) {
    if (name == kernel) return function;
  }
  return nullptr;
}

}  // namespace kvcts
