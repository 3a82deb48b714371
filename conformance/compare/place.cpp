#include "conformance/compare/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "reference/layout/paged.h"

namespace kvcts {
namespace {

constexpr std::string_view untouchable = "must not change";

std::string ranged(std::string_view one, const place_finder::range& r) {
  if (r.first == r.second) return fmt::format("{} {}", one, r.first);
  return fmt::format("{} {}..{}", plural(one), r.first, r.second);
}

std::vector<std::string_view> split(std::string_view names) {
  std::vector<std::string_view> parts;
  while (!names.empty()) {
    const std::size_t comma = std::min(names.find(','), names.size());
    parts.push_back(names.substr(0, comma));
    names.remove_prefix(std::min(comma + 1, names.size()));
    while (!names.empty() && names.front() == ' ') names.remove_prefix(1);
  }
  return parts;
}

// Four UE8M0 bytes in an i32, a byte a block of 32 dims.
bool holds_packed_scales(std::string_view kernel, std::string_view argument) {
  return kernel == "mxfp4_q_quant" && argument == "q_scale";
}

// Any strides: token, head, ... and the last axis as the index.
class strided_finder : public place_finder {
 public:
  strided_finder(const kernel_contract& contract, const bindings& names,
                 const argument_spec& argument, dtype type, const extent& at)
      : size_(static_cast<std::int64_t>(kvcts::size_of(type))),
        kind_(kind_of(type)),
        at_(at),
        axes_(split(argument.axes)) {
    while (axes_.size() < at_.shape.size()) axes_.push_back("index");
    axes_.resize(at_.shape.size());
    by_stride_.resize(at_.shape.size());
    std::iota(by_stride_.begin(), by_stride_.end(), std::size_t{0});
    std::stable_sort(by_stride_.begin(), by_stride_.end(), [this](std::size_t a, std::size_t b) {
      return at_.strides[a] > at_.strides[b];
    });
    packed_scales_ = holds_packed_scales(contract.name, argument.name);
    scales_ = argument.name.find("scale") != std::string_view::npos;
    if (const auto heads = names.find("H"); heads != names.end() &&
                                            argument.direction == role::output &&
                                            names.count("padded_num_heads") != 0) {
      heads_ = heads->second;
    }
    if (packed_scales_) {
      kind_ = value_kind::ue8m0;
      inner_ = {"scale of block", "scales of blocks", true, 32, true, true};
    } else if (!axes_.empty()) {
      const std::string_view last = axes_.back();
      if (last == "byte of two dims") {
        kind_ = value_kind::e2m1_pair;
        inner_ = {"dim", "dims", true, 2, false, false};
      } else {
        many_ = plural(last);
        inner_ = {last, many_, true, 1, true, false};
      }
      axes_.pop_back();
    }
  }

  spot find(std::uint64_t byte) const override {
    spot s;
    s.at.assign(axes_.size(), -1);
    const auto element = static_cast<std::int64_t>(byte) / size_ - at_.offset;
    std::vector<std::int64_t> index(at_.shape.size(), 0);
    std::int64_t rest = element;
    bool inside = element >= 0 && count(at_.shape) > 0;
    for (const std::size_t axis : by_stride_) {
      if (!inside || at_.shape[axis] == 1) continue;
      index[axis] = rest / std::max<std::int64_t>(at_.strides[axis], 1);
      rest -= index[axis] * at_.strides[axis];
      inside = index[axis] < at_.shape[axis];
    }
    if (!inside || rest != 0) {
      const bool between = element >= 0 && element + at_.offset < reach(at_);
      s.what = &stray_;
      s.remark = between ? "between rows: must not change" : "guard: must not change";
      s.index = static_cast<std::int64_t>(byte);
      s.first_byte = byte;
      return s;
    }
    s.what = &inner_;
    s.kind = kind_;
    s.first_byte = byte - byte % static_cast<std::uint64_t>(size_);
    std::copy(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(s.at.size()),
              s.at.begin());
    if (packed_scales_) {
      s.index = static_cast<std::int64_t>(byte) % size_;
      s.first_byte = byte;
    } else if (!index.empty()) {
      s.index = index.back();
    }
    for (std::size_t axis = 0; heads_ >= 0 && axis < index.size(); ++axis) {
      const bool is_head = axis < axes_.size() ? axes_[axis] == "head" : inner_.one == "head";
      if (is_head && index[axis] >= heads_) s.remark = "padded head: must be 0";
    }
    return s;
  }

