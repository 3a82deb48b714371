// Cases of quantize_and_insert_k_cache: k [N, 512] bf16 into pages of records of 584 or 528 bytes.
#include <fmt/format.h>

#include "conformance/cases/build.h"
#include "conformance/cases/slots.h"

namespace kvcts {
namespace {

constexpr std::string_view kernel = "quantize_and_insert_k_cache";
constexpr std::int64_t dims = 512;

struct insert_options {
  std::int64_t rows = 0, tokens = 0;  // N, S
  std::int64_t block_size = 16;
  std::int64_t record = 584;
  content what = content::mixed;
  bool fnuz = false;
  bool flat = false;          // pages as [blocks, block bytes]
  std::int64_t page_gap = 0;  // bytes between pages
  std::int64_t offset = 0;    // bytes before the first page
  std::int64_t guard = 0;     // bytes after the last page
  std::int64_t row_gap = 0;   // elements between the rows of k
  bool warm = false;          // the cache holds other records
  bool negative = false;      // some slots are negative
  slot_kind order = slot_kind::shuffled;
  level from = level::acceptance;
};

test_case build(const insert_options& o, const std::string& name, std::uint64_t seed) {
  draw from(seed_of(seed, kernel, name));
  test_case made;
  made.attributes["block_size"] = o.block_size;
  made.attributes["use_fnuz"] = std::int64_t{o.fnuz ? 1 : 0};
  made.attributes["bytes_per_token"] = o.record;

  buffer k = make_buffer("k", dtype::bf16,
                         {{o.rows, dims}, {dims + o.row_gap, 1}, o.row_gap != 0 ? 8 : 0}, o.guard);
  const block_rules rules = e4m3_rules(o.fnuz ? fp8_format::e4m3fnuz : fp8_format::e4m3fn);
  // The widest block of both records; the last one of record 584 is its bf16 tail.
  const std::int64_t block = o.record == 584 ? 64 : 32;
  std::int64_t number = 0;
  std::uint16_t values[64];
  for (std::int64_t n = 0; n < o.rows; ++n) {
    for (std::int64_t d = 0; d < dims; d += block) {
      const bool tail = o.record == 584 && d == 448;
      fill_block(from, tail && from.one_in(4) ? content::all_nan : o.what, rules, number++, values,
                 block);
      std::memcpy(k.view().element(n, d), values, static_cast<std::size_t>(block) * 2);
    }
  }

  const std::int64_t blocks = (o.tokens + o.tokens / 3) / o.block_size + 2;
  const std::int64_t page = o.block_size * o.record;
  const std::int64_t stride = page + o.page_gap;
  extent pages = o.flat ? extent{{blocks, page}, {stride, 1}, o.offset}
                        : extent{{blocks, o.block_size, o.record}, {stride, o.record, 1}, o.offset};
  buffer cache = make_buffer("k_cache", dtype::u8, std::move(pages), o.guard);
  // Bytes of others are drawn; a cold page is canary.
  for (std::size_t i = 0; i < cache.bytes.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i) - o.offset;
    const bool inside = at >= 0 && at / stride < blocks && at % stride < page;
    if (o.warm || !inside) cache.bytes[i] = static_cast<std::byte>(from.below(256));
  }

  buffer slots = integers("slot_mapping",
                          draw_slots(from, o.tokens, blocks * o.block_size, o.order, o.negative));
  made.inputs.push_back(std::move(k));
  made.inputs.push_back(std::move(cache));
  made.inputs.push_back(std::move(slots));
  return made;
}

std::string name_of(const insert_options& o) {
  std::string name =
      fmt::format("n{}_s{}_b{}_r{}_{}", o.rows, o.tokens, o.block_size, o.record, name_of(o.what));
  if (o.fnuz) name += "_fnuz";
  if (o.flat) name += "_flat";
  if (o.page_gap != 0) name += fmt::format("_gap{}", o.page_gap);
  if (o.offset != 0) name += fmt::format("_off{}", o.offset);
  if (o.row_gap != 0) name += fmt::format("_rows{}", o.row_gap);
  if (o.guard != 0) name += "_guard";
  if (o.warm) name += "_warm";
  if (o.negative) name += "_neg";
  if (o.order == slot_kind::sequential) name += "_seq";
  if (o.order == slot_kind::all_negative) name += "_allneg";
  return name;
}

std::vector<std::string> flags_of(const insert_options& o) {
  std::vector<std::string> flags;
  if (o.tokens == 0) add_flags(flags, {"EmptyBatch"});
  if (o.tokens > 0 && o.order != slot_kind::all_negative) add_flags(flags, flags_of(o.what));
  if (o.tokens < o.rows) add_flags(flags, {"ShortMapping"});
  if (o.fnuz) add_flags(flags, {"Fnuz"});
  if (o.flat) add_flags(flags, {"FlatPages"});
  if (o.page_gap != 0) add_flags(flags, {"StridedPage"});
  if (o.offset != 0) add_flags(flags, {"CacheOffset"});
  if (o.row_gap != 0) add_flags(flags, {"Strided"});
  if (o.offset % 16 != 0 || o.page_gap % 16 != 0 || o.row_gap % 8 != 0) {
    add_flags(flags, {"Unaligned"});
  }
  if (o.guard != 0) add_flags(flags, {"GuardBytes"});
  if (o.warm) add_flags(flags, {"WarmCache"});
  if (o.negative && o.tokens > 4) add_flags(flags, {"NegativeSlot"});
  if (o.order == slot_kind::all_negative) add_flags(flags, {"AllSlotsNegative", "NegativeSlot"});
  if (o.order == slot_kind::sequential) add_flags(flags, {"SequentialSlots"});
  if (o.block_size == 1) add_flags(flags, {"OneTokenPage"});
  if (o.block_size == 3) add_flags(flags, {"OddBlockSize"});
  if (o.tokens >= 1000) add_flags(flags, {"LongBatch"});
  return flags;
}

}  // namespace

