// Calls that break a kernel's contract, made from good ones by one change each: every message is
// one line that names an argument or attribute, and every precondition is refused in its own words.
#include <algorithm>
#include <map>
#include <set>

#include "conformance/runner/oracle.h"
#include "conformance/tests/tools.h"

namespace kvcts {
namespace {

using testing_tools::every_kernel;

// Text of a message between its {names}, in order.
bool matches(std::string_view message, std::string_view pattern) {
  std::size_t at = 0;
  while (!pattern.empty()) {
    const std::size_t open = std::min(pattern.find('{'), pattern.size());
    at = message.find(pattern.substr(0, open), at);
    if (at == message.npos) return false;
    at += open;
    const std::size_t close = pattern.find('}', open);
    pattern.remove_prefix(close == pattern.npos ? pattern.size() : close + 1);
  }
  return true;
}

constexpr std::int64_t sizes[] = {0,  1,  2,   3,   5,    16,        31,       33,
                                  48, 63, 100, 129, 2112, INT64_MAX, 1LL << 31};

class bad_input : public ::testing::TestWithParam<std::string> {
 protected:
  bad_input() : contract_(contract_of(GetParam())) {}

  // What is said of a call; empty where it is legal.
  std::string said_of(const call& c) {
    try {
      check(contract_, c, false);
    } catch (const input_error& e) {
      note(e.what());
      return e.what();
    }
    return "";
  }

  // "kernel: thing: words", in one line.
  void note(const std::string& message) {
    const std::string kernel = GetParam() + ": ";
    ASSERT_EQ(message.rfind(kernel, 0), 0u) << message;
    const std::string thing =
        message.substr(kernel.size(), message.find(": ", kernel.size()) - kernel.size());
    EXPECT_TRUE(contract_.argument(thing) != nullptr || contract_.attribute(thing) != nullptr)
        << message;
    EXPECT_EQ(message.find('\n'), message.npos) << message;
    for (const precondition& rule : contract_.preconditions) {
      if (thing == rule.argument && matches(message, rule.message)) refused_.insert(&rule);
    }
  }

  void change_attributes(const call& good) {
    for (const attribute_spec& spec : contract_.attributes) {
      call c = good;
      c.attributes.erase(std::string(spec.name));
      if (!spec.optional) expect_named(c, spec.name, "absent");
      const auto with = [&](const attribute_value& value) {
        c.attributes.insert_or_assign(std::string(spec.name), value);
        return c;
      };
      for (const std::string_view choice : spec.choices) said_of(with(std::string(choice)));
      const bool is_text = spec.kind == attribute_kind::text;
      if (is_text && !spec.choices.empty()) {
        expect_named(with(std::string("none")), spec.name, "text");
      }
      expect_named(is_text ? with(std::int64_t{1}) : with(std::string("1")), spec.name, "kind");
      if (spec.kind != attribute_kind::integer && spec.kind != attribute_kind::boolean) continue;
      if (spec.kind == attribute_kind::boolean) {
        expect_named(with(std::int64_t{2}), spec.name, "value");
      }
      for (const std::int64_t size : sizes) {
        said_of(with(size));
        said_of(with(-size));
      }
    }
  }

  void change_arguments(const call& good) {
    for (const argument_spec& spec : contract_.arguments) {
      if (spec.direction == role::output || good.tensors.count(spec.name) == 0) continue;
      call c = good;
      tensor_view& v = c.tensors.find(spec.name)->second;
      const tensor_view as_it_was = v;
      for (const dtype type : {dtype::boolean, dtype::f32, dtype::i64, dtype::bf16}) {
        v.type = type;
        if (std::count(spec.dtypes.begin(), spec.dtypes.end(), type) == 0) {
          expect_named(c, spec.name, "dtype");
        }
        said_of(c);
        v = as_it_was;
      }
      v.at.shape.push_back(1);
      v.at.strides.push_back(1);
      if (spec.shape.find("...") == spec.shape.npos) expect_named(c, spec.name, "rank");
      v = as_it_was;
      for (std::size_t axis = 0; axis < v.rank(); ++axis) {
        for (const std::int64_t size : sizes) {
          v.at.shape[axis] = size;
          said_of(c);
          v.at.strides[axis] = size;
          said_of(c);
          v.at.shape = as_it_was.at.shape;
          said_of(c);
          v = as_it_was;
        }
        v.at.shape[axis] = -1;
        expect_named(c, spec.name, "size");
        v = as_it_was;
        v.at.strides[axis] = -1;
        expect_named(c, spec.name, "stride");
        v = as_it_was;
      }
      v.at.offset = -1;
      expect_named(c, spec.name, "offset");
      v = as_it_was;
      if (count(v.at.shape) > 0) {
        v.storage_bytes = 0;
        expect_named(c, spec.name, "storage");
      }
      c.tensors.erase(std::string(spec.name));
      const std::string said = said_of(c);
      if (!spec.optional && spec.when.empty()) {
        EXPECT_EQ(said.rfind(GetParam() + ": " + std::string(spec.name) + ": is missing", 0), 0u)
            << said;
      }
    }
  }

