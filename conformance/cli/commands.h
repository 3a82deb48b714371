// The subcommands of kvcts. Each gives the exit status; bad input is thrown as input_error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvcts {

struct suite_arguments {
  std::string kernels;  // patterns; empty: all
  std::optional<std::string> level;
  std::optional<std::string> profile;
  std::uint64_t seed = 1;
};

struct run_arguments {
  suite_arguments suite;
  std::string candidate = "cpu";
  std::string devices;  // "all" or numbers; empty: one
  std::vector<std::string> vectors;
  std::string only_case;  // pattern; empty: all
  std::string report;
  std::string evidence;
  std::string speed;  // what bench --json wrote; empty: none
  bool require_evidence = false;
  bool require_full = false;
  int repeat = 1;
  double timeout = 60;
  int threads = 0;
  std::string shard;       // "I/N"; empty: as the environment says
  std::string checkpoint;  // a file; empty: none
};

struct merge_arguments {
  std::vector<std::string> reports;  // folders, or files
  std::string output;                // a folder
  bool require_full = false;
};

struct accept_arguments {
  std::string candidate = "cpu";
  std::string devices;  // "all" or numbers; empty: one
  std::string source;   // folder that holds vectors/ and reports/evidence/
  std::string report = "kvcts-report";
  std::string speed;       // what bench --json wrote; empty: of cuda the recorded one
  std::string submission;  // a file; empty: none
  std::string waivers;     // a file; empty: none
  bool require_evidence = false;
  bool require_full = false;
  double timeout = 60;
  int threads = 0;
};

struct bench_arguments {
  std::string candidate = "cpu";
  std::string vs;       // a second candidate; empty: none but the yardsticks
  std::string kernels;  // patterns; empty: all
  std::string json;     // a file; empty: none
  std::string target;   // instruction set of cpu; empty: the machine's widest
  int threads = 0;      // 0: all cores
};

struct exchange_arguments {
  std::string a, b;  // files: suite and actual, or two engines'
  std::string report;
};

struct report_show_arguments {
  std::string report;                                  // the file, or its folder
  std::string output;                                  // a file; empty: standard output
  bool html = false, markdown = false, junit = false;  // none: as a run prints it
};

struct decode_arguments {
  std::string record, file;
  std::int64_t block_size = 0, token = 0, page = 0;
  std::optional<std::int64_t> page_stride;  // bytes; else pages lie side by side
  std::optional<std::int64_t> dims;         // of the indexer's keys; else 128
  bool fnuz = false, tiled = false, json = false;
};

struct adequacy_arguments {
  std::string vectors;  // a file; empty: the built-in cases
  std::string level = "smoke";
  std::string kernels;       // patterns; empty: all
  std::string without_flag;  // cases to leave out
  std::string json;          // a file; empty: none
  bool reduce = false;
  std::string shard;       // "I/N"; empty: as the environment says
  bool catalogue = false;  // print the faults as a table, try none
  int threads = 0;         // 0: all cores
};

struct exhaustive_arguments {
  std::string candidate = "cpu";
  std::string profile = "nvidia";
  std::string sweeps;      // patterns; empty: all
  std::string source;      // folder that holds vectors/; empty: the checkout
  std::string checkpoint;  // a file; empty: none
  std::string shard;       // "I/N"; empty: the environment's, or the whole
  std::string report;
  bool plan = false;  // only say what would be done
  double timeout = 60;
  int threads = 0;  // 0: all cores
};

struct fuzz_arguments {
  std::string kernels;  // patterns; empty: all
  std::string candidate = "cpu";
  std::optional<std::uint64_t> cases;
  std::optional<double> seconds;
  std::optional<std::string> profile;  // absent: both
  std::uint64_t seed = 1;
  std::string save = "kvcts-fuzz";
  std::string json;   // a file; empty: none
  std::string shard;  // "I/N"; empty: the environment's, or the whole
  double timeout = 60;
  int threads = 0;
};

// Without a kernel: the kernels. With one: its cases.
int list_command(const std::string& kernel, const suite_arguments& suite);
// `interface`: what a call of kvcts_candidate.h holds for it.
int describe_command(const std::string& kernel, bool interface);
int init_candidate_command(const std::string& folder, const std::string& language);
int run_command(const run_arguments& arguments);
int merge_command(const merge_arguments& arguments);
int accept_command(const accept_arguments& arguments);
// Of a submission. `require_full`: a waived case, or one that is not claimed, fails.
int report_check_command(const std::string& file, bool require_full);
int exhaustive_command(const exhaustive_arguments& arguments);
int adequacy_command(const adequacy_arguments& arguments);
int fuzz_command(const fuzz_arguments& arguments);
int bench_command(const bench_arguments& arguments);
// `threads` 0: all cores.
int generate_command(const suite_arguments& suite, const std::string& output, int threads);
// Writes <kernel>_<profile>.h5 of every kernel at the level smoke, and MANIFEST.
int generate_golden_command(const std::string& folder, int threads);
int inspect_command(const std::string& file);
int check_command(const std::string& file, const std::string& kernels, int threads);
int verify_command(const exchange_arguments& arguments);
int compare_command(const exchange_arguments& arguments);

int report_show_command(const report_show_arguments& arguments);
// Of two report.json.
int report_diff_command(const std::string& before, const std::string& after);

int decode_command(const decode_arguments& arguments);

int run_cli(int argc, char** argv);

}  // namespace kvcts
