// Caches whose records lie past 2^31 and 2^32 bytes, of every kernel that has one: few tokens, in
// pages at and around those borders. The storage is sparse: zero but for the pages in use.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "conformance/cases/build.h"

namespace kvcts {
namespace {

constexpr std::int64_t gib = std::int64_t{1} << 30;
constexpr std::int64_t borders[] = {2 * gib, 4 * gib};

// How a cache gets past the borders.
enum class reach_by : std::uint8_t {
  pages_2g,   // many pages without gaps, past 2^31 only
  pages_4g,   // the same, past 2^32
  stride_1g,  // pages a little more than 2^30 bytes apart: page * stride passes both borders
  stride_4g,  // two pages, the stride itself is past 2^32
  start_4g,   // few pages that begin past 2^32
};
constexpr reach_by all_reaches[] = {reach_by::pages_2g, reach_by::pages_4g, reach_by::stride_1g,
                                    reach_by::stride_4g, reach_by::start_4g};

std::string_view name_of(reach_by by) {
  switch (by) {
    case reach_by::pages_2g:
      return "past2g_pages";
    case reach_by::pages_4g:
      return "past4g_pages";
    case reach_by::stride_1g:
      return "past4g_stride1g";
    case reach_by::stride_4g:
      return "past4g_stride4g";
    case reach_by::start_4g:
      return "past4g_start";
  }
  return "";
}

std::vector<std::string_view> flags_of(reach_by by) {
  switch (by) {
    case reach_by::pages_2g:
      return {"Past2GiB"};
    case reach_by::pages_4g:
      return {"Past2GiB", "Past4GiB"};
    case reach_by::start_4g:
      return {"Past2GiB", "Past4GiB", "CacheOffset"};
    case reach_by::stride_1g:
    case reach_by::stride_4g:
      return {"Past2GiB", "Past4GiB", "StridedPage"};
  }
  return {};
}

// A paged cache in bytes.
struct paging {
  std::int64_t blocks = 0, block_size = 0, record = 0, stride = 0, first = 0;

