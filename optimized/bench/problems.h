// What the benches measure: calls of ordinary inputs at the sizes of serving, with the bytes that
// each must move, counted by hand: every input byte once, every output byte once.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "reference/layout/tensor.h"

namespace kvcts {

struct heap_free {
  void operator()(std::byte* p) const;
};

// A call that owns its buffers, each at a multiple of 64 bytes. What only the kernel writes is left
// as the system gives it: zero, and no memory until it is touched.
struct bench_problem {
  std::string size;  // "T=16384 H=32"
  call work;
  std::vector<std::unique_ptr<std::byte, heap_free>> buffers;
  std::set<std::string> outputs;  // tensors whose content does not count
  std::int64_t bytes = 0;
};

// A kernel in one of its forms. Sizes count tokens, of layouts the rows.
struct bench_op {
  std::string name = {};  // the kernel, then the form: "quantize_and_insert_k_cache 584"
  std::string kernel = {};
  bench_problem (*make)(const bench_op& op, std::int64_t tokens) = nullptr;
  std::int64_t form = 0;                  // what `make` tells forms of one kernel apart by
  std::vector<std::int64_t> tokens = {};  // CUDA
  double copy_target = 0;                 // share of a device copy there; 0: none
  std::int64_t cpu_tokens = 0;
  bool moves_only = false;  // gathers, layouts, index builders: measured against memcpy on a CPU
  bool decodes = true;      // has sizes of 1, 8 and 64 tokens
};

// Every form of every kernel, a kernel's forms together.
const std::vector<bench_op>& bench_ops();

}  // namespace kvcts
