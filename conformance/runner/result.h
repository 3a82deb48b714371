// What a run found: a plain model that the command line prints and the report writers read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reference/numerics/rules.h"

namespace kvcts {

enum class outcome : std::uint8_t { passed, failed, unsupported, crashed, timed_out };

// One place where bytes differ, in the user's terms.
struct difference {
  std::string argument;
  std::uint64_t byte = 0;  // of the whole buffer
  std::string
      place;  // "token 17 -> slot 145 -> page 2, position 17, scale of block 3 (dims 96..127)"
  std::string expected, got;  // "0x7E (2^-1)"
};

// A run of bytes, from the start of what it is said of.
struct byte_run {
  std::uint64_t first = 0, bytes = 0;
};

// A piece of a buffer drawn as one band, to scale: the whole buffer, a page, a token's record, a
// row. Positions are from its start. A record that lies in two pieces of its page (values and
// scales) is one strip.
struct picture_region {
  std::string kind;  // "page", "value", "scale", "pad", "row"
  std::string name;  // "scales of blocks of 32 dims"
  std::uint64_t first = 0, bytes = 0;
  std::uint64_t parts = 1;  // equal ones: tokens, heads, elements
};
struct picture_strip {
  std::string name;  // "page 2", "token 17 -> slot 145 -> page 2, position 17"
  std::uint64_t bytes = 0;
  std::vector<picture_region> regions;  // bytes of no region mean nothing
  std::vector<byte_run> wrong;          // runs too near to be told apart in a picture are one
  std::uint64_t different = 0;          // bytes, exactly
};
// Where the wrong bytes of one argument lie.
struct buffer_picture {
  std::string argument;
  std::uint64_t bytes = 0;            // of the buffer
  std::vector<picture_strip> strips;  // from coarse to fine
  std::string left_out;               // "12 more pages differ"; empty: nothing
};

// How far a quantized result is from double-precision mathematics: one output of one case, or of a
// kernel (medians of its cases). What the format costs; it judges nobody.
struct accuracy_row {
  std::string kernel;  // empty: of a case
  std::string argument;
  std::uint64_t values = 0;  // finite ones that were compared
  // 10 log10(sum of squares / sum of squared errors), the median of the rows; +infinity: exact;
  // -10000: the exact values are 0, some results not.
  double sqnr_db = 0;
  double worst_relative = 0;  // largest |error| / |exact|, of values that are no subnormal result
  double saturated = 0;       // share of values at the format's largest magnitude
};

struct case_result {
  std::string kernel, name;
  std::vector<std::string> flags;
  std::string provenance;  // "captured" or "derived"
  std::string source;      // "built-in" or the vector file
  outcome what = outcome::passed;
  std::uint64_t bytes_compared = 0;
  std::uint64_t bytes_different = 0;
  std::vector<difference> places;                     // the shortest list: at most 8
  std::vector<buffer_picture> pictures;               // of some failures of a run
  std::string message;                                // why unsupported, crashed, ...
  std::string replay;                                 // a command that reproduces it alone
  std::map<std::string, std::string> output_digests;  // argument -> SHA-256
  std::vector<accuracy_row> accuracy;                 // of its outputs
  double seconds = 0;
  std::uint64_t position = 0;  // in the plan of all shards
  std::string digest;          // of the case's content, which the suite's digest is made of
};

// Whether somebody may answer for the case (docs/acceptance.md): it ran to its end and wrote other
// bytes. An error that the candidate reports, leaked memory or outputs that change from run to run
// come with a message: they are more than other bytes.
bool is_waivable(const case_result& c);
// Whether a waiver of `cases` (a pattern) of a kernel names the case.
bool is_named(const std::string& kernel, const std::string& cases, const std::string& of_kernel,
              const std::string& name);

// One fault of the catalogue, or two, that write differing bytes as the candidate did.
struct explanation {
  std::vector<std::string> faults, texts;
  bool complete = false;  // every byte of the results is the candidate's
  double share = 0;       // of the bytes that differ in the candidate or under the faults
};

// Why a kernel's bytes differ, found on its smallest failing case.
struct diagnosis {
  std::string kernel, name;
  std::uint64_t bytes_different = 0;      // of the results, in that case
  std::vector<explanation> explanations;  // all complete ones; else the best; none: nothing fits
};

// "e2m1_ties_away explains all 37 differing bytes (...)", one line each.
std::vector<std::string> text_of(const diagnosis& d);

// One measured size of `kvcts bench`.
struct speed_row {
  std::string op, size;
  std::uint64_t bytes = 0;
  double time_us = 0;
  double share_of_copy = 0;  // against a copy of as many bytes in the same run
  std::optional<double> target;
};
struct speed_table {
  std::string candidate, device;
  std::string source;  // the file that recorded it; empty: this run
  double copy_tb_s = 0;
  std::vector<speed_row> rows;
};

// What the cases of the suite catch of the catalogue of faults.
struct adequacy_score {
  std::uint64_t faults = 0, pairs = 0, caught = 0;  // pairs (kernel, fault)
  std::vector<std::string> survivors;               // "kernel: fault"
};

// A sweep of `kvcts exhaustive`: a rule against an independent definition of it, over its inputs.
struct sweep_result {
  std::string name, text;
  std::uint64_t inputs = 0;  // that were checked: all, or a shard's
  std::uint64_t inputs_in_all = 0;
  std::uint64_t mismatches = 0;   // inputs; bytes where a kernel is run
  std::uint64_t first_piece = 0;  // that has mismatches
  std::string first_mismatch;     // in words; empty: none
  double seconds = 0;             // of one thread
};

struct run_result {
  std::string candidate, candidate_version, profile, level, verdict;
  int profile_rules = profile_version;
  std::uint64_t seed = 0;
  int suite_version = 0;  // of the expected bytes: vectors/CHANGELOG.md
  std::string suite_digest;
  std::map<std::string, std::string> environment;  // host, compiler, versions, time
  std::vector<std::string> notices;                // "GPU evidence is stale: ..."
  std::vector<case_result> cases;
  std::vector<diagnosis> diagnoses;    // one a kernel whose bytes differ
  std::vector<accuracy_row> accuracy;  // of kernels
  std::optional<speed_table> speed;
  std::optional<adequacy_score> adequacy;
  std::vector<sweep_result> sweeps;
  int kernels_claimed = 0, kernels_total = 0;
  // Of a shard: which of how many, and what all shards together are. 1 of 1: a whole run.
  int shard = 1, shards = 1;
  std::uint64_t cases_of_all = 0;
  std::string plan_digest, program_digest;

  // 0 conforms, 1 not, 3 crashed or timed out. `require_full`: a case not claimed fails. A shard
  // of which nothing is claimed says nothing against the candidate.
  int exit_status(bool require_full) const;
};

}  // namespace kvcts
