// A fuzz case as a call: sizes by the plan, everything else by the contract.
#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

#include "conformance/cases/norm_rows.h"
#include "conformance/cases/rotation.h"
#include "conformance/cases/slots.h"
#include "fuzz/case.h"
#include "reference/numerics/rules.h"

namespace kvcts {
namespace {

constexpr double reals[] = {1.0, 0.08838834764831845, 0x1.000003p0, -0.3,
                            0.0, 0x1.8p-130,          3.0e38,       1e-3};
constexpr double epsilons[] = {1e-6, 1e-5, 0.0, 1e-12, 0.25};

// How the parameters of norms are made: the knob "norm".
enum class norm_mode : std::uint8_t { ones, drawn, through, border };

bool is_page_view(const argument_spec& a) { return a.strides == stride_rule::pages; }

std::vector<std::int64_t> up_to(std::size_t count) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(static_cast<std::int64_t>(i));
  return numbers;
}

std::vector<fuzz_knob> make_knobs(const fuzz_plan& plan) {
  static std::deque<std::string> texts;  // what the names lie in
  std::vector<fuzz_knob> all = plan.knobs;
  std::set<std::string_view> taken;
  for (const fuzz_knob& k : all) taken.insert(k.name);
  const auto add = [&](const std::string& name, std::vector<std::int64_t> values) {
    if (taken.count(name) != 0) return;
    texts.push_back(name);
    all.push_back({texts.back(), std::move(values)});
  };
  const kernel_contract& contract = contract_of(plan.kernel);
  for (const attribute_spec& a : contract.attributes) {
    const std::string name(a.name);
    if (a.kind == attribute_kind::boolean) add(name, {0, 1});
    if (a.kind == attribute_kind::real) {
      const bool epsilon = name.find("eps") != std::string::npos;
      add(name + "_real", up_to(epsilon ? std::size(epsilons) : std::size(reals)));
    }
    // One more than there are leaves an optional one out.
    if (a.kind == attribute_kind::text) {
      add(name + "_choice", up_to(a.choices.size() + (a.optional ? 1 : 0)));
    }
  }
  for (const argument_spec& a : contract.arguments) {
    if (a.direction == role::output) continue;
    const std::string name(a.name);
    if (a.dtypes.size() > 1) add("type_" + name, up_to(a.dtypes.size()));
    if (a.optional) add("has_" + name, {1, 0});
    if (is_page_view(a)) {
      add("gap_" + name, plan.f32_scales ? std::vector<std::int64_t>{0, 16, 4, 1168}
                                         : std::vector<std::int64_t>{0, 16, 5, 1168});
      add("offset_" + name, plan.f32_scales ? std::vector<std::int64_t>{0, 64, 4}
                                            : std::vector<std::int64_t>{0, 64, 3});
    } else if (a.strides == stride_rule::rows) {
      add("gap_" + name, {0, 8, 5, 64});
      add("offset_" + name, {0, 8, 3});
    }
  }
  add("content", up_to(std::size(all_contents)));
  // Of what is put past a norm: as `content`, quotient, divided.
  if (taken.count("norm") != 0) add("parameters", up_to(3));
  add("turns", up_to(5));
  add("guard", {0, 8, 12});
  add("warm", {0, 1});
  add("negative", {0, 1});
  return all;
}

class builder {
 public:
  explicit builder(const fuzz_case& c) : case_(c), contract_(contract_of(c.plan->kernel)) {}

  test_case build() {
    made_.kernel = contract_.name;
    name_everything();
    if (case_.plan->indices != nullptr) case_.plan->indices(case_, names_, made_);
    set_attributes();
    for (const argument_spec& a : contract_.arguments) {
      if (a.direction == role::output || find_buffer(made_.inputs, a.name) != nullptr) continue;
      if (a.optional && names_.at("has_" + std::string(a.name)) == 0) continue;
      const fuzz_fill* fill = fill_of(a.name);
      if (fill == nullptr || fill->kind == fill_kind::norm_bias) continue;
      add(a, *fill);
    }
    overlay_rotated_values();
    in_contract_order();
    return std::move(made_);
  }

