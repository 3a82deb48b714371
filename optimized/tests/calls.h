// Calls that own their buffers, and the lists of them that every target is held to.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts::tests {

// A sequence of well mixed numbers.
class numbers {
 public:
  explicit numbers(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::uint64_t below(std::uint64_t n) { return next() % n; }

 private:
  std::uint64_t state_;
};

struct test_call {
  std::string name;
  call work;
  // One storage a tensor, guards at both ends.
  std::map<std::string, std::vector<std::byte>> storages;

  // `first` elements of guard before the view's first one, `behind` after its last.
  tensor_view& add(const std::string& argument, dtype type, extent at, std::int64_t first,
                   std::int64_t behind);
  // Fills the storages of what the kernel writes.
  void poison(std::byte canary);
  // The same call over other copies of the storages.
  test_call copy() const;
};

// bf16 of every class: ordinary, tiny, huge, subnormal, zeros, infinities, NaN; whole blocks alike.
std::vector<std::uint16_t> mixed_bf16(std::size_t count, std::uint64_t seed);
// Blocks of `block` values, the first of which sets the scale: together every bf16 under every
// scale that it can have. Every `thinned`-th number only (all NaN stay).
std::vector<std::uint16_t> every_bf16_under_every_scale(std::size_t block, std::uint32_t lowest,
                                                        int limit_mantissa, int thinned);

// Small and odd shapes, strides, alignments, slots; `thinned` for slow builds.
std::vector<test_call> query_calls();
std::vector<test_call> insert_calls();
// Every element under every scale.
std::vector<test_call> exhaustive_calls(int thinned);
// Large enough for several threads.
std::vector<test_call> large_calls();

struct named_runner {
  std::string name;
  std::function<void(const call&, profile)> run;
};
// Runs the reference and each candidate on copies poisoned with 0xCC and then 0x33, and compares
// whole storages, inputs too. Empty, or one line that says where the first difference is.
std::string difference(const test_call& c, profile p, const std::vector<named_runner>& candidates);

}  // namespace kvcts::tests
