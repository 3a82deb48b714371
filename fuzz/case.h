// A case as the fuzzer draws and shrinks it: who takes part, and how each knob is turned. What a
// token holds follows from its own number, so that it stays the same when others go.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/plan.h"

namespace kvcts {

struct fuzz_case {
  const fuzz_plan* plan = nullptr;
  std::uint64_t seed = 0;             // of everything that no token or head owns
  std::vector<std::uint32_t> tokens;  // the number of each
  std::vector<std::uint32_t> heads;   // used where the kernel has heads
  std::vector<std::uint8_t> knobs;    // index into the values of each of knobs_of(): 0 is plain
};

// The plan's knobs, and behind them those that follow from the contract. A plan must stay where it
// is: they are made once.
const std::vector<fuzz_knob>& knobs_of(const fuzz_plan& plan);

// Inputs and attributes; `expected` is empty. Throws std::logic_error where plan and contract do
// not fit together.
test_case build(const fuzz_case& c);

// Stream of what belongs to these.
draw draw_of(const fuzz_case& c, std::string_view what, std::uint64_t a = 0, std::uint64_t b = 0);

namespace fuzz_indices {
void gather(const fuzz_case& c, bindings& names, test_case& made);
void global_topk(const fuzz_case& c, bindings& names, test_case& made);
void combined(const fuzz_case& c, bindings& names, test_case& made);
void mixed(const fuzz_case& c, bindings& names, test_case& made);
void compressed(const fuzz_case& c, bindings& names, test_case& made);
}  // namespace fuzz_indices

}  // namespace kvcts