 private:
  std::int64_t value_of(std::string_view expression) {
    call context;
    context.attributes = made_.attributes;
    return evaluate(expression, names_, context);
  }
  bool has(std::string_view name) const { return names_.find(name) != names_.end(); }
  std::int64_t named(std::string_view name, std::int64_t otherwise = 0) const {
    const auto at = names_.find(name);
    return at == names_.end() ? otherwise : at->second;
  }
  norm_mode norm() const { return static_cast<norm_mode>(named("norm")); }

  const fuzz_fill* fill_of(std::string_view argument) const {
    for (const fuzz_fill& f : case_.plan->fills) {
      if (f.argument == argument) return &f;
    }
    return nullptr;
  }

  void name_everything() {
    names_["T"] = static_cast<std::int64_t>(case_.tokens.size());
    names_["H"] = static_cast<std::int64_t>(case_.heads.size());
    const std::vector<fuzz_knob>& knobs = knobs_of(*case_.plan);
    for (std::size_t i = 0; i < knobs.size(); ++i) {
      const std::size_t turn = i < case_.knobs.size() ? case_.knobs[i] : 0;
      names_[std::string(knobs[i].name)] = knobs[i].values.at(turn);
    }
    set_texts();
    for (const auto& [name, expression] : case_.plan->derived) {
      names_[std::string(name)] = value_of(expression);
      set_texts();
    }
    // Pages enough for every slot, and some more.
    for (const fuzz_fill& f : case_.plan->fills) {
      if (f.kind != fill_kind::slots) continue;
      const argument_spec& cache = *contract_.argument(f.with);
      const std::string first(list_of(cache.shape)[0]);
      const std::int64_t slots = value_of(contract_.argument(f.argument)->shape);
      names_[first] = (slots + slots / 3) / page_tokens(cache) + 2;
    }
  }

  std::int64_t page_tokens(const argument_spec& cache) { return value_of(list_of(cache.shape)[1]); }

  void set_texts() {
    for (const attribute_spec& a : contract_.attributes) {
      if (a.kind != attribute_kind::text) continue;
      const auto choice = static_cast<std::size_t>(named(std::string(a.name) + "_choice"));
      made_.attributes.erase(std::string(a.name));
      if (choice < a.choices.size()) {
        made_.attributes[std::string(a.name)] = std::string(a.choices[choice]);
      }
    }
  }

  void set_attributes() {
    for (const attribute_spec& a : contract_.attributes) {
      const std::string name(a.name);
      if (a.kind == attribute_kind::real) {
        const auto number = static_cast<std::size_t>(named(name + "_real"));
        const bool epsilon = name.find("eps") != std::string::npos;
        double value = epsilon ? epsilons[number] : reals[number];
        if (epsilon && norm() == norm_mode::through) value = 0;
        made_.attributes[name] = value;
      } else if (a.kind != attribute_kind::text && has(name) && !(a.optional && named(name) == 0)) {
        made_.attributes[name] = named(name);
      }
    }
  }

  dtype type_of(const argument_spec& a) {
    const auto turn = static_cast<std::size_t>(named("type_" + std::string(a.name)));
    if (a.dtype_when.empty()) return a.dtypes[turn % a.dtypes.size()];
    std::vector<dtype> allowed;
    for (std::size_t i = 0; i < a.dtypes.size(); ++i) {
      if (value_of(a.dtype_when[i]) != 0) allowed.push_back(a.dtypes[i]);
    }
    return allowed.at(turn % allowed.size());
  }

  extent extent_of(const argument_spec& a) {
    std::vector<std::int64_t> shape;
    for (const std::string_view dim : list_of(a.shape)) {
      if (dim != "...") {
        shape.push_back(value_of(dim));
        continue;
      }
      const std::int64_t further[] = {named("row", 5), 3};
      shape.insert(shape.end(), further, further + named("further"));
    }
    if (a.strides == stride_rule::dense) return dense(shape);
    const std::int64_t gap = named("gap_" + std::string(a.name));
    extent made = dense(shape);
    made.offset = named("offset_" + std::string(a.name));
    for (std::size_t i = shape.size() - 1; i-- > 0;) {
      made.strides[i] = shape[i + 1] * made.strides[i + 1] + gap;
    }
    return made;
  }

