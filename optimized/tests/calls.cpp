#include "optimized/tests/calls.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <numeric>

#include "reference/contract/contract.h"
#include "reference/kernels/kernels.h"

namespace kvcts::tests {
namespace {

constexpr std::int64_t record_584 = 584;

// A guard of whole 16 byte lines, so that alignment is what the case says it is.
constexpr std::int64_t guard = 64;

void fill(tensor_view& v, const std::vector<std::uint16_t>& values) {
  std::size_t next = 0;
  const std::int64_t rows = v.rank() == 3 ? v.dim(1) : 1;
  const std::int64_t columns = v.dim(v.rank() - 1);
  for (std::int64_t i = 0; i < v.dim(0); ++i) {
    for (std::int64_t j = 0; j < rows; ++j) {
      for (std::int64_t k = 0; k < columns; ++k) {
        std::byte* to = v.rank() == 3 ? v.element(i, j, k) : v.element(i, k);
        store(to, values[next++ % values.size()]);
      }
    }
  }
}

struct query_shape {
  std::int64_t tokens, heads, padded;
  std::int64_t head_gap = 0;   // elements between heads
  std::int64_t token_gap = 0;  // elements between tokens
  std::int64_t first = 0;      // elements before the first
  bool f32_weights = false;
};

test_call query_call(const query_shape& s, const std::vector<std::uint16_t>& values,
                     double weight_scale, std::uint64_t seed) {
  test_call c;
  c.name = "mxfp4_q_quant T=" + std::to_string(s.tokens) + " H=" + std::to_string(s.heads) +
           " P=" + std::to_string(s.padded) + " head gap " + std::to_string(s.head_gap) +
           " token gap " + std::to_string(s.token_gap) + " first " + std::to_string(s.first) +
           (s.f32_weights ? " f32" : " bf16");
  c.work.kernel = "mxfp4_q_quant";
  const std::int64_t head_stride = 128 + s.head_gap;
  const std::int64_t token_stride = s.heads * head_stride + s.token_gap;
  tensor_view& q =
      c.add("index_q", dtype::bf16, {{s.tokens, s.heads, 128}, {token_stride, head_stride, 1}, 0},
            guard + s.first, guard);
  fill(q, values);
  const dtype weight_type = s.f32_weights ? dtype::f32 : dtype::bf16;
  tensor_view& w = c.add("index_weights", weight_type,
                         {{s.tokens, s.heads}, {s.heads + s.head_gap, 1}, 0}, guard, guard);
  numbers draw(seed);
  for (std::int64_t t = 0; t < s.tokens; ++t) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const std::uint16_t high = mixed_bf16(1, draw.next())[0];
      if (s.f32_weights) {
        const auto low = static_cast<std::uint32_t>(draw.next() & 0xFFFF);
        store(w.element(t, h), static_cast<std::uint32_t>(high) << 16 | low);
      } else {
        store(w.element(t, h), high);
      }
    }
  }
  c.add("q_packed", dtype::u8, dense({s.tokens, s.padded, 64}), guard, guard);
  c.add("q_scale", dtype::i32, dense({s.tokens, s.padded}), guard, guard);
  c.add("weights", dtype::f32, dense({s.tokens, s.padded}), guard, guard);
  c.work.attributes["weight_scale"] = weight_scale;
  c.work.attributes["padded_num_heads"] = s.padded;
  return c;
}

struct insert_shape {
  std::int64_t slots, rows, block, record;
  std::int64_t page_gap = 0;  // bytes between pages
  std::int64_t row_gap = 0;   // elements between rows of k
  std::int64_t k_first = 0;   // elements before k
  std::int64_t cache_first = 0;
  bool fnuz = false;
  bool all_live = false;
};

