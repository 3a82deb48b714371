// Places in the user's terms.
#include "conformance/compare/compare.h"

#include <string>

#include "conformance/compare/picture.h"
#include "conformance/compare/value.h"
#include "conformance/runner/oracle.h"
#include "conformance/tests/tools.h"

namespace kvcts {
namespace {

using testing_tools::case_named;
using testing_tools::input_of;

// A case whose `expected` is compared with a changed copy.
class changed {
 public:
  changed(const std::string& kernel, const std::string& name) : case_(case_named(kernel, name)) {
    case_.actual = case_.expected;
  }
  buffer& got(const std::string& argument) {
    for (buffer& b : case_.actual) {
      if (b.name == argument) return b;
    }
    throw std::runtime_error("no output " + argument);
  }
  const test_case& as_case() const { return case_; }
  comparison compare() {
    std::vector<buffer> none;
    const call context = make_call(case_.kernel, case_.attributes, case_.inputs, none);
    const kernel_contract& contract = contract_of(case_.kernel);
    return compare_buffers(contract, context, check(contract, context, false), case_.expected,
                           case_.actual);
  }
  std::vector<buffer_picture> pictures() {
    std::vector<buffer> none;
    const call context = make_call(case_.kernel, case_.attributes, case_.inputs, none);
    const kernel_contract& contract = contract_of(case_.kernel);
    const bindings names = check(contract, context, false);
    comparer by(contract, context, names);
    for (std::size_t i = 0; i < case_.expected.size(); ++i) {
      by.compare(case_.expected[i], case_.actual[i].view());
    }
    return by.pictures();
  }
  std::vector<std::string> places() {
    std::vector<std::string> texts;
    for (const difference& d : compare().places) texts.push_back(d.argument + ": " + d.place);
    return texts;
  }

