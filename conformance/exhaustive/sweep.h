// Sweeps: a rule against an independent definition of it over every input that it has.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conformance/candidate/candidate.h"
#include "reference/numerics/mufu_tables.h"
#include "reference/numerics/rules.h"

namespace kvcts {

// Inputs first, first + stride, ... of a sweep, `count` of them.
struct sweep_range {
  std::uint64_t first = 0, count = 0, stride = 1;
};

struct sweep_finding {
  std::uint64_t inputs = 0, mismatches = 0;
  std::string first;  // the first mismatch in words; empty: none

  // What a later range found.
  void add(const sweep_finding& later);
};

struct sweep {
  std::string name;  // "format.e2m1.encode"
  std::string text;  // what is held against what
  std::uint64_t inputs = 0;
  std::uint64_t piece = 0;  // inputs that are checked, and kept in a checkpoint, at once
  // Called by several threads at once.
  std::function<sweep_finding(const sweep_range&)> check;

  std::uint64_t pieces() const { return (inputs + piece - 1) / piece; }
};

// Encoders of every format over all f32, decoders over all codes, and the rules of scales.
struct format_functions {
  explicit format_functions(const Rules& rules);

  std::uint8_t (*encode_e2m1)(float x);
  std::uint8_t (*encode_e4m3)(float x, fp8_format format);
  std::uint16_t (*encode_bf16)(float x);
  std::uint8_t (*encode_ue8m0)(float x);
  float (*decode_e2m1)(std::uint8_t code);
  float (*decode_e4m3)(std::uint8_t code, fp8_format format);
  float (*decode_bf16)(std::uint16_t bits);
  float (*decode_ue8m0)(std::uint8_t byte);
  float (*ceil_log2)(float x);
  float (*ceil_log2_exact)(float x);
  std::uint8_t (*integer_scale)(float n);
};
std::vector<sweep> format_sweeps(const format_functions& functions);

// The tables that the approximate instructions are computed from.
struct instruction_tables {
  const mufu_segment* rcp = rcp_segments;
  const mufu_segment* rsqrt = rsqrt_segments;
  const mufu_segment* ex2 = ex2_segments;
};
// The approximate instructions over all f32, div.full over 2^32 pairs, against what hardware
// measured. `captured` is the folder of rcp.i8.gz and rsq.i8.gz, read by the first check; it throws
// input_error where they are missing or damaged.
std::vector<sweep> instruction_sweeps(const std::string& captured,
                                      const instruction_tables& tables = {});

// A candidate's kernels against the reference: every bf16 amax with every tie of its block format.
// Kernels that it lacks are left out.
std::vector<sweep> block_sweeps(candidate& subject, profile p);

// Calls got(bits) and wanted(bits) for the inputs of a range.
template <class Got, class Wanted, class Words>
sweep_finding compare_range(const sweep_range& range, Got got, Wanted wanted, Words words) {
  sweep_finding found;
  found.inputs = range.count;
  std::uint64_t input = range.first;
  for (std::uint64_t i = 0; i < range.count; ++i, input += range.stride) {
    const std::uint32_t have = got(input);
    const std::uint32_t want = wanted(input);
    if (have == want) continue;
    if (found.mismatches == 0) found.first = words(input, have, want);
    ++found.mismatches;
  }
  return found;
}

// "0x3F800000 -> 0x2, must be 0x1".
std::string mismatch_text(std::uint64_t input, std::uint32_t have, std::uint32_t want);

}  // namespace kvcts
