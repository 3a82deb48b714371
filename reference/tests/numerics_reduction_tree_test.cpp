// The trees against a second formulation: a machine of lanes that shuffles.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "reference/numerics/arithmetic.h"
#include "reference/numerics/reduction_tree.h"

namespace kvcts {
namespace {

using floats = std::vector<float>;

std::uint64_t mix(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9E3779B97F4A7C15U);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

// Values of both signs over 16 binades: every order of their sum rounds differently.
floats hard_row(std::int64_t n, std::uint64_t seed) {
  floats row;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t r = mix(seed);
    row.push_back(float_of((static_cast<std::uint32_t>(r) & 0x807FFFFF) |
                           (static_cast<std::uint32_t>(119 + (r >> 32) % 16) << 23)));
  }
  return row;
}

// registers[lane] holds what a launch of 32 * warps lanes loads, 16 bytes at a time. A row shorter
// than the lanes is loaded again by the lanes behind it.
std::vector<floats> registers_of(const floats& row, std::size_t padded, std::size_t warps,
                                 std::size_t element_bytes) {
  const std::size_t lanes = 32 * warps;
  std::size_t vector = 16 / element_bytes;
  while (vector > 1 && vector * lanes > padded) vector /= 2;
  std::vector<floats> registers(lanes);
  for (std::size_t base = 0; base < padded; base += lanes * vector) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      for (std::size_t i = 0; i < vector; ++i) {
        const std::size_t element = (base + lane * vector + i) % padded;
        registers[lane].push_back(element < row.size() ? row[element] : 0.0F);
      }
    }
  }
  return registers;
}

// Butterflies inside each warp, then over one value a warp; `square` tells what is summed.
floats machine(const std::vector<floats>& registers, std::size_t padded, std::size_t warps,
               bool square) {
  std::vector<floats> rest = registers;
  floats value(registers.size());
  const std::size_t active = std::min<std::size_t>(32, padded);
  std::size_t mask = active / 2;
  const bool alone = registers[0].size() == 1;
  for (std::size_t lane = 0; lane < value.size(); ++lane) {
    const floats& r = registers[lane];
    if (!square) {
      value[lane] = r[0];
      for (std::size_t j = 1; j < r.size(); ++j) value[lane] = value[lane] + r[j];
    } else if (!alone) {
      value[lane] = std::fma(r[0], r[0], r[1] * r[1]);
      for (std::size_t j = 2; j < r.size(); ++j) value[lane] = std::fma(r[j], r[j], value[lane]);
    } else if (mask == 0) {
      value[lane] = r[0] * r[0];
    } else {
      const float other = registers[lane ^ mask][0];
      value[lane] = std::fma(r[0], r[0], other * other);
    }
  }
  if (square && alone) mask /= 2;
  for (; mask > 0; mask /= 2) {
    const floats before = value;
    for (std::size_t lane = 0; lane < value.size(); ++lane) value[lane] += before[lane ^ mask];
  }
  const std::size_t live_warps = std::min(warps, std::max<std::size_t>(1, padded / 32));
  if (live_warps == 1) return value;
  floats shared;
  for (std::size_t warp = 0; warp < live_warps; ++warp) shared.push_back(value[warp * 32]);
  for (std::size_t step = live_warps / 2; step > 0; step /= 2) {
    const floats before = shared;
    for (std::size_t warp = 0; warp < live_warps; ++warp) {
      shared[warp] = before[warp] + before[warp ^ step];
    }
  }
  return floats(value.size(), shared[0]);
}

TEST(reduction_tree, equals_a_machine_of_shuffling_lanes) {
  for (std::int64_t padded = 1; padded <= 4096; padded *= 2) {
    for (const int warps : {1, 2, 4, 8}) {
      for (const int element_bytes : {2, 4}) {
        const reduction_tree tree = tree_of(padded, element_bytes, warps);
        for (const std::int64_t n : {padded, padded - padded / 4}) {
          const floats row = hard_row(n, static_cast<std::uint64_t>(padded * 64 + warps));
          const auto w = static_cast<std::size_t>(warps);
          const auto p = static_cast<std::size_t>(padded);
          const auto registers = registers_of(row, p, w, static_cast<std::size_t>(element_bytes));
          const floats sums = machine(registers, p, w, false);
          const floats squares = machine(registers, p, w, true);
          const std::string what = tree.describe() + ", " + std::to_string(n) + " given";
          ASSERT_EQ(bits_of(tree_sum(tree, row.data(), n)), bits_of(sums[0])) << what;
          const std::int64_t per = tree.per;
          for (const std::int64_t element : {std::int64_t{0}, padded / 2, padded - 1}) {
            const auto lane = static_cast<std::size_t>(element / per % (32 * warps));
            ASSERT_EQ(bits_of(tree_sum_of_squares(tree, row.data(), n, element)),
                      bits_of(squares[lane]))
                << what << ", element " << element;
          }
        }
      }
    }
  }
}

// 2^24 + 1 rounds to 2^24: which partial sums meet decides whether a 1 survives.
TEST(reduction_tree, order_decides_the_bits) {
  const reduction_tree one_warp = tree_of(64, 2, 1);   // lane l owns 2l and 2l+1
  const reduction_tree two_warps = tree_of(64, 2, 2);  // lane l of warp w owns 32w + l
  floats row(64, 0.0F);
  row[0] = 0x1p24F;
  row[1] = 1.0F;
  row[33] = 1.0F;
  // One warp: lane 0 loses the 1 beside it; the other, in lane 16, is added to it alone, and lost.
  EXPECT_EQ(tree_sum(one_warp, row.data(), 64), 0x1p24F);
  // Two warps: 2^24 + 1 in warp 0 (lost), 1 in warp 1, and lost again.
  EXPECT_EQ(tree_sum(two_warps, row.data(), 64), 0x1p24F);
  row[33] = 0.0F;
  row[3] = 1.0F;
  // One warp: lane 1 holds the second 1, which meets lane 0 last.
  EXPECT_EQ(tree_sum(one_warp, row.data(), 64), 0x1p24F);
  // Two warps: lanes 1 and 3 meet first and reach lane 0 as 2.
  EXPECT_EQ(tree_sum(two_warps, row.data(), 64), 0x1p24F + 2);
}