  // The number of row i, or of what lies behind the tokens.
  std::uint64_t number_of(const argument_spec& a, std::int64_t row) const {
    const auto i = static_cast<std::size_t>(row);
    const bool by_token = a.axes.substr(0, 5) == "token";
    if (by_token && i < case_.tokens.size()) return case_.tokens[i];
    return (std::uint64_t{1} << 32) + i;
  }
  std::uint64_t head_number(std::int64_t head) const {
    const auto i = static_cast<std::size_t>(head);
    return i < case_.heads.size() ? case_.heads[i] : i;
  }

  block_rules rules_of(const fuzz_fill& fill) const {
    const auto text = [&](const char* name) {
      const auto at = made_.attributes.find(name);
      const auto* found =
          at == made_.attributes.end() ? nullptr : std::get_if<std::string>(&at->second);
      return found == nullptr ? std::string() : *found;
    };
    const bool fnuz = named("use_fnuz") != 0 || text("fp8_format") == "e4m3fnuz";
    const fp8_format format = fnuz ? fp8_format::e4m3fnuz : fp8_format::e4m3fn;
    // Kernels with both element formats.
    if (named("use_fp4") != 0 || named("use_fp4_cache") != 0) return e2m1_rules();
    switch (fill.rules) {
      case fuzz_rules::e2m1:
        return e2m1_rules();
      case fuzz_rules::e4m3:
        return e4m3_rules(format);
      case fuzz_rules::e4m3_low:
        return e4m3_rules_low_floor();
      case fuzz_rules::e4m3_down:
        return e4m3_rules_down_to(format, text("mla_scale_rule") == "pow2" ? -13 : -126);
      case fuzz_rules::nvfp4:
        return text("record") == "v41_nvfp4" ? nvfp4_rules() : e4m3_rules(format);
    }
    return e2m1_rules();
  }

  content chosen_content() const {
    return all_contents[static_cast<std::size_t>(named("content"))];
  }

  content parameter_content() const {
    const std::int64_t turn = named("parameters");
    return turn == 0 ? chosen_content() : turn == 1 ? content::quotient : content::divided;
  }

  void add(const argument_spec& a, const fuzz_fill& fill) {
    if (fill.kind == fill_kind::table) {
      made_.inputs.push_back(
          the_rotation().table(a.name, type_of(a), named("gap_" + std::string(a.name))));
      return;
    }
    if (fill.kind == fill_kind::norm_weight) {
      add_norm(a, fill);
      return;
    }
    buffer b = make_buffer(a.name, type_of(a), extent_of(a), named("guard"));
    switch (fill.kind) {
      case fill_kind::rows:
        fill_rows(a, fill, b);
        break;
      case fill_kind::numbers:
        fill_numbers(a, b);
        break;
      case fill_kind::positions:
        fill_positions(fill, b);
        break;
      case fill_kind::slots: {
        const std::vector<std::int64_t> slots = slots_of(fill);
        for (std::size_t i = 0; i < slots.size(); ++i) {
          store(b.view().element(static_cast<std::int64_t>(i)), slots[i]);
        }
        break;
      }
      case fill_kind::pages: {
        draw from = draw_of(case_, a.name);
        b = draw_pages(from, a.name, b.type,
                       {.blocks = b.at.shape[0],
                        .block_size = b.at.shape[1],
                        .row = b.at.shape[2],
                        .page_gap = named("gap_" + std::string(a.name)),
                        .offset = named("offset_" + std::string(a.name)),
                        .guard = named("guard"),
                        .warm = named("warm") != 0});
        break;
      }
      default: {
        draw from = draw_of(case_, a.name);
        for (std::byte& byte : b.bytes) byte = static_cast<std::byte>(from.bits() >> 32);
      }
    }
    made_.inputs.push_back(std::move(b));
  }

  double epsilon() const {
    for (const auto& [name, value] : made_.attributes) {
      if (name.find("eps") != std::string::npos) return std::get<double>(value);
    }
    return 0;
  }

