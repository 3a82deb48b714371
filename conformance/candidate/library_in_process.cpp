#include "conformance/candidate/library_in_process.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <vector>

#include "conformance/candidate/library.h"
#include "reference/contract/contract.h"

namespace kvcts {
namespace {

constexpr double load_seconds = 60;
constexpr profile measured_profile = profile::nvidia;

bool lists(const char* const* list, std::string_view one) {
  for (; *list != nullptr; ++list) {
    if (one == *list) return true;
  }
  return false;
}

kvcts_attribute interface_attribute(const std::string& name, const attribute_value& value) {
  kvcts_attribute made{};
  made.name = name.c_str();
  if (const auto* n = std::get_if<std::int64_t>(&value)) {
    made.kind = KVCTS_INTEGER;
    made.integer = *n;
  } else if (const auto* r = std::get_if<double>(&value)) {
    made.kind = KVCTS_REAL;
    made.real = *r;
  } else {
    made.kind = KVCTS_TEXT;
    made.text = std::get<std::string>(value).c_str();
  }
  return made;
}

// A call of the interface, and all that it points to.
class interface_call {
 public:
  interface_call(const worker::candidate_library& library, const call& c, void* stream)
      : run_(library.run), from_(c), profile_(name_of(measured_profile)) {
    for (const argument_spec& spec : contract_of(from_.kernel).arguments) {
      const auto found = from_.tensors.find(spec.name);
      if (found == from_.tensors.end()) continue;
      tensor_view& view = found->second;
      kvcts_argument one{};
      one.name = found->first.c_str();
      one.role = interface_role(spec.direction);
      one.type = interface_dtype(view.type);
      one.tensor.data =
          view.storage + view.at.offset * static_cast<std::int64_t>(size_of(view.type));
      one.tensor.device = library.info->device;
      one.tensor.ndim = static_cast<std::int32_t>(view.at.shape.size());
      one.tensor.storage = worker::storage_of(one.type);
      one.tensor.shape = view.at.shape.data();
      one.tensor.strides = view.at.strides.data();
      arguments_.push_back(one);
    }
    for (const auto& [name, value] : from_.attributes) {
      attributes_.push_back(interface_attribute(name, value));
    }
    asked_.struct_bytes = sizeof asked_;
    asked_.abi_version = KVCTS_ABI_VERSION;
    asked_.kernel = from_.kernel.c_str();
    asked_.profile = profile_.c_str();
    asked_.arguments = arguments_.data();
    asked_.argument_count = static_cast<std::int32_t>(arguments_.size());
    asked_.attributes = attributes_.data();
    asked_.attribute_count = static_cast<std::int32_t>(attributes_.size());
    asked_.stream = stream;
    asked_.message = message_.data();
    asked_.message_bytes = message_.size();
  }
  interface_call(const interface_call&) = delete;
  interface_call& operator=(const interface_call&) = delete;

  vs_answer run() {
    message_.front() = '\0';
    try {
      const kvcts_answer answer = worker::called("kvcts_candidate_run", run_, &asked_);
      return answer == KVCTS_OK ? vs_answer{} : answered(answer);
    } catch (const std::runtime_error& error) {
      return {vs_state::failed, error.what()};
    }
  }

 private:
  vs_answer answered(kvcts_answer answer) {
    message_.back() = '\0';
    const std::string said = message_.data();
    if (answer == KVCTS_UNSUPPORTED) return {vs_state::not_claimed, said};
    if (answer == KVCTS_ERROR) {
      return {vs_state::failed, said.empty() ? "an error without a message" : said};
    }
    return {vs_state::failed,
            fmt::format("answers {}, must be KVCTS_OK, KVCTS_UNSUPPORTED or KVCTS_ERROR", answer)};
  }

  kvcts_answer (*run_)(const kvcts_call*);
  call from_;
  std::string profile_;
  std::vector<kvcts_argument> arguments_;
  std::vector<kvcts_attribute> attributes_;
  std::array<char, worker::message_bytes> message_{};
  kvcts_call asked_{};
};

}  // namespace

library_in_process::library_in_process(const std::string& path, kvcts_device_type memory) {
  {
    const library_candidate tried(path, load_seconds);
    name_ = tried.name();
    version_ = tried.version();
    about_ = tried.about();
    if (tried.is_on_cuda() != (memory == KVCTS_CUDA)) {
      throw input_error(fmt::format(
          "{}: takes {} memory and cannot be measured beside candidate {}: name --candidate {}",
          path, tried.is_on_cuda() ? "device" : "host", memory == KVCTS_CUDA ? "cuda" : "cpu",
          tried.is_on_cuda() ? "cuda" : "cpu"));
    }
  }
  try {
    library_ = worker::load(about_.at("candidate library").c_str());
  } catch (const std::runtime_error& error) {
    throw input_error(path + ": " + error.what());
  }
  if (library_.info->device.id != 0) {
    throw input_error(
        fmt::format("{}: asks for device {}, bench measures on device 0: ask for "
                    "that (CUDA_VISIBLE_DEVICES chooses which GPU it is)",
                    path, library_.info->device.id));
  }
}

bool library_in_process::claims(std::string_view kernel) const {
  const kvcts_candidate_info& info = *library_.info;
  return lists(info.kernels, kernel) &&
         (info.profiles == nullptr || lists(info.profiles, name_of(measured_profile)));
}

std::function<vs_answer()> library_in_process::prepared(const call& c, void* stream) const {
  const auto one = std::make_shared<interface_call>(library_, c, stream);
  return [one] { return one->run(); };
}

}  // namespace kvcts
