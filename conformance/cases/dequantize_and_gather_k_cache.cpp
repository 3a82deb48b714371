// Cases of dequantize_and_gather_k_cache: records of 584, 528 and 288 bytes into out [R, M, 512].
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "conformance/cases/index_rows.h"

namespace kvcts {
namespace {

constexpr std::string_view kernel = "dequantize_and_gather_k_cache";
constexpr std::int64_t dims = 512;

// What records hold.
enum class record_kind : std::uint8_t {
  walk,   // blocks walk through all pairs of code and scale byte
  any,    // any bytes
  edges,  // zeros, largest codes, NaNs
  tiny,   // results around the smallest bf16
  huge    // the largest scales
};
constexpr record_kind record_kinds[] = {record_kind::walk, record_kind::any, record_kind::edges,
                                        record_kind::tiny, record_kind::huge};
enum class gather_kind : std::uint8_t { absent, all, last };  // gather_lens: absent, = seq_lens
enum class out_layout : std::uint8_t { dense, strided, unaligned, request_inner };

struct gather_options {
  std::int64_t tokens = 0, requests = 1;  // gathered ones
  std::int64_t block_size = 16;
  std::int64_t record = 584;
  record_kind what = record_kind::walk;
  bool fnuz = false;
  gather_kind kind = gather_kind::last;
  bool empty = false;      // a request gathers nothing
  bool shared = false;     // requests share pages
  bool unread = false;     // table entries outside the cache that no token needs
  std::int64_t row = 0;    // the attribute offset
  std::int64_t spare = 0;  // rows of a request that nothing is gathered to
  out_layout layout = out_layout::dense;
  std::int64_t page_gap = 0;   // bytes between pages
  std::int64_t offset = 0;     // bytes before the first page
  std::int64_t table_gap = 0;  // elements between rows of the table
  std::int64_t guard = 0;      // bytes or elements after each argument's last
  level from = level::acceptance;
};

// A record's bytes a token, and the codes that share a scale.
struct record_form {
  std::int64_t data, scales, codes, block;
  bool fp4;
};
record_form form_of(std::int64_t record) {
  if (record == 584) return {576, 8, 448, 64, false};
  if (record == 528) return {512, 16, 512, 32, false};
  return {256, 32, 512, 16, true};
}

std::uint8_t any_of(draw& from, const std::vector<std::uint8_t>& bytes) {
  return bytes[from.below(bytes.size())];
}

// Block `number` of the cache, of `n` codes and a scale. The walk meets each of the 256 scale bytes
// once in 256 blocks, and each with every code in as many rounds as blocks hold a 256 of the codes;
// the codes of a block stand in an order of their own.
void fill_codes(draw& from, record_kind what, const record_form& form, std::int64_t number,
                std::uint8_t* codes, std::uint8_t& scale) {
  const std::int64_t kinds = form.fp4 ? 16 : 256;
  const std::int64_t group = (number / 256 + number) % (kinds / form.block);
  for (std::int64_t i = 0; i < form.block; ++i) {
    codes[i] = static_cast<std::uint8_t>(what == record_kind::walk
                                             ? group * form.block + (i * 5 + number) % form.block
                                             : from.below(static_cast<std::uint64_t>(kinds)));
  }
  scale = static_cast<std::uint8_t>(from.below(256));
  switch (what) {
    case record_kind::walk:
      scale = static_cast<std::uint8_t>(number * 37 + 255);
      return;
    case record_kind::any:
      return;
    case record_kind::edges:
      for (std::int64_t i = 0; i < form.block && !form.fp4; ++i) {
        if (from.one_in(2)) {
          codes[i] = any_of(
              from, {0x00, 0x80, 0x01, 0x81, 0x07, 0x08, 0x77, 0x78, 0x7E, 0x7F, 0xFE, 0xFF});
        }
      }
      scale = form.fp4 ? any_of(from, {0x00, 0x80, 0x01, 0x81, 0x38, 0x7E, 0xFE, 0x7F, 0xFF})
                       : any_of(from, {0, 1, 126, 127, 128, 253, 254, 255});
      return;
    case record_kind::tiny:
      // E4M3 scales: its subnormals, of both signs.
      scale = static_cast<std::uint8_t>(form.fp4 ? from.below(8) | (from.below(2) << 7)
                                                 : from.below(14));
      return;
    case record_kind::huge:
      scale = static_cast<std::uint8_t>(form.fp4 ? (0x78 + from.below(8)) | (from.below(2) << 7)
                                                 : 242 + from.below(14));
      return;
  }
}

// bf16 of the copied tail: any bits, one in four a NaN of any payload, quiet or signalling.
std::uint16_t tail_bits(draw& from) {
  const std::uint32_t bits = from.below(0x10000);
  return static_cast<std::uint16_t>(from.one_in(4) ? bits | 0x7F81 : bits);
}

void fill_pages(draw& from, const gather_options& o, std::int64_t blocks, buffer& cache) {
  const record_form form = form_of(o.record);
  const std::int64_t stride = o.block_size * o.record + o.page_gap;
  std::int64_t number = 0;
  for (std::int64_t page = 0; page < blocks; ++page) {
    std::byte* const start = cache.bytes.data() + o.offset + page * stride;
    for (std::int64_t token = 0; token < o.block_size; ++token) {
      std::byte* const data = start + token * form.data;
      std::byte* const scales = start + o.block_size * form.data + token * form.scales;
      for (std::int64_t first = 0; first < form.codes; first += form.block) {
        std::uint8_t codes[64], scale = 0;
        fill_codes(from, o.what, form, number++, codes, scale);
        scales[first / form.block] = std::byte{scale};
        for (std::int64_t i = 0; i < form.block; ++i) {
          if (!form.fp4) {
            data[first + i] = std::byte{codes[i]};
          } else if (i % 2 == 0) {
            data[(first + i) / 2] = static_cast<std::byte>(codes[i] | codes[i + 1] << 4);
          }
        }
      }
      for (std::int64_t d = form.codes; d < dims; ++d) {
        store(data + form.codes + (d - form.codes) * 2, tail_bits(from));
      }
    }
  }
}

extent out_extent(const gather_options& o, std::int64_t rows) {
  const std::vector<std::int64_t> shape = {o.requests, rows, dims};
  switch (o.layout) {
    case out_layout::dense:
      return dense(shape);
    // Multiples of 16 bytes.
    case out_layout::strided:
      return {shape, {rows * 520 + 64, 520, 1}, 16};
    case out_layout::unaligned:
      return {shape, {rows * 515 + 7, 515, 1}, 3};
    case out_layout::request_inner:
      return {shape, {dims, o.requests * dims + 8, 1}, 0};
  }
  return {};
}

test_case build(const gather_options& o, const std::string& name, std::uint64_t seed) {
  draw from(seed_of(seed, kernel, name));
  test_case made;
  made.attributes["block_size"] = o.block_size;
  made.attributes["offset"] = o.row;
  made.attributes["use_fnuz"] = std::int64_t{o.fnuz ? 1 : 0};

  const numbers gather_lens = split(from, o.tokens, o.requests, o.empty);
  numbers seq_lens = gather_lens;
  if (o.kind == gather_kind::last) {
    for (std::int64_t& len : seq_lens) len += from.between(0, 2 * o.block_size + 1);
  }
  // The columns of each request that are read, and the pages that these need.
  std::int64_t columns = 1, needed = 0;
  for (std::size_t r = 0; r < seq_lens.size(); ++r) {
    columns = std::max(columns, (seq_lens[r] + o.block_size - 1) / o.block_size);
    if (gather_lens[r] == 0) continue;
    const std::int64_t first = (seq_lens[r] - gather_lens[r]) / o.block_size;
    needed += (seq_lens[r] - 1) / o.block_size - first + 1;
  }
  if (o.unread) ++columns;
  const std::int64_t blocks = o.shared ? needed / 2 + 1 : needed + (o.what != record_kind::walk);
  numbers pages(static_cast<std::size_t>(blocks));
  std::iota(pages.begin(), pages.end(), 0);
  for (std::size_t i = pages.size(); i > 1; --i) std::swap(pages[i - 1], pages[from.below(i)]);
  numbers table;
  std::size_t next = 0;
  for (std::size_t r = 0; r < seq_lens.size(); ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const bool read = gather_lens[r] > 0 && c <= (seq_lens[r] - 1) / o.block_size &&
                        c >= (seq_lens[r] - gather_lens[r]) / o.block_size;
      constexpr std::int64_t outside[] = {-1, INT32_MAX, INT32_MIN, -7};
      table.push_back(read       ? pages[next++ % pages.size()]
                      : o.unread ? outside[from.below(4)]
                                 : from.below(static_cast<std::uint64_t>(blocks + 1)));
    }
  }

