#include "fuzz/parsers/memory_tree.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "vectors/hdf5_tree.h"

namespace kvcts {
namespace {

struct stored_attribute {
  hdf5::attribute_kind kind = hdf5::attribute_kind::other;
  bool is_unsigned = false;
  std::vector<std::string> texts;
  std::vector<std::int64_t> integers;
  double real = 0;
  std::uint64_t points = 0;
};

struct node {
  bool is_group = true;
  std::map<std::string, std::size_t> children;  // of nodes()
  std::map<std::string, stored_attribute> attributes;
  std::string type;  // of a dataset, as its line has it
  std::optional<std::vector<std::uint64_t>> shape;
  std::vector<std::uint64_t> elements;
};

std::vector<node>& nodes() {
  static std::vector<node> all(1);
  return all;
}
const node& node_of(const hdf5::handle& h) { return nodes().at(static_cast<std::size_t>(h.id())); }

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

std::uint64_t number_of(const std::string& word) {
  return word[0] == '-' ? static_cast<std::uint64_t>(std::strtoll(word.c_str(), nullptr, 0))
                        : std::strtoull(word.c_str(), nullptr, 0);
}

bool is_known_type(const std::string& type) {
  static const std::vector<std::string> known = {"i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8",
                                                 "e1", "e2", "e4", "e8", "f4", "f8", "t",  "o"};
  return std::find(known.begin(), known.end(), type) != known.end();
}

void add_attribute(node& to, char kind, const std::vector<std::string>& words) {
  stored_attribute& a = to.attributes[words[1]];
  a = {};
  a.points = words.size() - 2;
  for (std::size_t i = 2; i < words.size(); ++i) {
    if (kind == 's') a.texts.push_back(words[i]);
    if (kind == 'i' || kind == 'u') {
      a.integers.push_back(static_cast<std::int64_t>(number_of(words[i])));
    }
    if (kind == 'r' && i == 2) a.real = std::strtod(words[i].c_str(), nullptr);
  }
  a.is_unsigned = kind == 'u';
  a.kind = kind == 's'                  ? hdf5::attribute_kind::text
           : kind == 'i' || kind == 'u' ? hdf5::attribute_kind::integer
           : kind == 'r'                ? hdf5::attribute_kind::real
                                        : hdf5::attribute_kind::other;
}

// Builds the nodes of a text, line by line.
class tree_builder {
 public:
  void add(std::string_view line) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty() || words[0].size() != 1) return;
    const char kind = words[0][0];
    if (kind == '.' && open_.size() > 1) {
      open_.pop_back();
      last_ = open_.back();
    }
    if (kind == '=' && !nodes()[last_].is_group) {
      for (std::size_t i = 1; i < words.size(); ++i) {
        nodes()[last_].elements.push_back(number_of(words[i]));
      }
    }
    if (words.size() < 2 || words[1].empty()) return;
    if (kind == 'g' || kind == 'd') add_object(kind, words);
    if (std::strchr("siuro", kind) != nullptr) add_attribute(nodes()[last_], kind, words);
  }

 private:
  void add_object(char kind, const std::vector<std::string>& words) {
    if (words[1].find('/') != std::string::npos) return;  // no link has such a name
    if (kind == 'd' && (words.size() < 3 || !is_known_type(words[2]))) return;
    node made;
    made.is_group = kind == 'g';
    if (kind == 'd') {
      made.type = words[2];
      if (words.size() < 4 || words[3] != "-") made.shape.emplace();
      for (std::size_t i = 3; made.shape && i < words.size() && i < 3 + hdf5::max_rank; ++i) {
        made.shape->push_back(number_of(words[i]));
      }
    }
    const bool is_new = nodes()[open_.back()].children.emplace(words[1], nodes().size()).second;
    if (!is_new) return;
    last_ = nodes().size();
    nodes().push_back(std::move(made));
    if (kind == 'g') open_.push_back(last_);
  }

  std::vector<std::size_t> open_{0};
  std::size_t last_ = 0;
};

}  // namespace

