#include "conformance/compare/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kvcts {
namespace {

constexpr std::size_t most_runs = 1U << 16;
constexpr std::size_t most_wide_strips = 4;  // pages, rows
constexpr std::size_t most_tokens = 3;
constexpr std::uint64_t most_parts = 128;          // more are too fine to be seen
constexpr std::uint64_t finest = 100;              // of a strip: runs nearer than that are one
constexpr std::uint64_t most_looked_at = 1 << 20;  // bytes that tokens are looked for in

// Bytes [first, first + bytes) of the strip differ; `different` of them.
void mark(picture_strip& strip, std::uint64_t first, std::uint64_t bytes) {
  if (first >= strip.bytes) return;
  bytes = std::min(bytes, strip.bytes - first);
  strip.different += bytes;
  if (!strip.wrong.empty()) {
    byte_run& last = strip.wrong.back();
    const std::uint64_t end = last.first + last.bytes;
    if (first >= last.first && first <= end + strip.bytes / finest) {
      last.bytes = std::max(end, first + bytes) - last.first;
      return;
    }
  }
  strip.wrong.push_back({first, bytes});
}

std::uint64_t parts_of(std::uint64_t parts) { return parts == 0 || parts > most_parts ? 1 : parts; }

// `count` equal regions of `bytes`, `stride` apart: one region of many parts where they touch.
void add_regions(picture_strip& strip, const char* kind, const std::string& one,
                 const std::string& many, std::uint64_t first, std::uint64_t bytes,
                 std::uint64_t stride, std::uint64_t count) {
  if (count == 0 || bytes == 0) return;
  const std::uint64_t span = (count - 1) * stride + bytes;
  if (stride == bytes || count > most_parts) {
    strip.regions.push_back({kind, many, first, span, stride == bytes ? parts_of(count) : 1});
  } else {
    for (std::uint64_t i = 0; i < count; ++i) {
      strip.regions.push_back(
          {kind, count == 1 ? many : fmt::format("{} {}", one, i), first + i * stride, bytes, 1});
    }
  }
}

picture_strip whole_strip(std::string name, std::uint64_t bytes, const wrong_bytes& wrong) {
  picture_strip strip;
  strip.name = std::move(name);
  strip.bytes = bytes;
  if (!wrong.runs().empty()) {
    strip.bytes = std::max(bytes, wrong.runs().back().first + wrong.runs().back().bytes);
  }
  for (const byte_run& run : wrong.runs()) mark(strip, run.first, run.bytes);
  return strip;
}

void leave_out(buffer_picture& picture, std::uint64_t number, const std::string& what) {
  if (number == 0) return;
  picture.left_out +=
      fmt::format("{}{} more {} with wrong bytes", picture.left_out.empty() ? "" : ", ", number,
                  number == 1 ? what : plural(what));
}

void tell_end(buffer_picture& picture, const wrong_bytes& wrong) {
  if (wrong.all_kept()) return;
  picture.left_out += fmt::format("{}whatever lies behind byte {}",
                                  picture.left_out.empty() ? "" : ", ", wrong.runs().back().first);
}

// Calls f(strip's number, first byte in it, bytes) for the pieces of the runs in equal strips.
template <class F>
void split_runs(const wrong_bytes& wrong, std::uint64_t first, std::uint64_t stride,
                std::uint64_t strips, F f) {
  if (stride == 0) return;
  for (const byte_run& run : wrong.runs()) {
    std::uint64_t at = std::max(run.first, first) - first;
    const std::uint64_t end = std::max(run.first + run.bytes, first) - first;
    while (at < end && at / stride < strips) {
      const std::uint64_t stop = std::min(end, (at / stride + 1) * stride);
      f(at / stride, at % stride, stop - at);
      at = stop;
    }
  }
}

// The strips that hold wrong bytes, as `blank` makes them; the first few are kept.
template <class F>
void add_wide_strips(buffer_picture& picture, const wrong_bytes& wrong, const std::string& what,
                     std::uint64_t first, std::uint64_t stride, std::uint64_t strips, F blank) {
  std::vector<picture_strip> made;
  std::uint64_t found = 0, last = strips;
  split_runs(wrong, first, stride, strips, [&](auto strip, auto at, auto bytes) {
    if (strip != last) {
      last = strip;
      if (++found <= most_wide_strips) made.push_back(blank(strip));
    }
    if (found <= most_wide_strips) mark(made.back(), at, bytes);
  });
  std::move(made.begin(), made.end(), std::back_inserter(picture.strips));
  leave_out(picture, found - std::min<std::uint64_t>(found, most_wide_strips), what);
}

std::uint64_t unsigned_of(std::int64_t n) {
  return static_cast<std::uint64_t>(std::max(n, std::int64_t{0}));
}

picture_strip page_strip(const paged_view& view, std::uint64_t page) {
  const paged_record& record = view.record;
  const std::uint64_t tokens = unsigned_of(view.block_size);
  picture_strip strip;
  strip.name = fmt::format("page {}", page);
  if (record.interleaved) {
    add_regions(strip, "value", "token", fmt::format("records of {} tokens, scales inside", tokens),
                0, unsigned_of(record.data_bytes), unsigned_of(view.entry_stride), tokens);
  } else {
    const std::uint64_t data = unsigned_of(record.data_bytes),
                        scale = unsigned_of(record.scale_bytes);
    add_regions(strip, "value", "token", fmt::format("values of {} tokens", tokens), 0, data, data,
                tokens);
    add_regions(strip, "scale", "token", fmt::format("scales of {} tokens", tokens), tokens * data,
                scale, scale, tokens);
  }
  strip.bytes = unsigned_of(view.page_stride);
  for (const picture_region& r : strip.regions) {
    strip.bytes = std::max(strip.bytes, r.first + r.bytes);
  }
  return strip;
}

picture_strip token_strip(const paged_record& record, std::string name) {
  picture_strip strip;
  strip.name = std::move(name);
  strip.bytes = unsigned_of(record.bytes());
  std::int64_t block_dims = 0;
  for (const auto* regions : {&record.data, &record.scales}) {
    for (const record_region& r : *regions) {
      if (r.kind == region_kind::scale) block_dims = r.dims_per_element;
    }
  }
  const auto add = [&](const record_region& r, std::int64_t from) {
    const auto bytes = unsigned_of(r.elements * static_cast<std::int64_t>(size_of(r.type)));
    const std::int64_t dims = r.elements * r.dims_per_element;
    picture_region region = {"pad", "pad", unsigned_of(from + r.first_byte), bytes, 1};
    if (r.kind == region_kind::value) {
      region.kind = "value";
      region.name =
          fmt::format("dims {}..{} ({})", r.first_dim, r.first_dim + dims - 1, name_of(r.type));
      if (block_dims > 0 && dims % block_dims == 0 && r.type != dtype::bf16) {
        region.parts = parts_of(unsigned_of(dims / block_dims));
      }
    } else if (r.kind == region_kind::scale) {
      region.kind = "scale";
      region.name = fmt::format("{} scales of {} dims each ({})", r.elements, r.dims_per_element,
                                name_of(r.type));
      region.parts = parts_of(unsigned_of(r.elements));
    }
    strip.regions.push_back(std::move(region));
  };
  for (const record_region& r : record.data) add(r, 0);
  for (const record_region& r : record.scales) add(r, record.interleaved ? 0 : record.data_bytes);
  return strip;
}

}  // namespace