  // How the rows of an argument are normalized, if they are and the knob asks for borders.
  std::optional<row_norm> norm_of_rows(const argument_spec& a) {
    if (norm() != norm_mode::border) return std::nullopt;
    for (const fuzz_fill& f : case_.plan->fills) {
      if (f.kind != fill_kind::norm_weight || f.with != a.name || f.sum.empty()) continue;
      const row_reduction row = row_of(contract_.reduction(f.sum), names_);
      return row_norm{
          .tree = rules_for(profile::nvidia).tree(row.padded, row.element_bytes, row.warps),
          .eps = epsilon(),
          .layer = !f.bias.empty()};
    }
    return std::nullopt;
  }

  // True where an RMSNorm of these rows is to give +-1.
  bool carries_sign(std::string_view rows) const {
    if (norm() != norm_mode::through) return false;
    return std::any_of(case_.plan->fills.begin(), case_.plan->fills.end(), [&](const fuzz_fill& f) {
      return f.kind == fill_kind::norm_weight && f.with == rows && f.bias.empty();
    });
  }

  void fill_rows(const argument_spec& a, const fuzz_fill& fill, buffer& b) {
    const tensor_view v = b.view();
    const std::int64_t block = value_of(fill.of);
    const std::int64_t dims = v.at.shape.back();
    const std::int64_t heads = v.rank() == 3 ? v.dim(1) : 1;
    const block_rules rules = rules_of(fill);
    const content what = norm() == norm_mode::border ? content::ordinary : chosen_content();
    const std::optional<row_norm> normalized = norm_of_rows(a);
    for (std::int64_t t = 0; t < v.dim(0); ++t) {
      for (std::int64_t h = 0; h < heads; ++h) {
        draw from = draw_of(case_, a.name, number_of(a, t), head_number(h));
        std::byte* to = v.rank() == 3 ? v.element(t, h, 0) : v.element(t, 0);
        if (normalized && !from.one_in(4)) {
          const norm_source source =
              from.one_in(2) ? norm_source::hard_sum : norm_source::hard_squares;
          const buffer row = draw_rows(from, a.name, {.rows = 1, .elements = dims}, source,
                                       content::ordinary, rules, block, *normalized);
          std::memcpy(to, row.bytes.data(), row.bytes.size());
          continue;
        }
        if (carries_sign(a.name) && v.type == dtype::bf16) {
          const std::int64_t exponent = from.between(-60, 60);
          for (std::int64_t d = 0; d < dims; ++d) {
            store(to + 2 * d, bf16_normal(from.one_in(2), exponent, 0));
          }
          continue;
        }
        for (std::int64_t d = 0; d < dims; d += block) {
          const std::int64_t n = std::min(block, dims - d);
          const auto number = static_cast<std::int64_t>(from.below(1u << 16));
          if (v.type == dtype::f32) {
            std::vector<std::uint32_t> bits(static_cast<std::size_t>(n));
            fill_f32_block(from, what, rules, number, bits.data(), n);
            std::memcpy(to + 4 * d, bits.data(), bits.size() * 4);
          } else {
            std::vector<std::uint16_t> bits(static_cast<std::size_t>(n));
            fill_block(from, what, rules, number, bits.data(), n);
            std::memcpy(to + 2 * d, bits.data(), bits.size() * 2);
          }
        }
      }
    }
  }

  static void put_number(std::byte* to, dtype type, std::uint32_t bits) {
    if (type == dtype::f32) {
      store(to, bits);
    } else {
      store(to, static_cast<std::uint16_t>(bits >> 16));
    }
  }

  // Row by row along the first dimension.
  void fill_numbers(const argument_spec& a, buffer& b) {
    const tensor_view v = b.view();
    for (std::int64_t i = 0; i < v.dim(0); ++i) {
      if (v.rank() == 1) {
        draw from = draw_of(case_, a.name, number_of(a, i));
        put_number(v.element(i), v.type, any_f32(from));
        continue;
      }
      for (std::int64_t j = 0; j < v.dim(1); ++j) {
        const bool by_head = a.axes == "token, head";
        draw from = draw_of(case_, a.name, number_of(a, i),
                            by_head ? head_number(j) : static_cast<std::uint64_t>(j));
        if (v.rank() == 2) {
          put_number(v.element(i, j), v.type, any_f32(from));
          continue;
        }
        for (std::int64_t k = 0; k < v.dim(2); ++k) {
          put_number(v.element(i, j, k), v.type, any_f32(from));
        }
      }
    }
  }