 private:
  test_case case_;
};

void turn(buffer& b, std::size_t byte) { b.bytes.at(byte) ^= std::byte{0xFF}; }

using texts = std::vector<std::string>;

changed query() { return {"mxfp4_q_quant", "t2_h3_p4_mixed"}; }
// Records of 584 bytes in 5 pages of 3 tokens, [blocks, 3, 584], 1168 bytes between pages.
changed insert() {
  return {"quantize_and_insert_k_cache", "n14_s11_b3_r584_mixed_gap1168_rows8_guard_warm_neg"};
}

TEST(compare, finds_nothing_in_equal_buffers) {
  changed c = query();
  const comparison result = c.compare();
  EXPECT_EQ(result.different, 0u);
  EXPECT_EQ(result.compared, 2u * 4 * (64 + 4 + 4));
  EXPECT_TRUE(result.places.empty());
}

TEST(compare, names_one_element_of_each_output) {
  changed c = query();
  turn(c.got("q_packed"), 4 * 64 + 2 * 64 + 5);  // token 1, head 2
  turn(c.got("q_scale"), 4 * (1 * 4 + 1) + 3);
  turn(c.got("weights"), 4 * (0 * 4 + 2) + 1);
  EXPECT_EQ(c.places(), (texts{"q_packed: token 1, head 2, dims 10..11",
                               "q_scale: token 1, head 1, scale of block 3 (dims 96..127)",
                               "weights: token 0, head 2"}));
  EXPECT_EQ(c.compare().different, 3u);
}

TEST(compare, says_that_a_padded_head_must_be_zero) {
  changed c = query();
  turn(c.got("q_packed"), 3 * 64);
  turn(c.got("weights"), 4 * 3);
  EXPECT_EQ(c.places(), (texts{"q_packed: token 0, head 3, dims 0..1 (padded head: must be 0)",
                               "weights: token 0, head 3 (padded head: must be 0)"}));
}

TEST(compare, joins_neighbours_and_gives_the_first_value) {
  changed c = query();
  for (std::size_t i = 8; i < 16; ++i) turn(c.got("q_packed"), i);
  const comparison result = c.compare();
  ASSERT_EQ(result.places.size(), 1u);
  EXPECT_EQ(result.places[0].place, "token 0, head 0, dims 16..31: 8 bytes differ");
  EXPECT_EQ(result.places[0].byte, 8u);
  EXPECT_EQ(result.places[0].expected,
            text_of(value_kind::e2m1_pair, &c.as_case().expected[0].bytes[8]));
}

TEST(compare, counts_the_bytes_of_one_wide_element_once) {
  changed c = query();
  turn(c.got("weights"), 4);
  turn(c.got("weights"), 7);
  EXPECT_EQ(c.places(), (texts{"weights: token 0, head 1"}));
  EXPECT_EQ(c.compare().different, 2u);
}

TEST(compare, coarsens_where_there_are_too_many_rows) {
  changed c{"mxfp4_q_quant", "t8_h20_p20_ordinary"};
  for (std::size_t t = 2; t < 5; ++t) {
    for (std::size_t h = 1; h < 20; h += 2) turn(c.got("q_packed"), (t * 20 + h) * 64 + 7);
  }
  EXPECT_EQ(
      c.places(),
      (texts{"q_packed: token 2, heads 1..19, dims 14..15: 10 bytes differ, the first at token "
             "2, head 1, dims 14..15",
             "q_packed: token 3, heads 1..19, dims 14..15: 10 bytes differ, the first at token "
             "3, head 1, dims 14..15",
             "q_packed: token 4, heads 1..19, dims 14..15: 10 bytes differ, the first at token "
             "4, head 1, dims 14..15"}));
  for (std::byte& b : c.got("q_packed").bytes) b ^= std::byte{0xFF};
  turn(c.got("weights"), 0);
  const comparison all = c.compare();
  ASSERT_EQ(all.places.size(), 2u);
  EXPECT_EQ(all.places[0].place.rfind("tokens 0..7, heads 0..19, dims 0..127: ", 0), 0u)
      << all.places[0].place;
  EXPECT_EQ(all.places[1].place, "token 0, head 0");
}

TEST(compare, never_lists_more_than_eight_places) {
  changed c{"mxfp4_q_quant", "t8_h20_p20_ordinary"};
  for (const char* name : {"q_packed", "q_scale", "weights"}) {
    for (std::byte& b : c.got(name).bytes) b ^= std::byte{0xFF};
  }
  const comparison result = c.compare();
  EXPECT_EQ(result.different, 8u * 20 * 72);
  EXPECT_LE(result.places.size(), 8u);
  EXPECT_GE(result.places.size(), 3u);
}

// --- pages

std::size_t page_start(std::size_t page) { return page * (3 * 584 + 1168); }

TEST(compare_pages, name_token_slot_page_and_part_of_the_record) {
  changed c = insert();
  test_case copy = c.as_case();
  const buffer& slots = input_of(copy, "slot_mapping");
  std::int64_t token = -1, slot = -1;
  for (std::int64_t t = 4; t < 11 && slot < 3; ++t) {
    slot = load<std::int64_t>(slots.view().element(t));
    token = t;
  }
  ASSERT_GE(slot, 3);
  const auto page = static_cast<std::size_t>(slot / 3), at = static_cast<std::size_t>(slot % 3);
  const std::string where = "k_cache: token " + std::to_string(token) + " -> slot " +
                            std::to_string(slot) + " -> page " + std::to_string(page) +
                            ", position " + std::to_string(at) + ", ";
  buffer& got = c.got("k_cache");
  const std::size_t data = page_start(page) + at * 576,
                    scales = page_start(page) + 3 * 576 + at * 8;
  const auto only = [&](std::size_t byte) {
    turn(got, byte);
    const texts found = c.places();
    turn(got, byte);
    return found;
  };
  EXPECT_EQ(only(data + 300), (texts{where + "value of dim 300"}));
  EXPECT_EQ(only(data + 448 + 2 * 10 + 1), (texts{where + "value of dim 458"}));
  EXPECT_EQ(only(scales + 6), (texts{where + "scale of block 6 (dims 384..447)"}));
  EXPECT_EQ(only(scales + 7), (texts{where + "pad byte"}));
}

TEST(compare_pages, name_bytes_of_nobody) {
  changed c = insert();
  test_case copy = c.as_case();
  const buffer& slots = input_of(copy, "slot_mapping");
  std::vector<bool> used(15, false);
  for (std::int64_t t = 0; t < 11; ++t) {
    const auto slot = load<std::int64_t>(slots.view().element(t));
    if (slot >= 0) used[static_cast<std::size_t>(slot)] = true;
  }
  std::size_t free_slot = 0;
  while (used[free_slot]) ++free_slot;
  buffer& got = c.got("k_cache");
  turn(got, page_start(free_slot / 3) + free_slot % 3 * 576 + 4);
  turn(got, page_start(1) + 3 * 584 + 100);
  turn(got, got.bytes.size() - 1);
  EXPECT_EQ(c.places(), (texts{"k_cache: slot " + std::to_string(free_slot) + " -> page " +
                                   std::to_string(free_slot / 3) + ", position " +
                                   std::to_string(free_slot % 3) +
                                   ", value of dim 4 (not in the slot mapping, must not change)",
                               "k_cache: page 1, byte 1852 (between pages: must not change)",
                               "k_cache: guard byte " + std::to_string(got.bytes.size() - 1) +
                                   " (must not change)"}));
}

TEST(compare_pages, are_the_same_where_the_view_is_flat) {
  changed deep = insert();
  changed flat{"quantize_and_insert_k_cache",
               "n14_s11_b3_r584_mixed_flat_gap1168_rows8_guard_warm_neg"};
  turn(deep.got("k_cache"), page_start(2) + 3 * 576 + 3);
  turn(flat.got("k_cache"), page_start(2) + 3 * 576 + 3);
  const std::string place = "page 2, position 0, scale of block 3 (dims 192..255)";
  EXPECT_NE(deep.places().at(0).find(place), std::string::npos) << deep.places()[0];
  EXPECT_NE(flat.places().at(0).find(place), std::string::npos) << flat.places()[0];
}

TEST(compare_pages, name_parts_of_keys_of_other_dims_than_128) {
  changed c{"mxfp4_k_norm_quant_insert", "t1_n1_s1_d64_b1_hardsquares_ordinary"};
  turn(c.got("kv_cache"), 3);
  turn(c.got("kv_cache"), 33);
  const std::string where = "kv_cache: token 0 -> slot 0 -> page 0, position 0, ";
  EXPECT_EQ(c.places(),
            (texts{where + "values of dims 6..7", where + "scale of block 1 (dims 32..63)"}));
}

// --- values

// "name: first+bytes first+bytes": the marks of a strip.
texts marks(const buffer_picture& picture) {
  texts all;
  for (const picture_strip& s : picture.strips) {
    std::string text = s.name + ":";
    for (const byte_run& r : s.wrong) {
      text += " " + std::to_string(r.first) + "+" + std::to_string(r.bytes);
    }
    all.push_back(text);
  }
  return all;
}

TEST(picture, draws_pages_and_tokens) {
  changed c = insert();
  buffer& cache = c.got("k_cache");
  // Pages are 3 * 584 + 1168 bytes apart; in each the values of 3 tokens come first (576 bytes
  // each), then their scales (8 each).
  const std::size_t page = 2920, at = 2 * page + 576 + 100;
  turn(cache, at);                          // page 2, position 1, dim 100
  turn(cache, 2 * page + 3 * 576 + 8 + 2);  // its third scale
  turn(cache, 3 * page + 3 * 584 + 5);      // between pages
  const std::vector<buffer_picture> all = c.pictures();
  ASSERT_EQ(all.size(), 1u);
  const buffer_picture& p = all[0];
  EXPECT_EQ(p.argument, "k_cache");
  const texts found = marks(p);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[1], "page 2: 676+1 1738+1");
  EXPECT_EQ(found[2], "page 3: 1757+1");
  EXPECT_NE(found[3].find("slot 7 -> page 2, position 1: 100+1 578+1"), std::string::npos)
      << found[3];
  EXPECT_EQ(p.strips[0].different, 3u);
  EXPECT_EQ(p.strips[0].bytes, 5u * page + 3 * 584);  // what the view reaches
  EXPECT_EQ(p.strips[0].regions.size(), 6u);
  EXPECT_EQ(p.strips[0].regions[5].first, 5u * page);
  const picture_strip& of_page = p.strips[1];
  EXPECT_EQ(of_page.bytes, page);
  ASSERT_EQ(of_page.regions.size(), 2u);
  EXPECT_EQ(of_page.regions[0].kind, "value");
  EXPECT_EQ(of_page.regions[0].bytes, 3u * 576);
  EXPECT_EQ(of_page.regions[0].parts, 3u);
  EXPECT_EQ(of_page.regions[1].kind, "scale");
  EXPECT_EQ(of_page.regions[1].first, 3u * 576);
  const picture_strip& token = p.strips[3];
  EXPECT_EQ(token.bytes, 584u);
  ASSERT_EQ(token.regions.size(), 3u);
  EXPECT_EQ(token.regions[0].name, "dims 0..447 (f8e4m3fn)");
  EXPECT_EQ(token.regions[0].parts, 7u);
  EXPECT_EQ(token.regions[2].first, 576u);
  EXPECT_EQ(token.regions[2].parts, 7u);
  EXPECT_EQ(p.left_out, "");
}

TEST(picture, draws_rows) {
  changed c = query();
  turn(c.got("q_packed"), 4 * 64 + 2 * 64 + 5);  // token 1, head 2
  const std::vector<buffer_picture> all = c.pictures();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(marks(all[0]), (texts{"whole buffer: 389+1", "token 1: 133+1"}));
  EXPECT_EQ(all[0].strips[0].regions[0].parts, 2u);
  EXPECT_EQ(all[0].strips[1].regions[0].parts, 4u);
}

TEST(picture, names_rows_in_the_plural) {
  wrong_bytes wrong;
  for (std::uint64_t row = 0; row < 8; ++row) wrong.add(row * 16);
  const buffer_picture p =
      draw_rows({dense({8, 16}), 1, {0, 1}, "block of 32 dims", "scales", true}, 128, wrong);
  EXPECT_EQ(p.strips[0].regions[0].name, "blocks of 32 dims");
  EXPECT_EQ(p.left_out, "4 more blocks of 32 dims with wrong bytes");
}

TEST(picture, stays_small) {
  changed c = insert();
  buffer& cache = c.got("k_cache");
  for (std::size_t i = 0; i < cache.bytes.size(); i += 2) turn(cache, i);
  const std::vector<buffer_picture> all = c.pictures();
  const buffer_picture& p = all.at(0);
  std::size_t runs = 0;
  for (const picture_strip& s : p.strips) runs += s.wrong.size();
  EXPECT_EQ(p.strips.size(), 1u + 4 + 3);
  EXPECT_LT(runs, p.strips.size() * 100);
  EXPECT_EQ(p.strips[0].different, (cache.bytes.size() + 1) / 2);
  EXPECT_EQ(p.left_out, "2 more pages with wrong bytes, more tokens with wrong bytes");
  picture_budget budget;
  case_result kept;
  std::size_t pictures = 0;
  for (int i = 0; i < 100; ++i) {
    kept.kernel = std::to_string(i % 20);
    kept.pictures = all;
    budget.limit(kept);
    pictures += kept.pictures.size();
  }
  EXPECT_EQ(pictures, 40u);
}

TEST(value, reads_as_its_format) {
  const auto text = [](value_kind kind, std::uint64_t bits) {
    std::byte bytes[8];
    std::memcpy(bytes, &bits, 8);
    return text_of(kind, bytes);
  };
  EXPECT_EQ(text(value_kind::byte, 0xCC), "0xCC");
  EXPECT_EQ(text(value_kind::e2m1_pair, 0x72), "0x72 (1, 6)");
  EXPECT_EQ(text(value_kind::e2m1_pair, 0x8F), "0x8F (-6, -0)");
  EXPECT_EQ(text(value_kind::e4m3fn, 0x7E), "0x7E (448)");
  EXPECT_EQ(text(value_kind::e4m3fn, 0x7F), "0x7F (nan)");
  EXPECT_EQ(text(value_kind::e4m3fnuz, 0x7F), "0x7F (240)");
  EXPECT_EQ(text(value_kind::e4m3fnuz, 0x80), "0x80 (nan)");
  EXPECT_EQ(text(value_kind::ue8m0, 0x7E), "0x7E (2^-1)");
  EXPECT_EQ(text(value_kind::ue8m0, 0x00), "0x00 (2^-127)");
  EXPECT_EQ(text(value_kind::ue8m0, 0xFF), "0xFF (NaN)");
  EXPECT_EQ(text(value_kind::bf16, 0x3F80), "0x3F80 (1)");
  EXPECT_EQ(text(value_kind::f32, 0x3F800001), "0x3F800001 (1.0000001)");
  EXPECT_EQ(text(value_kind::i32, 0xFFFFFFFF), "-1");
  EXPECT_EQ(text(value_kind::i64, 7), "7");
}

}  // namespace
}  // namespace kvcts
