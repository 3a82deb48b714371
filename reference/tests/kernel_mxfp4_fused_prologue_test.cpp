// What both prologues share (norms, fp8_ds_mla entries, top-k fill, absent caches), worked out by
// hand from docs/numerics.md.
#include <gtest/gtest.h>

#include <functional>

#include "reference/tests/key_calls.h"

namespace kvcts {
namespace {

using byte_list = std::vector<std::uint8_t>;
constexpr const char* kernels[] = {"mxfp4_fused_prologue", "dsa_fused_prologue"};
constexpr profile profiles[] = {profile::nvidia, profile::ieee};

byte_list canaries(std::size_t n) { return byte_list(n, 0xCC); }

// 656 bytes: four tiles of 128 equal codes, their scales, the rope dims of row `row` as
// prologue_rows has them.
byte_list entry_of(std::uint8_t code, std::uint32_t scale, std::int64_t row) {
  byte_list bytes(512, code);
  for (int tile = 0; tile < 4; ++tile) {
    for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(scale >> (8 * i)));
  }
  for (std::int64_t i = 0; i < 64; ++i) {
    const std::uint16_t bits = prologue_rows{}.k_pe(row, i);
    bytes.push_back(static_cast<std::uint8_t>(bits));
    bytes.push_back(static_cast<std::uint8_t>(bits >> 8));
  }
  return bytes;
}

// The bytes of mla_cache with these entries in slots, canaries elsewhere.
byte_list mla_with(const call_builder& made, std::int64_t block_size,
                   const std::vector<std::pair<std::int64_t, byte_list>>& entries) {
  byte_list bytes = canaries(made.bytes("mla_cache").size());
  for (const auto& [slot, entry] : entries) {
    const std::int64_t at =
        4 + slot / block_size * (block_size * 672 + 32) + slot % block_size * 672;
    std::copy(entry.begin(), entry.end(), bytes.begin() + at);
  }
  return bytes;
}

std::uint16_t two(std::int64_t, std::int64_t) { return 0x4000; }
std::uint16_t zero(std::int64_t, std::int64_t i) { return i % 2 == 0 ? 0 : 0x8000; }
std::uint16_t one_nan(std::int64_t, std::int64_t i) { return i == 200 ? 0x7FC0 : 0x4000; }

// kv rows of 2 with eps 0: y = weight.
TEST(fused_prologue, mla_tiles) {
  struct row {
    const char* rule;
    std::uint16_t (*kv)(std::int64_t, std::int64_t);
    float weight;
    bool fnuz;
    std::uint8_t code;
    std::uint32_t scale;
  };
  const row rows[] = {
      // amax: y / RN(y * RN(1/448)) is 448 or next to it.
      {"", two, 1, false, 0x7E, 0x3B124925},
      {"amax", two, 448, false, 0x7E, 0x3F800000},
      {"amax", two, -448, false, 0xFE, 0x3F800000},
      {"amax", two, 0x1p-120F, false, 0x68, 0x00800000},  // amax / 448 is below 2^-126: the floor
      {"amax", zero, 1, false, 0, 0x00800000},
      {"amax", one_nan, 1, false, 0x7F, 0x00800000},
      {"amax", two, 1, true, 0x7E, 0x3B924925},
      {"amax", one_nan, 1, true, 0x80, 0x00800000},
      // pow2.
      {"pow2", two, 1, false, 0x78, 0x3B800000},    // 2^-8, code of 256
      {"pow2", two, 449, false, 0x76, 0x40000000},  // 2, code of 224.5
      {"pow2", two, 448, false, 0x7E, 0x3F800000},
      {"pow2", zero, 1, false, 0, 0x39000000},  // 2^-13
      {"pow2", one_nan, 1, false, 0x7F, 0x39000000},
      {"pow2", two, 448, true, 0x7E, 0x40000000},
  };
  for (const char* kernel : kernels) {
    for (const profile p : profiles) {
      for (const row& r : rows) {
        prologue_options o;
        o.tile_rule = r.rule;
        o.kv_weight = r.weight;
        o.key.fnuz = r.fnuz;
        o.key.eps = r.kv == zero ? 1e-6 : 0;
        o.mla_slots = {3};
        prologue_rows in;
        in.kv = r.kv;
        call_builder b = prologue_call(kernel, o, in);
        b.run(rules_for(p));
        byte_list entry = entry_of(r.code, r.scale, 0);
        if (r.kv == zero && !r.fnuz) {
          for (std::size_t i = 1; i < 512; i += 2) entry[i] = 0x80;
        }
        EXPECT_EQ(b.bytes("mla_cache"), mla_with(b, 2, {{3, entry}}))
            << kernel << " " << r.rule << " " << r.weight;
      }
    }
  }
}

TEST(fused_prologue, mla_tiles_have_their_own_scales_and_unrounded_values) {
  prologue_options o;
  o.tile_rule = "pow2";
  call_builder b = prologue_call(kernels[0], o);
  // y = 1.0625 + 2^-11 in tile 0: under the scale 2^-8, 272.125 rounds to 288; bf16(y) = 1.0625
  // gives 272, a tie, and that goes to 256.
  for (std::int64_t i = 0; i < 512; ++i) {
    store(b.get().tensor("kv_norm_weight").element(i),
          i < 128 ? 1.0625F + 0x1p-11F : static_cast<float>(i / 128 * 448));
  }
  b.run(rules_for(profile::nvidia));
  byte_list entry = entry_of(0x7E, 0, 0);
  std::fill_n(entry.begin(), 128, 0x79);
  const std::uint32_t scales[] = {0x3B800000, 0x3F800000, 0x40000000, 0x40800000};
  std::memcpy(entry.data() + 512, scales, 16);
  std::fill_n(entry.begin() + 384, 128, 0x7A);  // 1344 / 4 = 336, between 320 and 352: even
  EXPECT_EQ(b.bytes("mla_cache"), mla_with(b, 2, {{0, entry}}));
  const auto kv = b.elements<std::uint16_t>("kv_c_normed");
  EXPECT_EQ(kv[0], 0x3F88);
  EXPECT_EQ(kv[511], 0x44A8);  // 1344
}

// The approximate division shows where y / scale is beside the middle of two codes.
TEST(fused_prologue, mla_values_are_divided_as_the_profile_divides) {
  const float amax = decode_bf16(0x3FC0);  // 1.5
  const float scale = amax * (1.0F / 448.0F);
  int different = 0;
  for (std::uint32_t step = 0; step < 2000 && different < 5; ++step) {
    // Around 17 * scale, the middle of the codes of 16 and 18.
    std::uint32_t bits = 0;
    const float middle = 17 * scale;
    std::memcpy(&bits, &middle, sizeof bits);
    bits += step % 8 - 4;
    float y = 0;
    std::memcpy(&y, &bits, sizeof y);
    const float factor = static_cast<float>(step / 8 + 128) / 256;
    const auto byte_of = [&](profile p) {
      prologue_options o;
      call_builder b = prologue_call(kernels[0], o);
      for (std::int64_t i = 0; i < 512; ++i) {
        store(b.get().tensor("kv_norm_weight").element(i), (i == 0 ? amax : y) * factor);
      }
      b.run(rules_for(p));
      return b.bytes("mla_cache")[4 + 1];
    };
    if (byte_of(profile::nvidia) != byte_of(profile::ieee)) ++different;
  }
  EXPECT_GT(different, 0);
}

TEST(fused_prologue, every_row_is_normed_and_filled_and_live_slots_are_inserted) {
  for (const char* kernel : kernels) {
    prologue_options o;
    o.key.tokens = 5;
    o.key.weight = 6;
    o.key.pages = 3;
    o.mla_slots = {-1, 5, INT64_MIN, 2};  // row 4 is past it
    o.key.slots = {0, -7};
    o.kv_weight = 448;
    call_builder b = prologue_call(kernel, o);
    b.run(rules_for(profile::nvidia));
    EXPECT_EQ(b.elements<std::uint16_t>("q_c_normed"), std::vector<std::uint16_t>(5 * 96, 0x3F80));
    EXPECT_EQ(b.elements<std::uint16_t>("kv_c_normed"),
              std::vector<std::uint16_t>(5 * 512, 0x43E0));
    EXPECT_EQ(
        b.bytes("mla_cache"),
        mla_with(b, 2, {{5, entry_of(0x7E, 0x3F800000, 1)}, {2, entry_of(0x7E, 0x3F800000, 3)}}));
    const byte_list fill = b.bytes("topk_indices_buffer");
    byte_list filled = canaries(fill.size());
    for (std::size_t row = 0; row < 5; ++row) {
      std::fill_n(filled.begin() + static_cast<std::ptrdiff_t>(4 * (1 + 5 * row)), 12, 0xFF);
    }
    EXPECT_EQ(fill, filled);
  }
}

TEST(fused_prologue, a_missing_cache_or_mapping_skips_that_insert_only) {
  for (const char* kernel : kernels) {
    prologue_options o;
    o.key.tokens = 2;
    o.key.slots = o.mla_slots = {1, 2};
    call_builder whole = prologue_call(kernel, o);
    whole.run(rules_for(profile::nvidia));
    for (int absent = 1; absent < 16; ++absent) {
      o.mla_cache = (absent & 1) == 0;
      o.mla_mapping = (absent & 2) == 0;
      o.index_cache = (absent & 4) == 0;
      o.index_mapping = (absent & 8) == 0;
      call_builder b = prologue_call(kernel, o);
      b.run(rules_for(profile::nvidia));
      for (const char* name : {"q_c_normed", "kv_c_normed", "topk_indices_buffer"}) {
        EXPECT_EQ(b.bytes(name), whole.bytes(name)) << name;
      }
      const auto expect = [&](const char* cache, bool there, bool mapped) {
        if (!there) return;
        const byte_list all = whole.bytes(cache);
        EXPECT_EQ(b.bytes(cache), mapped ? all : canaries(all.size())) << cache << absent;
      };
      expect("mla_cache", o.mla_cache, o.mla_mapping);
      expect("index_cache", o.index_cache, o.index_mapping);
    }
  }
}

TEST(fused_prologue, no_tokens_write_nothing) {
  for (const char* kernel : kernels) {
    prologue_options o;
    o.key.tokens = 0;
    call_builder b = prologue_call(kernel, o);
    b.run(rules_for(profile::nvidia));
    for (const auto& [name, view] : b.get().tensors) {
      const argument_spec* spec = b.contract().argument(name);
      if (spec->direction == role::input) continue;
      EXPECT_EQ(b.bytes(name), canaries(view.storage_bytes)) << name;
    }
    EXPECT_EQ(b.get().tensor("q_c_normed").at.shape, (std::vector<std::int64_t>{0, 96}));
  }
}

// Q 1536, 1/Q inexact: S = 3, so that S * RN(1/1536) is not RN(3/1536) = 2^-9.
TEST(fused_prologue, query_variance_follows_the_profile) {
  const auto normed = [](profile p, std::uint16_t (*q)(std::int64_t, std::int64_t)) {
    prologue_options o;
    o.query_dims = 1536;
    prologue_rows rows;
    rows.q = q;
    call_builder b = prologue_call(kernels[0], o, rows);
    Rules rules = rules_for(p);
    // Shows the last bits of v: RN(1 + (v - 2^-9) * 2^32).
    rules.rsqrt = [](float v) { return static_cast<float>(1 + (v - 0x1p-9) * 0x1p32); };
    b.run(rules);
    return decode_bf16(b.elements<std::uint16_t>("q_c_normed")[0]);
  };
  const auto three_ones = [](std::int64_t, std::int64_t i) {
    return static_cast<std::uint16_t>(i < 3 ? 0x3F80 : 0);
  };
  EXPECT_EQ(normed(profile::ieee, three_ones), 1.0F);
  const double product = 3.0 * static_cast<double>(1.0F / 1536.0F);
  const float expected = static_cast<float>(1 + (static_cast<float>(product) - 0x1p-9) * 0x1p32);
  EXPECT_EQ(normed(profile::nvidia, three_ones), decode_bf16(encode_bf16(expected)));
}

TEST(fused_prologue, refuses_what_breaks_a_precondition) {
  for (const char* kernel : kernels) {
    const auto refusal = [&](const std::function<void(prologue_options&)>& change,
                             const std::function<void(call_builder&)>& spoil = nullptr) {
      prologue_options o;
      change(o);
      call_builder b = prologue_call(kernel, o);
      if (spoil) spoil(b);
      const std::string said = b.refusal();
      const std::string of = std::string(kernel) + ": ";
      EXPECT_EQ(said.substr(0, of.size()), of);
      return said.size() < of.size() ? said : said.substr(of.size());
    };
    EXPECT_EQ(refusal([](auto& o) { o.key.warps = 8; }), "num_warps: is 8, must be 1, 2 or 4");
    EXPECT_EQ(refusal([](auto& o) { o.tile_rule = "max"; }),
              "mla_scale_rule: is 'max', must be 'amax' or 'pow2'");
    EXPECT_EQ(refusal([](auto& o) { o.query_dims = 0; }), "q_c: has no dims, must have some");
    EXPECT_EQ(refusal([](auto& o) { o.key.dims = 160; }),
              "index_k: has 160 dims, must have a power of two of them from 32 to 1024");
    EXPECT_EQ(refusal([](auto& o) { o.mla_slots = {4}; }),
              "mla_slot_mapping: slot 4 of token 0 is past the cache, must be below 2 pages * 2 "
              "tokens of mla_cache");
    EXPECT_EQ(refusal([](auto& o) { o.key.slots = {4}; }),
              "index_slot_mapping: slot 4 of token 0 is past the cache, must be below 2 pages * 2 "
              "tokens of index_cache");
    EXPECT_EQ(refusal([](auto&) {},
                      [](call_builder& b) {
                        b.add("topk_indices_buffer", dtype::i32, std::vector<std::int64_t>{0, 4});
                      }),
              "topk_indices_buffer: has 0 rows, must have at least the 1 of q_c");
    EXPECT_EQ(refusal([](auto&) {},
                      [](call_builder& b) {
                        b.add("mla_cache", dtype::u8, extent{{2, 0, 656}, {4, 656, 1}, 0});
                      }),
              "mla_cache: has pages of 0 tokens, must have at least 1");
    EXPECT_EQ(refusal([](auto&) {},
                      [](call_builder& b) {
                        b.add("mla_cache", dtype::u8, extent{{2, 2, 656}, {1400, 658, 1}, 0});
                      }),
              "mla_cache: entry stride is 658 bytes, must be a multiple of 4 (f32 scales lie "
              "inside)");
    EXPECT_EQ(
        refusal([](auto&) {}, [](call_builder& b) { b.get().attributes.erase("fp8_format"); }),
        "fp8_format: is missing: the attribute is 'e4m3fn' or 'e4m3fnuz'");
  }
}

}  // namespace
}  // namespace kvcts