  std::int64_t rows = 0;
  for (const std::int64_t len : gather_lens) rows = std::max(rows, len);
  rows += o.row + (o.row != 0 ? 1 : 0) + o.spare;
  buffer out = make_buffer("out", dtype::bf16, out_extent(o, rows), o.guard);
  for (std::byte& b : out.bytes) b = static_cast<std::byte>(from.below(256));
  const std::int64_t page = o.block_size * o.record;
  buffer cache = make_buffer(
      "k_cache", dtype::u8,
      {{blocks, o.block_size, o.record}, {page + o.page_gap, o.record, 1}, o.offset}, o.guard);
  for (std::byte& b : cache.bytes) b = static_cast<std::byte>(from.below(256));
  fill_pages(from, o, blocks, cache);

  made.inputs.push_back(std::move(out));
  made.inputs.push_back(std::move(cache));
  made.inputs.push_back(i32_list("seq_lens", seq_lens, o.guard));
  if (o.kind != gather_kind::absent) {
    made.inputs.push_back(i32_list("gather_lens", gather_lens, o.guard));
  }
  made.inputs.push_back(i32_rows(
      from, "block_table", {o.requests, columns, o.table_gap, o.table_gap % 4, o.guard}, table));
  return made;
}

std::string_view name_of_kind(record_kind what) {
  switch (what) {
    case record_kind::walk:
      return "walk";
    case record_kind::any:
      return "any";
    case record_kind::edges:
      return "edges";
    case record_kind::tiny:
      return "tiny";
    case record_kind::huge:
      return "huge";
  }
  return "";
}

std::string name_of_options(const gather_options& o) {
  std::string name = fmt::format("t{}_r{}_b{}_r{}_{}", o.tokens, o.requests, o.block_size, o.record,
                                 name_of_kind(o.what));
  if (o.fnuz) name += "_fnuz";
  if (o.kind == gather_kind::absent) name += "_nolens";
  if (o.kind == gather_kind::all) name += "_all";
  if (o.empty) name += "_empty";
  if (o.shared) name += "_shared";
  if (o.unread) name += "_unread";
  if (o.row != 0) name += fmt::format("_row{}", o.row);
  if (o.spare != 0) name += fmt::format("_spare{}", o.spare);
  if (o.layout == out_layout::strided) name += "_strided";
  if (o.layout == out_layout::unaligned) name += "_unaligned";
  if (o.layout == out_layout::request_inner) name += "_inner";
  if (o.page_gap != 0) name += fmt::format("_gap{}", o.page_gap);
  if (o.offset != 0) name += fmt::format("_off{}", o.offset);
  if (o.table_gap != 0) name += fmt::format("_tgap{}", o.table_gap);
  if (o.guard != 0) name += "_guard";
  return name;
}

std::vector<std::string> flags_of_options(const gather_options& o) {
  std::vector<std::string> flags;
  if (o.tokens == 0) add_flags(flags, {"EmptyBatch"});
  if (o.tokens > 0) {
    if (o.what == record_kind::walk) add_flags(flags, {"CodeWalk"});
    if (o.what == record_kind::any) add_flags(flags, {"AnyBytes"});
    if (o.what == record_kind::edges) add_flags(flags, {"RecordEdges", "SignedZero", "NonFinite"});
    if (o.what == record_kind::tiny) add_flags(flags, {"SubnormalResult"});
    if (o.what == record_kind::huge) add_flags(flags, {"HugeScale", "NonFinite"});
  }
  if (o.fnuz) add_flags(flags, {"Fnuz"});
  if (o.kind == gather_kind::absent) add_flags(flags, {"NoGatherLens"});
  if (o.kind == gather_kind::last && o.tokens > 0) add_flags(flags, {"PartialGather"});
  if (o.empty && o.requests > 1) add_flags(flags, {"EmptyRequest"});
  if (o.shared) add_flags(flags, {"SharedPages"});
  if (o.unread) add_flags(flags, {"UnreadEntries"});
  if (o.row != 0) add_flags(flags, {"GatherOffset"});
  if (o.layout != out_layout::dense) add_flags(flags, {"Strided"});
  if (o.page_gap != 0) add_flags(flags, {"StridedPage"});
  if (o.offset != 0) add_flags(flags, {"CacheOffset"});
  if (o.table_gap != 0) add_flags(flags, {"StridedTables"});
  if (o.layout == out_layout::unaligned || o.offset % 16 != 0 || o.page_gap % 16 != 0) {
    add_flags(flags, {"Unaligned"});
  }
  if (o.guard != 0) add_flags(flags, {"GuardBytes"});
  if (o.block_size == 1) add_flags(flags, {"OneTokenPage"});
  if (o.block_size == 3) add_flags(flags, {"OddBlockSize"});
  if (o.tokens >= 1000) add_flags(flags, {"LongBatch"});
  return flags;
}

}  // namespace