test_call insert_call(const insert_shape& s, const std::vector<std::uint16_t>& values,
                      std::uint64_t seed) {
  test_call c;
  c.name = "quantize_and_insert " + std::to_string(s.record) + (s.fnuz ? " fnuz" : " ocp") +
           " S=" + std::to_string(s.slots) + " N=" + std::to_string(s.rows) +
           " B=" + std::to_string(s.block) + " page gap " + std::to_string(s.page_gap) +
           " row gap " + std::to_string(s.row_gap) + " firsts " + std::to_string(s.k_first) + " " +
           std::to_string(s.cache_first);
  c.work.kernel = "quantize_and_insert_k_cache";
  tensor_view& k =
      c.add("k", dtype::bf16, {{s.rows, 512}, {512 + s.row_gap, 1}, 0}, guard + s.k_first, guard);
  fill(k, values);
  const std::int64_t pages = (s.slots + s.block - 1) / s.block + 2;
  c.add("k_cache", dtype::u8,
        {{pages, s.block, s.record}, {s.block * s.record + s.page_gap, s.record, 1}, 0},
        guard + s.cache_first, guard + s.page_gap);
  tensor_view& mapping = c.add("slot_mapping", dtype::i64, dense({s.slots}), 0, 4);
  std::vector<std::int64_t> order(static_cast<std::size_t>(pages * s.block));
  std::iota(order.begin(), order.end(), 0);
  numbers draw(seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[draw.below(i)]);
  constexpr std::int64_t dead[] = {-1, -2, -1000, std::numeric_limits<std::int64_t>::min()};
  for (std::int64_t t = 0; t < s.slots; ++t) {
    const bool live = s.all_live || draw.below(4) != 0;
    store(mapping.element(t), live ? order[static_cast<std::size_t>(t)] : dead[draw.below(4)]);
  }
  c.work.attributes["block_size"] = s.block;
  c.work.attributes["bytes_per_token"] = s.record;
  c.work.attributes["use_fnuz"] = std::int64_t{s.fnuz ? 1 : 0};
  return c;
}

bool is_written(const std::string& kernel, const std::string& argument) {
  return contract_of(kernel).argument(argument)->direction != role::input;
}

}  // namespace

std::uint64_t numbers::next() {  // splitmix64
  state_ += 0x9E3779B97F4A7C15u;
  std::uint64_t x = state_;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

tensor_view& test_call::add(const std::string& argument, dtype type, extent at, std::int64_t first,
                            std::int64_t behind) {
  tensor_view v;
  v.type = type;
  v.at = std::move(at);
  v.at.offset = first;
  std::vector<std::byte>& storage = storages[argument];
  storage.assign(static_cast<std::size_t>(reach(v.at) + behind) * size_of(type), std::byte{0xA5});
  v.storage = storage.data();
  v.storage_bytes = storage.size();
  return work.tensors[argument] = v;
}

void test_call::poison(std::byte canary) {
  for (auto& [argument, storage] : storages) {
    if (is_written(work.kernel, argument)) std::fill(storage.begin(), storage.end(), canary);
  }
}

test_call test_call::copy() const {
  test_call other = *this;
  for (auto& [argument, view] : other.work.tensors) {
    view.storage = other.storages.at(argument).data();
  }
  return other;
}

std::vector<std::uint16_t> mixed_bf16(std::size_t count, std::uint64_t seed) {
  numbers draw(seed);
  std::vector<std::uint16_t> values(count);
  int kind = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 32 == 0) kind = static_cast<int>(draw.below(10));
    const std::uint64_t r = draw.next();
    const auto sign = static_cast<std::uint32_t>(r >> 63) << 15;
    const auto mantissa = static_cast<std::uint32_t>(r & 0x7F);
    std::uint32_t magnitude = (119 + (r >> 8) % 11) << 7 | mantissa;          // ordinary
    if (kind == 1) magnitude = static_cast<std::uint32_t>(r >> 16 & 0x7FFF);  // any bits
    if (kind == 2) magnitude = mantissa;                                      // subnormal
    if (kind == 3) magnitude = 0;
    if (kind == 4) magnitude = 0x7F81 + mantissa % 0x7F;              // all NaN
    if (kind == 5 && (r >> 20) % 8 == 0) magnitude = 0x7F80;          // some infinite
    if (kind == 6 && (r >> 20) % 8 == 0) magnitude = 0x7FC0;          // some NaN
    if (kind == 7) magnitude = (1 + (r >> 8) % 4) << 7 | mantissa;    // near the floor
    if (kind == 8) magnitude = (250 + (r >> 8) % 5) << 7 | mantissa;  // near the top
    if (kind == 9) magnitude = (114 + (r >> 8) % 2) << 7 | mantissa;  // near 1e-4
    values[i] = static_cast<std::uint16_t>(sign | magnitude);
  }
  return values;
}

