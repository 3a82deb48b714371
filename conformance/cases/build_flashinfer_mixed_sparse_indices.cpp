// Cases of build_flashinfer_mixed_sparse_indices: decode tokens first, then prefill tokens.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/cases/index_rows.h"

namespace kvcts {
namespace {

constexpr std::string_view kernel = "build_flashinfer_mixed_sparse_indices";

// Compressed indices of the decode tokens.
enum class decode_form : std::uint8_t { absent, slots, slots_with_lens, local, local_with_lens };
constexpr decode_form decode_forms[] = {decode_form::absent, decode_form::slots,
                                        decode_form::slots_with_lens, decode_form::local,
                                        decode_form::local_with_lens};
enum class replay_kind : std::uint8_t { zero, inside, past };

struct mixed_options {
  std::int64_t decode = 0, prefill = 0;  // tokens: Td, Tp
  std::int64_t requests = 1;             // of the prefill tokens
  bool empty = false;                    // a prefill request has no query
  std::int64_t a_request = 1;            // decode tokens a request
  std::int64_t window = 4, wider = 0;    // W = window + wider
  decode_form form = decode_form::slots;
  std::int64_t width = 3;  // C
  std::int64_t topk = 5, prefill_width = 5, ratio = 2;
  std::int64_t swa_size = 4, compressed_size = 2;
  std::int64_t swa_span = 0, compressed_span = 0;  // 0: absent, as many as entries
  bool table = true;                               // compressed_block_table is there
  replay_kind replay = replay_kind::zero;
  std::int64_t context = 20;  // most tokens of a request before its queries
  bool negative_page = false;
  bool large = false;                           // pages whose ids reach the largest i32
  std::int64_t gap = 0, offset = 0, guard = 0;  // of the index matrices, elements
  std::int64_t table_gap = 0;
  level from = level::acceptance;
};

bool is_local(const mixed_options& o) {
  return o.form == decode_form::local || o.form == decode_form::local_with_lens;
}
bool has_lens(const mixed_options& o) {
  return o.form == decode_form::slots_with_lens || o.form == decode_form::local_with_lens;
}
std::int64_t width_of(const mixed_options& o) {
  return o.form == decode_form::absent ? 0 : o.width;
}
// A page takes as many ids as the larger of the two says: what the largest page number follows
// from.
std::int64_t ids_of(std::int64_t size, std::int64_t span) { return std::max(size, span); }

// A slot whose remapped id fits, often one at a page's border.
std::int64_t any_slot(draw& from, const mixed_options& o, std::int64_t size, std::int64_t span) {
  if (from.one_in(5)) return negative_index(from);
  const std::int64_t slot = page_index(from, 9 * size, size);
  if (!o.large) return slot;
  const std::int64_t pages = (std::int64_t{INT32_MAX} + 1) / ids_of(size, span);
  return std::max<std::int64_t>(pages - 9, 0) * size +
         slot % (std::min<std::int64_t>(pages, 9) * size);
}

// Index of a request's entry, of a table of `entries`.
std::int64_t any_entry(draw& from, std::int64_t entries, std::int64_t size) {
  if (entries == 0 || from.one_in(5)) return negative_index(from);
  return page_index(from, entries, size);
}

void add_requests(draw& from, const mixed_options& o, test_case& made, std::int64_t& longest,
                  numbers& of_token) {
  // Decode requests, then prefill ones.
  numbers queries;
  for (std::int64_t t = 0; t < o.decode; t += o.a_request) {
    queries.push_back(std::min(o.a_request, o.decode - t));
  }
  const numbers prefill = split(from, o.prefill, o.requests, o.empty);
  queries.insert(queries.end(), prefill.begin(), prefill.end());
  numbers seq_lens, replay;
  longest = 1;
  for (std::size_t r = 0; r < queries.size(); ++r) {
    const std::int64_t len = queries[r] + from.between(0, o.context);
    longest = std::max(longest, len);
    seq_lens.push_back(len);
    replay.push_back(o.replay == replay_kind::zero     ? 0
                     : o.replay == replay_kind::inside ? from.between(0, len)
                                                       : len + from.between(0, 3));
    of_token.insert(of_token.end(), static_cast<std::size_t>(queries[r]),
                    static_cast<std::int64_t>(r));
  }
  made.inputs.push_back(i32_list("query_start_loc", starts_of(queries), o.guard));
  made.inputs.push_back(i32_list("seq_lens", seq_lens, o.guard));
  made.inputs.push_back(i32_list("replay_start", replay, o.guard));
}

void add_decode(draw& from, const mixed_options& o, test_case& made, std::int64_t entries) {
  const std::int64_t window = o.window + o.wider;
  numbers slots, compressed, lens;
  for (std::int64_t i = 0; i < o.decode * window; ++i) {
    slots.push_back(any_slot(from, o, o.swa_size, o.swa_span));
  }
  made.inputs.push_back(
      i32_rows(from, "decode_swa_indices", {o.decode, window, o.gap, o.offset, o.guard}, slots));
  if (o.form == decode_form::absent) return;
  for (std::int64_t i = 0; i < o.decode * o.width; ++i) {
    compressed.push_back(is_local(o) ? any_entry(from, entries, o.compressed_size)
                                     : any_slot(from, o, o.compressed_size, o.compressed_span));
  }
  made.inputs.push_back(i32_rows(from, "decode_compressed_indices",
                                 {o.decode, o.width, o.gap * 2, o.offset, o.guard}, compressed));
  // More entries than tokens: engines pass buffers of the largest batch.
  const std::int64_t listed = o.decode + (o.guard != 0 ? 2 : 0);
  if (has_lens(o)) {
    for (std::int64_t t = 0; t < listed; ++t) lens.push_back(from.between(0, o.width + 2));
    made.inputs.push_back(i32_list("decode_compressed_topk_lens", lens, o.guard));
  }
  if (is_local(o)) {
    buffer valid = make_buffer("decode_is_valid_token", dtype::boolean, dense({listed}), o.guard);
    for (std::int64_t t = 0; t < listed; ++t) {
      *valid.view().element(t) = std::byte{t % 3 != 1 && !(t > 0 && t + 1 == o.decode)};
    }
    made.inputs.push_back(std::move(valid));
  }
}

void add_prefill(draw& from, const mixed_options& o, test_case& made, std::int64_t entries) {
  numbers indices;
  for (std::int64_t t = 0; t < o.prefill; ++t) {
    for (std::int64_t c = 0; c < o.prefill_width; ++c) {
      // Columns past topk are read by none.
      indices.push_back(c < o.topk ? any_entry(from, entries, o.compressed_size)
                                   : from.between(0, INT32_MAX));
    }
  }
  made.inputs.push_back(i32_rows(from, "prefill_topk_indices",
                                 {o.prefill, o.prefill_width, o.gap, o.offset, o.guard}, indices));
}

test_case build(const mixed_options& o, const std::string& name, std::uint64_t seed) {
  draw from(seed_of(seed, kernel, name));
  test_case made;
  made.attributes["swa_block_size"] = o.swa_size;
  made.attributes["compressed_block_size"] = o.compressed_size;
  made.attributes["window_size"] = o.window;
  made.attributes["compress_ratio"] = o.ratio;
  made.attributes["topk"] = o.topk;
  if (o.swa_span != 0) made.attributes["swa_block_span"] = o.swa_span;
  if (o.compressed_span != 0) made.attributes["compressed_block_span"] = o.compressed_span;
  if (is_local(o)) made.attributes["decode_compressed_indices_are_local"] = std::int64_t{1};

  std::int64_t longest = 0;
  numbers of_token;
  add_requests(from, o, made, longest, of_token);
  const std::int64_t requests = made.inputs[1].at.shape[0];
  const std::int64_t swa_columns = (longest - 1) / o.swa_size + 1;
  const std::int64_t compressed_columns = o.table ? 3 + longest / 16 : swa_columns;
  const std::int64_t entries = requests == 0 ? 0 : compressed_columns * o.compressed_size;
  add_decode(from, o, made, entries);
  add_prefill(from, o, made, entries);
  if (o.guard != 0) of_token.insert(of_token.end(), 2, -5);  // of tokens that are not there
  made.inputs.push_back(i32_list("token_to_req_indices", of_token, o.guard));
  // Without a table of its own, the compressed KV counts in the window's pages.
  std::int64_t ids = ids_of(o.swa_size, o.swa_span);
  const std::int64_t compressed_ids = ids_of(o.compressed_size, o.compressed_span);
  if (!o.table) ids = std::max(ids, compressed_ids);
  made.inputs.push_back(i32_rows(
      from, "swa_block_table", {requests, swa_columns, o.table_gap, o.table_gap % 4, o.guard},
      table_entries(from, requests * swa_columns, ids, o.negative_page, o.large)));
  if (o.table) {
    made.inputs.push_back(
        i32_rows(from, "compressed_block_table",
                 {requests, compressed_columns, o.table_gap * 2, o.table_gap % 3, o.guard},
                 table_entries(from, requests * compressed_columns, compressed_ids, o.negative_page,
                               o.large)));
  }
  return made;
}

std::string_view name_of_form(decode_form form) {
  switch (form) {
    case decode_form::absent:
      return "none";
    case decode_form::slots:
      return "slots";
    case decode_form::slots_with_lens:
      return "slotlens";
    case decode_form::local:
      return "local";
    case decode_form::local_with_lens:
      return "locallens";
  }
  return "";
}

std::string name_of_options(const mixed_options& o) {
  std::string name = fmt::format("d{}_p{}_r{}_w{}_{}{}_k{}of{}_c{}_b{}_b{}", o.decode, o.prefill,
                                 o.requests, o.window, name_of_form(o.form), width_of(o), o.topk,
                                 o.prefill_width, o.ratio, o.swa_size, o.compressed_size);
  if (o.a_request != 1) name += fmt::format("_x{}", o.a_request);
  if (o.wider != 0) name += fmt::format("_wider{}", o.wider);
  if (o.empty) name += "_empty";
  if (o.swa_span != 0) name += fmt::format("_span{}", o.swa_span);
  if (o.compressed_span != 0) name += fmt::format("_cspan{}", o.compressed_span);
  if (!o.table) name += "_onetable";
  if (o.replay == replay_kind::inside) name += "_replay";
  if (o.replay == replay_kind::past) name += "_replaypast";
  if (o.context != 20) name += fmt::format("_ctx{}", o.context);
  if (o.negative_page) name += "_negpage";
  if (o.large) name += "_large";
  if (o.gap != 0) name += fmt::format("_gap{}", o.gap);
  if (o.offset != 0) name += fmt::format("_off{}", o.offset);
  if (o.table_gap != 0) name += fmt::format("_tgap{}", o.table_gap);
  if (o.guard != 0) name += "_guard";
  return name;
}

std::vector<std::string> flags_of_options(const mixed_options& o) {
  std::vector<std::string> flags;
  if (o.decode + o.prefill == 0) add_flags(flags, {"EmptyBatch"});
  if (o.decode > 0) add_flags(flags, {"NegativeIndex", "PageBorder"});
  if (o.empty && o.requests > 1) add_flags(flags, {"EmptyRequest"});
  if (o.form == decode_form::absent) add_flags(flags, {"NoCompressedIndices"});
  if (is_local(o)) add_flags(flags, {"LocalIndices", "ValidTokens"});
  if (is_local(o) && o.decode > 1) add_flags(flags, {"PaddingTokens"});
  if (has_lens(o)) add_flags(flags, {"GivenLens"});
  if (!o.table) add_flags(flags, {"NoCompressedTable"});
  if (o.ratio == 0) add_flags(flags, {"NoCompression"});
  if (o.prefill > 0 && o.prefill_width > o.topk) add_flags(flags, {"UnreadColumns"});
  const bool no_width = o.form != decode_form::absent && o.width == 0;
  if (o.window + o.wider == 0 || o.prefill_width == 0 || no_width) add_flags(flags, {"ZeroWidth"});
  if ((o.swa_span != 0 && o.swa_span != o.swa_size) ||
      (o.compressed_span != 0 && o.compressed_span != o.compressed_size)) {
    add_flags(flags, {"SpanDiffers"});
  }
  if (o.replay != replay_kind::zero) add_flags(flags, {"Replay"});
  if (o.negative_page) add_flags(flags, {"NegativePage"});
  if (o.large) add_flags(flags, {"LargeIds"});
  if (o.gap != 0 || o.offset != 0) add_flags(flags, {"Strided"});
  if (o.gap % 4 != 0 || o.offset % 4 != 0) add_flags(flags, {"Unaligned"});
  if (o.table_gap != 0) add_flags(flags, {"StridedTables"});
  if (o.guard != 0) add_flags(flags, {"GuardBytes"});
  if (o.swa_size == 1 || o.compressed_size == 1) add_flags(flags, {"OneTokenPage"});
  if (o.swa_size == 3 || o.compressed_size == 3) add_flags(flags, {"OddBlockSize"});
  if (o.decode + o.prefill >= 1000) add_flags(flags, {"LongBatch"});
  return flags;
}

}  // namespace

void add_build_flashinfer_mixed_sparse_indices_cases(std::vector<case_spec>& to,
                                                     std::uint64_t seed) {
  constexpr std::int64_t block_sizes[] = {1, 3, 16, 64, 128, 256};
  std::vector<mixed_options> all;
  std::int64_t turn = 0;
  // Every form of the compressed indices, with and without a table of their own, and the window's
  // start.
  for (const decode_form form : decode_forms) {
    for (const bool table : {true, false}) {
      for (const replay_kind replay : {replay_kind::zero, replay_kind::inside, replay_kind::past}) {
        ++turn;
        all.push_back({.decode = 4,
                       .prefill = 6,
                       .requests = 1 + turn % 3,
                       .empty = turn % 4 > 1,
                       .a_request = 1 + turn % 2,
                       .wider = turn % 4,
                       .form = form,
                       .width = 1 + turn % 7,
                       .prefill_width = 3 + turn % 4,
                       .ratio = turn % 5 == 0 ? 0 : 1 + turn % 3,
                       .swa_size = turn % 2 == 0 ? 3 : 4,
                       .compressed_size = turn % 4 == 0 ? 1 : 2,
                       .table = table,
                       .replay = replay,
                       .negative_page = turn % 2 == 1,
                       .from = replay == replay_kind::inside ? level::smoke : level::acceptance});
      }
    }
  }
  // Spans, larger and smaller than the entries; the largest ids.
  for (const std::int64_t swa_span : {0, 4, 5, 3, 1000}) {
    for (const std::int64_t compressed_span : {0, 1, 2, 64}) {
      for (const bool large : {false, true}) {
        ++turn;
        all.push_back(
            {.decode = 3,
             .prefill = 4,
             .form = decode_forms[turn % 5],
             .swa_span = swa_span,
             .compressed_span = compressed_span,
             .table = turn % 3 != 0,
             .negative_page = turn % 2 == 0,
             .large = large,
             .from = swa_span == 5 && compressed_span != 0 ? level::smoke : level::acceptance});
      }
    }
  }
  // Widths: window, compressed columns and top-k that need padding to 4, and none.
  for (const std::int64_t window : {0, 1, 128}) {
    for (const std::int64_t width : {0, 1, 4, 65}) {
      for (const std::int64_t topk : {0, 3, 64}) {
        ++turn;
        all.push_back({.decode = 3,
                       .prefill = 3,
                       .requests = 2,
                       .window = window,
                       .form = decode_forms[1 + turn % 4],
                       .width = width,
                       .topk = topk,
                       .prefill_width = turn % 3 == 0 ? topk + 2 : topk,
                       .ratio = turn % 3,
                       .replay = turn % 4 == 0 ? replay_kind::inside : replay_kind::zero,
                       .context = 200,
                       .from = window + width + topk == 0 ? level::smoke : level::acceptance});
      }
    }
  }
  // Rows apart, guards.
  for (const std::int64_t gap : {0, 3, 4}) {
    for (const std::int64_t offset : {0, 1, 4}) {
      for (const std::int64_t guard : {0, 5}) {
        ++turn;
        all.push_back({.decode = 3,
                       .prefill = 5,
                       .requests = 2,
                       .form = decode_forms[turn % 5],
                       .replay = replay_kind::inside,
                       .negative_page = true,
                       .gap = gap,
                       .offset = offset,
                       .guard = guard,
                       .table_gap = 1 + turn % 5,
                       .from = gap == 3 && offset == 1 ? level::smoke : level::acceptance});
      }
    }
  }
  // Batches of one kind, and none.
  all.push_back({.decode = 0, .prefill = 0, .guard = 4, .from = level::smoke});
  all.push_back({.decode = 0, .prefill = 0, .requests = 0});
  all.push_back({.decode = 5, .prefill = 0, .requests = 0, .from = level::smoke});
  all.push_back({.decode = 0, .prefill = 5, .requests = 2, .from = level::smoke});
  // Batch sizes and entries a page.
  for (const std::int64_t tokens : {1, 2, 8, 64, 127, 128, 129, 1023, 1024}) {
    for (const std::int64_t decode : {std::int64_t{0}, tokens / 3, tokens}) {
      for (const std::int64_t width : {5, 64}) {
        ++turn;
        all.push_back(
            {.decode = decode,
             .prefill = tokens - decode,
             .requests = decode == tokens ? 0 : 1 + turn % 6,
             .empty = turn % 2 == 0,
             .a_request = 1 + turn % 3,
             .window = turn % 2 == 0 ? 33 : 128,
             .form = decode_forms[turn % 5],
             .width = width,
             .topk = width,
             .prefill_width = width,
             .ratio = turn % 5,
             .swa_size = block_sizes[turn % 6],
             .compressed_size = block_sizes[(turn + turn / 6) % 6],
             .replay = turn % 3 == 0 ? replay_kind::inside : replay_kind::zero,
             .context = 300,
             .negative_page = turn % 3 == 1,
             .from = tokens > 1000 && width == 64 ? level::exhaustive : level::acceptance});
      }
    }
  }
  // Whole fours at multiples of 16 bytes, few and past the batch at which launchers give a row
  // fewer warps; columns of more than one step of them.
  for (const std::int64_t tokens : {9, 4101}) {
    for (const decode_form form : decode_forms) {
      for (const std::int64_t decode : {tokens, tokens / 3, std::int64_t{0}}) {
        ++turn;
        if (decode == 0 && form != decode_form::slots) continue;
        all.push_back({.decode = decode,
                       .prefill = tokens - decode,
                       .requests = decode == tokens ? 0 : 3,
                       .a_request = 2,
                       .window = 8,
                       .form = form,
                       .width = 4,
                       .topk = 7,
                       .prefill_width = 8,
                       .ratio = decode == 0 ? 1 : turn % 4,
                       .replay = replay_kind::inside,
                       .negative_page = turn % 3 == 1});
      }
    }
  }
  for (const std::int64_t tokens : {9, 2051}) {
    all.push_back({.decode = tokens / 2,
                   .prefill = tokens - tokens / 2,
                   .requests = 3,
                   .window = 4,
                   .form = decode_form::local,
                   .width = 132,
                   .topk = 260,
                   .prefill_width = 260,
                   .ratio = 1,
                   .context = 500});
  }
  // Batches past that at which launchers give a row fewer warps.
  for (const std::int64_t tokens : {2047, 2048, 2051, 4100}) {
    for (const std::int64_t decode : {std::int64_t{0}, tokens / 3, tokens}) {
      ++turn;
      all.push_back({.decode = decode,
                     .prefill = tokens - decode,
                     .requests = decode == tokens ? 0 : 1 + turn % 6,
                     .a_request = 1 + turn % 3,
                     .window = 128,
                     .form = decode_forms[turn % 5],
                     .width = 64,
                     .topk = 64,
                     .prefill_width = 64,
                     .ratio = turn % 5,
                     .swa_size = 64,
                     .compressed_size = turn % 2 == 0 ? 64 : 16,
                     .replay = turn % 3 == 0 ? replay_kind::inside : replay_kind::zero,
                     .context = 300,
                     .negative_page = turn % 3 == 1,
                     .from = level::exhaustive});
    }
  }
  add_specs(to, kernel, seed, all, name_of_options, flags_of_options, build);
}

}  // namespace kvcts
