// Cases of fused_save_compress_norm: kv_score [T, 512 * ratio] f32, latents [L, 512] bf16, rings.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "conformance/cases/build.h"
#include "conformance/cases/order.h"
#include "conformance/cases/rotation.h"
#include "conformance/cases/slots.h"
#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

constexpr std::string_view kernel = "fused_save_compress_norm";
constexpr std::int64_t dims = 512;

enum class row_content : std::uint8_t {
  ordinary,
  any_bits,
  ties,        // latents at and beside midpoints of two bf16 numbers
  order,       // another order of the sum gives another reciprocal root, and that other latents
  cancel,      // the two weighted rows cancel: what is left is the rounding of their sum
  far_scores,  // an exponential that is subnormal or zero
  special_scores,
  infinite_score,  // one in a group: with +inf the row becomes NaN, -inf has the weight 0
  zero,
  subnormal,
  overflow,
  far_rows  // a huge row whose weight is subnormal, beside one of zeros
};
constexpr row_content all_rows[] = {
    row_content::ordinary, row_content::any_bits,       row_content::ties,
    row_content::order,    row_content::cancel,         row_content::far_scores,
    row_content::zero,     row_content::special_scores, row_content::subnormal,
    row_content::overflow, row_content::far_rows,       row_content::infinite_score};

struct save_options {
  std::int64_t rows = 0, tokens = 0;                  // T, S
  std::int64_t ratio = 1, capacity = 4, longest = 6;  // tokens a chunk
  row_content what = row_content::ordinary;
  bool f32_weights = false;
  bool unused_ring = false;  // ratio 1: what only ratio 2 needs is there too
  std::int64_t row_gap = 0, latent_gap = 0, ring_gap = 0, page_gap = 0, guard = 0;  // elements
  std::int64_t first = 0;  // query_start_loc begins there
  bool warm = false, negative = false, all_negative = false;
  int eps = 0;  // of the table below
  level from = level::acceptance;
};

constexpr double epsilons[] = {1e-6, 0.0, 1e-5, 0x1.000001p0};

// The tokens of a call: chunks of requests, and tokens outside them.
struct batch {
  std::vector<std::int32_t> starts, requests;
  std::vector<std::int64_t> positions, slots;
  std::vector<bool> ends_pair;  // the token before is the group's first, of the same chunk
  std::int64_t pages = 0;
};

batch draw_batch(draw& from, const save_options& o) {
  batch made;
  const auto rows = static_cast<std::size_t>(o.rows);
  made.requests.assign(rows, -1);
  made.positions.resize(rows);
  made.slots.assign(rows, -1);
  made.ends_pair.assign(rows, false);
  for (std::int64_t& p : made.positions) p = from.between(-2, 30);

  struct chunk {
    std::int64_t start, length, context;
  };
  std::vector<chunk> chunks;
  std::int64_t start = std::min(o.first, o.rows);
  made.starts.push_back(static_cast<std::int32_t>(start));
  // The last row may belong to nobody.
  const std::int64_t end = o.rows > 6 && o.longest < o.rows ? o.rows - 1 : o.rows;
  while (start < end) {
    const bool empty = !chunks.empty() && from.one_in(6);
    // The first chunk is as long as any, and begins inside a group.
    const std::int64_t drawn = chunks.empty() ? o.longest : from.between(1, o.longest);
    const std::int64_t length = empty ? 0 : std::min(drawn, end - start);
    const std::int64_t context = chunks.empty() ? 2 * o.capacity + 1 : from.between(0, 20);
    chunks.push_back({start, length, context});
    start += length;
    made.starts.push_back(static_cast<std::int32_t>(start));
  }
  made.pages = static_cast<std::int64_t>(chunks.size()) + 1;
  const std::vector<std::int64_t> pages =
      draw_slots(from, made.pages - 1, made.pages, slot_kind::shuffled, false);
  constexpr std::int64_t negatives[] = {-1, -7, INT64_MIN, -2};
  for (std::size_t r = 0; r < chunks.size(); ++r) {
    const chunk& c = chunks[r];
    for (std::int64_t i = 0; i < c.length; ++i) {
      const auto t = static_cast<std::size_t>(c.start + i);
      made.requests[t] = static_cast<std::int32_t>(r);
      made.positions[t] = c.context + i;
      made.slots[t] = pages[r] * o.capacity + made.positions[t] % o.capacity;
      made.ends_pair[t] = i > 0 && made.positions[t] % 2 == 1;
      // The first token of every second chunk, and others.
      const bool leads = i == 0 && r % 2 == 1;
      if (o.all_negative || (o.negative && (leads || from.one_in(6)))) {
        made.slots[t] = negatives[(t + r) % std::size(negatives)];
      }
    }
  }
  if (o.negative && o.tokens > 2) made.slots[1] = INT64_MIN;
  return made;
}

