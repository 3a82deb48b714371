// What a GPU computed, recorded so that it can be checked again on a machine that has none: the
// SHA-256 of every output of every case, beside the device, the driver, the compiler and the
// digest of the kernels' sources.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "conformance/runner/run.h"

namespace kvcts {

// Of the kernels that this program was built with (sources without comments, compiler flags).
extern const char* const kernel_sources_digest;

struct evidence_case {
  std::string kernel, name;
  std::string source;  // "built-in", or a vector file's name without its folder
  std::string inputs;  // digest of the inputs and attributes
  std::map<std::string, std::string> outputs;  // argument -> SHA-256
};

struct evidence {
  std::string candidate, device, driver, compiler, time, version;
  std::string sources;  // digest
  std::string profile, level;
  std::uint64_t seed = 0;
  std::vector<evidence_case> cases;
};

// By its name: reports/evidence/ also holds the speeds that kvcts bench records, bench-*.json.
bool is_evidence_file(const std::string& path);
// Throws input_error: no such file, not evidence.
evidence read_evidence(const std::string& path);
// Of a file's text. Throws input_error.
evidence parse_evidence(const std::string& text, const std::string& path);
// Whole or not at all. Throws input_error.
void write_evidence(const std::string& path, const evidence& e);
// Tries a write, so that a run need not end before a bad path shows. Throws input_error.
void check_evidence_path(const std::string& path);

// Of a run in which every case passed; `plan` is the run's.
evidence evidence_of(const run_result& result, const std::vector<planned_case>& plan);

enum class evidence_state : std::uint8_t {
  verified,  // digests equal the reference's, sources are those of this program
  stale,     // digests equal, but kernels, compiler flags or cases have changed since
  wrong      // a digest is not the reference's
};
struct evidence_check {
  evidence_state state = evidence_state::verified;
  std::string message;  // one line
  std::size_t outputs = 0;
};

// Recomputes every case with the reference. `file_of` gives the path of a vector file by its name,
// or nothing where it is not there. `sources` is kernel_sources_digest but for tests.
evidence_check check_evidence(
    const evidence& e, int threads,
    const std::function<std::optional<std::string>(const std::string&)>& file_of,
    const std::string& sources = kernel_sources_digest);

}  // namespace kvcts
