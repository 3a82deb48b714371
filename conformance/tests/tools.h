// What the tests of this folder share.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/candidate/candidate.h"
#include "conformance/cases/cases.h"
#include "reference/kernels/kernels.h"
#include "vectors/suite.h"

namespace kvcts::testing_tools {

// A folder that goes away with the object.
class scratch {
 public:
  scratch();
  ~scratch();
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  bool empty() const;

 private:
  std::string folder_;
};

// Under sanitizers, which are slow: .ci/run says so.
bool is_sanitized();

// The names of all contracts.
std::vector<std::string> every_kernel();

// A built-in case of the level exhaustive, seed 1, `expected` filled (profile nvidia). Fails the
// test where there is none.
test_case case_named(const std::string& kernel, const std::string& name);
buffer& input_of(test_case& c, const std::string& name);

// The reference, then something more.
class tampering : public candidate {
 public:
  explicit tampering(std::function<void(const call&)> more) : more_(std::move(more)) {}
  std::string name() const override { return "tampering"; }
  std::string version() const override { return "1"; }
  bool supports(std::string_view kernel) const override { return kernel != unsupported; }
  void run(const call& c, profile p) override {
    reference_of(c.kernel)(c, rules_for(p));
    more_(c);
  }
  std::string unsupported = {};  // a kernel; empty: none

 private:
  std::function<void(const call&)> more_;
};

struct program_result {
  int status = -1;
  std::string out, err;
};
// Runs kvcts with these arguments (shell syntax) in `folder`.
program_result run_program(const std::string& arguments, const std::string& folder = "/");

}  // namespace kvcts::testing_tools
