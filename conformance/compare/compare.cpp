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

  void note(argument_differences& to, const buffer& expected, const std::byte* got,
            std::uint64_t byte) const {
    const spot s = to.finder->find(byte);
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
        made.expected = text_of(s.kind, expected.data() + s.first_byte);
        made.got = text_of(s.kind, got + s.first_byte);
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
  const auto equal = [&](const byte_range& r) {
    return r.bytes == 0 ||
           std::memcmp(expected.data() + r.first, got.storage + r.first, r.bytes) == 0;
  };
  for (const byte_range& r : ranges) state_->compared += r.bytes;
  ranges.erase(std::remove_if(ranges.begin(), ranges.end(), equal), ranges.end());
  if (ranges.empty()) return;
  const argument_spec* argument = state_->contract.argument(expected.name);
  if (argument == nullptr) throw std::logic_error("no argument named " + expected.name);
  argument_differences found;
  found.argument = expected.name;
  found.note = note;
  found.finder = find_places(state_->contract, state_->context, state_->names, *argument,
                             expected.type, expected.at);
  found.by_fineness.resize(3);
  found.by_fineness[0].key = found.finder->fine_key();
  found.by_fineness[1].key = found.finder->coarse_key();
  found.by_fineness[2].bounded = false;
  for (const byte_range& r : ranges) {
    for (std::uint64_t byte = r.first; byte < r.first + r.bytes; ++byte) {
      if (expected.data()[byte] == got.storage[byte]) continue;
      ++state_->different;
      state_->note(found, expected, got.storage, byte);
    }
  }
  state_->arguments.push_back(std::move(found));
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