  std::int64_t page_bytes() const { return block_size * record; }
  std::int64_t start_of(std::int64_t page) const { return first + page * stride; }
};

// Records of a multiple of 4 bytes start where f32 scales may.
paging paging_of(reach_by by, std::int64_t block_size, std::int64_t record) {
  paging p;
  p.block_size = block_size;
  p.record = record;
  p.stride = p.page_bytes();
  switch (by) {
    case reach_by::pages_2g:
      p.blocks = (2 * gib + (std::int64_t{1} << 20)) / p.stride + 3;
      break;
    case reach_by::pages_4g:
      p.blocks = (4 * gib + (std::int64_t{1} << 20)) / p.stride + 3;
      break;
    case reach_by::stride_1g:
      p.blocks = 5;
      p.stride = gib + 80;
      break;
    case reach_by::stride_4g:
      p.blocks = 2;
      p.stride = 4 * gib + 48;
      break;
    case reach_by::start_4g:
      p.blocks = 3;
      p.first = 4 * gib + 112;
      break;
  }
  return p;
}

// The pages that a case uses: the first, the last, and those at the borders with their neighbours.
std::vector<std::int64_t> pages_in_use(const paging& p) {
  std::set<std::int64_t> pages = {0, p.blocks - 1};
  for (const std::int64_t border : borders) {
    const std::int64_t at = std::max<std::int64_t>(border - p.first, 0) / p.stride;
    for (std::int64_t page = at - 1; page <= at + 1; ++page) {
      if (page >= 0 && page < p.blocks) pages.insert(page);
    }
  }
  return {pages.begin(), pages.end()};
}

// In each page the first and the last token, and those whose records are at a border; shuffled.
std::vector<std::int64_t> slots_in_use(draw& from, const paging& p) {
  std::set<std::int64_t> chosen;
  for (const std::int64_t page : pages_in_use(p)) {
    std::set<std::int64_t> positions = {0, p.block_size - 1};
    for (const std::int64_t border : borders) {
      const std::int64_t inside = border - p.start_of(page);
      if (inside < 0 || inside >= p.page_bytes()) continue;
      const std::int64_t at = inside / p.record;
      for (std::int64_t i = at - 1; i <= at + 1; ++i) {
        if (i >= 0 && i < p.block_size) positions.insert(i);
      }
    }
    for (const std::int64_t position : positions) chosen.insert(page * p.block_size + position);
  }
  std::vector<std::int64_t> slots(chosen.begin(), chosen.end());
  for (std::size_t i = slots.size() - 1; i > 0; --i) std::swap(slots[i], slots[from.below(i + 1)]);
  return slots;
}

float drawn_f32(draw& from) {
  const std::uint32_t bits =
      std::uint32_t{bf16_normal(from.one_in(2), from.between(-6, 6), from.below(128))} << 16;
  return load<float>(reinterpret_cast<const std::byte*>(&bits));
}

// The pages in use and some bytes beside them hold drawn content: any bytes, or f32 numbers.
buffer make_cache(draw& from, std::string_view name, dtype type, const paging& p) {
  const auto size = static_cast<std::int64_t>(size_of(type));
  constexpr std::int64_t beside = 128;  // bytes
  buffer cache;
  cache.name = name;
  cache.type = type;
  cache.at = {{p.blocks, p.block_size, p.record / size},
              {p.stride / size, p.record / size, 1},
              p.first / size};
  const std::int64_t bytes = reach(cache.at) * size + beside;
  cache.sparse = sparse_memory(static_cast<std::size_t>(bytes));
  std::byte* to = cache.sparse.data();
  for (const std::int64_t page : pages_in_use(p)) {
    const std::int64_t first = std::max<std::int64_t>(p.start_of(page) - beside, 0);
    const std::int64_t end = std::min(p.start_of(page) + p.page_bytes() + beside, bytes);
    for (std::int64_t at = first; at < end; at += size) {
      if (type == dtype::f32) {
        store(to + at, drawn_f32(from));
      } else {
        for (std::int64_t i = 0; i < size; ++i)
          to[at + i] = static_cast<std::byte>(from.below(256));
      }
    }
  }
  return cache;
}

buffer make_bf16(draw& from, std::string_view name, std::vector<std::int64_t> shape) {
  buffer made = make_buffer(name, dtype::bf16, dense(std::move(shape)));
  for (std::size_t at = 0; at < made.bytes.size(); at += 2) {
    store(made.bytes.data() + at,
          bf16_normal(from.one_in(2), from.between(-6, 6), from.below(128)));
  }
  return made;
}

buffer make_f32(draw& from, std::string_view name, std::vector<std::int64_t> shape) {
  buffer made = make_buffer(name, dtype::f32, dense(std::move(shape)));
  for (std::size_t at = 0; at < made.bytes.size(); at += 4) {
    store(made.bytes.data() + at, drawn_f32(from));
  }
  return made;
}

template <class T>
buffer make_integers(std::string_view name, std::vector<std::int64_t> shape,
                     const std::vector<std::int64_t>& values) {
  buffer made =
      make_buffer(name, sizeof(T) == 8 ? dtype::i64 : dtype::i32, dense(std::move(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    store(made.bytes.data() + i * sizeof(T), static_cast<T>(values[i]));
  }
  return made;
}

std::int64_t length(const std::vector<std::int64_t>& v) {
  return static_cast<std::int64_t>(v.size());
}

// Every token ends its group.
std::vector<std::int64_t> group_ends(std::int64_t tokens, std::int64_t ratio) {
  std::vector<std::int64_t> positions;
  for (std::int64_t t = 0; t < tokens; ++t) positions.push_back(t * ratio + ratio - 1);
  return positions;
}

test_case build_quantize_and_insert(draw& from, reach_by by, std::int64_t record) {
  const paging p = paging_of(by, 64, record);
  const std::vector<std::int64_t> slots = slots_in_use(from, p);
  test_case made;
  made.attributes = {
      {"block_size", p.block_size}, {"use_fnuz", std::int64_t{0}}, {"bytes_per_token", record}};
  made.inputs.push_back(make_bf16(from, "k", {length(slots), 512}));
  made.inputs.push_back(make_cache(from, "k_cache", dtype::u8, p));
  made.inputs.push_back(make_integers<std::int64_t>("slot_mapping", {length(slots)}, slots));
  return made;
}

// Two requests: one has all pages in use, the other the last tokens of them in the reverse order.
test_case build_dequantize_and_gather(draw& from, reach_by by, std::int64_t record) {
  constexpr std::int64_t offset = 3;
  const paging p = paging_of(by, 16, record);
  std::vector<std::int64_t> pages = pages_in_use(p);
  const std::int64_t columns = length(pages), tokens = columns * p.block_size;
  std::vector<std::int64_t> table = pages;
  table.insert(table.end(), pages.rbegin(), pages.rend());
  test_case made;
  made.attributes = {
      {"block_size", p.block_size}, {"offset", offset}, {"use_fnuz", std::int64_t{0}}};
  made.inputs.push_back(make_buffer("out", dtype::bf16, dense({2, tokens + offset, 512})));
  made.inputs.push_back(make_cache(from, "k_cache", dtype::u8, p));
  made.inputs.push_back(make_integers<std::int32_t>("seq_lens", {2}, {tokens, tokens - 1}));
  made.inputs.push_back(make_integers<std::int32_t>("gather_lens", {2}, {tokens, tokens / 2}));
  made.inputs.push_back(make_integers<std::int32_t>("block_table", {2, columns}, table));
  return made;
}

// MXFP4 or FP8 keys of 128 dims.
std::int64_t key_record(bool fp8) { return fp8 ? 132 : 68; }

test_case build_key_insert(draw& from, reach_by by, bool fp8) {
  const paging p = paging_of(by, 64, key_record(fp8));
  const std::vector<std::int64_t> slots = slots_in_use(from, p);
  const std::int64_t tokens = length(slots);
  test_case made;
  made.attributes = {{"norm_eps", 1e-6}, {"num_tokens", tokens}};
  made.inputs.push_back(make_bf16(from, "k", {tokens, 128}));
  made.inputs.push_back(make_f32(from, "norm_weight", {128}));
  made.inputs.push_back(make_f32(from, "norm_bias", {128}));
  made.inputs.push_back(make_integers<std::int64_t>("slot_mapping", {tokens}, slots));
  made.inputs.push_back(make_cache(from, "kv_cache", dtype::u8, p));
  made.inputs.push_back(make_buffer("topk_indices_buffer", dtype::i32, dense({tokens, 8})));
  return made;
}

test_case build_prologue(draw& from, reach_by by, bool fp8) {
  const paging mla = paging_of(by, 64, 656);
  const paging index = paging_of(by, 64, key_record(fp8));
  std::vector<std::int64_t> mla_slots = slots_in_use(from, mla);
  std::vector<std::int64_t> index_slots = slots_in_use(from, index);
  const std::int64_t tokens = std::max(length(mla_slots), length(index_slots));
  mla_slots.resize(static_cast<std::size_t>(tokens), -1);
  index_slots.resize(static_cast<std::size_t>(tokens), -1);
  test_case made;
  made.attributes = {{"eps", 1e-6}, {"fp8_format", std::string("e4m3fn")}};
  made.inputs.push_back(make_bf16(from, "q_c", {tokens, 256}));
  made.inputs.push_back(make_bf16(from, "kv_c", {tokens, 512}));
  made.inputs.push_back(make_bf16(from, "k_pe", {tokens, 64}));
  made.inputs.push_back(make_bf16(from, "index_k", {tokens, 128}));
  made.inputs.push_back(make_bf16(from, "q_norm_weight", {256}));
  made.inputs.push_back(make_bf16(from, "kv_norm_weight", {512}));
  made.inputs.push_back(make_f32(from, "k_norm_weight", {128}));
  made.inputs.push_back(make_f32(from, "k_norm_bias", {128}));
  made.inputs.push_back(make_buffer("topk_indices_buffer", dtype::i32, dense({tokens, 8})));
  made.inputs.push_back(make_cache(from, "mla_cache", dtype::u8, mla));
  made.inputs.push_back(make_integers<std::int64_t>("mla_slot_mapping", {tokens}, mla_slots));
  made.inputs.push_back(make_cache(from, "index_cache", dtype::u8, index));
  made.inputs.push_back(make_integers<std::int64_t>("index_slot_mapping", {tokens}, index_slots));
  return made;
}

struct rope_row {
  const char* record;
  dtype type;
  std::int64_t bytes, ratio;
};
constexpr rope_row rope_rows[] = {{"v4", dtype::u8, 584, 1},
                                  {"v41_mxfp8", dtype::u8, 528, 2},
                                  {"v41_nvfp4", dtype::u8, 288, 1},
                                  {"bf16", dtype::bf16, 1024, 2},
                                  {"fp8", dtype::f8e4m3fn, 512, 1}};

test_case build_rope_quant_insert(draw& from, reach_by by, const rope_row& row) {
  const paging p = paging_of(by, 64, row.bytes);
  const std::vector<std::int64_t> slots = slots_in_use(from, p);
  const std::int64_t tokens = length(slots);
  test_case made;
  made.attributes = {{"compress_ratio", row.ratio}, {"record", std::string(row.record)}};
  made.inputs.push_back(make_bf16(from, "latent", {tokens, 512}));
  made.inputs.push_back(
      make_integers<std::int64_t>("positions", {tokens}, group_ends(tokens, row.ratio)));
  made.inputs.push_back(make_f32(from, "cos_sin_cache", {tokens * row.ratio, 64}));
  made.inputs.push_back(make_cache(from, "kv_cache", row.type, p));
  made.inputs.push_back(make_integers<std::int64_t>("slot_mapping", {tokens}, slots));
  if (row.type == dtype::f8e4m3fn) made.inputs.push_back(make_f32(from, "fp8_scale", {1}));
  return made;
}

struct key_store {
  const char* name;
  bool fp4, shuffle;
  std::int64_t ratio;
};
constexpr key_store key_stores[] = {
    {"mxfp4", true, false, 1}, {"fp8", false, false, 2}, {"fp8_tiles", false, true, 1}};

test_case build_k_norm_rope_store(draw& from, reach_by by, const key_store& form) {
  const paging p = paging_of(by, 64, key_record(!form.fp4));
  const std::vector<std::int64_t> slots = slots_in_use(from, p);
  const std::int64_t tokens = length(slots);
  test_case made;
  made.attributes = {{"rms_norm_eps", 1e-6},
                     {"compress_ratio", form.ratio},
                     {"use_fp4_cache", std::int64_t{form.fp4 ? 1 : 0}},
                     {"shuffle", std::int64_t{form.shuffle ? 1 : 0}}};
  made.inputs.push_back(make_bf16(from, "k_pre", {tokens, 128}));
  made.inputs.push_back(
      make_integers<std::int64_t>("positions", {tokens}, group_ends(tokens, form.ratio)));
  made.inputs.push_back(make_f32(from, "cos_sin_cache", {tokens * form.ratio, 64}));
  made.inputs.push_back(make_bf16(from, "rms_norm_weight", {128}));
  made.inputs.push_back(make_cache(from, "k_cache", dtype::u8, p));
  made.inputs.push_back(make_integers<std::int64_t>("kv_slot_mapping", {tokens}, slots));
  return made;
}

// A request for each page in use, of two tokens: the first ends a group whose earlier row is in the
// ring, and both rows go into the ring.
test_case build_save_compress_norm(draw& from, reach_by by) {
  constexpr std::int64_t capacity = 8;
  const paging p = paging_of(by, capacity, 4096);
  const std::vector<std::int64_t> pages = pages_in_use(p);
  const std::int64_t requests = length(pages), tokens = 2 * requests;
  std::vector<std::int64_t> positions, slots, starts, owners;
  for (std::int64_t r = 0; r < requests; ++r) {
    starts.push_back(2 * r);
    for (std::int64_t i = 0; i < 2; ++i) {
      const std::int64_t position = 6 * r + 1 + i;
      positions.push_back(position);
      slots.push_back(pages[static_cast<std::size_t>(r)] * capacity + position % capacity);
      owners.push_back(r);
    }
  }
  starts.push_back(tokens);
  test_case made;
  made.attributes = {{"rms_norm_eps", 1e-6}, {"compress_ratio", std::int64_t{2}}};
  made.inputs.push_back(make_f32(from, "kv_score", {tokens, 1024}));
  made.inputs.push_back(make_integers<std::int64_t>("positions", {tokens}, positions));
  made.inputs.push_back(make_cache(from, "state_cache", dtype::f32, p));
  made.inputs.push_back(make_integers<std::int64_t>("slot_mapping", {tokens}, slots));
  made.inputs.push_back(make_integers<std::int32_t>("query_start_loc", {requests + 1}, starts));
  made.inputs.push_back(make_integers<std::int32_t>("token_to_req_indices", {tokens}, owners));
  made.inputs.push_back(make_bf16(from, "rms_norm_weight", {512}));
  made.inputs.push_back(make_buffer("latent_out", dtype::bf16, dense({tokens, 512})));
  return made;
}

// A form of a kernel's record: the first of a kernel goes through every way past the borders, the
// others through two.
struct form {
  std::string name;
  std::function<test_case(draw&, reach_by)> build;
};

std::vector<form> forms_of(std::string_view kernel) {
  std::vector<form> forms;
  const auto add = [&](std::string name, const auto& build, const auto&... options) {
    forms.push_back({std::move(name), [build, options...](draw& from, reach_by by) {
                       return build(from, by, options...);
                     }});
  };
  if (kernel == "quantize_and_insert_k_cache") {
    for (const std::int64_t record : {584, 528}) {
      add(fmt::format("r{}", record), build_quantize_and_insert, record);
    }
  } else if (kernel == "dequantize_and_gather_k_cache") {
    for (const std::int64_t record : {584, 528, 288}) {
      add(fmt::format("r{}", record), build_dequantize_and_gather, record);
    }
  } else if (kernel == "mxfp4_k_norm_quant_insert") {
    add("d128", build_key_insert, false);
  } else if (kernel == "indexer_k_norm_quant_insert") {
    add("d128", build_key_insert, true);
  } else if (kernel == "mxfp4_fused_prologue") {
    add("d128", build_prologue, false);
  } else if (kernel == "dsa_fused_prologue") {
    add("d128", build_prologue, true);
  } else if (kernel == "rope_quant_insert") {
    for (const rope_row& row : rope_rows) add(row.record, build_rope_quant_insert, row);
  } else if (kernel == "indexer_k_norm_rope_store") {
    for (const key_store& store : key_stores) add(store.name, build_k_norm_rope_store, store);
  } else if (kernel == "fused_save_compress_norm") {
    add("ring8", build_save_compress_norm);
  }
  return forms;
}

}  // namespace

void add_sparse_cases(std::vector<case_spec>& to, std::string_view kernel, std::uint64_t seed) {
  const std::vector<form> forms = forms_of(kernel);
  for (const form& f : forms) {
    for (const reach_by by : all_reaches) {
      const bool first = &f == forms.data();
      if (!first && by != reach_by::pages_4g && by != reach_by::stride_1g) continue;
      case_spec spec;
      spec.kernel = kernel;
      spec.name = fmt::format("{}_{}", name_of(by), f.name);
      add_flags(spec.flags, flags_of(by));
      spec.from = level::acceptance;
      spec.build = [build = f.build, by, seed, kernel = spec.kernel, name = spec.name,
                    flags = spec.flags] {
        draw from(seed_of(seed, kernel, name));
        test_case made = build(from, by);
        made.kernel = kernel;
        made.name = name;
        made.flags = flags;
        return made;
      };
      to.push_back(std::move(spec));
    }
  }
}

}  // namespace kvcts