std::string plural(std::string_view one) {
  const std::size_t end = std::min(one.find(" of "), one.size());
  const bool is_plural = end > 0 && one[end - 1] == 's';
  return fmt::format("{}{}{}", one.substr(0, end), is_plural ? "" : "s", one.substr(end));
}

void wrong_bytes::add(std::uint64_t byte) {
  if (!runs_.empty() && byte == runs_.back().first + runs_.back().bytes && all_kept_) {
    ++runs_.back().bytes;
  } else if (runs_.size() < most_runs) {
    runs_.push_back({byte, 1});
  } else {
    all_kept_ = false;
  }
}

buffer_picture draw_pages(
    const paged_view& view, std::uint64_t bytes, const wrong_bytes& wrong,
    const std::function<std::string(std::int64_t page, std::int64_t position)>& name_of) {
  buffer_picture picture;
  picture.bytes = bytes;
  const std::uint64_t first = unsigned_of(view.first_byte), stride = unsigned_of(view.page_stride),
                      pages = unsigned_of(view.pages);
  picture.strips.push_back(whole_strip(
      fmt::format("whole buffer: {} pages of {} tokens", pages, view.block_size), bytes, wrong));
  const picture_strip page = page_strip(view, 0);
  std::uint64_t of_records = 0;  // bytes of a page but for the gap behind it
  for (const picture_region& r : page.regions) of_records = std::max(of_records, r.first + r.bytes);
  add_regions(picture.strips[0], "page", "page", "pages", first, of_records, stride, pages);
  add_wide_strips(picture, wrong, "page", first, stride, pages,
                  [&](std::uint64_t i) { return page_strip(view, i); });

  using token = std::pair<std::int64_t, std::int64_t>;  // page, position
  std::vector<std::pair<token, picture_strip>> tokens;
  bool more = false;
  std::uint64_t looked_at = 0;
  for (const byte_run& run : wrong.runs()) {
    for (std::uint64_t i = 0; i < run.bytes && looked_at < most_looked_at; ++i, ++looked_at) {
      const page_place p = locate(view, static_cast<std::int64_t>(run.first + i));
      if (p.in != page_place::where::record) continue;
      const token which = {p.page, p.position};
      auto found = std::find_if(tokens.begin(), tokens.end(),
                                [&](const auto& t) { return t.first == which; });
      if (found == tokens.end()) {
        more = more || tokens.size() == most_tokens;
        if (tokens.size() == most_tokens) continue;
        tokens.emplace_back(which, token_strip(view.record, name_of(p.page, p.position)));
        found = std::prev(tokens.end());
      }
      const std::int64_t in_page =
          static_cast<std::int64_t>(run.first + i) - view.first_byte - p.page * view.page_stride;
      const bool among_scales =
          !view.record.interleaved && in_page >= view.block_size * view.record.data_bytes;
      const std::int64_t at = p.region.first_byte + p.byte_in_element +
                              p.element * static_cast<std::int64_t>(size_of(p.region.type)) +
                              (among_scales ? view.record.data_bytes : 0);
      mark(found->second, unsigned_of(at), 1);
    }
  }
  for (auto& [which, strip] : tokens) picture.strips.push_back(std::move(strip));
  if (more || looked_at == most_looked_at) {
    picture.left_out +=
        fmt::format("{}more tokens with wrong bytes", picture.left_out.empty() ? "" : ", ");
  }
  tell_end(picture, wrong);
  return picture;
}

