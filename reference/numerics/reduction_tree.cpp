#include "reference/numerics/reduction_tree.h"

#include <algorithm>
#include <vector>

#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

using floats = std::vector<float>;

floats with_padding(const reduction_tree& tree, const float* x, std::int64_t n) {
  floats row(x, x + n);
  row.resize(static_cast<std::size_t>(tree.padded), 0.0F);
  return row;
}

// What lane `lane` of warp `warp` owns, in increasing order, chunk after chunk.
floats owned(const reduction_tree& tree, const floats& row, std::int64_t warp, std::int64_t lane) {
  const std::int64_t chunk = tree.warps * tree.lanes * tree.per;
  floats own;
  for (std::int64_t first = (warp * tree.lanes + lane) * tree.per; first < tree.padded;
       first += chunk) {
    for (std::int64_t i = first; i < std::min(first + tree.per, tree.padded); ++i) {
      own.push_back(row[static_cast<std::size_t>(i)]);
    }
  }
  return own;
}

float sum_in_lane(const floats& own) {
  float acc = own[0];
  for (std::size_t j = 1; j < own.size(); ++j) acc = add(acc, own[j]);
  return acc;
}

float squares_in_lane(const floats& own, square_step step) {
  if (own.size() == 1) return mul(own[0], own[0]);
  if (step == square_step::separate) {
    float acc = mul(own[0], own[0]);
    for (std::size_t j = 1; j < own.size(); ++j) acc = add(acc, mul(own[j], own[j]));
    return acc;
  }
  float acc = mul(own[1], own[1]);
  acc = fma(own[0], own[0], acc);
  for (std::size_t j = 2; j < own.size(); ++j) acc = fma(own[j], own[j], acc);
  return acc;
}

// The partial sums, a power of two of them, into one.
float combine(floats p, pairing order) {
  if (order == pairing::halving) {
    for (std::size_t h = p.size() / 2; h >= 1; h /= 2) {
      for (std::size_t i = 0; i < h; ++i) p[i] = add(p[i], p[i + h]);
    }
  } else {
    for (std::size_t h = 1; h < p.size(); h *= 2) {
      for (std::size_t i = 0; i + h < p.size(); i += 2 * h) p[i] = add(p[i], p[i + h]);
    }
  }
  return p[0];
}

// One element a lane: the first step squares and adds in one fma. `mine` is the half of the lanes
// whose square is not rounded by itself.
float combine_contracted(const floats& x, bool upper, pairing order) {
  const std::size_t half = x.size() / 2;
  floats p(half);
  if (order == pairing::halving) {
    for (std::size_t i = 0; i < half; ++i) {
      const float mine = upper ? x[i + half] : x[i];
      const float other = upper ? x[i] : x[i + half];
      p[i] = fma(mine, mine, mul(other, other));
    }
  } else {
    for (std::size_t i = 0; i < half; ++i) {
      const float mine = upper ? x[2 * i + 1] : x[2 * i];
      const float other = upper ? x[2 * i] : x[2 * i + 1];
      p[i] = fma(mine, mine, mul(other, other));
    }
  }
  return combine(p, order);
}

std::string counted(std::int64_t n, const std::string& thing) {
  return std::to_string(n) + " " + thing + (n == 1 ? "" : "s");
}

// "h = 16, 8, 4, 2, 1".
std::string steps(std::int64_t n, pairing order) {
  std::string text = "h = ";
  if (order == pairing::halving) {
    for (std::int64_t h = n / 2; h >= 1; h /= 2) text += std::to_string(h) + (h > 1 ? ", " : "");
  } else {
    for (std::int64_t h = 1; h < n; h *= 2) text += std::to_string(h) + (2 * h < n ? ", " : "");
  }
  return text;
}

}  // namespace

std::int64_t reduction_tree::live_lanes() const {
  return std::max<std::int64_t>(1, std::min(lanes, padded / per));
}

std::int64_t reduction_tree::live_warps() const {
  return std::max<std::int64_t>(1, std::min(warps, padded / (lanes * per)));
}

bool reduction_tree::contracts_across_lanes() const {
  const bool one_element = live_warps() * live_lanes() == padded;
  return squares == square_step::contracted && one_element && live_lanes() > 1;
}

bool reduction_tree::mirrored() const { return contracts_across_lanes() && live_warps() == 1; }

bool reduction_tree::in_upper_half(std::int64_t element) const {
  return lane_pairing == pairing::halving ? element >= padded / 2 : element % 2 == 1;
}

float tree_sum(const reduction_tree& tree, const float* x, std::int64_t n) {
  const floats row = with_padding(tree, x, n);
  floats warp_sums;
  for (std::int64_t warp = 0; warp < tree.live_warps(); ++warp) {
    floats lane_sums;
    for (std::int64_t lane = 0; lane < tree.live_lanes(); ++lane) {
      lane_sums.push_back(sum_in_lane(owned(tree, row, warp, lane)));
    }
    warp_sums.push_back(combine(lane_sums, tree.lane_pairing));
  }
  return combine(warp_sums, tree.warp_pairing);
}

float tree_sum_of_squares(const reduction_tree& tree, const float* x, std::int64_t n,
                          std::int64_t element) {
  const floats row = with_padding(tree, x, n);
  const bool upper = tree.mirrored() && tree.in_upper_half(element);
  floats warp_sums;
  for (std::int64_t warp = 0; warp < tree.live_warps(); ++warp) {
    floats lane_values;
    for (std::int64_t lane = 0; lane < tree.live_lanes(); ++lane) {
      const floats own = owned(tree, row, warp, lane);
      lane_values.push_back(tree.contracts_across_lanes() ? own[0]
                                                          : squares_in_lane(own, tree.squares));
    }
    warp_sums.push_back(tree.contracts_across_lanes()
                            ? combine_contracted(lane_values, upper, tree.lane_pairing)
                            : combine(lane_values, tree.lane_pairing));
  }
  return combine(warp_sums, tree.warp_pairing);
}

std::string reduction_tree::describe() const {
  std::string text = counted(padded, "element");
  text += " over " + counted(warps, "warp");
  if (live_warps() != warps)
    text += " (" + std::to_string(live_warps()) + " of them with elements)";
  text += ", " + std::to_string(per) + " a lane";
  const std::int64_t chunk = warps * lanes * per;
  if (padded > chunk) text += " in each chunk of " + std::to_string(chunk);
  text += "; sums in a lane in increasing order";
  if (contracts_across_lanes()) {
    text += "; squares join across lanes, fma(x[l], x[l], RN(x[l+h]^2)) in the first step";
    if (mirrored()) text += ", in the upper half fma(x[l], x[l], RN(x[l-h]^2))";
  } else if (squares == square_step::contracted) {
    text += "; squares in a lane RN(x1^2), then fma of x0, x2, x3, ...";
  } else {
    text += "; squares in a lane rounded, then added";
  }
  if (live_lanes() > 1) text += "; lanes p[i] + p[i+h], " + steps(live_lanes(), lane_pairing);
  if (live_warps() > 1) text += "; warps W[i] + W[i+h], " + steps(live_warps(), warp_pairing);
  return text;
}

reduction_tree tree_of(std::int64_t padded, int element_bytes, int warps) {
  constexpr int load_bytes = 16;
  reduction_tree tree;
  tree.padded = padded;
  tree.warps = warps;
  tree.per = std::max<std::int64_t>(
      1, std::min<std::int64_t>(load_bytes / element_bytes, padded / (warps * tree.lanes)));
  return tree;
}

std::int64_t next_power_of_two(std::int64_t n) {
  std::int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

}  // namespace kvcts
