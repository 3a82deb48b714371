#include "conformance/compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>

#include "conformance/compare/place.h"

namespace kvcts {
namespace {

using range = place_finder::range;

void widen(range& r, std::int64_t to) {
  r.first = std::min(r.first, to);
  r.second = std::max(r.second, to);
}

// Differing elements that one line names.
struct group {
  const part* what = nullptr;
  std::string_view remark;
  std::vector<range> at;
  range index;
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;
  std::uint64_t last_element = 0;  // first byte of the element counted last
  spot first;
  std::string expected, got;  // of `first`
};

// Groups of one fineness: rows or records; tokens or pages; the whole argument.
struct grouping {
  std::vector<std::size_t> key;  // coordinates that tell groups apart
  bool bounded = true;           // given up where it grows past the number of places
  bool given_up = false;
  std::map<std::vector<std::int64_t>, std::size_t> index_of;
  std::vector<group> groups;
};

struct argument_differences {
  std::string argument;
  std::string note;
  std::shared_ptr<const place_finder> finder;
  std::vector<grouping> by_fineness;
  std::uint64_t bytes = 0;  // of the storage
  wrong_bytes wrong;
  std::vector<difference> ready;  // guards: lines that need no grouping

  std::size_t lines(std::size_t fineness) const {
    return by_fineness.empty() ? ready.size() : by_fineness[fineness].groups.size();
  }
};

std::string line_of(const argument_differences& a, const group& g, bool whole) {
  const auto place = [&](const std::vector<range>& at, range index) {
    std::string text = a.finder->coordinates(at);
    const std::string inner = text_of(*g.what, index.first, index.second);
    if (!text.empty() && !inner.empty()) text += ", ";
    text += inner;
    if (!g.remark.empty()) text += fmt::format(" ({})", g.remark);
    return text;
  };
  std::string text = place(g.at, g.index);
  if (g.elements > 1) {
    text += fmt::format(": {} bytes differ", g.bytes);
    if (whole) {
      std::vector<range> first;
      for (const std::int64_t i : g.first.at) first.emplace_back(i, i);
      text += ", the first at " + place(first, {g.first.index, g.first.index});
    }
  }
  if (!a.note.empty()) text += fmt::format(" [{}]", a.note);
  return text;
}

}  // namespace

struct comparer::state {
  const kernel_contract& contract;
  const call& context;
  const bindings& names;
  std::uint64_t compared = 0, different = 0;
  std::vector<argument_differences> arguments;
  // What start() was told; its place in `arguments` is made with the first difference.
  struct {
    std::string argument, note;
    dtype type = dtype::u8;
    extent at;
    bool differs = false;
  } now = {};

  argument_differences& differences() {
    if (now.differs) return arguments.back();
    now.differs = true;
    const argument_spec* argument = contract.argument(now.argument);
    if (argument == nullptr) throw std::logic_error("no argument named " + now.argument);
    argument_differences found;
    found.argument = now.argument;
    found.note = now.note;
    found.finder = find_places(contract, context, names, *argument, now.type, now.at);
    found.bytes = static_cast<std::uint64_t>(reach(now.at)) * size_of(now.type);
    found.by_fineness.resize(3);
    found.by_fineness[0].key = found.finder->fine_key();
    found.by_fineness[1].key = found.finder->coarse_key();
    found.by_fineness[2].bounded = false;
    arguments.push_back(std::move(found));
    return arguments.back();
  }

  static void note(argument_differences& to, const window& in, std::uint64_t byte) {
    const spot s = to.finder->find(byte);
    to.wrong.add(byte);
    for (grouping& by : to.by_fineness) {
      if (by.given_up) continue;
      std::vector<std::int64_t> key = {
          static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(s.what)),
          static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(s.remark.data()))};
      for (const std::size_t axis : by.key) key.push_back(s.at[axis]);
      const auto [entry, is_new] = by.index_of.try_emplace(key, by.groups.size());
      if (is_new) {
        if (by.bounded && by.groups.size() == most_places) {
          by.given_up = true;
          by.groups.clear();
          by.index_of.clear();
          continue;
        }
        group made;
        made.what = s.what;
        made.remark = s.remark;
        for (const std::int64_t i : s.at) made.at.emplace_back(i, i);
        made.index = {s.index, s.index};
        made.first = s;
        made.expected = text_of(s.kind, in.expected + (s.first_byte - in.first));
        made.got = text_of(s.kind, in.got + (s.first_byte - in.first));
        by.groups.push_back(std::move(made));
      }
      group& g = by.groups[entry->second];
      for (std::size_t axis = 0; axis < s.at.size(); ++axis) widen(g.at[axis], s.at[axis]);
      widen(g.index, s.index);
      ++g.bytes;
      if (g.elements == 0 || g.last_element != s.first_byte) ++g.elements;
      g.last_element = s.first_byte;
    }
  }
};

