#include "conformance/candidate/devices.h"

#include <dlfcn.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "reference/layout/tensor.h"

namespace kvcts {
namespace {

// The driver's interface, as far as it is needed.
struct driver {
  int (*init)(unsigned) = nullptr;
  int (*count)(int*) = nullptr;
  int (*get)(int*, int) = nullptr;
  int (*name)(char*, int, int) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*release)(int) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*error_text)(int, const char**) = nullptr;

  driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) throw std::runtime_error("no CUDA driver (libcuda.so.1) here");
    const auto find = [&](auto& function, const char* symbol_name) {
      void* symbol = dlsym(library, symbol_name);
      if (symbol == nullptr) {
        throw std::runtime_error(std::string("libcuda.so.1 has no ") + symbol_name);
      }
      std::memcpy(&function, &symbol, sizeof symbol);
    };
    find(init, "cuInit");
    find(count, "cuDeviceGetCount");
    find(get, "cuDeviceGet");
    find(name, "cuDeviceGetName");
    find(retain, "cuDevicePrimaryCtxRetain");
    find(release, "cuDevicePrimaryCtxRelease_v2");
    find(set_current, "cuCtxSetCurrent");
    find(error_text, "cuGetErrorString");
    check(init(0), "start");
  }

  void check(int result, const char* what) const {
    if (result == 0) return;
    const char* text = nullptr;
    if (error_text(result, &text) != 0 || text == nullptr) text = "unknown error";
    throw std::runtime_error(std::string("CUDA: ") + what + ": " + text);
  }
};

const driver& cuda_driver() {
  static const driver opened;
  return opened;
}

// Entries of a list separated by commas.
std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    all.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

std::vector<cuda_driver_device> all_devices() {
  const driver& cuda = cuda_driver();
  int count = 0;
  cuda.check(cuda.count(&count), "counting devices");
  // What this process sees of the machine: its devices have other names there.
  const char* seen = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::vector<std::string> outside =
      seen != nullptr ? split(seen) : std::vector<std::string>();
  std::vector<cuda_driver_device> all;
  for (int number = 0; number < count; ++number) {
    int device = 0;
    char name[256] = {};
    cuda.check(cuda.get(&device, number), "device");
    cuda.check(cuda.name(name, static_cast<int>(sizeof name) - 1, device), "device name");
    const auto at = static_cast<std::size_t>(number);
    all.push_back({number, name, at < outside.size() ? outside[at] : std::to_string(number)});
  }
  return all;
}

}  // namespace

std::vector<cuda_driver_device> choose_devices(const std::string& list) {
  std::vector<cuda_driver_device> all;
  try {
    all = all_devices();
  } catch (const std::runtime_error& error) {
    throw input_error("--devices " + list + ": " + error.what() +
                      ": leave --devices out, or run where there is a GPU");
  }
  if (all.empty()) throw input_error("--devices " + list + ": the driver lists no device");
  if (list == "all") return all;
  std::vector<cuda_driver_device> chosen;
  for (const std::string& text : split(list)) {
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number >= all.size()) {
      throw input_error("--devices " + list + ": '" + text +
                        "' is no device: give all, or numbers " + "from 0 to " +
                        std::to_string(all.size() - 1) + " separated by commas");
    }
    for (const cuda_driver_device& other : chosen) {
      if (other.number == static_cast<int>(number)) {
        throw input_error("--devices " + list + ": names device " + text + " twice");
      }
    }
    chosen.push_back(all[number]);
  }
  return chosen;
}

device_context::device_context(int number) {
  const driver& cuda = cuda_driver();
  cuda.check(cuda.get(&device_, number), "device");
  cuda.check(cuda.retain(&context_, device_), "primary context");
}

device_context::~device_context() { cuda_driver().release(device_); }

void device_context::make_current() const {
  const driver& cuda = cuda_driver();
  cuda.check(cuda.set_current(context_), "primary context");
}

}  // namespace kvcts