// One raw row; `before` is the row of the token before, if the two form a group.
void fill_raw(draw& from, const save_options& o, const order_row& order,
              const std::vector<float>* before, std::vector<float>& row) {
  const bool pooled = o.ratio == 2;
  const auto sign = [&](float x) { return from.one_in(2) ? -x : x; };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto is_infinite = [](float x) { return x == infinity || x == -infinity; };
  std::size_t infinite = dims;  // dim of an infinite score
  if (o.what == row_content::infinite_score) {
    const bool other_row_has_it =
        before != nullptr && std::any_of(before->begin() + dims, before->end(), is_infinite);
    const bool here = before != nullptr ? !other_row_has_it : from.one_in(2);
    if (here) infinite = from.below(dims);
  }
  for (std::size_t d = 0; d < dims; ++d) {
    float kv = draw_factor(from) * 8;
    float score = draw_factor(from) * 4;
    switch (o.what) {
      case row_content::ordinary:
        break;
      case row_content::any_bits:
        kv = from.one_in(3) ? float_of(any_f32(from)) : kv;
        score = from.one_in(3) ? float_of(any_f32(from)) : score;
        break;
      case row_content::ties: {
        // Squares that vanish beside an eps of 1: the norm passes the row.
        const double tie = border_value(from, border::bf16, {}, 0) / 16384;
        kv = sign(float_of(bits_of(static_cast<float>(tie)) + from.below(3) - 1));
        score = 0;
        break;
      }
      case row_content::order:
        kv = sign(order.magnitudes[d]);
        score = 0;
        break;
      case row_content::cancel: {
        // Scores k * ln 2 apart weight the rows 2^k : 1.
        const auto k = static_cast<float>(d % 4 + 1);
        if (before == nullptr) break;
        score = sub((*before)[dims + d], mul(k, float_of(0x3F317218)));
        kv = -(*before)[d] * static_cast<float>(1 << (d % 4 + 1));
        break;
      }
      case row_content::far_scores:
        score = sign(static_cast<float>(from.between(80, 110)) * 0.5F + score);
        break;
      case row_content::special_scores: {
        constexpr std::uint32_t bits[] = {0x7F800000, 0xFF800000, 0xFF800000, 0x7FC00000,
                                          0xFFFFFFFF, 0x7F7FFFFF, 0xFF7FFFFF};
        if (d % 16 == from.below(16)) score = float_of(bits[from.below(std::size(bits))]);
        break;
      }
      case row_content::infinite_score:
        if (d == infinite) score = sign(infinity);
        break;
      case row_content::zero:
        kv = sign(0.0F);
        break;
      case row_content::subnormal:
        kv = float_of(from.one_in(2) ? from.below(1u << 23) : 0x10000000 + from.below(1u << 27));
        break;
      case row_content::far_rows:
        kv = before == nullptr ? kv * 0x1p120F : 0.0F;
        score = before == nullptr ? score * 0.25F : static_cast<float>(from.between(88, 101));
        break;
      case row_content::overflow:
        if (d % 8 == 0) kv = float_of(0x5F000000 + from.below(1u << 29));
        break;
    }
    const bool copied =
        before != nullptr && (o.what == row_content::ties || o.what == row_content::order);
    row[d] = copied ? (*before)[d] : kv;
    if (pooled) row[dims + d] = score;
  }
}

buffer int_buffer(std::string_view name, const std::vector<std::int32_t>& values) {
  buffer made = make_buffer(name, dtype::i32, dense({static_cast<std::int64_t>(values.size())}));
  if (!values.empty()) std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  return made;
}

// Bytes between rows, and rows of a warm buffer, are drawn.
void draw_bytes(draw& from, buffer& to) {
  for (std::byte& b : to.bytes) b = static_cast<std::byte>(from.below(256));
}

void put_row(const tensor_view& to, std::byte* at, const std::vector<float>& row) {
  std::memcpy(at, row.data(), static_cast<std::size_t>(to.at.shape.back()) * sizeof(float));
}

