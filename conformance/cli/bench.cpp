// kvcts bench: speeds as ratios within one run.
#include "optimized/bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/printable.h"
#include "common/replaced_file.h"
#include "conformance/candidate/candidate.h"
#include "conformance/candidate/library_in_process.h"
#include "conformance/cli/bench_vs.h"
#include "conformance/cli/commands.h"
#include "conformance/runner/run.h"
#include "optimized/optimized.h"
#include "reference/contract/contract.h"
#include "reference/kernels/kernels.h"
#include "reference/layout/tensor.h"

namespace kvcts {
namespace {

using nlohmann::ordered_json;

void run_reference(const call& c, profile p) { reference_of(c.kernel)(c, rules_for(p)); }

std::string_view yes_or_no(bool met) { return met ? "yes" : "no"; }

// The name of the row at work, on standard error where that is a terminal.
void show_progress(const std::string& row) {
  if (isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr, "\r\033[K{}", row);
  std::fflush(stderr);
}
void end_progress() { show_progress(""); }

bool meets(const cpu_bench_row& r) {
  return (r.moves_only ? r.share_of_memcpy : r.ratio) >= r.target;
}

std::string heading_beside(const bench_choice& choice, const char* rate) {
  return vs_heading(choice.vs == nullptr ? "" : choice.vs->name(), rate);
}

// Of the second candidate.
double gbs_of(const cpu_bench_row& r) {
  return r.vs && r.vs->time_us > 0 ? static_cast<double>(r.bytes) / r.vs->time_us / 1e3 : 0;
}

ordered_json bench_cpu_table(const bench_choice& choice, int threads) {
  const std::vector<cpu_bench_row> rows = bench_cpu(choice, run_reference, thread_count(threads));
  end_progress();
  ordered_json to = {
      {"candidate", "cpu"}, {"device", cpu_target()}, {"rows", ordered_json::array()}};
  fmt::print(
      "cpu ({}), GB read and written a second, one thread; memcpy moves as many bytes\n"
      "{:<40} {:<20} {:>8} {:>8} {:>9} {:>8} {:>9} {:>9} {:<12} {:<4} {:<13}{}\n",
      cpu_target(), "op", "size", "MB", "cpu", "reference", "memcpy", "times", "of memcpy",
      "target", "met", "all threads", heading_beside(choice, "GB/s"));
  int met = 0;
  for (const cpu_bench_row& r : rows) {
    met += meets(r) ? 1 : 0;
    fmt::print(
        "{:<40} {:<20} {:>8.2f} {:>8.3f} {:>9.4f} {:>8.2f} {:>8.1f}x {:>9.2f} {:<12} {:<4} "
        "{:<13}{}\n",
        r.op, r.size, static_cast<double>(r.bytes) / 1e6, r.candidate_gbs, r.reference_gbs,
        r.memcpy_gbs, r.ratio, r.share_of_memcpy,
        r.moves_only ? fmt::format("{:.2f} memcpy", r.target)
                     : fmt::format("{:.0f} times", r.target),
        yes_or_no(meets(r)), fmt::format("{:.3f} ({})", r.threads_gbs, r.threads),
        vs_columns(r.vs, gbs_of(r)));
    to["rows"].push_back({{"op", r.op},
                          {"size", r.size},
                          {"bytes", r.bytes},
                          {"cpu_gbs", r.candidate_gbs},
                          {"reference_gbs", r.reference_gbs},
                          {"memcpy_gbs", r.memcpy_gbs},
                          {"ratio", r.ratio},
                          {"share_of_memcpy", r.share_of_memcpy},
                          {"target_of", r.moves_only ? "share_of_memcpy" : "ratio"},
                          {"target", r.target},
                          {"threads", r.threads},
                          {"threads_gbs", r.threads_gbs}});
    put_vs(r.vs, to["rows"].back());
  }
  fmt::print("{} of {} rows meet their target\n", met, rows.size());
  return to;
}

// A row of a decode table for each: ours, and where there is one the second candidate's.
void print_decode_op(const std::vector<cuda_decode_row>& rows, double empty_us,
                     const vs_candidate* vs) {
  const auto cell = [&](double us) { return fmt::format("{:.2f} ({:>4.1f}x)", us, us / empty_us); };
  fmt::print("\n{:<40}", rows.front().op);
  for (const cuda_decode_row& r : rows) fmt::print(" {:>15}", cell(r.time_us));
  if (vs == nullptr) return;
  fmt::print("\n  {:<38}", printable(vs->name()));
  std::vector<std::string> verdicts;
  for (const cuda_decode_row& r : rows) {
    const bool measured = r.vs && r.vs->answer.state == vs_state::measured;
    fmt::print(" {:>15}", measured ? cell(r.vs->time_us) : "-");
    const std::string verdict = r.vs ? vs_verdict(*r.vs) : "";
    if (std::find(verdicts.begin(), verdicts.end(), verdict) == verdicts.end()) {
      verdicts.push_back(verdict);
    }
  }
  fmt::print("  {}", fmt::join(verdicts, "; "));
}

void print_decode(const cuda_decode& decode, const vs_candidate* vs, ordered_json& to) {
  fmt::print(
      "\nDecode: us a node of a replayed graph of 20, and times the empty node's {:.2f} us\n"
      "{:<40} {:>15} {:>15} {:>15}",
      decode.empty_us, "op", "T=1", "T=8", "T=64");
  for (auto from = decode.rows.begin(); from != decode.rows.end();) {
    const auto end = std::find_if(from, decode.rows.end(),
                                  [&](const cuda_decode_row& r) { return r.op != from->op; });
    print_decode_op({from, end}, decode.empty_us, vs);
    from = end;
  }
  for (const cuda_decode_row& r : decode.rows) {
    to["decode"].push_back({{"op", r.op},
                            {"tokens", r.tokens},
                            {"time_us", r.time_us},
                            {"empty_us", decode.empty_us},
                            {"ratio", r.time_us / decode.empty_us}});
    put_vs(r.vs, to["decode"].back());
  }
  fmt::print("\nThe same of one thread that makes dependent loads:");
  for (std::size_t i = 0; i < decode.chase_us.size(); ++i) {
    fmt::print("{} {}: {:.2f} us", i == 0 ? "" : ",", i + 1, decode.chase_us[i]);
  }
  fmt::print("\n");
  to["chase_us"] = decode.chase_us;
}

ordered_json bench_cuda_tables(const bench_choice& choice) {
  const cuda_status status = cuda_available();
  const std::vector<cuda_bench_row> rows = bench_cuda(choice);
  const cuda_decode decode = bench_cuda_decode(choice);
  end_progress();
  // The fastest copy that the L2 cache does not hold, or of all where it holds them all.
  double copy = 0;
  double copy_past_l2 = 0;
  for (const cuda_bench_row& r : rows) {
    const double rate = static_cast<double>(r.bytes) / r.copy_us / 1e6;
    copy = std::max(copy, rate);
    if (!r.fits_l2) copy_past_l2 = std::max(copy_past_l2, rate);
  }
  if (copy_past_l2 > 0) copy = copy_past_l2;
  ordered_json to = {{"candidate", "cuda"},           {"device", status.device},
                     {"driver", status.driver},       {"copy_tb_s", copy},
                     {"rows", ordered_json::array()}, {"decode", ordered_json::array()}};
  fmt::print(
      "cuda ({}, driver {}); copy: a device-to-device copy that moves as many bytes, at most "
      "{:.2f} TB/s\n{:<44} {:<20} {:>8} {:>8} {:>8} {:>6} {:>6} {:<4}{}\n",
      status.device, status.driver, copy, "op", "size", "MB", "us", "copy us", "share", "target",
      "met", heading_beside(choice, "us"));
  int met = 0;
  int with_target = 0;
  for (const cuda_bench_row& r : rows) {
    const bool has_target = r.target > 0;
    const bool meets = has_target && r.share_of_copy >= r.target;
    with_target += has_target ? 1 : 0;
    met += meets ? 1 : 0;
    fmt::print("{:<44} {:<20} {:>8.1f} {:>8.1f} {:>8.1f} {:>6.2f} {:>6} {:<4}{}{}\n", r.op, r.size,
               static_cast<double>(r.bytes) / 1e6, r.time_us, r.copy_us, r.share_of_copy,
               has_target ? fmt::format("{:.2f}", r.target) : "-",
               has_target ? yes_or_no(meets) : "-", vs_columns(r.vs, r.vs ? r.vs->time_us : 0),
               r.fits_l2 ? fmt::format("{} fits the L2: {} sets of buffers in turn",
                                       r.vs ? ";" : "", r.sets)
                         : "");
    to["rows"].push_back({{"op", r.op},
                          {"size", r.size},
                          {"bytes", r.bytes},
                          {"time_us", r.time_us},
                          {"copy_us", r.copy_us},
                          {"share_of_copy", r.share_of_copy},
                          {"target", r.target},
                          {"fits_l2", r.fits_l2}});
    put_vs(r.vs, to["rows"].back());
  }
  fmt::print("{} of {} rows meet their target\n", met, with_target);
  print_decode(decode, choice.vs, to);
  return to;
}

// Before anything is measured.
void check_candidate(const bench_arguments& a) {
  if (a.candidate == "cpu" || a.candidate == "cuda") return;
  if (is_library_name(a.candidate)) {
    throw input_error(fmt::format(
        "--candidate {0}: bench measures a library beside ours: --candidate cpu --vs {0}, or cuda "
        "where it takes device memory",
        a.candidate));
  }
  throw input_error(
      fmt::format("unknown candidate '{}': bench measures cpu and cuda", a.candidate));
}

void choose_cpu_target(const bench_arguments& a) {
  if (a.target.empty()) return;
  if (a.candidate != "cpu") {
    throw input_error(fmt::format("--cpu-target {}: candidate {} has none, leave --cpu-target out",
                                  a.target, a.candidate));
  }
  set_cpu_target(a.target);
}

void check_device(const bench_arguments& a) {
  if (a.candidate != "cuda") return;
  const cuda_status status = cuda_available();
  if (!status.available) throw input_error("candidate cuda cannot run here: " + status.why_not);
}

void check_any_kernel(const bench_arguments& a, const kernel_filter& kernels) {
  for (const kernel_contract* contract : contracts()) {
    const bool supported =
        a.candidate == "cuda" ? cuda_supports(contract->name) : cpu_supports(contract->name);
    if (supported && kernels.matches(contract->name)) return;
  }
  throw input_error(
      fmt::format("--kernels {}: candidate {} has none of them (kvcts list names all "
                  "kernels)",
                  a.kernels, a.candidate));
}

// Tries a write, so that a run need not end before a bad path shows.
void check_json_path(const std::string& path) {
  const std::string why = replaced_file(path).write("");
  if (why.empty()) return;
  throw input_error(path + ": cannot be written (" + why + "), choose another --json");
}

void write_json(const std::string& path, const ordered_json& result) {
  const std::string why = replace_file(path, result.dump(1) + "\n");
  if (!why.empty()) throw input_error(path + ": could not be written (" + why + ")");
}

}  // namespace

int bench_command(const bench_arguments& a) {
  check_candidate(a);
  choose_cpu_target(a);
  const kernel_filter kernels(a.kernels);
  const std::unique_ptr<library_in_process> vs = vs_library(a);
  check_device(a);
  check_any_kernel(a, kernels);
  if (!a.json.empty()) check_json_path(a.json);
  const bench_choice choice = {[&](std::string_view kernel) { return kernels.matches(kernel); },
                               show_progress, vs.get()};
  ordered_json result =
      a.candidate == "cuda" ? bench_cuda_tables(choice) : bench_cpu_table(choice, a.threads);
  if (vs != nullptr) put_vs_library(*vs, result);
  if (!a.json.empty()) write_json(a.json, result);
  return 0;
}

}  // namespace kvcts