  // Slots that all differ; those of tokens that stay move only where they meet another.
  std::vector<std::int64_t> slots_of(const fuzz_fill& fill) {
    const argument_spec& spec = *contract_.argument(fill.argument);
    const argument_spec& cache = *contract_.argument(fill.with);
    const std::int64_t capacity = value_of(list_of(cache.shape)[0]) * page_tokens(cache);
    constexpr std::int64_t negatives[] = {-1, -2, -7, INT64_MIN, INT32_MIN, -64};
    std::set<std::int64_t> taken;
    std::vector<std::int64_t> slots;
    const std::int64_t count = value_of(spec.shape);
    for (std::int64_t i = 0; i < count; ++i) {
      draw from = draw_of(case_, fill.argument, number_of(spec, i));
      if (named("negative") != 0 && from.one_in(3)) {
        slots.push_back(negatives[from.below(std::size(negatives))]);
        continue;
      }
      std::int64_t slot = from.between(0, capacity - 1);
      if (from.one_in(6)) slot = from.one_in(2) ? 0 : capacity - 1;
      while (!taken.insert(slot).second) slot = (slot + 1) % capacity;
      slots.push_back(slot);
    }
    return slots;
  }

  void fill_positions(const fuzz_fill& fill, buffer& b) {
    const argument_spec& spec = *contract_.argument(fill.argument);
    std::vector<std::int64_t> slots;
    if (!fill.bias.empty()) slots = slots_of(*fill_of(fill.bias));
    const std::int64_t ratio = named("compress_ratio", 1), rows = named("max_pos");
    const std::int64_t last = (rows - 1) / ratio * ratio + ratio - 1;
    for (std::int64_t i = 0; i < b.at.shape[0]; ++i) {
      draw from = draw_of(case_, fill.argument, number_of(spec, i));
      const auto at = static_cast<std::size_t>(i);
      const bool unused = !fill.bias.empty() && (at >= slots.size() || slots[at] < 0);
      constexpr std::int64_t anywhere[] = {-1, std::int64_t{1} << 40, -1000, 3};
      store(b.view().element(i), unused ? anywhere[from.below(4)] : from.between(0, last));
    }
  }

  void add_norm(const argument_spec& a, const fuzz_fill& fill) {
    const std::int64_t elements = value_of(a.shape), block = value_of(fill.of);
    const auto n = static_cast<std::size_t>(elements);
    const buffer* rows = find_buffer(made_.inputs, fill.with);
    const block_rules rules = rules_of(fill);
    draw from = draw_of(case_, a.name);
    std::vector<std::uint32_t> weight(n, 0x3F800000), bias(n, 0);
    norm_mode mode = norm();
    // Borders are found for bf16 rows.
    if (mode == norm_mode::border &&
        (rows == nullptr || rows->type != dtype::bf16 || rows->at.shape[0] == 0)) {
      mode = norm_mode::drawn;
    }
    const double eps = epsilon();
    switch (mode) {
      case norm_mode::ones:
        break;
      case norm_mode::drawn:
        weight = draw_parameters(from, content::ordinary, rules, elements, block);
        bias = draw_parameters(from, content::ordinary, rules, elements, block);
        break;
      case norm_mode::through:
        (fill.bias.empty() ? weight : bias) =
            draw_parameters(from, parameter_content(), rules, elements, block);
        if (!fill.bias.empty()) weight.assign(n, from.one_in(2) ? 0 : 0x80000000);
        break;
      case norm_mode::border:
        if (fill.bias.empty()) {
          constexpr norm_border borders[] = {norm_border::bf16, norm_border::code,
                                             norm_border::code_by_bf16, norm_border::bf16_and_code};
          weight = border_weight(from, *rows, eps, borders[from.below(4)], rules, block);
        } else {
          layer_parameters made =
              residual_parameters(from, *rows, eps, fill.rules == fuzz_rules::e2m1 ? 0 : 20);
          weight = std::move(made.weight);
          bias = std::move(made.bias);
        }
    }
    made_.inputs.push_back(parameter_buffer(a.name, type_of(a), weight));
    if (fill.bias.empty()) return;
    made_.inputs.push_back(
        parameter_buffer(fill.bias, type_of(*contract_.argument(fill.bias)), bias));
  }