void add_dequantize_and_gather_k_cache_cases(std::vector<case_spec>& to, std::uint64_t seed) {
  constexpr std::int64_t block_sizes[] = {1, 3, 16, 64, 128, 256};
  std::vector<gather_options> all;
  int turn = 0;
  for (const std::int64_t record : {584, 528, 288}) {
    const bool has_fnuz = record != 288;
    for (const bool fnuz : {false, true}) {
      if (fnuz && !has_fnuz) continue;
      // Every pair of code and scale byte.
      all.push_back({.tokens = record == 288 ? 8 : 148,
                     .requests = 1,
                     .block_size = record == 288 ? 4 : 37,
                     .record = record,
                     .fnuz = fnuz,
                     .kind = gather_kind::absent,
                     .from = record == 288 ? level::smoke : level::acceptance});
      // What records hold.
      for (const record_kind what : record_kinds) {
        ++turn;
        all.push_back({.tokens = 2,
                       .requests = 1,
                       .block_size = 1 + turn % 3,
                       .record = record,
                       .what = what,
                       .fnuz = fnuz,
                       .kind = turn % 3 == 0 ? gather_kind::absent : gather_kind::last,
                       .unread = turn % 3 == 1,
                       .from = fnuz && what != record_kind::edges && what != record_kind::tiny
                                   ? level::acceptance
                                   : level::smoke});
        all.push_back({.tokens = 21,
                       .requests = 3,
                       .block_size = block_sizes[turn % 4],
                       .record = record,
                       .what = what,
                       .fnuz = fnuz,
                       .empty = turn % 2 == 0,
                       .shared = turn % 3 == 2,
                       .unread = turn % 2 == 1,
                       .row = turn % 4});
        all.push_back({.tokens = 512,
                       .requests = 5,
                       .block_size = 64,
                       .record = record,
                       .what = what,
                       .fnuz = fnuz,
                       .from = level::exhaustive});
      }
    }
    // Layouts of out, of the cache and of the table.
    for (const out_layout layout : {out_layout::dense, out_layout::strided, out_layout::unaligned,
                                    out_layout::request_inner}) {
      for (const std::int64_t gap : {0, 48, 5}) {
        for (const std::int64_t offset : {0, 64, 3}) {
          ++turn;
          const bool small = gap == 48 && (offset == 64) == (layout == out_layout::strided) &&
                             layout != out_layout::dense && offset != 0;
          all.push_back({.tokens = small ? 2 : 7,
                         .requests = 2,
                         .block_size = small ? 1 + turn % 2 : block_sizes[turn % 3],
                         .record = record,
                         .what = record_kind::any,
                         .fnuz = has_fnuz && turn % 4 == 0,
                         .unread = turn % 2 == 0,
                         .row = small ? turn % 2 : turn % 3,
                         .layout = layout,
                         .page_gap = gap,
                         .offset = offset,
                         .table_gap = turn % 4,
                         .guard = (turn % 2) * 24,
                         .from = small ? level::smoke : level::acceptance});
        }
      }
    }
    // No token, no request.
    all.push_back({.tokens = 0,
                   .requests = 2,
                   .block_size = 1,
                   .record = record,
                   .what = record_kind::any,
                   .row = 1,
                   .from = level::smoke});
    all.push_back({.tokens = 0, .requests = 0, .block_size = 3, .record = record});
    // Prefixes that requests share, and requests that gather nothing.
    for (const gather_kind kind : {gather_kind::absent, gather_kind::all, gather_kind::last}) {
      all.push_back({.tokens = 3,
                     .requests = 3,
                     .block_size = 1,
                     .record = record,
                     .what = record_kind::any,
                     .kind = kind,
                     .empty = true,
                     .shared = true,
                     .from = kind == gather_kind::all ? level::smoke : level::acceptance});
    }
    // So many rows in all that launchers give a warp several.
    if (record == 584) {
      all.push_back({.tokens = 20,
                     .requests = 1,
                     .block_size = 16,
                     .record = record,
                     .row = 2,
                     .spare = 32768});
    }
    // Many requests of few tokens, as they decode.
    all.push_back({.tokens = 60,
                   .requests = 40,
                   .block_size = 16,
                   .record = record,
                   .kind = gather_kind::last,
                   .empty = true});
    // Batch sizes and tokens a page.
    for (const std::int64_t tokens : {1, 2, 8, 64, 127, 128, 129, 1023, 1024}) {
      for (const std::int64_t block_size : block_sizes) {
        ++turn;
        const bool large = tokens > 1000;
        const bool some = block_size == (tokens % 2 == 0 ? 64 : 3);
        all.push_back({.tokens = tokens,
                       .requests = 1 + turn % 3,
                       .block_size = block_size,
                       .record = record,
                       .fnuz = has_fnuz && turn % 5 == 0,
                       .kind = tokens % 2 == 0 ? gather_kind::last : gather_kind::absent,
                       .page_gap = (turn % 3) * 16,
                       .from = (large && !some) || (tokens > 64 && turn % 2 == 0 && !some)
                                   ? level::exhaustive
                                   : level::acceptance});
      }
    }
  }
  add_specs(to, kernel, seed, all, name_of_options, flags_of_options, build);
}

}  // namespace kvcts