void add_quantize_and_insert_k_cache_cases(std::vector<case_spec>& to, std::uint64_t seed) {
  std::vector<insert_options> all;
  constexpr std::int64_t block_sizes[] = {1, 3, 16, 64, 128, 256};

  for (const std::int64_t record : {584, 528}) {
    // Each kind of content, in both tables.
    int turn = 0;
    for (const content what : all_contents) {
      for (const bool fnuz : {false, true}) {
        ++turn;
        const bool rule_of_its_own = what == content::ties || what == content::exact_scale ||
                                     what == content::zero || what == content::infinite ||
                                     what == content::nan || what == content::mixed;
        all.push_back({.rows = 3,
                       .tokens = 3,
                       .block_size = 3,
                       .record = record,
                       .what = what,
                       .fnuz = fnuz,
                       .from = fnuz && !rule_of_its_own ? level::acceptance : level::smoke});
        all.push_back({.rows = 20,
                       .tokens = 19,
                       .block_size = block_sizes[turn % 4],
                       .record = record,
                       .what = what,
                       .fnuz = fnuz,
                       .warm = turn % 3 == 0,
                       .negative = turn % 2 == 0});
        all.push_back({.rows = 256,
                       .tokens = 256,
                       .block_size = 64,
                       .record = record,
                       .what = what,
                       .fnuz = fnuz,
                       .from = level::exhaustive});
      }
    }
    // Layouts of the cache and of k.
    for (const bool flat : {false, true}) {
      for (const std::int64_t gap : {0, 16, 1168, 5}) {
        for (const std::int64_t offset : {0, 64, 3}) {
          ++turn;
          all.push_back(
              {.rows = 14,
               .tokens = 11,
               .block_size = block_sizes[turn % 3],
               .record = record,
               .fnuz = turn % 4 == 0,
               .flat = flat,
               .page_gap = gap,
               .offset = offset,
               .guard = (turn % 2) * 48,
               .row_gap = (turn % 4) * 8 - (turn % 5 == 1 ? 3 : 0) + (turn % 4 == 0 ? 3 : 0),
               .warm = turn % 3 != 0,
               .negative = true,
               .from = gap == 1168 && offset != 3 ? level::smoke : level::acceptance});
        }
      }
    }
    for (const bool fnuz : {false, true}) {  // whole pairs of rows at any address
      all.push_back({.rows = 6,
                     .tokens = 6,
                     .block_size = 3,
                     .record = record,
                     .fnuz = fnuz,
                     .offset = 3,
                     .row_gap = 5});
    }
    // Batches past those at which launchers give a warp more rows.
    for (const bool fnuz : {false, true}) {
      all.push_back({.rows = 2115,
                     .tokens = 2113,
                     .block_size = 64,
                     .record = record,
                     .what = fnuz ? content::ties : content::mixed,
                     .fnuz = fnuz,
                     .page_gap = 48,
                     .negative = true});
    }
    // Slots.
    all.push_back({.rows = 12,
                   .tokens = 12,
                   .record = record,
                   .warm = true,
                   .order = slot_kind::all_negative,
                   .from = level::smoke});
    all.push_back({.rows = 9, .tokens = 0, .record = record, .from = level::smoke});
    all.push_back({.rows = 0, .tokens = 0, .record = record, .flat = true});
    all.push_back({.rows = 40, .tokens = 1, .record = record});
    for (const std::int64_t block_size : block_sizes) {
      all.push_back({.rows = 33,
                     .tokens = 32,
                     .block_size = block_size,
                     .record = record,
                     .order = slot_kind::sequential});
    }
    // Batch sizes and tokens a page.
    for (const std::int64_t tokens : {1, 2, 8, 64, 127, 128, 129, 1023, 1024}) {
      ++turn;  // block sizes are even in number: other pairs in each round
      for (const std::int64_t block_size : block_sizes) {
        ++turn;
        const bool large = tokens > 1000;
        all.push_back({.rows = tokens + turn % 3,
                       .tokens = tokens,
                       .block_size = block_size,
                       .record = record,
                       .fnuz = turn % 5 == 0,
                       .page_gap = (turn % 3) * 48,
                       .negative = turn % 2 == 0 && tokens > 4,
                       .from = large && block_size != 64 && block_size != 3 ? level::exhaustive
                                                                            : level::acceptance});
      }
    }
  }

  add_specs(
      to, kernel, seed, all, [](const insert_options& o) { return name_of(o); },
      [](const insert_options& o) { return flags_of(o); }, build);
}

}  // namespace kvcts
