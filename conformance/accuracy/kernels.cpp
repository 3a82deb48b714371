// What each kernel computes, and where a reader finds it.
#include <algorithm>
#include <optional>
#include <stdexcept>

#include "conformance/accuracy/accuracy.h"
#include "conformance/accuracy/exact.h"
#include "reference/contract/pages.h"

namespace kvcts {
namespace {

using exact::row;

double number_at(const tensor_view& v, const std::byte* element) {
  return stored_at(v.type, element).value;
}

row numbers_of(const tensor_view& v) {  // [n]
  row x;
  for (std::int64_t i = 0; i < v.dim(0); ++i) x.push_back(number_at(v, v.element(i)));
  return x;
}

row row_of(const tensor_view& v, std::int64_t i) {  // [rows, n]
  row x;
  x.reserve(static_cast<std::size_t>(v.dim(1)));
  for (std::int64_t d = 0; d < v.dim(1); ++d) x.push_back(number_at(v, v.element(i, d)));
  return x;
}

row row_of(const tensor_view& v, std::int64_t i, std::int64_t j) {  // [rows, rows, n]
  row x;
  x.reserve(static_cast<std::size_t>(v.dim(2)));
  for (std::int64_t d = 0; d < v.dim(2); ++d) x.push_back(number_at(v, v.element(i, j, d)));
  return x;
}

// Elements [0, n) that `element` gives, times the scale of each.
template <class Element, class Scale>
std::vector<stored_number> stored_row(std::int64_t n, dtype type, Element&& element,
                                      Scale&& scale) {
  std::vector<stored_number> values;
  values.reserve(static_cast<std::size_t>(n));
  for (std::int64_t d = 0; d < n; ++d) {
    values.push_back(scaled(stored_at(type, element(d)), scale(d)));
  }
  return values;
}

double unscaled(std::int64_t /*dim*/) { return 1; }

std::int64_t slot_at(const tensor_view& slots, std::int64_t token) {
  return load<std::int64_t>(slots.element(token));
}

// Of a row of packed codes with a scale for 32 dims.
template <class Codes, class Scale>
std::vector<stored_number> stored_mxfp4(std::int64_t dims, Codes&& byte_at, Scale&& scale_byte) {
  std::vector<stored_number> values;
  values.reserve(static_cast<std::size_t>(dims));
  double scale = 0;
  for (std::int64_t d = 0; d < dims; ++d) {
    if (d % 32 == 0) scale = stored_at(dtype::ue8m0, scale_byte(d / 32)).value;
    const auto codes = load<std::uint8_t>(byte_at(d / 2));
    const auto code = static_cast<std::uint8_t>(d % 2 == 0 ? codes & 0xF : codes >> 4);
    values.push_back(scaled(stored_e2m1(code), scale));
  }
  return values;
}

class measurement {
 public:
  measurement(const call& before, const call& after, const bindings& names)
      : before_(before), after_(after), names_(names) {}

  void mxfp4_q_quant();
  void key_insert();
  void prologue();
  void quantize_and_insert();
  void gather();
  void indexer_query();
  void inverse_rope();
  void indexer_key_store();
  void save_compress_norm();
  void rope_insert();
  void q_kv_norm();

  std::vector<accuracy_row> rows() const {
    std::vector<accuracy_row> made;
    for (const auto& [argument, sums] : sums_) {
      if (sums.empty()) continue;
      made.push_back(sums.result());
      made.back().argument = argument;
    }
    return made;
  }

 private:
  const tensor_view& in(std::string_view name) const { return before_.tensor(name); }
  error_sums& sums(const char* argument) { return sums_[argument]; }

  // A row of a 2-D result without scales.
  void compare_row(const char* argument, std::int64_t i, const row& exact) {
    const tensor_view& got = after_.tensor(argument);
    sums(argument).add(exact, stored_row(
                                  got.dim(1), got.type,
                                  [&](std::int64_t d) { return got.element(i, d); }, unscaled));
  }

  // The records of tokens [0, tokens) with a slot; of two tokens with one slot the later.
  // `exact(t)` gives a token's row.
  template <class Exact>
  void compare_records(const char* cache, const tensor_view& slots, std::int64_t tokens,
                       Exact&& exact, double tensor_scale = 1) {
    const std::optional<paged_view> pages =
        paged_view_of(contract_of(after_.kernel), after_, names_, cache);
    if (!pages) throw std::logic_error("no page view");
    std::map<std::int64_t, std::int64_t> token_of;
    for (std::int64_t t = 0; t < std::min(tokens, slots.dim(0)); ++t) {
      if (slot_at(slots, t) >= 0) token_of[slot_at(slots, t)] = t;
    }
    const std::byte* storage = after_.tensor(cache).storage;
    error_sums& to = sums_[std::string(cache) + " (" + pages->record.name + ")"];
    for (const auto& [slot, token] : token_of) {
      const std::optional<row> wanted = exact(token);
      if (wanted) to.add(*wanted, stored_record(*pages, storage, slot, tensor_scale));
    }
  }