  const fuzz_fill* find_kind(fill_kind kind) const {
    for (const fuzz_fill& f : case_.plan->fills) {
      if (f.kind == kind) return &f;
    }
    return nullptr;
  }

  const rotation& the_rotation() {
    if (rotation_) return *rotation_;
    const fuzz_fill& fill = *find_kind(fill_kind::table);
    const fuzz_fill& rows = *find_kind(fill_kind::rows);
    draw from = draw_of(case_, fill.argument);
    rotation_options o;
    o.how = static_cast<turns>(named("turns"));
    o.dims = value_of(list_of(contract_.argument(fill.argument)->shape)[1]);
    o.rows = named("max_pos");
    o.inverse = case_.plan->kernel == "fused_inv_rope_fp8_quant";
    o.rules = rules_of(rows);
    o.block = value_of(rows.of);
    o.at = static_cast<border>(from.below(3));
    rotation_.emplace(from, o);
    return *rotation_;
  }

  // The values that belong to a table made for them.
  void overlay_rotated_values() {
    const turns how = static_cast<turns>(named("turns"));
    const fuzz_fill* at = find_kind(fill_kind::positions);
    if (at == nullptr || norm() != norm_mode::ones) return;
    if (how != turns::window && how != turns::hard) return;
    const auto find = [&](std::string_view name) {
      return std::find_if(made_.inputs.begin(), made_.inputs.end(),
                          [&](const buffer& b) { return b.name == name; });
    };
    const tensor_view positions = find(at->argument)->view();
    const tensor_view v = find(find_kind(fill_kind::rows)->argument)->view();
    const std::int64_t ratio = named("compress_ratio", 1);
    const std::int64_t rotated = the_rotation().table("", dtype::f32).at.shape[1];
    std::vector<std::uint16_t> values(static_cast<std::size_t>(rotated));
    for (std::int64_t t = 0; t < std::min(v.dim(0), positions.dim(0)); ++t) {
      const auto position = load<std::int64_t>(positions.element(t));
      if (position < 0 || position / ratio * ratio >= the_rotation().rows()) continue;
      the_rotation().put(position / ratio * ratio, values.data());
      for (std::int64_t h = 0; h < (v.rank() == 3 ? v.dim(1) : 1); ++h) {
        const std::int64_t first = v.at.shape.back() - rotated;
        std::byte* to = v.rank() == 3 ? v.element(t, h, first) : v.element(t, first);
        if (!values.empty()) std::memcpy(to, values.data(), values.size() * 2);
      }
    }
  }

  void in_contract_order() {
    std::vector<buffer> ordered;
    for (const argument_spec& a : contract_.arguments) {
      for (buffer& b : made_.inputs) {
        if (b.name == a.name) ordered.push_back(std::move(b));
      }
    }
    made_.inputs = std::move(ordered);
  }

  const fuzz_case& case_;
  const kernel_contract& contract_;
  bindings names_;
  test_case made_;
  std::optional<rotation> rotation_;
};

}  // namespace

const std::vector<fuzz_knob>& knobs_of(const fuzz_plan& plan) {
  static std::mutex guard;
  static std::map<const fuzz_plan*, std::vector<fuzz_knob>> known;
  const std::lock_guard<std::mutex> hold(guard);
  const auto found = known.find(&plan);
  if (found != known.end()) return found->second;
  return known.emplace(&plan, make_knobs(plan)).first->second;
}

draw draw_of(const fuzz_case& c, std::string_view what, std::uint64_t a, std::uint64_t b) {
  return draw(
      seed_of(c.seed + a * 0x9E3779B97F4A7C15u + b * 0xD1B54A32D192ED03u, c.plan->kernel, what));
}

test_case build(const fuzz_case& c) { return builder(c).build(); }

}  // namespace kvcts