  std::vector<std::size_t> fine_key() const override {
    std::vector<std::size_t> key(axes_.size());
    std::iota(key.begin(), key.end(), std::size_t{0});
    return key;
  }
  std::vector<std::size_t> coarse_key() const override {
    std::vector<std::size_t> key = fine_key();
    if (!key.empty()) key.pop_back();
    return key;
  }

  std::string coordinates(const std::vector<range>& ranges) const override {
    std::string text;
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      if (ranges[axis].first < 0) continue;
      if (!text.empty()) text += ", ";
      text += ranged(axes_[axis], ranges[axis]);
    }
    return text;
  }

  buffer_picture picture(std::uint64_t bytes, const wrong_bytes& wrong) const override {
    row_drawing drawing;
    drawing.at = at_;
    drawing.element_bytes = size_;
    drawing.by_stride = by_stride_;
    const std::size_t slowest = by_stride_.empty() ? 0 : by_stride_.front();
    drawing.row = slowest < axes_.size() ? axes_[slowest] : inner_.one;
    drawing.elements = packed_scales_ || inner_.many.empty() ? "scales" : inner_.many;
    drawing.scales = packed_scales_ || scales_;
    return draw_rows(drawing, bytes, wrong);
  }

 private:
  std::int64_t size_;
  value_kind kind_;
  extent at_;
  std::vector<std::string_view> axes_;
  std::vector<std::size_t> by_stride_;  // axes, the slowest first
  bool packed_scales_ = false, scales_ = false;
  std::int64_t heads_ = -1;
  std::string many_;
  part inner_;
  part stray_ = {"byte", "bytes", true, 1, true, false};
};

// Page views: token -> slot -> page, position, region of the record.
class paged_finder : public place_finder {
 public:
  paged_finder(const paged_view& view, const tensor_view* slots) : view_(view) {
    for (std::int64_t token = 0; slots != nullptr && token < slots->dim(0); ++token) {
      token_of_.emplace(load<std::int64_t>(slots->element(token)), token);
    }
    for (const auto& regions : {view_.record.data, view_.record.scales}) {
      for (const record_region& r : regions) {
        if (r.kind == region_kind::scale) {
          scales_.try_emplace(r.dims_per_element, part{"scale of block", "scales of blocks", true,
                                                       r.dims_per_element, true, true});
        }
      }
    }
  }

  spot find(std::uint64_t byte) const override {
    const page_place p = locate(view_, static_cast<std::int64_t>(byte));
    spot s;
    s.at = {-1, -1, p.page, p.position};
    s.first_byte = byte;
    if (p.in != page_place::where::record) {
      const bool gap = p.in == page_place::where::gap;
      s.what = gap ? &byte_ : &guard_;
      s.remark = gap ? "between pages: must not change" : untouchable;
      s.at = {-1, -1, gap ? p.page : -1, -1};
      s.index = static_cast<std::int64_t>(byte);
      if (gap) s.index -= view_.first_byte + p.page * view_.page_stride;
      return s;
    }
    s.at[1] = p.page * view_.block_size + p.position;
    const auto token = token_of_.find(s.at[1]);
    if (token != token_of_.end()) {
      s.at[0] = token->second;
    } else {
      s.remark = "not in the slot mapping, must not change";
    }
    s.first_byte = byte - static_cast<std::uint64_t>(p.byte_in_element);
    s.kind = kind_of(p.region.type);
    switch (p.region.kind) {
      case region_kind::value:
        s.what = p.region.dims_per_element == 2 ? &pair_ : &value_;
        s.index = p.first_dim / p.region.dims_per_element;
        break;
      case region_kind::scale:
        s.what = &scales_.at(p.region.dims_per_element);
        s.index = p.element;
        break;
      case region_kind::pad:
        s.what = &pad_;
        break;
    }
    return s;
  }

  std::vector<std::size_t> fine_key() const override { return {2, 3}; }
  std::vector<std::size_t> coarse_key() const override { return {2}; }