TEST(reduction_tree, squares_start_from_element_one) {
  // per = 2: acc = RN(x1^2), then fma(x0, x0, acc). With x0 = 1 + 2^-12, x0^2 = 1 + 2^-11 + 2^-24;
  // the last term is a tie that the product alone loses and that x1^2 = 2^-30 decides in the fma.
  floats row(64, 0.0F);
  row[0] = 1 + 0x1p-12F;
  row[1] = 0x1p-15F;
  reduction_tree tree = tree_of(64, 2, 1);
  ASSERT_EQ(tree.per, 2);
  EXPECT_EQ(tree_sum_of_squares(tree, row.data(), 64, 0), 1 + 0x1p-11F + 0x1p-23F);
  tree.squares = square_step::separate;
  EXPECT_EQ(tree_sum_of_squares(tree, row.data(), 64, 0), 1 + 0x1p-11F);
  // The other way round it is x1 whose square is rounded first.
  std::swap(row[0], row[1]);
  tree.squares = square_step::contracted;
  EXPECT_EQ(tree_sum_of_squares(tree, row.data(), 64, 0), 1 + 0x1p-11F);
}

TEST(reduction_tree, a_row_in_one_warp_keeps_the_mirrored_sum) {
  floats row(32, 0.0F);
  row[0] = 1 + 0x1p-12F;  // as above: its square loses 2^-24 where it is rounded alone
  row[16] = 0x1p-15F;
  for (const int warps : {1, 2, 4}) {
    const reduction_tree tree = tree_of(32, 2, warps);
    EXPECT_TRUE(tree.mirrored());
    EXPECT_EQ(tree_sum_of_squares(tree, row.data(), 32, 0), 1 + 0x1p-11F + 0x1p-23F);
    EXPECT_EQ(tree_sum_of_squares(tree, row.data(), 32, 15), 1 + 0x1p-11F + 0x1p-23F);
    EXPECT_EQ(tree_sum_of_squares(tree, row.data(), 32, 16), 1 + 0x1p-11F);
    EXPECT_EQ(tree_sum_of_squares(tree, row.data(), 32, 31), 1 + 0x1p-11F);
  }
  // Over several warps lane 0's form counts for all.
  row.resize(64, 0.0F);
  const reduction_tree tree = tree_of(64, 2, 2);
  EXPECT_TRUE(tree.contracts_across_lanes());
  EXPECT_FALSE(tree.mirrored());
  EXPECT_EQ(tree_sum_of_squares(tree, row.data(), 64, 63), 1 + 0x1p-11F + 0x1p-23F);
}

TEST(reduction_tree, each_field_shows_in_the_bits) {
  const std::int64_t n = 512;
  const reduction_tree tree = tree_of(n, 2, 4);
  std::vector<reduction_tree> others(6, tree);
  others[0].per = 1;
  others[1].warps = 1;
  others[2].lane_pairing = pairing::doubling;
  others[3].warp_pairing = pairing::doubling;
  others[4] = {.padded = n, .warps = 1, .lanes = 1, .per = n};  // sequential
  others[5].squares = square_step::separate;
  for (std::size_t i = 0; i < others.size(); ++i) {
    int different = 0;
    for (std::uint64_t seed = 0; seed < 64; ++seed) {
      const floats row = hard_row(n, seed);
      different += tree_sum_of_squares(tree, row.data(), n, 0) !=
                           tree_sum_of_squares(others[i], row.data(), n, 0)
                       ? 1
                       : 0;
    }
    EXPECT_GT(different, 0) << others[i].describe();
    EXPECT_FALSE(others[i] == tree);
    EXPECT_NE(others[i].describe(), tree.describe());
  }
}

TEST(reduction_tree, sums_of_small_integers_are_exact_in_any_order) {
  for (const int warps : {1, 2, 4, 8}) {
    floats row;
    float sum = 0, squares = 0;
    for (int i = 0; i < 1000; ++i) {
      row.push_back(static_cast<float>(i % 17 - 5));
      sum += row.back();
      squares += row.back() * row.back();
    }
    const reduction_tree tree = tree_of(1024, 2, warps);
    EXPECT_EQ(tree_sum(tree, row.data(), 1000), sum);
    EXPECT_EQ(tree_sum_of_squares(tree, row.data(), 1000, 999), squares);
  }
}

TEST(reduction_tree, describes_itself) {
  EXPECT_EQ(tree_of(1024, 2, 2).describe(),
            "1024 elements over 2 warps, 8 a lane in each chunk of 512; sums in a lane in "
            "increasing order; squares in a lane RN(x1^2), then fma of x0, x2, x3, ...; lanes "
            "p[i] + p[i+h], h = 16, 8, 4, 2, 1; warps W[i] + W[i+h], h = 1");
  EXPECT_EQ(tree_of(32, 2, 4).describe(),
            "32 elements over 4 warps (1 of them with elements), 1 a lane; sums in a lane in "
            "increasing order; squares join across lanes, fma(x[l], x[l], RN(x[l+h]^2)) in the "
            "first step, in the upper half fma(x[l], x[l], RN(x[l-h]^2)); lanes p[i] + p[i+h], "
            "h = 16, 8, 4, 2, 1");
}

}  // namespace
}  // namespace kvcts
