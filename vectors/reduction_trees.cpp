#include "vectors/reduction_trees.h"

#include <algorithm>
#include <tuple>

#include "vectors/hdf5_object.h"

namespace kvcts {

using hdf5::handle;
using hdf5::place;

namespace {

constexpr std::string_view trees_schema = "kvcts-reduction-trees";

struct group_key {
  std::int64_t dim, num_warps;
};

std::int64_t required_integer(const handle& group, const std::string& name, const place& at) {
  const std::optional<std::int64_t> value = hdf5::integer_attribute(group, name, at);
  if (!value) at.fail("lacks the attribute " + name + ": store it as an integer");
  return *value;
}

}  // namespace

struct reduction_tree_file::state {
  place at;
  handle file;
  std::string producer;
  std::vector<std::string> groups;
};

reduction_tree_file::reduction_tree_file(const std::string& path)
    : state_(std::make_unique<state>()) {
  const hdf5::library_lock lock;
  state& s = *state_;
  s.at.file = path;
  s.file = hdf5::open_file(s.at);
  const std::string schema = hdf5::text_attribute(s.file, "schema", s.at).value_or("");
  if (schema != trees_schema) {
    s.at.fail("has schema \"" + hdf5::shortened(schema) +
              "\", not \"kvcts-reduction-trees\": name such a file, see docs/vectors.md");
  }
  const std::int64_t version = required_integer(s.file, "schema_version", s.at);
  if (version != schema_version) {
    s.at.fail("has schema_version " + std::to_string(version) +
              ", and this program reads 1: " + "write it again as version 1");
  }
  s.producer = hdf5::text_attribute(s.file, "producer", s.at).value_or("");

  std::vector<std::pair<group_key, std::string>> sorted;
  for (const std::string& name : hdf5::names(s.file, s.at)) {
    const place at = s.at.in(name);
    const handle group = hdf5::open_group(s.file, name, at);
    sorted.push_back(
        {{required_integer(group, "dim", at), required_integer(group, "num_warps", at)}, name});
  }
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.dim, a.first.num_warps, a.second) <
           std::tie(b.first.dim, b.first.num_warps, b.second);
  });
  for (auto& [key, name] : sorted) s.groups.push_back(std::move(name));
}

reduction_tree_file::~reduction_tree_file() {
  const hdf5::library_lock lock;
  state_.reset();
}

reduction_tree_file::reduction_tree_file(reduction_tree_file&&) noexcept = default;

const std::string& reduction_tree_file::producer() const { return state_->producer; }

const std::vector<std::string>& reduction_tree_file::groups() const { return state_->groups; }

reduction_tree_group reduction_tree_file::read(const std::string& name) const {
  const hdf5::library_lock lock;
  const place at = state_->at.in(name);
  const handle group = hdf5::open_group(state_->file, name, at);
  reduction_tree_group rows;
  rows.name = name;
  rows.dim = required_integer(group, "dim", at);
  rows.num_warps = required_integer(group, "num_warps", at);
  const std::optional<attribute_value> eps = hdf5::attribute(group, "eps", at);
  if (!eps || !std::holds_alternative<double>(*eps)) {
    at.fail("lacks the attribute eps: store it as a real");
  }
  rows.eps = std::get<double>(*eps);

  std::uint64_t budget = hdf5::memory_limit();
  const auto take = [&](const std::string& dataset, dtype type,
                        const std::vector<std::int64_t>& shape) {
    const place where = at.in(dataset);
    if (!hdf5::has(group, dataset, at)) where.fail("is missing: see docs/vectors.md");
    buffer b = hdf5::stored_tensor(group, dataset, where).read_all(budget);
    if (b.type != type) {
      where.fail("has dtype " + std::string(name_of(b.type)) + ", and the schema has " +
                 std::string(name_of(type)) + ": store it so");
    }
    const bool dense_storage =
        is_dense(b.at) &&
        b.bytes.size() == static_cast<std::size_t>(count(b.at.shape)) * size_of(b.type);
    // A row count of -1 takes any.
    bool as_wanted = dense_storage && b.at.shape.size() == shape.size();
    for (std::size_t i = 0; as_wanted && i < shape.size(); ++i) {
      as_wanted = shape[i] < 0 || shape[i] == b.at.shape[i];
    }
    if (!as_wanted) {
      where.fail("is not dense in the shape of the schema (D is " + std::to_string(rows.dim) +
                 "): see docs/vectors.md");
    }
    return b;
  };
  rows.x = take("x", dtype::bf16, {-1, rows.dim});
  rows.weight = take("weight", dtype::f32, {rows.dim});
  rows.bias = take("bias", dtype::f32, {rows.dim});
  rows.sum = take("sum", dtype::f32, {rows.rows()});
  rows.sum_sq_dev = take("sum_sq_dev", dtype::f32, {rows.rows()});
  rows.rstd = take("rstd", dtype::f32, {rows.rows()});
  if (hdf5::has(group, "y", at)) rows.y = take("y", dtype::f32, {rows.rows(), rows.dim});
  return rows;
}

}  // namespace kvcts