test_case build(const save_options& o, const std::string& name, std::uint64_t seed) {
  draw from(seed_of(seed, kernel, name));
  test_case made;
  const bool alone = o.what == row_content::order || o.what == row_content::cancel;
  made.attributes["rms_norm_eps"] = o.what == row_content::ties ? 1.0
                                    : alone                     ? 0.0
                                                                : epsilons[o.eps];
  made.attributes["compress_ratio"] = o.ratio;

  const batch tokens = draw_batch(from, o);
  const order_row order = draw_order_row(from, dims);
  const std::int64_t width = dims * o.ratio;
  buffer kv_score =
      make_buffer("kv_score", dtype::f32,
                  {{o.rows, width}, {width + o.row_gap, 1}, o.row_gap != 0 ? 4 : 0}, o.guard);
  std::vector<float> before(static_cast<std::size_t>(2 * dims));
  std::vector<float> row = before;
  for (std::int64_t t = 0; t < o.rows; ++t) {
    before.swap(row);
    const bool pairs = o.ratio == 2 && tokens.ends_pair[static_cast<std::size_t>(t)];
    fill_raw(from, o, order, pairs ? &before : nullptr, row);
    put_row(kv_score.view(), kv_score.view().element(t), row);
  }

  buffer weight =
      make_buffer("rms_norm_weight", o.f32_weights ? dtype::f32 : dtype::bf16, dense({dims}));
  for (std::int64_t d = 0; d < dims; ++d) {
    const auto at = static_cast<std::size_t>(d);
    std::uint32_t bits = bits_of(draw_factor(from) * 4);
    if (o.what == row_content::ties) bits = bits_of(1.0F);
    if (o.what == row_content::order) {
      bits = weight_near(from, border_value(from, border::bf16, {}, 0), order, at);
    }
    if (o.f32_weights) {
      store(weight.view().element(d), bits);
    } else {
      store(weight.view().element(d), static_cast<std::uint16_t>(bits >> 16));
    }
  }

  buffer latent =
      make_buffer("latent_out", dtype::bf16,
                  {{o.rows, dims}, {dims + o.latent_gap, 1}, o.latent_gap != 0 ? 8 : 0}, o.guard);
  if (o.warm || o.latent_gap != 0) draw_bytes(from, latent);

  std::vector<std::int64_t> positions = tokens.positions;
  std::vector<std::int64_t> slots = tokens.slots;
  slots.resize(static_cast<std::size_t>(o.tokens));
  made.inputs.push_back(std::move(kv_score));
  made.inputs.push_back(integers("positions", positions));
  if (o.ratio == 2 || o.unused_ring) {
    const std::int64_t ring_row = 2 * dims + o.ring_gap;
    buffer state = make_buffer("state_cache", dtype::f32,
                               {{tokens.pages, o.capacity, 2 * dims},
                                {o.capacity * ring_row + o.page_gap, ring_row, 1},
                                0},
                               o.guard);
    if (o.ring_gap != 0 || o.page_gap != 0 || o.guard != 0) draw_bytes(from, state);
    save_options earlier = o;
    earlier.ratio = 2;
    for (std::int64_t p = 0; p < tokens.pages; ++p) {
      for (std::int64_t i = 0; i < o.capacity; ++i) {
        fill_raw(from, earlier, order, nullptr, row);
        // Short numbers where any will do: rings make the suites large.
        if (o.what == row_content::ordinary) {
          for (float& x : row) x = float_of(bits_of(x) & 0xFFFF0000);
        }
        put_row(state.view(), state.view().element(p, i), row);
      }
    }
    made.inputs.push_back(std::move(state));
  }
  made.inputs.push_back(integers("slot_mapping", slots));
  if (o.ratio == 2 || o.unused_ring) {
    made.inputs.push_back(int_buffer("query_start_loc", tokens.starts));
    made.inputs.push_back(int_buffer("token_to_req_indices", tokens.requests));
  }
  made.inputs.push_back(std::move(weight));
  made.inputs.push_back(std::move(latent));
  return made;
}

std::string_view name_of(row_content what) {
  constexpr std::string_view names[] = {"ordinary", "any",       "ties",     "order",
                                        "cancel",   "farscores", "special",  "infinite",
                                        "zero",     "subnormal", "overflow", "farrows"};
  return names[static_cast<std::size_t>(what)];
}

std::vector<std::string_view> flags_of(row_content what) {
  switch (what) {
    case row_content::ordinary:
      return {};
    case row_content::any_bits:
      return {"AnyBits", "NonFinite"};
    case row_content::ties:
      return {"TieToEven"};
    case row_content::order:
      return {"OrderSensitive"};
    case row_content::cancel:
      return {"FmaContraction"};
    case row_content::far_scores:
    case row_content::far_rows:
      return {"FarScores"};
    case row_content::special_scores:
    case row_content::infinite_score:
      return {"NonFiniteScores"};
    case row_content::zero:
      return {"SignedZero", "ZeroBlock"};
    case row_content::subnormal:
      return {"SubnormalRow"};
    case row_content::overflow:
      return {"SumOverflow"};
  }
  return {};
}