comparer::comparer(const kernel_contract& contract, const call& context, const bindings& names)
    : state_(new state{contract, context, names, 0, 0, {}}) {}
comparer::~comparer() { delete state_; }

void comparer::compare(const buffer& expected, const tensor_view& got, std::string_view note) {
  std::vector<byte_range> ranges = {{0, expected.size()}};
  if (expected.is_sparse() && got.holes != nullptr) {
    ranges = united(expected.sparse.written(), got.holes->written());
  }
  start(expected.name, expected.type, expected.at, note);
  for (const byte_range& r : ranges) compare({expected.data(), got.storage, 0}, r);
}

void comparer::start(std::string_view argument, dtype type, const extent& at,
                     std::string_view note) {
  state_->now = {std::string(argument), std::string(note), type, at, false};
}

void comparer::compare(const window& in, const byte_range& range) {
  state_->compared += range.bytes;
  const std::uint64_t begin = range.first - in.first;
  if (range.bytes == 0 || std::memcmp(in.expected + begin, in.got + begin, range.bytes) == 0) {
    return;
  }
  argument_differences& found = state_->differences();
  for (std::uint64_t i = begin; i < begin + range.bytes; ++i) {
    if (in.expected[i] == in.got[i]) continue;
    ++state_->different;
    state::note(found, in, in.first + i);
  }
}

void comparer::compare_guard(std::string_view argument, const std::byte* guard, std::size_t bytes,
                             std::byte fill, bool before, std::string_view note) {
  std::size_t first = bytes, changed = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (guard[i] == fill) continue;
    if (changed++ == 0) first = i;
  }
  if (changed == 0) return;
  state_->different += changed;
  argument_differences found;
  found.argument = argument;
  difference line;
  line.argument = argument;
  line.byte = before ? 0 : first;
  line.place = before ? fmt::format("{} bytes before the buffer", bytes - first)
                      : fmt::format("guard byte {} after the buffer", first);
  line.place += " (must not change)";
  if (changed > 1) line.place += fmt::format(": {} bytes differ", changed);
  if (!note.empty()) line.place += fmt::format(" [{}]", note);
  line.expected = text_of(value_kind::byte, &fill);
  line.got = text_of(value_kind::byte, guard + first);
  found.ready.push_back(std::move(line));
  state_->arguments.push_back(std::move(found));
}

comparison comparer::result() const {
  comparison made;
  made.compared = state_->compared;
  made.different = state_->different;
  const std::vector<argument_differences>& all = state_->arguments;
  // The finest grouping of each argument; the longest list is coarsened until all fit.
  std::vector<std::size_t> fineness(all.size(), 0);
  const auto skip_given_up = [&](std::size_t i) {
    while (!all[i].by_fineness.empty() && all[i].by_fineness[fineness[i]].given_up) ++fineness[i];
  };
  std::size_t total = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    skip_given_up(i);
    total += all[i].lines(fineness[i]);
  }
  while (total > most_places) {
    std::size_t longest = all.size();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].by_fineness.empty() || fineness[i] + 1 >= all[i].by_fineness.size()) continue;
      if (longest == all.size() ||
          all[i].lines(fineness[i]) > all[longest].lines(fineness[longest])) {
        longest = i;
      }
    }
    if (longest == all.size()) break;
    total -= all[longest].lines(fineness[longest]);
    ++fineness[longest];
    skip_given_up(longest);
    total += all[longest].lines(fineness[longest]);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const difference& line : all[i].ready) made.places.push_back(line);
    if (all[i].by_fineness.empty()) continue;
    for (const group& g : all[i].by_fineness[fineness[i]].groups) {
      made.places.push_back({all[i].argument, g.first.first_byte,
                             line_of(all[i], g, fineness[i] > 0), g.expected, g.got});
    }
  }
  if (made.places.size() > most_places) {
    const std::size_t left = made.places.size() - most_places;
    made.places.resize(most_places);
    made.places.back().place += fmt::format("; {} more kinds of places are left out", left);
  }
  return made;
}

