#include "conformance/worker/load.h"

#include <dlfcn.h>

#include <cstring>

namespace kvcts::worker {
namespace {

std::string quoted_error() {
  const char* text = dlerror();
  return text == nullptr ? "unknown reason" : text;
}

}  // namespace

candidate_library load(const char* path) {
  candidate_library made;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error("cannot be loaded: " + quoted_error());
  const kvcts_candidate_info* (*describe)() = nullptr;
  const auto find = [&](auto& function, const char* name) {
    void* symbol = dlsym(library, name);
    if (symbol == nullptr) {
      throw std::runtime_error(std::string("exports no ") + name +
                               ": define it as kvcts_candidate.h declares it, with KVCTS_EXPORT");
    }
    std::memcpy(&function, &symbol, sizeof symbol);
  };
  find(describe, "kvcts_candidate_describe");
  find(made.run, "kvcts_candidate_run");
  made.info = called("kvcts_candidate_describe", describe);
  if (made.info == nullptr) {
    throw std::runtime_error("gives no description: kvcts_candidate_describe() returned null");
  }
  if (made.info->abi_version != KVCTS_ABI_VERSION) {
    throw std::runtime_error("has ABI version " + std::to_string(made.info->abi_version) +
                             ", this KVCTS has " + std::to_string(KVCTS_ABI_VERSION) +
                             ": build it with this version's kvcts_candidate.h");
  }
  if (made.info->struct_bytes < sizeof(kvcts_candidate_info)) {
    throw std::runtime_error(
        "describes itself with struct_bytes " + std::to_string(made.info->struct_bytes) +
        ", must be sizeof(kvcts_candidate_info) = " + std::to_string(sizeof(kvcts_candidate_info)));
  }
  if (made.info->name == nullptr || made.info->version == nullptr ||
      made.info->kernels == nullptr) {
    throw std::runtime_error("leaves name, version or kernels null in its description");
  }
  return made;
}

kvcts_storage_type storage_of(kvcts_dtype type) {
  switch (type) {
    case KVCTS_BF16:
      return {4, 16, 1};
    case KVCTS_F32:
      return {2, 32, 1};
    case KVCTS_I32:
      return {0, 32, 1};
    case KVCTS_I64:
      return {0, 64, 1};
    default:
      return {1, 8, 1};
  }
}

}  // namespace kvcts::worker