void fuzz::set_tree(std::string_view text) {
  nodes().assign(1, node{});
  tree_builder to;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    to.add(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

namespace hdf5 {
namespace {

const stored_attribute& attribute_of(const handle& object, const std::string& name) {
  return node_of(object).attributes.at(name);
}

handle child_of(const handle& parent, const std::string& name, const place& at, bool group) {
  const auto found = node_of(parent).children.find(name);
  if (found == node_of(parent).children.end()) at.fail(damaged);
  if (nodes()[found->second].is_group != group)
    at.fail("is of the other kind: see docs/vectors.md");
  return handle(static_cast<handle::id_type>(found->second));
}

std::size_t bytes_of(const std::string& type) {
  return type.size() == 2 ? static_cast<std::size_t>(type[1] - '0') : 0;
}

void put(const node& from, std::uint64_t element, std::byte* to) {
  const std::uint64_t value =
      from.elements.empty() ? 0 : from.elements[element % from.elements.size()];
  std::memcpy(to, &value, bytes_of(from.type));
}

std::recursive_mutex mutex;

}  // namespace

handle::handle(handle&& from) noexcept : id_(std::exchange(from.id_, -1)) {}
handle& handle::operator=(handle&& from) noexcept {
  id_ = std::exchange(from.id_, -1);
  return *this;
}
handle::~handle() = default;
bool handle::close() { return std::exchange(id_, -1) >= -1; }

library_lock::library_lock() : guard_(mutex) {}

std::string reason() { return ""; }
std::uint64_t memory_limit() { return std::uint64_t{1} << 18; }

handle open_file(const place& at) {
  static_cast<void>(at);
  return handle(0);
}

std::vector<std::string> names(const handle& group, const place& at) {
  static_cast<void>(at);
  std::vector<std::string> found;
  for (const auto& child : node_of(group).children) found.push_back(child.first);
  return found;
}

bool has(const handle& group, const std::string& name, const place& at) {
  static_cast<void>(at);
  return node_of(group).children.count(name) != 0;
}

handle open_group(const handle& parent, const std::string& name, const place& at) {
  return child_of(parent, name, at, true);
}

std::vector<std::string> attribute_names(const handle& object, const place& at) {
  static_cast<void>(at);
  std::vector<std::string> found;
  for (const auto& attribute : node_of(object).attributes) found.push_back(attribute.first);
  return found;
}

std::optional<attribute_form> form_of(const handle& object, const std::string& name,
                                      const place& at) {
  static_cast<void>(at);
  const auto found = node_of(object).attributes.find(name);
  if (found == node_of(object).attributes.end()) return std::nullopt;
  return attribute_form{found->second.kind, found->second.points, "stored so"};
}

std::vector<std::string> read_texts(const handle& object, const std::string& name,
                                    const place& at) {
  static_cast<void>(at);
  return attribute_of(object, name).texts;
}

std::optional<integers> read_integers(const handle& object, const std::string& name,
                                      const place& at) {
  static_cast<void>(at);
  const stored_attribute& a = attribute_of(object, name);
  return integers{a.is_unsigned, a.integers};
}

double read_real(const handle& object, const std::string& name, const place& at) {
  static_cast<void>(at);
  return attribute_of(object, name).real;
}

stored_dataset::stored_dataset(const handle& group, const std::string& name, const place& at)
    : place_(at), dataset_(child_of(group, name, at, false)) {
  type_ = node_of(dataset_).type;
  shape_ = node_of(dataset_).shape;
}

bool stored_dataset::holds(dtype type) {
  if (bytes_of(type_) != size_of(type)) return false;
  if (type == dtype::f32) return type_[0] == 'f';
  if (type_[0] == 'e') return type == dtype::boolean;
  return type_[0] == 'i' || type_[0] == 'u';
}

std::uint64_t stored_dataset::check_storage(std::uint64_t row, std::size_t element) const {
  static_cast<void>(row);
  static_cast<void>(element);
  return 24;  // small, and whole elements
}

std::uint64_t stored_dataset::stored_bytes() const { return 0; }

void stored_dataset::read_all(std::byte* to) const {
  const node& from = node_of(dataset_);
  std::uint64_t elements = 1;
  for (const std::uint64_t dimension : *shape_) elements *= dimension;
  for (std::uint64_t i = 0; i < elements; ++i) put(from, i, to + i * bytes_of(type_));
}

void stored_dataset::read_box(const std::vector<std::uint64_t>& from,
                              const std::vector<std::uint64_t>& size, std::byte* to) const {
  const node& stored = node_of(dataset_);
  std::vector<std::uint64_t> index(size.size(), 0);
  for (bool more = true; more; to += bytes_of(type_)) {
    std::uint64_t element = 0;
    for (std::size_t axis = 0; axis < index.size(); ++axis) {
      element = element * (*shape_)[axis] + from[axis] + index[axis];
    }
    put(stored, element, to);
    more = false;
    for (std::size_t axis = index.size(); axis-- > 0 && !more;) {
      more = ++index[axis] < size[axis];
      if (!more) index[axis] = 0;
    }
  }
}

}  // namespace hdf5
}  // namespace kvcts