std::vector<buffer_picture> comparer::pictures() const {
  constexpr std::size_t most = 3;
  std::vector<buffer_picture> made;
  for (const argument_differences& a : state_->arguments) {
    if (a.by_fineness.empty() || made.size() == most) continue;
    made.push_back(a.finder->picture(a.bytes, a.wrong));
    made.back().argument = a.argument;
  }
  return made;
}

namespace {

// No element of any argument is wider, and a record's elements need not start where a piece does.
constexpr std::uint64_t widest = 8;

// Two tensors by pieces of equal ranges.
class tensor_pair {
 public:
  tensor_pair(const file_tensor& a, const file_tensor& b) : tensors_{&a, &b} {}

  std::uint64_t piece() const { return std::max(tensors_[0]->piece(), tensors_[1]->piece()); }
  void read(const byte_range& range) {
    range_ = range;
    for (int i : {0, 1}) {
      if (bytes_[i].size() < range.bytes) bytes_[i] = std::vector<std::byte>(range.bytes + margin);
      tensors_[i]->read(range, bytes_[i].data());
    }
  }
  bool equal() const { return std::memcmp(bytes_[0].data(), bytes_[1].data(), range_.bytes) == 0; }
  comparer::window window() const { return {bytes_[0].data(), bytes_[1].data(), range_.first}; }

 private:
  static constexpr std::uint64_t margin = 2 * widest;  // so that what a window adds fits too

  const file_tensor* tensors_[2];
  std::vector<std::byte> bytes_[2];
  byte_range range_;
};

}  // namespace

void compare_tensors(comparer& to, const file_tensor& expected, const file_tensor& got,
                     const std::function<void(std::uint64_t)>& progress) {
  to.start(expected.name(), expected.type(), expected.at());
  tensor_pair pair(expected, got);
  const std::uint64_t all = expected.bytes();
  for (std::uint64_t first = 0; first < all; first += pair.piece()) {
    const byte_range range = {first, std::min(pair.piece(), all - first)};
    pair.read(range);
    if (!pair.equal()) {
      const std::uint64_t before = std::min(widest, first);
      pair.read({first - before, std::min(before + range.bytes + widest, all - first + before)});
    }
    to.compare(pair.window(), range);
    if (progress) progress(range.bytes);
  }
}

std::optional<std::uint64_t> first_difference(const file_tensor& a, const file_tensor& b,
                                              const std::function<void(std::uint64_t)>& progress) {
  tensor_pair pair(a, b);
  for (std::uint64_t first = 0; first < a.bytes(); first += pair.piece()) {
    const byte_range range = {first, std::min(pair.piece(), a.bytes() - first)};
    pair.read(range);
    const comparer::window in = pair.window();
    const std::byte* end = in.expected + range.bytes;
    const std::byte* found = std::mismatch(in.expected, end, in.got).first;
    if (found != end) return first + static_cast<std::uint64_t>(found - in.expected);
    if (progress) progress(range.bytes);
  }
  return std::nullopt;
}

comparison compare_buffers(const kernel_contract& contract, const call& context,
                           const bindings& names, const std::vector<buffer>& expected,
                           const std::vector<buffer>& got) {
  comparer c(contract, context, names);
  for (const buffer& e : expected) {
    const auto g =
        std::find_if(got.begin(), got.end(), [&](const buffer& b) { return b.name == e.name; });
    if (g == got.end() || g->size() != e.size()) {
      throw std::logic_error("no buffer of the same size for " + e.name);
    }
    c.compare(e, g->view());
  }
  return c.result();
}

}  // namespace kvcts