std::string name_of(const save_options& o) {
  std::string name = fmt::format("cr{}_t{}_s{}_{}", o.ratio, o.rows, o.tokens, name_of(o.what));
  if (o.ratio == 2 || o.unused_ring) name += fmt::format("_c{}_q{}", o.capacity, o.longest);
  if (o.unused_ring) name += "_ring";
  if (o.f32_weights) name += "_wf32";
  if (o.row_gap != 0) name += fmt::format("_rows{}", o.row_gap);
  if (o.latent_gap != 0) name += fmt::format("_lgap{}", o.latent_gap);
  if (o.ring_gap != 0) name += fmt::format("_rgap{}", o.ring_gap);
  if (o.page_gap != 0) name += fmt::format("_gap{}", o.page_gap);
  if (o.guard != 0) name += "_guard";
  if (o.first != 0) name += fmt::format("_from{}", o.first);
  if (o.warm) name += "_warm";
  if (o.negative) name += "_neg";
  if (o.all_negative) name += "_allneg";
  if (o.eps != 0) name += fmt::format("_eps{}", o.eps);
  return name;
}

std::vector<std::string> flags_of(const save_options& o) {
  std::vector<std::string> flags;
  if (o.tokens == 0) {
    add_flags(flags, {"EmptyBatch"});
  } else if (!o.all_negative) {
    add_flags(flags, flags_of(o.what));
  }
  if (o.ratio == 2) add_flags(flags, {"GroupBoundary"});
  if (o.ratio == 2 && o.tokens > 0 && !o.all_negative) add_flags(flags, {"Ring", "Straddle"});
  if (o.unused_ring) add_flags(flags, {"UnusedRing"});
  if (o.tokens < o.rows) add_flags(flags, {"ShortMapping"});
  if (o.f32_weights) add_flags(flags, {"F32Weights"});
  if (o.row_gap != 0 || o.latent_gap != 0) add_flags(flags, {"Strided"});
  if (o.ring_gap != 0 || o.page_gap != 0) add_flags(flags, {"StridedRing"});
  if (o.row_gap % 4 != 0 || o.latent_gap % 8 != 0 || o.ring_gap % 4 != 0 || o.page_gap % 4 != 0) {
    add_flags(flags, {"Unaligned"});
  }
  if (o.guard != 0) add_flags(flags, {"GuardBytes"});
  if (o.warm) add_flags(flags, {"WarmCache"});
  if (o.negative && o.tokens > 2) add_flags(flags, {"NegativeSlot"});
  if (o.all_negative) add_flags(flags, {"AllSlotsNegative", "NegativeSlot"});
  if (o.tokens >= 1000) add_flags(flags, {"LongBatch"});
  return flags;
}

}  // namespace