  std::string coordinates(const std::vector<range>& ranges) const override {
    constexpr std::string_view names[] = {"token", "slot", "page", "position"};
    constexpr std::string_view joins[] = {"", " -> ", " -> ", ", "};
    std::string text;
    for (std::size_t axis = 0; axis < 4; ++axis) {
      if (ranges[axis].first < 0) continue;
      if (!text.empty()) text += joins[axis];
      text += ranged(names[axis], ranges[axis]);
    }
    return text;
  }

  buffer_picture picture(std::uint64_t bytes, const wrong_bytes& wrong) const override {
    return draw_pages(view_, bytes, wrong, [this](std::int64_t page, std::int64_t position) {
      const std::int64_t slot = page * view_.block_size + position;
      const auto token = token_of_.find(slot);
      const std::int64_t number = token == token_of_.end() ? -1 : token->second;
      return coordinates({{number, number}, {slot, slot}, {page, page}, {position, position}});
    });
  }

 private:
  paged_view view_;
  std::unordered_map<std::int64_t, std::int64_t> token_of_;  // by slot
  std::map<std::int64_t, part> scales_;                      // by dims a block
  part value_ = {"value of dim", "values of dims", true, 1, true, false};
  part pair_ = {"values of dims", "values of dims", true, 2, false, false};
  part pad_ = {"pad byte", "pad byte", false, 1, false, false};
  part byte_ = {"byte", "bytes", true, 1, true, false};
  part guard_ = {"guard byte", "guard bytes", true, 1, true, false};
};

const tensor_view* slots_of(const kernel_contract& contract, const call& context,
                            std::string_view cache) {
  std::string own(cache.substr(0, cache.find('_')));  // mla_cache: mla_slot_mapping
  own += "_slot_mapping";
  for (const std::string_view name : {std::string_view(own), std::string_view("slot_mapping")}) {
    if (contract.argument(name) != nullptr) return context.find(name);
  }
  return contract.argument("kv_slot_mapping") != nullptr ? context.find("kv_slot_mapping")
                                                         : nullptr;
}

dtype fp8_of(const call& context) {
  const auto format = context.attributes.find("fp8_format");
  const bool fnuz = format != context.attributes.end()
                        ? std::get<std::string>(format->second) == "e4m3fnuz"
                        : context.integer_or("use_fnuz", 0) != 0;
  return fnuz ? dtype::f8e4m3fnuz : dtype::f8e4m3fn;
}

}  // namespace

std::string text_of(const part& what, std::int64_t first, std::int64_t last) {
  if (!what.indexed) return std::string(what.one);
  const std::int64_t first_dim = first * what.width;
  const std::int64_t last_dim = (last + 1) * what.width - 1;
  if (!what.index_shown) return fmt::format("{} {}..{}", what.many, first_dim, last_dim);
  std::string text = first == last ? fmt::format("{} {}", what.one, first)
                                   : fmt::format("{} {}..{}", what.many, first, last);
  if (what.dims_shown) text += fmt::format(" (dims {}..{})", first_dim, last_dim);
  return text;
}

std::unique_ptr<place_finder> find_places(const kernel_contract& contract, const call& context,
                                          const bindings& names, const argument_spec& argument,
                                          dtype type, const extent& at) {
  if (argument.strides == stride_rule::pages) {
    const std::int64_t bytes =
        argument.record.empty() ? at.shape.back() : evaluate(argument.record, names, context);
    const std::int64_t block_size =
        argument.block_size.empty() ? at.shape[1] : evaluate(argument.block_size, names, context);
    const std::string name = argument.record_name.empty() ? context.text_or("record", "")
                                                          : std::string(argument.record_name);
    if (const auto record = record_of(name, bytes, fp8_of(context)); record && at.shape[0] > 0) {
      paged_view view;
      view.record = *record;
      view.first_byte = at.offset * static_cast<std::int64_t>(size_of(type));
      view.pages = at.shape[0];
      view.block_size = block_size;
      view.page_stride = at.strides[0] * static_cast<std::int64_t>(size_of(type));
      view.entry_stride = at.shape.size() == 3 ? at.strides[1] : bytes;
      return std::make_unique<paged_finder>(view, slots_of(contract, context, argument.name));
    }
  }
  return std::make_unique<strided_finder>(contract, names, argument, type, at);
}

}  // namespace kvcts