  std::optional<std::int64_t> group_end(std::int64_t token) const {
    const auto position = load<std::int64_t>(in("positions").element(token));
    if ((position + 1) % before_.integer("compress_ratio") != 0) return std::nullopt;
    return position;
  }
  // The position that a group's key or latent rotates at: its first.
  std::int64_t first_of_group(std::int64_t position) const {
    const std::int64_t ratio = before_.integer("compress_ratio");
    return position / ratio * ratio;
  }

  const call& before_;
  const call& after_;
  const bindings& names_;
  std::map<std::string, error_sums> sums_;
};

void measurement::mxfp4_q_quant() {
  const tensor_view& q = in("index_q");
  const tensor_view& weights = in("index_weights");
  const tensor_view& packed = after_.tensor("q_packed");
  const tensor_view& scale = after_.tensor("q_scale");  // four bytes a head
  const tensor_view& out = after_.tensor("weights");
  const double factor = before_.real("weight_scale");
  for (std::int64_t t = 0; t < q.dim(0); ++t) {
    for (std::int64_t h = 0; h < q.dim(1); ++h) {
      sums("q_packed")
          .add(row_of(q, t, h),
               stored_mxfp4(
                   q.dim(2), [&](std::int64_t i) { return packed.element(t, h, i); },
                   [&](std::int64_t block) { return scale.element(t, h) + block; }));
    }
    row wanted = row_of(weights, t);
    for (double& w : wanted) w *= factor;
    sums("weights").add(wanted, stored_row(
                                    q.dim(1), out.type,
                                    [&](std::int64_t h) { return out.element(t, h); }, unscaled));
  }
}

void measurement::key_insert() {
  const row weight = numbers_of(in("norm_weight"));
  const row bias = numbers_of(in("norm_bias"));
  compare_records("kv_cache", in("slot_mapping"), before_.integer("num_tokens"),
                  [&](std::int64_t t) -> std::optional<row> {
                    return exact::layer_norm(row_of(in("k"), t), weight, bias,
                                             before_.real("norm_eps"));
                  });
}

void measurement::prologue() {
  const double eps = before_.real("eps");
  const std::int64_t tokens = in("q_c").dim(0);
  const row q_weight = numbers_of(in("q_norm_weight"));
  const row kv_weight = numbers_of(in("kv_norm_weight"));
  std::vector<row> kv;
  for (std::int64_t t = 0; t < tokens; ++t) {
    kv.push_back(exact::rms_norm(row_of(in("kv_c"), t), kv_weight, eps));
    compare_row("kv_c_normed", t, kv.back());
    compare_row("q_c_normed", t, exact::rms_norm(row_of(in("q_c"), t), q_weight, eps));
  }
  if (before_.find("mla_cache") != nullptr && before_.find("mla_slot_mapping") != nullptr) {
    compare_records(
        "mla_cache", in("mla_slot_mapping"), tokens,
        [&](std::int64_t t) -> std::optional<row> { return kv[static_cast<std::size_t>(t)]; });
  }
  if (before_.find("index_cache") != nullptr && before_.find("index_slot_mapping") != nullptr) {
    const row weight = numbers_of(in("k_norm_weight"));
    const row bias = numbers_of(in("k_norm_bias"));
    compare_records("index_cache", in("index_slot_mapping"), tokens,
                    [&](std::int64_t t) -> std::optional<row> {
                      return exact::layer_norm(row_of(in("index_k"), t), weight, bias, eps);
                    });
  }
}

void measurement::quantize_and_insert() {
  compare_records("k_cache", in("slot_mapping"), in("k").dim(0),
                  [&](std::int64_t t) -> std::optional<row> { return row_of(in("k"), t); });
}

// The record's own numbers are the exact ones.
void measurement::gather() {
  const std::optional<paged_view> pages =
      paged_view_of(contract_of(before_.kernel), before_, names_, "k_cache");
  if (!pages) throw std::logic_error("no page view");
  const tensor_view& seq_lens = in("seq_lens");
  const tensor_view* gather_lens = before_.find("gather_lens");
  const tensor_view& table = in("block_table");
  const tensor_view& out = after_.tensor("out");
  const std::int64_t block_size = before_.integer("block_size");
  for (std::int64_t r = 0; r < seq_lens.dim(0); ++r) {
    const std::int64_t seq_len = load<std::int32_t>(seq_lens.element(r));
    const std::int64_t gathered =
        gather_lens == nullptr ? seq_len : load<std::int32_t>(gather_lens->element(r));
    for (std::int64_t i = 0; i < gathered; ++i) {
      const std::int64_t position = seq_len - gathered + i;
      const std::int64_t page = load<std::int32_t>(table.element(r, position / block_size));
      const std::vector<stored_number> record =
          stored_record(*pages, in("k_cache").storage, page * block_size + position % block_size);
      row wanted;
      for (const stored_number& number : record) wanted.push_back(number.value);
      const std::int64_t to = before_.integer("offset") + i;
      sums("out").add(wanted, stored_row(
                                  static_cast<std::int64_t>(record.size()), out.type,
                                  [&](std::int64_t d) { return out.element(r, to, d); }, unscaled));
    }
  }
}

// FP8 codes have no scale of their own beside them: it is in the weight that scores are multiplied
// by, and their product is what counts.
void measurement::indexer_query() {
  const tensor_view& q = in("index_q");
  const tensor_view& weights = in("index_weights");
  const tensor_view& out = after_.tensor("weights_out");
  const double factor = static_cast<double>(before_.real("index_weights_softmax_scale")) *
                        static_cast<double>(before_.real("index_weights_head_scale"));
  const bool fp4 = before_.integer("use_fp4") != 0;
  for (std::int64_t t = 0; t < q.dim(0); ++t) {
    const auto position = load<std::int64_t>(in("positions").element(t));
    const row cos_sin = row_of(in("index_q_cos_sin_cache"), position);
    row weights_of_token;
    for (std::int64_t h = 0; h < q.dim(1); ++h) {
      row x = row_of(q, t, h);
      exact::rotate(x, cos_sin);
      const double weight = number_at(weights, weights.element(t, h)) * factor;
      weights_of_token.push_back(weight);
      if (fp4) {
        const tensor_view& packed = after_.tensor("q_packed");
        const tensor_view& scale = after_.tensor("q_scale");
        sums("q_packed")
            .add(x, stored_mxfp4(
                        q.dim(2), [&](std::int64_t i) { return packed.element(t, h, i); },
                        [&](std::int64_t block) { return scale.element(t, h, block); }));
        continue;
      }
      const tensor_view& codes = after_.tensor("q_quant");
      const double stored_weight = number_at(out, out.element(t, h));
      for (double& value : x) value *= weight;
      sums("q_quant").add(
          x, stored_row(
                 q.dim(2), codes.type, [&](std::int64_t d) { return codes.element(t, h, d); },
                 [&](std::int64_t /*dim*/) { return stored_weight; }));
    }
    if (!fp4) continue;
    sums("weights_out")
        .add(weights_of_token,
             stored_row(
                 q.dim(1), out.type, [&](std::int64_t h) { return out.element(t, h); }, unscaled));
  }
}

void measurement::inverse_rope() {
  const tensor_view& o = in("o");
  const tensor_view& output = after_.tensor("output");
  const tensor_view* scales = after_.find("scales");
  const std::int64_t heads = before_.integer("heads_per_group");
  const std::int64_t group_size = before_.integer("quant_group_size");
  const bool packed = before_.integer("tma_aligned_scales") != 0;
  const std::int64_t dims = o.dim(2);
  const std::int64_t inner = heads * (dims / group_size) / (packed ? 4 : 1);
  const std::int64_t padded = (o.dim(0) + 3) / 4 * 4;
  const auto scale_of = [&](std::int64_t group, std::int64_t block, std::int64_t t) {
    if (scales == nullptr) return 1.0;
    const std::int64_t k = packed ? block / 4 : block;
    const std::byte* element = scales->element(group * inner * padded + k * padded + t);
    return packed ? stored_at(dtype::ue8m0, element + block % 4).value
                  : stored_at(dtype::f32, element).value;
  };
  for (std::int64_t t = 0; t < o.dim(0); ++t) {
    const auto position = load<std::int64_t>(in("positions").element(t));
    const row cos_sin = row_of(in("cos_sin_cache"), position);
    for (std::int64_t h = 0; h < o.dim(1); ++h) {
      row x = row_of(o, t, h);
      exact::rotate_back(x, cos_sin);
      const std::int64_t group = h / heads;
      const std::int64_t first = h % heads * dims;  // of the group's row
      sums("output").add(
          x, stored_row(
                 dims, output.type,
                 [&](std::int64_t d) { return output.element(group, t, first + d); },
                 [&](std::int64_t d) { return scale_of(group, (first + d) / group_size, t); }));
    }
  }
}

void measurement::indexer_key_store() {
  const row weight = numbers_of(in("rms_norm_weight"));
  compare_records("k_cache", in("kv_slot_mapping"), in("k_pre").dim(0),
                  [&](std::int64_t t) -> std::optional<row> {
                    const std::optional<std::int64_t> position = group_end(t);
                    if (!position) return std::nullopt;
                    row x = exact::rms_norm(row_of(in("k_pre"), t), weight,
                                            before_.real("rms_norm_eps"));
                    exact::rotate(x, row_of(in("cos_sin_cache"), first_of_group(*position)));
                    return x;
                  });
}

// The earlier row of a group that began in another chunk is in the ring as it was before the call.
void measurement::save_compress_norm() {
  const tensor_view& slots = in("slot_mapping");
  const row weight = numbers_of(in("rms_norm_weight"));
  for (std::int64_t t = 0; t < slots.dim(0); ++t) {
    const std::int64_t slot = slot_at(slots, t);
    const std::optional<std::int64_t> position = group_end(t);
    if (slot < 0 || !position) continue;
    row latent = row_of(in("kv_score"), t);
    if (before_.integer("compress_ratio") == 2) {
      const auto request = load<std::int32_t>(in("token_to_req_indices").element(t));
      if (t > load<std::int32_t>(in("query_start_loc").element(request))) {
        latent = exact::pool(row_of(in("kv_score"), t - 1), latent);
      } else {
        const tensor_view& ring = in("state_cache");
        const std::int64_t capacity = ring.dim(1);
        latent = exact::pool(row_of(ring, slot / capacity, (*position - 1) % capacity), latent);
      }
    }
    compare_row("latent_out", t, exact::rms_norm(latent, weight, before_.real("rms_norm_eps")));
  }
}

void measurement::rope_insert() {
  double tensor_scale = 1;
  if (before_.text("record") == "fp8") tensor_scale = numbers_of(in("fp8_scale"))[0];
  compare_records(
      "kv_cache", in("slot_mapping"), in("latent").dim(0),
      [&](std::int64_t t) -> std::optional<row> {
        const std::optional<std::int64_t> position = group_end(t);
        if (!position) return std::nullopt;
        row x = row_of(in("latent"), t);
        exact::rotate(x, row_of(in("cos_sin_cache"), first_of_group(*position)));
        return x;
      },
      tensor_scale);
}

void measurement::q_kv_norm() {
  const tensor_view& qr = in("qr");
  const double eps = before_.real("eps");
  const row q_weight = numbers_of(in("q_weight"));
  const row kv_weight = numbers_of(in("kv_weight"));
  const tensor_view& codes = after_.tensor("q_quant");
  const tensor_view& scales = after_.tensor("q_scales");
  const std::int64_t groups = qr.dim(1) / 32;
  for (std::int64_t t = 0; t < qr.dim(0); ++t) {
    compare_row("kv_out", t, exact::rms_norm(row_of(in("kv"), t), kv_weight, eps));
    sums("q_quant").add(
        exact::rms_norm(row_of(qr, t), q_weight, eps),
        stored_row(
            qr.dim(1), codes.type, [&](std::int64_t d) { return codes.element(t, d); },
            [&](std::int64_t d) {
              return number_at(scales, scales.element(swizzled_offset(t, d / 32, groups)));
            }));
  }
}

struct kernel_measure {
  std::string_view kernel;
  void (measurement::*measure)();
};
constexpr kernel_measure measures[] = {
    {"mxfp4_q_quant", &measurement::mxfp4_q_quant},
    {"mxfp4_k_norm_quant_insert", &measurement::key_insert},
    {"indexer_k_norm_quant_insert", &measurement::key_insert},
    {"mxfp4_fused_prologue", &measurement::prologue},
    {"dsa_fused_prologue", &measurement::prologue},
    {"quantize_and_insert_k_cache", &measurement::quantize_and_insert},
    {"dequantize_and_gather_k_cache", &measurement::gather},
    {"fused_indexer_q_rope_quant", &measurement::indexer_query},
    {"fused_inv_rope_fp8_quant", &measurement::inverse_rope},
    {"indexer_k_norm_rope_store", &measurement::indexer_key_store},
    {"fused_save_compress_norm", &measurement::save_compress_norm},
    {"rope_quant_insert", &measurement::rope_insert},
    {"fused_q_kv_rmsnorm_quant", &measurement::q_kv_norm},
};

const kernel_measure* measure_of(std::string_view kernel) {
  for (const kernel_measure& m : measures) {
    if (m.kernel == kernel) return &m;
  }
  return nullptr;
}

}  // namespace

bool has_accuracy(std::string_view kernel) { return measure_of(kernel) != nullptr; }

std::vector<accuracy_row> accuracy_of(const call& before, const call& after,
                                      const bindings& names) {
  const kernel_measure* m = measure_of(before.kernel);
  if (m == nullptr) return {};
  measurement made(before, after, names);
  (made.*m->measure)();
  return made.rows();
}

}  // namespace kvcts