void add_fused_save_compress_norm_cases(std::vector<case_spec>& to, std::uint64_t seed) {
  std::vector<save_options> all;
  int turn = 0;
  for (const std::int64_t ratio : {1, 2}) {
    // Each kind of rows.
    for (const row_content what : all_rows) {
      const bool of_scores = what == row_content::cancel || what == row_content::far_scores ||
                             what == row_content::special_scores ||
                             what == row_content::infinite_score || what == row_content::far_rows;
      if (ratio == 1 && of_scores) continue;
      const bool order = what == row_content::order;
      const bool first_ratio = what != row_content::any_bits && what != row_content::ties;
      for (const std::int64_t rows : {2, 3, 12, 33}) {
        for (const bool f32 : {true, false}) {
          if (order && !f32) continue;
          const bool small = rows == (ratio == 1 ? 2 : 3) && f32;
          all.push_back({.rows = rows,
                         .tokens = rows,
                         .ratio = ratio,
                         .capacity = rows == 3   ? 1
                                     : rows == 2 ? 2
                                                 : 4,
                         .longest = rows == 3 ? 3 : 9,
                         .what = what,
                         .f32_weights = f32,
                         .eps = what == row_content::zero && rows == 2 ? 1 : 0,
                         .from = small && (of_scores || (ratio == 1) == first_ratio)
                                     ? level::smoke
                                     : level::acceptance});
        }
      }
      // One pattern of magnitudes a case.
      for (std::int64_t rows = 4; order && ratio == 1 && rows < 12; ++rows) {
        all.push_back({.rows = rows,
                       .tokens = rows,
                       .what = what,
                       .f32_weights = true,
                       .from = rows < 6 ? level::smoke : level::acceptance});
      }
      all.push_back({.rows = 200,
                     .tokens = 200,
                     .ratio = ratio,
                     .longest = 40,
                     .what = what,
                     .f32_weights = true,
                     .from = level::exhaustive});
    }
    // Chunks and rings: shorter, as long, longer than a ring.
    for (const std::int64_t capacity : {1, 2, 3, 4, 8}) {
      for (const std::int64_t longest : {1, 4, 20}) {
        ++turn;
        if (ratio == 1 && capacity > 2) continue;
        all.push_back({.rows = 20,
                       .tokens = 20 - turn % 2,
                       .ratio = ratio,
                       .capacity = capacity,
                       .longest = longest,
                       .unused_ring = ratio == 1,
                       .first = turn % 3,
                       .warm = turn % 2 == 0,
                       .negative = turn % 4 == 1});
      }
    }
    all.push_back({.rows = 5,
                   .tokens = 4,
                   .ratio = ratio,
                   .capacity = ratio == 1 ? 1 : 2,
                   .longest = ratio == 1 ? 5 : 9,
                   .unused_ring = ratio == 1,
                   .first = 1,
                   .warm = true,
                   .from = level::smoke});
    // Layouts.
    for (const std::int64_t row_gap : {0, 16, 3}) {
      for (const std::int64_t latent_gap : {0, 64, 5}) {
        for (const std::int64_t page_gap : {0, 32}) {
          ++turn;
          const std::int64_t rows = 6 + turn % 3;
          all.push_back({.rows = rows,
                         .tokens = rows - turn % 2,
                         .ratio = ratio,
                         .capacity = 1 + turn % 2,
                         .longest = 5,
                         .f32_weights = turn % 2 == 0,
                         .row_gap = row_gap,
                         .latent_gap = latent_gap,
                         .ring_gap = ratio == 2 ? (turn % 3) * 4 : 0,
                         .page_gap = ratio == 2 ? page_gap : 0,
                         .guard = page_gap != 0 ? 16 : 0,
                         .warm = turn % 2 == 0,
                         .negative = true,
                         .eps = turn % 4,
                         .from = row_gap == 3 && latent_gap == 5 && (page_gap == 0) == (ratio == 1)
                                     ? level::smoke
                                     : level::acceptance});
        }
      }
    }
    // Rings that keep more rows than a warp has lanes.
    for (const std::int64_t row_gap : {0, 3}) {
      if (ratio == 1) continue;
      all.push_back({.rows = 60,
                     .tokens = 59,
                     .ratio = ratio,
                     .capacity = row_gap == 0 ? 40 : 35,
                     .longest = 50,
                     .f32_weights = row_gap == 0,
                     .row_gap = row_gap,
                     .warm = true,
                     .negative = row_gap == 0});
    }
    if (ratio == 2) {
      all.push_back({.rows = 9, .tokens = 9, .ratio = ratio, .capacity = 256, .longest = 9});
    }
    // Slots and batch sizes.
    all.push_back({.rows = 3,
                   .tokens = 3,
                   .ratio = ratio,
                   .capacity = 1,
                   .longest = 3,
                   .warm = true,
                   .all_negative = true,
                   .from = level::smoke});
    all.push_back({.rows = 1, .tokens = 0, .ratio = ratio, .capacity = 1, .from = level::smoke});
    all.push_back({.rows = 0, .tokens = 0, .ratio = ratio, .capacity = 1});
    for (const std::int64_t tokens : {1, 2, 8, 64, 128, 1023, 1024}) {
      for (const std::int64_t longest : {2, 16, 400}) {
        ++turn;
        if (ratio == 1 && longest != 400) continue;
        all.push_back(
            {.rows = tokens + turn % 3,
             .tokens = tokens,
             .ratio = ratio,
             .capacity = 2 + turn % 3,
             .longest = longest,
             .guard = 8,
             .negative = turn % 2 == 0 && tokens > 2,
             .from = tokens > 1000 && longest != 400 ? level::exhaustive : level::acceptance});
      }
    }
  }

  add_specs(
      to, kernel, seed, all, [](const save_options& o) { return name_of(o); },
      [](const save_options& o) { return flags_of(o); },
      [](const save_options& o, const std::string& name, std::uint64_t s) {
        return build(o, name, s);
      });
}

}  // namespace kvcts