std::vector<std::uint16_t> every_bf16_under_every_scale(std::size_t block, std::uint32_t lowest,
                                                        int limit_mantissa, int thinned) {
  std::vector<std::uint16_t> values;
  // The largest amax of each scale: mantissa limit_mantissa of each exponent, and infinity.
  std::vector<std::uint32_t> anchors = {lowest};
  for (std::uint32_t exponent = 0; exponent < 255; ++exponent) {
    const std::uint32_t anchor = exponent << 7 | static_cast<std::uint32_t>(limit_mantissa);
    if (anchor > lowest) anchors.push_back(anchor);
  }
  anchors.push_back(0x7F7F);
  anchors.push_back(0x7F80);
  std::uint32_t turn = 0;
  for (const std::uint32_t anchor : anchors) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      const std::uint32_t magnitude = bits & 0x7FFF;
      const bool nan = magnitude > 0x7F80;
      if (magnitude > anchor && !nan) continue;
      if (!nan && turn++ % static_cast<std::uint32_t>(thinned) != 0) continue;
      if (values.size() % block == 0) values.push_back(static_cast<std::uint16_t>(anchor));
      values.push_back(static_cast<std::uint16_t>(bits));
    }
    while (values.size() % block != 0) values.push_back(0);
  }
  return values;
}

std::vector<test_call> query_calls() {
  std::vector<test_call> calls;
  std::uint64_t seed = 1;
  const auto add = [&](const query_shape& s) {
    const auto count = static_cast<std::size_t>(s.tokens * s.heads * 128 + 1);
    constexpr double scales[] = {0.08838834764831845, -3.0, 1.0, 1e-40, 1e39, 0.0};
    calls.push_back(query_call(s, mixed_bf16(count, seed), scales[seed % 6], seed * 7919));
    ++seed;
  };
  for (const std::int64_t tokens : {0, 1, 2, 7, 33}) {
    add({tokens, 1, 1});
    add({tokens, 1, 4});
    add({tokens, 2, 3});
    add({tokens, 5, 8});
    add({tokens, 8, 8, 0, 0, 0, true});
    add({tokens, 9, 17, 0, 0, 0, true});
    add({tokens, 32, 32});
    add({tokens, 33, 40, 0, 0, 0, true});
    add({tokens, 64, 64});
    add({tokens, 65, 128});
  }
  for (const bool f32 : {false, true}) {
    add({7, 4, 6, 8, 16, 0, f32});  // gaps that keep 16 bytes
    add({7, 4, 6, 3, 0, 0, f32});   // and that do not
    add({7, 4, 6, 0, 5, 0, f32});
    add({7, 4, 6, 0, 0, 1, f32});
    add({3, 33, 64, 128, 4096, 8, f32});
    add({5, 17, 19, 1, 1, 3, f32});
    add({4, 0, 5, 0, 0, 0, f32});  // no head at all
  }
  return calls;
}