buffer_picture draw_rows(const row_drawing& drawing, std::uint64_t bytes,
                         const wrong_bytes& wrong) {
  buffer_picture picture;
  picture.bytes = bytes;
  const extent& at = drawing.at;
  const auto size = unsigned_of(drawing.element_bytes);
  const std::uint64_t first = unsigned_of(at.offset) * size;
  const std::string kind = drawing.scales ? "scale" : "value";
  picture.strips.push_back(whole_strip("whole buffer", bytes, wrong));
  if (count(at.shape) == 0 || at.shape.empty()) return picture;

  const std::size_t slowest = drawing.by_stride[0];
  const std::uint64_t rows = unsigned_of(at.shape[slowest]);
  const std::uint64_t stride = unsigned_of(at.strides[slowest]) * size;
  // One row: the extent without its slowest axis.
  std::uint64_t row_bytes = size;
  for (std::size_t axis = 0; axis < at.shape.size(); ++axis) {
    if (axis != slowest) row_bytes += unsigned_of((at.shape[axis] - 1) * at.strides[axis]) * size;
  }
  if (rows == 1 || stride < row_bytes || row_bytes == size) {
    picture.strips[0].regions.push_back(
        {kind, drawing.elements, first, unsigned_of(reach(at) - at.offset) * size,
         is_dense(at) ? parts_of(unsigned_of(count(at.shape))) : 1});
    tell_end(picture, wrong);
    return picture;
  }
  add_regions(picture.strips[0], "row", drawing.row, plural(drawing.row), first, row_bytes, stride,
              rows);
  // Parts of a row: its slowest axis where more than one is left, else its elements.
  const std::size_t next = drawing.by_stride[1];
  const bool even = unsigned_of(at.strides[next] * at.shape[next]) * size == row_bytes;
  add_wide_strips(picture, wrong, drawing.row, first, stride, rows, [&](std::uint64_t i) {
    picture_strip strip;
    strip.name = fmt::format("{} {}", drawing.row, i);
    strip.bytes = stride;
    strip.regions.push_back(
        {kind, drawing.elements, 0, row_bytes, even ? parts_of(unsigned_of(at.shape[next])) : 1});
    return strip;
  });
  tell_end(picture, wrong);
  return picture;
}

void picture_budget::limit(case_result& c) {
  constexpr std::size_t most_of_kernel = 2;
  if (!c.pictures.empty() && ++of_kernel_[c.kernel] > most_of_kernel) c.pictures.clear();
}

}  // namespace kvcts
