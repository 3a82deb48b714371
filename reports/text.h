// What the report forms share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/runner/result.h"

namespace kvcts {

constexpr outcome all_outcomes[] = {outcome::passed, outcome::failed, outcome::unsupported,
                                    outcome::crashed, outcome::timed_out};

constexpr std::string_view name_of(outcome what) {
  switch (what) {
    case outcome::passed:
      return "passed";
    case outcome::failed:
      return "failed";
    case outcome::unsupported:
      return "unsupported";
    case outcome::crashed:
      return "crashed";
    case outcome::timed_out:
      return "timed_out";
  }
  return "unknown";
}

// For people: "not claimed", "timed out".
std::string_view words_of(outcome what);
constexpr bool is_failure(outcome what) {
  return what != outcome::passed && what != outcome::unsupported;
}
// "captured on hardware", "derived by rule".
std::string words_of_provenance(const std::string& provenance);

// Text for XML and HTML, in content and in attributes between double quotes. What is not UTF-8 or
// no character of XML 1.0 becomes U+FFFD.
std::string escaped(std::string_view text);

// 12345678 -> "12,345,678".
std::string with_commas(std::uint64_t n);

// At most `most` bytes of a text, whole characters.
std::string_view cut_short(std::string_view text, std::size_t most);
// escaped(), where what is longer than `most` bytes when escaped ends in an ellipsis.
std::string escaped_short(std::string_view text, std::size_t most);
// For lists: characters that JSON would have to escape as spaces, no bytes that are not UTF-8.
std::string without_controls(std::string_view text);

// Which failures the notices call waived (docs/acceptance.md).
class waived_cases {
 public:
  explicit waived_cases(const run_result& result);
  bool has(const case_result& c) const;

 private:
  std::vector<std::pair<std::string, std::string>> patterns_;  // kernel, cases
};

// What the run's verdict says; `limited`: it conforms, with waivers.
enum class standing : std::uint8_t { good, limited, bad };
standing standing_of(const run_result& result);
// Of `kvcts compare`: two sides, of which none is right.
bool is_comparison(const run_result& result);
// Something that limits nothing, such as evidence that is verified.
bool is_neutral(const std::string& notice);

struct kernel_counts {
  std::string kernel;
  std::uint64_t cases = 0, passed = 0, failed = 0, broken = 0, unsupported = 0;
  std::uint64_t captured = 0;                 // of those that ran
  std::uint64_t waived = 0;                   // of those that failed
  std::uint64_t compared = 0, different = 0;  // bytes

  void add(const case_result& c, const waived_cases& waived);
  bool fails() const { return failed + broken != 0; }
  bool all_waived() const { return waived != 0 && waived == failed + broken; }
  bool claimed() const { return unsupported != cases; }
};
// "differs", "differs, waived", "conforms", ...
std::string_view words_of(const kernel_counts& kernel, const run_result& result);
// In the run's order.
std::vector<kernel_counts> by_kernel(const run_result& result);

// Indices of at most `most` cases that failed, every kernel among them, in the run's order.
std::vector<std::size_t> first_failures(const run_result& result, std::size_t most);

// "2 of 100 bytes differ", "signal 11", ...
std::string short_message(const case_result& c);
// "k_cache: byte 41237: page 2, ...: expected 0x7E (2^-1), got 0x7F (2^0)".
std::string place_line(const difference& d, const run_result& result);
// What explains the failures of a kernel; empty: nothing was found out.
std::vector<std::string> diagnosis_lines(const run_result& result, const std::string& kernel);

}  // namespace kvcts