  // A dimension of all arguments that have it.
  void change_names(const call& good) {
    const bindings names = check(contract_, good, false);
    for (const auto& [name, value] : names) {
      if (contract_.attribute(name) != nullptr) continue;
      for (const std::int64_t size :
           {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{48},
            value + 1, value - 1, 2 * value, std::int64_t{4096}}) {
        call c = good;
        bindings changed = names;
        changed[name] = size;
        for (const argument_spec& spec : contract_.arguments) {
          const auto found = c.tensors.find(spec.name);
          if (spec.direction == role::output || found == c.tensors.end()) continue;
          const std::vector<std::string_view> dimensions = list_of(spec.shape);
          extent& at = found->second.at;
          for (std::size_t axis = 0; axis < std::min(dimensions.size(), at.shape.size()); ++axis) {
            if (dimensions[axis] == "...") break;
            const std::vector<std::string> read = names_in(dimensions[axis]);
            if (std::find(read.begin(), read.end(), name) == read.end()) continue;
            at.shape[axis] = std::max<std::int64_t>(evaluate(dimensions[axis], changed, c), 0);
          }
        }
        said_of(c);
      }
    }
  }

  // Numbers of an integer argument, one at a time: slots, positions, pages, lengths.
  void change_numbers(const call& good) {
    for (const auto& [name, view] : good.tensors) {
      const argument_spec* spec = contract_.argument(name);
      if (spec->direction != role::input || count(view.at.shape) == 0) continue;
      if (view.type != dtype::i32 && view.type != dtype::i64) continue;
      for (std::int64_t i = 0; i < std::min<std::int64_t>(view.dim(0), 4); ++i) {
        std::byte* at = view.rank() == 1 ? view.element(i) : view.element(i, 0);
        for (const std::int64_t number : {std::int64_t{-1}, std::int64_t{-9}, std::int64_t{0},
                                          std::int64_t{1} << 30, std::int64_t{INT32_MAX}}) {
          if (view.type == dtype::i32) {
            const auto before = load<std::int32_t>(at);
            store(at, static_cast<std::int32_t>(number));
            said_of(good);
            store(at, before);
          } else {
            const auto before = load<std::int64_t>(at);
            store(at, number);
            said_of(good);
            store(at, before);
          }
        }
      }
    }
  }

  void expect_named(const call& c, std::string_view thing, const char* what) {
    const std::string said = said_of(c);
    EXPECT_EQ(said.rfind(GetParam() + ": " + std::string(thing) + ": ", 0), 0u)
        << thing << ", " << what << ": '" << said << "'";
  }

  const kernel_contract& contract_;
  std::set<const precondition*> refused_;
};
INSTANTIATE_TEST_SUITE_P(kernels, bad_input, ::testing::ValuesIn(every_kernel()),
                         [](const auto& info) { return info.param; });

TEST_P(bad_input, is_refused_by_the_name_of_what_is_wrong) {
  for (const case_spec& spec : cases_of(GetParam(), level::smoke, 1)) {
    test_case made = spec.build();
    std::vector<buffer> results = initial_results(contract_, made.attributes, made.inputs, canary);
    const call good = make_call(GetParam(), made.attributes, made.inputs, results);
    ASSERT_EQ(said_of(good), "");
    change_attributes(good);
    change_arguments(good);
    change_names(good);
    change_numbers(good);
    ASSERT_EQ(said_of(good), "");
    if (HasFailure()) return;
  }
  for (const precondition& rule : contract_.preconditions) {
    EXPECT_EQ(refused_.count(&rule), 1u)
        << rule.argument << ": " << rule.message << " (unless " << rule.holds << ")";
  }
}

}  // namespace
}  // namespace kvcts
