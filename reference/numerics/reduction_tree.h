// The order in which a row is summed, as data: f32 addition is not associative, so the order shows
// in the bytes. docs/numerics.md, "Reduction trees".
#pragma once

#include <cstdint>
#include <string>

namespace kvcts {

// How a square joins its lane's sum.
enum class square_step : std::uint8_t {
  contracted,  // acc = RN(x1^2); acc = fma(x0, x0, acc); then fma(xj, xj, acc) for j = 2, 3, ...
  separate,    // acc = RN(x0^2); then RN(acc + RN(xj^2)) for j = 1, 2, ...
};

// Which partial sums meet first.
enum class pairing : std::uint8_t {
  halving,   // p[i] + p[i+h] for h = n/2, n/4, ..., 1
  doubling,  // p[i] + p[i+h] for h = 1, 2, ..., n/2: neighbours first
};

struct reduction_tree {
  std::int64_t padded = 1;  // elements of the launch, a power of two; behind the row's end zeros
  std::int64_t warps = 1;   // of the launch; 1, 2, 4 or 8
  std::int64_t lanes = 32;  // of a warp
  // Consecutive elements of a lane: lane t (over all warps) owns [t*per, t*per+per), and the same
  // in each further chunk of warps*lanes*per elements.
  std::int64_t per = 1;
  square_step squares = square_step::contracted;
  pairing lane_pairing = pairing::halving;
  pairing warp_pairing = pairing::halving;

  bool operator==(const reduction_tree&) const = default;

  // Lanes and warps that own elements: a short row leaves the others without.
  std::int64_t live_lanes() const;  // of each live warp
  std::int64_t live_warps() const;
  // One element a lane and contracted squares: the first tree step is the contraction,
  // fma(x[l], x[l], RN(x[l+h]^2)), which is not symmetric. A row inside one warp never leaves its
  // lanes, so that the upper half keeps the mirrored sum, fma(x[l], x[l], RN(x[l-h]^2)).
  bool contracts_across_lanes() const;
  bool mirrored() const;
  // The half of the lanes that owns an element, as far as the first tree step tells them apart.
  bool in_upper_half(std::int64_t element) const;

  // One line: "128 elements over 1 warp, 4 a lane; sums in a lane ...".
  std::string describe() const;
};

// The tree that the compiler of the public kernels picks for a row of `padded` elements of
// `element_bytes` in memory (values derived from it, such as deviations, stay where they are): a
// lane owns what one 16-byte load holds, but at most padded / lanes of all warps, at least 1.
reduction_tree tree_of(std::int64_t padded, int element_bytes, int warps);

// `x` has n elements, n <= tree.padded.
float tree_sum(const reduction_tree& tree, const float* x, std::int64_t n);
// As the lane that owns `element` holds it: only where tree.mirrored() does it matter which.
float tree_sum_of_squares(const reduction_tree& tree, const float* x, std::int64_t n,
                          std::int64_t element);

// The power of two at or above n.
std::int64_t next_power_of_two(std::int64_t n);

}  // namespace kvcts
