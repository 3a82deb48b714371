// CUDA devices, through the driver: opened at run time, so that every build has it.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace kvcts {

struct cuda_driver_device {
  int number = 0;       // as this process counts them
  std::string name;     // "NVIDIA H200"
  std::string visible;  // value of CUDA_VISIBLE_DEVICES under which a process sees this one alone
};

// "all", or numbers separated by commas. Throws input_error where one is no device here.
std::vector<cuda_driver_device> choose_devices(const std::string& list);

// The primary context of a device: the one that the CUDA runtime uses. Throws std::runtime_error
// with the driver's words.
class device_context {
 public:
  explicit device_context(int number);
  ~device_context();
  device_context(const device_context&) = delete;
  device_context& operator=(const device_context&) = delete;

  // What this thread asks of the CUDA runtime goes to the device from now on.
  void make_current() const;

 private:
  int device_ = 0;
  void* context_ = nullptr;
};

}  // namespace kvcts
