// What the fuzzer must know of a kernel beyond its contract: which sizes are worth a try, and what
// the numbers of an argument mean. Presence of optional arguments, dtypes, gaps between rows and
// pages, and the choices of attributes follow from the contract alone.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/cases/draw.h"
#include "vectors/suite.h"

namespace kvcts {

// A number with the values that it may take, the plainest first. Its name is one of the contract's
// (a dimension, an attribute), or one that an expression of `derived` reads.
struct fuzz_knob {
  std::string_view name;
  std::vector<std::int64_t> values;
};

enum class fill_kind : std::uint8_t {
  rows,         // bf16 or f32 content of blocks that share a scale; blocks are `of` elements
  numbers,      // bf16 or f32 of any magnitude
  norm_weight,  // of the norm of the argument `with`; its bias, if any, is `bias`
  norm_bias,    // filled together with its weight
  table,        // cosines and sines
  positions,    // rows of the table `with`, read at slots of the mapping `bias` if there is one
  slots,        // of the cache `with`
  codes,        // any byte
  pages         // a cache that the call writes
};

// How the values of a block are drawn.
enum class fuzz_rules : std::uint8_t { e2m1, e4m3, e4m3_low, e4m3_down, nvfp4 };

struct fuzz_fill {
  std::string_view argument;
  fill_kind kind = fill_kind::codes;
  std::string_view of = "1";  // rows: elements of a block
  std::string_view with = {};
  std::string_view bias = {};
  fuzz_rules rules = fuzz_rules::e2m1;
  std::string_view sum = {};  // norm_weight: the contract's name of the sum
};

struct fuzz_case;

struct fuzz_plan {
  std::string_view kernel;
  std::vector<fuzz_knob> knobs = {};
  // Names that follow from others, in order: T (tokens) and H (heads) are there from the start.
  std::vector<std::pair<std::string_view, std::string_view>> derived = {};
  std::vector<fuzz_fill> fills = {};
  // Pages of a cache with f32 scales begin at multiples of 4 bytes.
  bool f32_scales = false;
  // Makes the integer arguments (and what else follows from them) of a kernel whose indices hang
  // together. Names are read, and may be added.
  void (*indices)(const fuzz_case&, bindings& names, test_case& made) = nullptr;
};

// One a kernel, in the contracts' order.
const std::vector<fuzz_plan>& fuzz_plans();
const fuzz_plan& fuzz_plan_of(std::string_view kernel);

}  // namespace kvcts
