// Vectors worked out by hand from docs/numerics.md.
#include <gtest/gtest.h>

#include "reference/tests/head_rows.h"

namespace kvcts {
namespace {

// A row whose kv are all `kv` and whose scores are all `score`.
struct raw_row {
  float kv, score;
};

struct problem {
  std::vector<raw_row> rows = {};
  std::vector<std::int64_t> positions = {}, slots = {};
  std::vector<std::int32_t> starts = {}, requests = {};
  std::int64_t pages = 2, capacity = 2;
  std::int64_t ratio = 2;
  std::vector<float> weight = std::vector<float>(512, 1.0F);
};

// The ring's row r of page p holds kv 100 + 10p + r, negative where r is odd, and the score 0
// before the call.
call_builder call_of(const problem& p) {
  call_builder b("fused_save_compress_norm");
  const auto rows = static_cast<std::int64_t>(p.rows.size());
  const std::int64_t width = 512 * p.ratio;
  tensor_view& kv = b.add("kv_score", dtype::f32, {{rows, width}, {width + 5, 1}, 1});
  for (std::int64_t t = 0; t < rows; ++t) {
    const raw_row& row = p.rows[static_cast<std::size_t>(t)];
    for (std::int64_t d = 0; d < width; ++d) store(kv.element(t, d), d < 512 ? row.kv : row.score);
  }
  b.i64("positions", p.positions);
  b.i64("slot_mapping", p.slots);
  b.add("rms_norm_weight", dtype::bf16, {512}, bf16_bits(p.weight));
  b.add("latent_out", dtype::bf16, {{rows, 512}, {520, 1}, 0});
  if (p.ratio == 2) {
    tensor_view& state = b.add("state_cache", dtype::f32,
                               {{p.pages, p.capacity, 1024}, {p.capacity * 1024 + 7, 1024, 1}, 0});
    for (std::int64_t page = 0; page < p.pages; ++page) {
      for (std::int64_t r = 0; r < p.capacity; ++r) {
        for (std::int64_t d = 0; d < 1024; ++d) {
          const auto magnitude = static_cast<float>(100 + 10 * page + r);
          const float kv_value = r % 2 == 0 ? magnitude : -magnitude;
          store(state.element(page, r, d), d < 512 ? kv_value : 0.0F);
        }
      }
    }
    b.i32("query_start_loc", {static_cast<std::int64_t>(p.starts.size())}, p.starts);
    b.i32("token_to_req_indices", {static_cast<std::int64_t>(p.requests.size())}, p.requests);
  }
  b.get().attributes["rms_norm_eps"] = 0.0;
  b.get().attributes["compress_ratio"] = p.ratio;
  return b;
}

constexpr float untouched = -1;

// The first element of each latent row; `untouched` where the row is canary. Rows are uniform.
std::vector<float> latents(call_builder& b) {
  std::vector<float> found;
  const tensor_view& v = b.get().tensor("latent_out");
  for (std::int64_t t = 0; t < v.dim(0); ++t) {
    const auto first = load<std::uint16_t>(v.element(t, 0));
    for (std::int64_t d = 0; d < 512; ++d) {
      EXPECT_EQ(load<std::uint16_t>(v.element(t, d)), first) << t << " " << d;
    }
    found.push_back(first == 0xCCCC ? untouched : decode_bf16(first));
  }
  return found;
}

// kv of every ring row.
std::vector<float> ring(call_builder& b) {
  std::vector<float> found;
  const tensor_view& v = b.get().tensor("state_cache");
  for (std::int64_t page = 0; page < v.dim(0); ++page) {
    for (std::int64_t r = 0; r < v.dim(1); ++r) {
      found.push_back(load<float>(v.element(page, r, 0)));
      EXPECT_EQ(load<float>(v.element(page, r, 511)), found.back());
    }
  }
  return found;
}

call_builder run(const problem& p) {
  call_builder b = call_of(p);
  b.run(rules_for(profile::nvidia));
  return b;
}

// A row of 2^n has r = 2^-n: the latent is the weight. Rows that tell themselves apart need
// elements of two sizes.
TEST(fused_save_compress_norm, ratio_1) {
  call_builder b = run({.rows = {{4, 0}, {4, 0}, {4, 0}},
                        .positions = {0, 1, 2},
                        .slots = {0, -1},
                        .ratio = 1,
                        .weight = std::vector<float>(512, 3.0F)});
  EXPECT_EQ(latents(b), (std::vector<float>{3, untouched, untouched}));
}

TEST(fused_save_compress_norm, ratio_1_leaves_a_ring_alone) {
  problem p = {.rows = {{1, 0}, {1, 0}},
               .positions = {0, 1},
               .slots = {0, 1},
               .starts = {0, 2},
               .requests = {0, 0}};
  call_builder b = call_of(p);
  b.get().attributes["compress_ratio"] = std::int64_t{1};
  b.add("kv_score", dtype::f32, {2, 512}, std::vector<float>(1024, 2.0F));
  b.run(rules_for(profile::nvidia));
  EXPECT_EQ(latents(b), (std::vector<float>{1, 1}));
  EXPECT_EQ(ring(b), (std::vector<float>{100, -101, 110, -111}));
}

// The latent of two rows with weights p0, p1: kv that is v0 in one half of the dims and v1 in the
// other gives pooled values that are told apart. Here: p = 1/2, 1/2.
TEST(fused_save_compress_norm, pool_of_equal_scores) {
  problem p = {.rows = {{1, 5}, {1, 5}},
               .positions = {0, 1},
               .slots = {0, 1},
               .starts = {0, 2},
               .requests = {0, 0}};
  call_builder b = call_of(p);
  // Row 0 is (3, -1, 3, -1, ...), row 1 (1, 3, 1, 3, ...): pooled (2, 1, 2, 1, ...).
  const tensor_view& kv = b.get().tensor("kv_score");
  for (std::int64_t d = 0; d < 512; ++d) {
    store(kv.element(0, d), d % 2 == 0 ? 3.0F : -1.0F);
    store(kv.element(1, d), d % 2 == 0 ? 1.0F : 3.0F);
  }
  b.run(rules_for(profile::nvidia));
  const tensor_view& v = b.get().tensor("latent_out");
  // r = 1/sqrt(2.5) = 0.632456: 1.264911 -> 0x3FA2 (1.265625), 0.632456 -> 0x3F22.
  for (std::int64_t d = 0; d < 512; ++d) {
    EXPECT_EQ(load<std::uint16_t>(v.element(1, d)), d % 2 == 0 ? 0x3FA2 : 0x3F22);
  }
  EXPECT_EQ(load<std::uint16_t>(v.element(0, 0)), 0xCCCC);
}

TEST(fused_save_compress_norm, a_far_score_decides) {
  // exp(-300) is 0: the row of the higher score is the latent, whatever the other holds.
  problem p = {.rows = {{-64, 0}, {1, -300}, {1, -300}, {-64, 0}},
               .positions = {0, 1, 2, 3},
               .slots = {0, 1, 2, 3},
               .starts = {0, 4},
               .requests = {0, 0, 0, 0}};
  call_builder b = run(p);
  EXPECT_EQ(latents(b), (std::vector<float>{untouched, -1, untouched, -1}));
  p.rows[0].score = -600;
  p.rows[3].score = -600;
  b = run(p);
  EXPECT_EQ(latents(b), (std::vector<float>{untouched, 1, untouched, 1}));
}

TEST(fused_save_compress_norm, a_group_that_straddles_chunks_reads_the_ring_before_it_is_stored) {
  // The chunk begins at position 3, in page 1; its earlier row is ring row 2 % 2 = 0. The chunk's
  // own position 4 is stored over it.
  problem p = {.rows = {{-1, -300}, {-7, 0}},
               .positions = {3, 4},
               .slots = {3, 2},
               .starts = {0, 2},
               .requests = {0, 0}};
  call_builder b = run(p);
  EXPECT_EQ(latents(b), (std::vector<float>{1, untouched}));  // of 110, score 0
  EXPECT_EQ(ring(b), (std::vector<float>{100, -101, -7, -1}));
}

TEST(fused_save_compress_norm, the_first_token_of_a_later_chunk_reads_its_own_ring) {
  // Token 1 begins request 1 at position 1: its earlier row is row 0 of page 1, not token 0.
  call_builder b = run({.rows = {{-1, 0}, {-1, -300}},
                        .positions = {8, 1},
                        .slots = {0, 3},
                        .starts = {0, 1, 2},
                        .requests = {0, 1}});
  EXPECT_EQ(latents(b), (std::vector<float>{untouched, 1}));
}

TEST(fused_save_compress_norm, the_ring_keeps_the_last_rows_of_each_chunk) {
  // Requests of 3, 0 and 4 tokens over rings of 2 rows, at slots that are told apart.
  problem p = {.rows = {{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}, {7, 0}},
               .positions = {0, 1, 2, 0, 1, 2, 3},
               .slots = {0, 1, 2, 4, 5, -1, 7},
               .starts = {0, 3, 3, 7},
               .requests = {0, 0, 0, 2, 2, 2, 2},
               .pages = 4};
  call_builder b = run(p);
  EXPECT_EQ(ring(b), (std::vector<float>{100, 2, 3, -111, 120, -121, 130, 7}));
  EXPECT_EQ(latents(b), (std::vector<float>{untouched, 1, untouched, untouched, 1, untouched, 1}));
}

TEST(fused_save_compress_norm, a_negative_first_slot_keeps_nothing) {
  problem p = {.rows = {{1, 0}, {-2, 0}, {-2, 0}},
               .positions = {1, 2, 3},
               .slots = {-1, 2, 3},
               .starts = {0, 3},
               .requests = {0, 0, 0}};
  call_builder b = run(p);
  EXPECT_EQ(ring(b), (std::vector<float>{100, -101, 110, -111}));
  EXPECT_EQ(latents(b), (std::vector<float>{untouched, untouched, -1}));
}

TEST(fused_save_compress_norm, a_negative_slot_of_the_earlier_row_pools_all_the_same) {
  problem p = {.rows = {{1, 0}, {-2, 0}, {2, 0}, {-4, 0}},
               .positions = {0, 1, 2, 3},
               .slots = {0, 1, INT64_MIN, 3},
               .starts = {0, 4},
               .requests = {0, 0, 0, 0}};
  call_builder b = run(p);
  EXPECT_EQ(latents(b), (std::vector<float>{untouched, -1, untouched, -1}));
  EXPECT_EQ(ring(b), (std::vector<float>{100, -101, 110, -4}));
}

TEST(fused_save_compress_norm, rows_past_the_mapping_and_no_tokens) {
  call_builder b = call_of({.rows = {{1, 0}, {2, 0}, {3, 0}, {4, 0}},
                            .positions = {0, 1, 2, 3},
                            .slots = {0, 1, 2, 3},
                            .starts = {0, 4},
                            .requests = {0, 0, 0, 0}});
  b.get().tensors["slot_mapping"].at.shape = {2};  // slots 2 and 3 lie behind its end
  b.run(rules_for(profile::nvidia));
  EXPECT_EQ(latents(b), (std::vector<float>{untouched, 1, untouched, untouched}));
  EXPECT_EQ(ring(b), (std::vector<float>{100, -101, 110, -111}));
  b = run({.rows = {}, .positions = {}, .slots = {}, .starts = {0}, .requests = {}});
  EXPECT_EQ(ring(b), (std::vector<float>{100, -101, 110, -111}));
}

TEST(fused_save_compress_norm, refusals) {
  const std::string kernel = "fused_save_compress_norm: ";
  const problem good = {.rows = {{1, 0}, {1, 0}},
                        .positions = {0, 1},
                        .slots = {0, 1},
                        .starts = {0, 2},
                        .requests = {0, 0}};
  EXPECT_EQ(call_of(good).refusal(), "");
  call_builder b = call_of(good);
  b.get().tensors.erase("state_cache");
  EXPECT_EQ(b.refusal(),
            kernel + "state_cache: is missing, must be there where compress_ratio is 2");
  problem p = good;
  p.slots = {0, 4};
  EXPECT_EQ(call_of(p).refusal(),
            kernel +
                "slot_mapping: slot 4 of token 1 is past the cache, must be below 2 pages * 2 "
                "tokens of state_cache");
  p = good;
  p.starts = {0, 3};
  EXPECT_EQ(call_of(p).refusal(),
            kernel +
                "query_start_loc: element 1 is 3, must be in 0..2: chunks do not go back, nor "
                "past the rows of kv_score");
  p.starts = {1, 0};
  EXPECT_NE(call_of(p).refusal(), "");
  p = good;
  p.requests = {0, 1};
  EXPECT_EQ(call_of(p).refusal(),
            kernel +
                "token_to_req_indices: request 1 of token 1 is not one of the 1 of "
                "query_start_loc");
  p.starts = {0, 2, 2};
  EXPECT_NE(call_of(p).refusal(), "");
  p = good;
  p.positions = {0, -1};
  EXPECT_NE(call_of(p).refusal(), "");
  p.slots = {0, -1};
  EXPECT_EQ(call_of(p).refusal(), "");
  // A chunk that reads a ring row which another chunk stores: which comes first would show.
  p = {.rows = {{1, 0}, {1, 0}},
       .positions = {1, 2},
       .slots = {1, 0},
       .starts = {0, 1, 2},
       .requests = {0, 1}};
  EXPECT_EQ(call_of(p).refusal(),
            kernel +
                "slot_mapping: slot 0 of token 1, request 1, is in ring page 0 of request 0: no "
                "two may share a page");
  p.slots = {1, 2};
  EXPECT_EQ(call_of(p).refusal(), "");
  p.slots = {1, -1};
  EXPECT_EQ(call_of(p).refusal(), "");
  p = good;
  p.slots = {0, 1, 1};
  EXPECT_EQ(call_of(p).refusal(),
            kernel +
                "slot_mapping: has 3 slots for the 2 rows of kv_score, must have at most as "
                "many");
}

}  // namespace
}  // namespace kvcts
