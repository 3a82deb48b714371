#include <algorithm>
#include <utility>

#include "vectors/file.h"
#include "vectors/hdf5_object.h"

namespace kvcts {
namespace {

using hdf5::handle;
using hdf5::place;

constexpr std::string_view vectors_schema = "kvcts-vectors";

std::string schema_in(const handle& file, const place& at) {
  const std::optional<std::string> schema = hdf5::text_attribute(file, "schema", at);
  if (!schema) {
    at.fail("lacks the root attribute schema: set it to \"kvcts-vectors\", see docs/vectors.md");
  }
  return *schema;
}

// Reads what attribute_value can hold, and passes over the rest: files may say more than the
// schema.
attribute_map readable_attributes(const handle& object, const place& at,
                                  const std::vector<std::string_view>& but) {
  attribute_map found;
  for (const std::string& name : hdf5::attribute_names(object, at)) {
    if (std::find(but.begin(), but.end(), name) != but.end()) continue;
    if (!hdf5::readable(object, name, at)) continue;
    found[name] = *hdf5::attribute(object, name, at);
  }
  return found;
}

// An unsigned 64-bit value past INT64_MAX comes as decimal text.
std::uint64_t seed_of(const handle& file, const place& at) {
  const std::optional<attribute_value> seed = hdf5::attribute(file, "seed", at);
  if (!seed) return 0;
  if (const auto* integer = std::get_if<std::int64_t>(&*seed)) {
    return static_cast<std::uint64_t>(*integer);
  }
  const auto* text = std::get_if<std::string>(&*seed);
  std::uint64_t value = 0;
  bool digits = text != nullptr && !text->empty();
  for (std::size_t i = 0; digits && i < text->size(); ++i) {
    const char c = (*text)[i];
    digits = c >= '0' && c <= '9' && !__builtin_mul_overflow(value, 10, &value) &&
             !__builtin_add_overflow(value, static_cast<std::uint64_t>(c - '0'), &value);
  }
  if (!digits) at.fail("attribute seed is not an unsigned integer of 64 bits: store a u64");
  return value;
}

std::string text_of(const extent& e) {
  return "shape " + hdf5::text_of(e.shape) + ", strides " + hdf5::text_of(e.strides) + ", offset " +
         std::to_string(e.offset);
}

// A contract's message is "<kernel>: <argument>: <message>"; the place says both already.
[[noreturn]] void fail_contract(const kernel_contract& contract, const place& at,
                                std::string message) {
  const std::string kernel = std::string(contract.name) + ": ";
  if (message.compare(0, kernel.size(), kernel) == 0) message.erase(0, kernel.size());
  const std::size_t colon = message.find(": ");
  if (colon != std::string::npos) {
    if (const argument_spec* spec = contract.argument(message.substr(0, colon))) {
      const bool output = spec->direction == role::output;
      at.in(output ? "expected" : "inputs").in(spec->name).fail(message.substr(colon + 2));
    }
  }
  at.fail(message);
}

using named_views = std::vector<std::pair<std::string, tensor_view>>;

const tensor_view* find_view(const named_views& in, std::string_view name) {
  for (const auto& [of, view] : in) {
    if (of == name) return &view;
  }
  return nullptr;
}

named_views views_of(const std::vector<buffer>& buffers) {
  named_views views;
  for (const buffer& b : buffers) views.emplace_back(b.name, b.view());
  return views;
}

// Stands for bytes that were not read.
std::byte not_read[1];

named_views views_of(const std::vector<file_tensor>& tensors, const std::vector<buffer>& read) {
  named_views views;
  for (const file_tensor& t : tensors) {
    const buffer* b = find_buffer(read, t.name());
    views.emplace_back(
        t.name(), b != nullptr ? b->view() : tensor_view{not_read, t.bytes(), t.type(), t.at()});
  }
  return views;
}

// The call with its inputs and, as its outputs, what `expected` holds of them.
call call_of(const kernel_contract& contract, const attribute_map& attributes,
             const named_views& inputs, const named_views& expected, const place& at) {
  const std::string kernel(contract.name);
  call context;
  context.kernel = kernel;
  context.attributes = attributes;
  for (const auto& [name, view] : inputs) {
    const argument_spec* spec = contract.argument(name);
    if (spec == nullptr || spec->direction == role::output) {
      at.in("inputs").in(name).fail("is not an input of " + kernel +
                                    ": leave it out; `kvcts describe " + kernel + "` lists them");
    }
    context.tensors[name] = view;
  }
  for (const auto& [name, view] : expected) {
    const argument_spec* spec = contract.argument(name);
    const bool output = spec != nullptr && spec->direction == role::output;
    const bool updated =
        spec != nullptr && spec->direction == role::updated && find_view(inputs, name) != nullptr;
    if (!output && !updated) {
      at.in("expected")
          .in(name)
          .fail("is not an output of this call of " + kernel + ": leave it out; `kvcts describe " +
                kernel + "` lists them");
    }
    if (output) context.tensors[name] = view;
  }
  return context;
}

// The final content of an updated argument has the extent and the storage of its initial content.
void check_updated(const tensor_view& initial, const tensor_view* final_content, const place& at) {
  if (final_content == nullptr) {
    at.fail("is missing: store the whole final content of every output and updated argument");
  }
  if (!same_storage(initial.type, final_content->type)) {
    at.fail("has dtype " + std::string(name_of(final_content->type)) + ", and " +
            std::string(name_of(initial.type)) + " in inputs: store both alike");
  }
  const extent &a = initial.at, &b = final_content->at;
  const bool alike = a == b || (a.shape == b.shape && is_dense(a) && is_dense(b));
  if (!alike || initial.storage_bytes != final_content->storage_bytes) {
    at.fail("has " + text_of(b) + " in " + std::to_string(final_content->storage_bytes) +
            " bytes, and " + text_of(a) + " in " + std::to_string(initial.storage_bytes) +
            " bytes in inputs: store both alike");
  }
}

// Throws where a case does not follow its contract; `expected` is looked at where it is given.
bindings check_case(const kernel_contract& contract, const attribute_map& attributes,
                    const named_views& inputs, const named_views* expected, const place& at) {
  if (inputs.empty()) at.in("inputs").fail("is missing or empty: store what the kernel reads");
  const call context =
      call_of(contract, attributes, inputs, expected != nullptr ? *expected : named_views(), at);
  bindings names;
  try {
    names = check(contract, context, expected != nullptr);
  } catch (const input_error& error) {
    fail_contract(contract, at, error.what());
  }
  for (const argument_spec& spec : contract.arguments) {
    const tensor_view* initial = find_view(inputs, spec.name);
    if (expected == nullptr || spec.direction != role::updated || initial == nullptr) continue;
    check_updated(*initial, find_view(*expected, spec.name), at.in("expected").in(spec.name));
  }
  return names;
}

const kernel_contract& contract_at(const std::string& kernel, const place& at) {
  try {
    return contract_of(kernel);
  } catch (const input_error& error) {
    at.fail(error.what());
  }
}

// An attribute of the contract that was passed over is of a type that no attribute has.
void check_attributes(const handle& file, const kernel_contract& contract,
                      const vector_file::entry& which, const attribute_map& found,
                      const place& at) {
  const handle kernel = hdf5::open_group(file, which.kernel, at);
  const handle group = hdf5::open_group(kernel, which.name, at);
  for (const attribute_spec& spec : contract.attributes) {
    if (found.count(spec.name) == 0) hdf5::attribute(group, std::string(spec.name), at);
  }
}

}  // namespace

struct vector_file::state {
  place at;
  handle file;
  suite_info info;
  std::vector<entry> cases;
};

std::string schema_of(const std::string& path) {
  const hdf5::library_lock lock;
  const place at{path, {}};
  return schema_in(hdf5::open_file(at), at);
}

vector_file::vector_file(const std::string& path) : state_(std::make_unique<state>()) {
  const hdf5::library_lock lock;
  state& s = *state_;
  s.at.file = path;
  s.file = hdf5::open_file(s.at);
  const std::string schema = schema_in(s.file, s.at);
  if (schema != vectors_schema) {
    s.at.fail("has schema \"" + hdf5::shortened(schema) +
              "\", not \"kvcts-vectors\": name a vector file, see docs/vectors.md");
  }
  const std::optional<std::int64_t> version =
      hdf5::integer_attribute(s.file, "schema_version", s.at);
  if (!version) s.at.fail("lacks the root attribute schema_version: set it to 1");
  if (*version != schema_version) {
    s.at.fail("has schema_version " + std::to_string(*version) +
              ", and this program reads 1: " + "write it again as version 1");
  }
  const std::optional<std::string> profile = hdf5::text_attribute(s.file, "profile", s.at);
  if (!profile) s.at.fail("lacks the root attribute profile: set it to \"nvidia\" or \"ieee\"");
  if (*profile != "nvidia" && *profile != "ieee") {
    s.at.fail("has profile \"" + hdf5::shortened(*profile) +
              "\": set it to \"nvidia\" or \"ieee\"");
  }
  s.info.profile = *profile;
  s.info.producer = hdf5::text_attribute(s.file, "producer", s.at).value_or("");
  s.info.seed = seed_of(s.file, s.at);
  s.info.others = readable_attributes(s.file, s.at,
                                      {"schema", "schema_version", "profile", "producer", "seed"});

  for (const std::string& kernel : hdf5::names(s.file, s.at)) {
    const place kernel_at = s.at.in(kernel);
    const handle group = hdf5::open_group(s.file, kernel, kernel_at);
    for (const std::string& name : hdf5::names(group, kernel_at)) s.cases.push_back({kernel, name});
  }
}

vector_file::~vector_file() {
  const hdf5::library_lock lock;
  state_.reset();
}

vector_file::vector_file(vector_file&&) noexcept = default;

const suite_info& vector_file::info() const { return state_->info; }

const std::vector<vector_file::entry>& vector_file::cases() const { return state_->cases; }

bool vector_file::has_actual(const entry& which) const {
  const hdf5::library_lock lock;
  const place kernel_at = state_->at.in(which.kernel);
  const place at = kernel_at.in(which.name);
  const handle kernel = hdf5::open_group(state_->file, which.kernel, kernel_at);
  return hdf5::has(hdf5::open_group(kernel, which.name, at), "actual", at);
}

case_outline vector_file::outline(const entry& which) const {
  const hdf5::library_lock lock;
  const place kernel_at = state_->at.in(which.kernel);
  const place at = kernel_at.in(which.name);
  const handle kernel = hdf5::open_group(state_->file, which.kernel, kernel_at);
  const handle group = hdf5::open_group(kernel, which.name, at);

  case_outline c;
  c.kernel = which.kernel;
  c.name = which.name;
  c.flags = hdf5::text_list(group, "flags", at).value_or(std::vector<std::string>{});
  c.attributes = readable_attributes(group, at, {"flags"});

  const auto read_group = [&](const std::string& name, const auto& take) {
    const place group_at = at.in(name);
    if (!hdf5::has(group, name, at)) return;
    const handle buffers = hdf5::open_group(group, name, group_at);
    for (const std::string& argument : hdf5::names(buffers, group_at)) {
      take(buffers, argument, group_at.in(argument));
    }
  };
  const auto into = [](std::vector<file_tensor>& to) {
    return [&to](const handle& from, const std::string& name, const place& where) {
      to.emplace_back(std::make_unique<hdf5::stored_tensor>(from, name, where));
    };
  };
  read_group("inputs", into(c.inputs));
  read_group("expected", into(c.expected));
  read_group("actual", [&](const handle& from, const std::string& name, const place& where) {
    try {
      const file_tensor* like = find_tensor(c.expected, name);
      c.actual.emplace_back(std::make_unique<hdf5::stored_tensor>(
          from, name, where, like == nullptr ? nullptr : &like->stored()));
    } catch (const hdf5::unusable& error) {
      c.unusable_actual.push_back({name, error.why});
    }
  });
  return c;
}

test_case vector_file::decode(const entry& which) const {
  const hdf5::library_lock lock;
  case_outline o = outline(which);
  std::uint64_t budget = hdf5::memory_limit();
  const auto read_all = [&budget](const std::vector<file_tensor>& from) {
    std::vector<buffer> to;
    for (const file_tensor& t : from) to.push_back(t.stored().read_all(budget));
    return to;
  };
  test_case c;
  c.inputs = read_all(o.inputs);
  c.expected = read_all(o.expected);
  c.actual = read_all(o.actual);
  c.kernel = std::move(o.kernel);
  c.name = std::move(o.name);
  c.flags = std::move(o.flags);
  c.attributes = std::move(o.attributes);
  c.unusable_actual = std::move(o.unusable_actual);
  return c;
}

test_case vector_file::read(const entry& which) const {
  const place at = state_->at.in(which.kernel).in(which.name);
  const kernel_contract& contract = contract_at(which.kernel, at);
  test_case c = decode(which);
  {
    const hdf5::library_lock lock;
    check_attributes(state_->file, contract, which, c.attributes, at);
  }
  const named_views expected = views_of(c.expected);
  check_case(contract, c.attributes, views_of(c.inputs), &expected, at);
  return c;
}

bindings vector_file::check(case_outline& c, bool expected_too) const {
  const hdf5::library_lock lock;
  const place at = state_->at.in(c.kernel).in(c.name);
  const kernel_contract& contract = contract_at(c.kernel, at);
  check_attributes(state_->file, contract, {c.kernel, c.name}, c.attributes, at);
  std::uint64_t budget = hdf5::memory_limit();
  c.indices.clear();
  for (const file_tensor& t : c.inputs) {
    const argument_spec* spec = contract.argument(t.name());
    const bool is_index =
        t.type() == dtype::i32 || t.type() == dtype::i64 || t.type() == dtype::boolean;
    if (is_index && spec != nullptr && spec->direction == role::input) {
      c.indices.push_back(t.stored().read_all(budget));
    }
  }
  const named_views expected = views_of(c.expected, {});
  return check_case(contract, c.attributes, views_of(c.inputs, c.indices),
                    expected_too ? &expected : nullptr, at);
}

call case_outline::inputs_only() const {
  call context;
  context.kernel = kernel;
  context.attributes = attributes;
  for (const auto& [argument, view] : views_of(inputs, indices)) context.tensors[argument] = view;
  return context;
}

file_tensor::file_tensor(std::unique_ptr<const hdf5::stored_tensor> stored)
    : stored_(stored.release(), [](const hdf5::stored_tensor* of) {
        const hdf5::library_lock lock;
        delete of;
      }) {}

const std::string& file_tensor::name() const { return stored_->name(); }
dtype file_tensor::type() const { return stored_->type(); }
const extent& file_tensor::at() const { return stored_->at(); }
std::uint64_t file_tensor::bytes() const { return stored_->bytes(); }
std::uint64_t file_tensor::piece() const { return stored_->piece(); }

void file_tensor::read(const byte_range& range, std::byte* to) const {
  const hdf5::library_lock lock;
  stored_->read(range, to);
}

const file_tensor* find_tensor(const std::vector<file_tensor>& in, std::string_view name) {
  for (const file_tensor& t : in) {
    if (t.name() == name) return &t;
  }
  return nullptr;
}

void for_each_case(const vector_file& file,
                   const std::function<bool(const vector_file::entry&)>& wanted,
                   const std::function<void(const test_case&)>& use) {
  for (const vector_file::entry& which : file.cases()) {
    if (!wanted || wanted(which)) use(file.read(which));
  }
}

}  // namespace kvcts