std::vector<test_call> insert_calls() {
  std::vector<test_call> calls;
  std::uint64_t seed = 1000;
  const auto add = [&](const insert_shape& s) {
    const auto count = static_cast<std::size_t>(s.rows * 512 + 1);
    calls.push_back(insert_call(s, mixed_bf16(count, seed), seed * 7919));
    ++seed;
  };
  for (const std::int64_t record : {record_584, std::int64_t{528}}) {
    for (const bool fnuz : {false, true}) {
      for (const std::int64_t slots : {0, 1, 2, 7, 40}) {
        add({slots, slots, 16, record, 0, 0, 0, 0, fnuz});
        add({slots, slots + 3, 1, record, 0, 0, 0, 0, fnuz, true});
      }
      add({33, 33, 64, record, 64, 8, 8, 16, fnuz});
      add({33, 35, 3, record, 8, 512, 0, 8, fnuz});
      add({33, 33, 5, record, 1, 0, 0, 0, fnuz});  // any alignment
      add({33, 33, 16, record, 0, 0, 0, 3, fnuz});
      add({33, 33, 16, record, 0, 1, 0, 0, fnuz});
      add({33, 33, 16, record, 0, 0, 1, 0, fnuz});
      add({33, 64, 7, record, 13, 3, 5, 7, fnuz});
    }
  }
  return calls;
}

std::vector<test_call> exhaustive_calls(int thinned) {
  std::vector<test_call> calls;
  {
    // Scale bytes 1 (the floor) to 254; 0x40: the last mantissa before the next exponent.
    const auto values = every_bf16_under_every_scale(32, 0x01C0, 0x40, thinned);
    const auto tokens = static_cast<std::int64_t>((values.size() + 511) / 512);
    calls.push_back(query_call({tokens, 4, 4}, values, 1.0, 1));
    calls.back().name += " every element";
  }
  for (const std::int64_t record : {record_584, std::int64_t{528}}) {
    const std::size_t block = record == record_584 ? 64 : 32;
    const auto values = every_bf16_under_every_scale(block, 0x38D1, 0x60, thinned);
    // A 584 row quantizes 7 blocks and copies the eighth.
    std::vector<std::uint16_t> rows;
    const std::size_t taken = record == record_584 ? 448 : 512;
    for (std::size_t i = 0; i < values.size(); ++i) {
      rows.push_back(values[i]);
      if (taken == 448 && i % taken == taken - 1) rows.insert(rows.end(), 64, 0x7FA1);
    }
    const auto count = static_cast<std::int64_t>((rows.size() + 511) / 512);
    for (const bool fnuz : {false, true}) {
      calls.push_back(insert_call({count, count, 64, record, 0, 0, 0, 0, fnuz, true}, rows, 3));
      calls.back().name += " every element";
    }
  }
  return calls;
}

std::vector<test_call> large_calls() {
  std::vector<test_call> calls;
  calls.push_back(query_call({101, 33, 40}, mixed_bf16(65537, 11), 0.5, 5));
  calls.push_back(insert_call({1001, 1003, 64, record_584}, mixed_bf16(65537, 12), 6));
  calls.push_back(insert_call({1001, 1003, 16, 528, 16, 0, 0, 0, true}, mixed_bf16(65537, 13), 7));
  return calls;
}

std::string difference(const test_call& c, profile p, const std::vector<named_runner>& candidates) {
  const reference_function reference = reference_of(c.work.kernel);
  for (const std::byte canary : {std::byte{0xCC}, std::byte{0x33}}) {
    test_call poisoned = c.copy();
    poisoned.poison(canary);
    check(contract_of(c.work.kernel), poisoned.work, true);
    const test_call expected = poisoned.copy();
    reference(expected.work, rules_for(p));
    for (const named_runner& candidate : candidates) {
      const test_call actual = poisoned.copy();
      candidate.run(actual.work, p);
      for (const auto& [argument, right] : expected.storages) {
        const std::vector<std::byte>& got = actual.storages.at(argument);
        if (got == right) continue;
        const auto at = static_cast<std::size_t>(
            std::mismatch(right.begin(), right.end(), got.begin()).first - right.begin());
        char text[64];
        std::snprintf(text, sizeof text, ": expected 0x%02X, got 0x%02X",
                      std::to_integer<unsigned>(right[at]), std::to_integer<unsigned>(got[at]));
        return candidate.name + ", " + c.name + ", " + std::string(name_of(p)) + ", " + argument +
               ", byte " + std::to_string(at) + " of " + std::to_string(right.size()) + text;
      }
    }
  }
  return {};
}

}  // namespace kvcts::tests
