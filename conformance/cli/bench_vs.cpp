#include "conformance/cli/bench_vs.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/printable.h"
#include "conformance/candidate/candidate.h"
#include "conformance/candidate/library_in_process.h"
#include "reference/layout/tensor.h"

namespace kvcts {
namespace {

std::string_view word_of(vs_state state) {
  switch (state) {
    case vs_state::measured:
      return "measured";
    case vs_state::not_claimed:
      return "not claimed";
    case vs_state::failed:
      return "error";
    case vs_state::not_captured:
      return "not captured";
  }
  return "";
}

}  // namespace

std::unique_ptr<library_in_process> vs_library(const bench_arguments& a) {
  const bool cuda = a.candidate == "cuda";
  if (a.vs.empty() || (!cuda && a.vs == "reference")) return nullptr;
  if (!is_library_name(a.vs)) {
    throw input_error(
        cuda ? fmt::format("--vs {}: beside candidate cuda stands the path of a library (.so) that "
                           "takes device memory, or leave --vs out",
                           a.vs)
             : fmt::format("--vs {}: beside candidate cpu stands 'reference', or the path of a "
                           "library (.so)",
                           a.vs));
  }
  return std::make_unique<library_in_process>(a.vs, cuda ? KVCTS_CUDA : KVCTS_CPU);
}

void put_vs_library(const library_in_process& library, nlohmann::ordered_json& to) {
  to["vs"] = printable(library.name());
  to["vs_version"] = printable(library.version());
  to["vs_library"] = printable(library.about().at("candidate library"));
  to["vs_library_sha256"] = library.about().at("candidate library sha256");
}

std::string vs_verdict(const vs_row& row) {
  if (row.answer.state != vs_state::measured) {
    const std::string_view word = word_of(row.answer.state);
    return row.answer.message.empty() ? std::string(word)
                                      : fmt::format("{}: {}", word, printable(row.answer.message));
  }
  return fmt::format("{}{}",
                     row.differing.empty()
                         ? "same bytes"
                         : fmt::format("differs: {}", fmt::join(row.differing, ", ")),
                     row.queued ? "" : ", host time included");
}

std::string vs_heading(const std::string& name, const char* rate) {
  if (name.empty()) return "";
  return fmt::format(" | {:>9} {:>6} {:>9} {}", rate, "share", "ours/its", printable(name));
}

std::string vs_columns(const std::optional<vs_row>& row, double rate) {
  if (!row) return "";
  if (row->answer.state != vs_state::measured) {
    return fmt::format(" | {:>9} {:>6} {:>9} {}", "", "", "", vs_verdict(*row));
  }
  return fmt::format(" | {:>9.3f} {:>6.2f} {:>8.2f}x {}", rate, row->share_of_copy, row->ratio,
                     vs_verdict(*row));
}

void put_vs(const std::optional<vs_row>& row, nlohmann::ordered_json& to) {
  if (!row) return;
  to["vs_state"] = word_of(row->answer.state);
  if (!row->answer.message.empty()) to["vs_message"] = printable(row->answer.message);
  if (row->answer.state != vs_state::measured) return;
  to["vs_time_us"] = row->time_us;
  if (row->share_of_copy > 0) to["vs_share_of_copy"] = row->share_of_copy;
  to["vs_ratio"] = row->ratio;
  to["vs_same_bytes"] = row->differing.empty();
  if (!row->differing.empty()) to["vs_differing"] = row->differing;
  if (!row->queued) to["vs_host_time_included"] = true;
}

}  // namespace kvcts
