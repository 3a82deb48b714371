// kvcts verify, kvcts compare: what somebody else's implementation wrote into copies of a suite.
// One case at a time, large tensors by pieces.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <new>
#include <thread>

#include "conformance/cli/commands.h"
#include "conformance/cli/interrupt.h"
#include "conformance/cli/report_folder.h"
#include "conformance/cli/text.h"
#include "conformance/compare/compare.h"
#include "conformance/compare/picture.h"
#include "conformance/faults/diagnosis.h"
#include "conformance/runner/oracle.h"
#include "conformance/runner/run.h"
#include "conformance/runner/vector_check.h"
#include "vectors/file.h"

namespace kvcts {
namespace {

using entry = vector_file::entry;

struct by_name {
  bool operator()(const entry& a, const entry& b) const {
    return std::tie(a.kernel, a.name) < std::tie(b.kernel, b.name);
  }
};

// Progress of a comparison, by cases and bytes; it ends where the user interrupts.
class meter {
 public:
  explicit meter(std::size_t cases) : cases_(cases) {}
  void case_done() {
    ++done_;
    show();
  }
  std::function<void(std::uint64_t)> bytes() {
    return [this](std::uint64_t more) {
      bytes_ += more;
      show();
    };
  }

 private:
  void show() {
    throw_if_interrupted();
    show_progress("comparing", done_, cases_, bytes_);
  }

  std::size_t cases_, done_ = 0;
  std::uint64_t bytes_ = 0;
};

void probe(const std::string& path) {
  const std::string what = "opening " + std::filesystem::path(path).filename().string();
  probe_vectors(path, {}, [&what](const probe_progress& p) {
    throw_if_interrupted();
    show_progress(what, p.cases, p.all_cases, p.bytes);
  });
  clear_progress();
}

std::string text_of(const extent& at) { return fmt::format("[{}]", fmt::join(at.shape, ", ")); }

std::size_t kernels_of(const run_result& result) {
  std::map<std::string, int> kernels;
  for (const case_result& c : result.cases) ++kernels[c.kernel];
  return kernels.size();
}

run_result begin_result(const vector_file& suite, const std::string& candidate,
                        const std::string& version) {
  run_result result;
  result.candidate = candidate;
  result.candidate_version = version;
  result.profile = suite.info().profile;
  result.level = "file";
  result.seed = suite.info().seed;
  const auto digest = suite.info().others.find("suite_digest");
  if (digest != suite.info().others.end()) {
    if (const auto* text = std::get_if<std::string>(&digest->second)) result.suite_digest = *text;
  }
  const auto version_of_suite = suite.info().others.find("suite_version");
  if (version_of_suite != suite.info().others.end()) {
    if (const auto* n = std::get_if<std::int64_t>(&version_of_suite->second)) {
      result.suite_version = static_cast<int>(*n);
    }
  }
  result.environment = environment_here();
  return result;
}

case_result begin_case(const vector_file& suite, const case_outline& c, const std::string& source) {
  case_result one;
  one.kernel = c.kernel;
  one.name = c.name;
  one.flags = c.flags;
  one.source = source;
  one.provenance = provenance_of(suite.info());
  return one;
}

// Why an `actual` cannot be compared with what is expected; empty where it can.
std::string misfit(const case_outline& got, const file_tensor& want) {
  const auto unusable =
      std::find_if(got.unusable_actual.begin(), got.unusable_actual.end(),
                   [&](const unusable_buffer& b) { return b.name == want.name(); });
  if (unusable != got.unusable_actual.end()) {
    return fmt::format("actual/{}: {}", want.name(), unusable->why);
  }
  const file_tensor* a = find_tensor(got.actual, want.name());
  if (a == nullptr) return fmt::format("actual/{} is missing", want.name());
  if (!same_storage(a->type(), want.type())) {
    return fmt::format("actual/{} has dtype {}, must be {}", want.name(), name_of(a->type()),
                       name_of(want.type()));
  }
  if (a->at().shape != want.at().shape || a->bytes() != want.bytes()) {
    return fmt::format("actual/{} has shape {} and {} bytes, must have {} and {}", want.name(),
                       text_of(a->at()), a->bytes(), text_of(want.at()), want.bytes());
  }
  return {};
}

void take(case_result& one, const comparer& by, picture_budget& pictures) {
  comparison found = by.result();
  one.bytes_compared = found.compared;
  one.bytes_different = found.different;
  one.places = std::move(found.places);
  one.pictures = by.pictures();
  pictures.limit(one);
}

// Of `verify`: the cases of each kernel, and which faults wrote the bytes of those that fail.
class examined_cases {
 public:
  examined_cases(const vector_file& expected, const vector_file& actual)
      : expected_(expected), actual_(actual) {}

  void add(const entry& which, const case_outline& want, bool passed) {
    std::uint64_t bytes = 0;
    for (const auto* tensors : {&want.inputs, &want.expected, &want.expected}) {
      for (const file_tensor& t : *tensors) bytes += t.bytes();
    }
    auto& [failing, passing] = kernels_[which.kernel];
    (passed ? passing : failing).push_back({which, bytes});
  }

  // Cases are read whole, unless that would take much memory.
  void diagnose_into(run_result& result) {
    for (auto& [kernel, cases] : kernels_) {
      auto& [failing, passing] = cases;
      if (failing.empty()) continue;
      throw_if_interrupted();
      examined_calls calls = {calls_of(failing, false), calls_of(passing, true)};
      const std::uint64_t smallest = failing.front().bytes;
      if (calls.failing.empty()) {
        result.notices.push_back(
            fmt::format("no diagnosis of {}: its smallest failing case has {} bytes, more than {}",
                        kernel, grouped(smallest), grouped(most_bytes)));
        continue;
      }
      // Each thread has its own copy.
      const std::uint64_t copies = most_in_memory / std::max<std::uint64_t>(smallest, 1);
      const int threads = static_cast<int>(
          std::clamp<std::uint64_t>(copies, 1, std::max(std::thread::hardware_concurrency(), 1U)));
      try {
        result.diagnoses.push_back(diagnose(calls, threads));
      } catch (const std::bad_alloc&) {
        result.notices.push_back(fmt::format("no diagnosis of {}: memory is used up", kernel));
      }
    }
  }

 private:
  static constexpr std::uint64_t most_bytes = std::uint64_t{8} << 20;
  static constexpr std::uint64_t most_in_memory = std::uint64_t{32} << 20;
  struct one {
    entry which;
    std::uint64_t bytes;
  };

  // Sorts them, the smallest first.
  std::vector<std::function<observed_call()>> calls_of(std::vector<one>& cases, bool passed) const {
    std::stable_sort(cases.begin(), cases.end(),
                     [](const one& a, const one& b) { return a.bytes < b.bytes; });
    std::vector<std::function<observed_call()>> calls;
    for (const one& c : cases) {
      if (c.bytes > most_bytes) break;
      calls.emplace_back([this, &c, passed] { return observe(c.which, passed); });
    }
    return calls;
  }

  observed_call observe(const entry& which, bool passed) const {
    throw_if_interrupted();
    test_case want = expected_.read(which);
    observed_call made;
    made.kernel = which.kernel;
    made.name = which.name;
    made.attributes = std::move(want.attributes);
    made.inputs = std::move(want.inputs);
    made.rules = profile_from_name(expected_.info().profile);
    made.expected = std::move(want.expected);
    if (passed) {
      made.got = made.expected;
      return made;
    }
    const test_case got = actual_.decode(which);
    for (const buffer& e : made.expected) made.got.push_back(*find_buffer(got.actual, e.name));
    return made;
  }

  const vector_file& expected_;
  const vector_file& actual_;
  std::map<std::string, std::pair<std::vector<one>, std::vector<one>>> kernels_;
};

// Of `compare`: two files, and where each keeps what its engine wrote.
class side {
 public:
  explicit side(const std::string& path) : path_(path), file_(path) {
    for (const entry& e : file_.cases()) {
      filled_ = filled_ || file_.has_actual(e);
    }
  }
  const std::string& path() const { return path_; }
  const vector_file& file() const { return file_; }
  std::string part() const { return filled_ ? "actual" : "expected"; }
  const std::vector<file_tensor>& outputs(const case_outline& c) const {
    return filled_ ? c.actual : c.expected;
  }

 private:
  std::string path_;
  vector_file file_;
  bool filled_ = false;
};

[[noreturn]] void refuse_suites(const side& a, const side& b, const std::string& where,
                                const std::string& what) {
  throw input_error(
      fmt::format("{} and {} hold different suites: {}: {}; compare copies of one "
                  "suite",
                  a.path(), b.path(), where, what));
}

// Inputs and attributes of one case must be equal.
void check_same_case(const side& a, const side& b, const case_outline& in_a,
                     const case_outline& in_b, const std::function<void(std::uint64_t)>& progress) {
  const std::string where = in_a.kernel + "/" + in_a.name;
  for (const auto& [name, value] : in_a.attributes) {
    const auto other = in_b.attributes.find(name);
    if (other == in_b.attributes.end() || other->second != value) {
      refuse_suites(a, b, where, fmt::format("attribute {} differs", name));
    }
  }
  for (const auto& [name, value] : in_b.attributes) {
    if (in_a.attributes.count(name) == 0) {
      refuse_suites(a, b, where, fmt::format("attribute {} is only in {}", name, b.path()));
    }
  }
  for (const file_tensor& t : in_b.inputs) {
    if (find_tensor(in_a.inputs, t.name()) == nullptr) {
      refuse_suites(a, b, where, fmt::format("input {} is only in {}", t.name(), b.path()));
    }
  }
  for (const file_tensor& t : in_a.inputs) {
    const file_tensor* other = find_tensor(in_b.inputs, t.name());
    if (other == nullptr) {
      refuse_suites(a, b, where, fmt::format("input {} is only in {}", t.name(), a.path()));
    }
    const bool alike = t.at() == other->at() || (t.at().shape == other->at().shape &&
                                                 is_dense(t.at()) && is_dense(other->at()));
    if (!same_storage(t.type(), other->type()) || !alike || t.bytes() != other->bytes()) {
      refuse_suites(
          a, b, where,
          fmt::format("input {} is {} {} in one, {} {} in the other", t.name(), name_of(t.type()),
                      text_of(t.at()), name_of(other->type()), text_of(other->at())));
    }
    if (const auto byte = first_difference(t, *other, progress)) {
      refuse_suites(a, b, where, fmt::format("input {} differs from byte {} on", t.name(), *byte));
    }
  }
}

std::vector<std::string> output_names(const side& s, const case_outline& c) {
  std::vector<std::string> names;
  for (const file_tensor& t : s.outputs(c)) names.push_back(t.name());
  if (s.part() == "actual") {
    for (const unusable_buffer& b : c.unusable_actual) names.push_back(b.name);
  }
  return names;
}

// Why two outputs cannot be compared; empty where they can.
std::string misfit(const side& a, const side& b, const case_outline& in_a, const case_outline& in_b,
                   const std::string& name) {
  for (const auto& [s, c] : {std::pair(&a, &in_a), std::pair(&b, &in_b)}) {
    if (find_tensor(s->outputs(*c), name) != nullptr) continue;
    for (const unusable_buffer& u : c->unusable_actual) {
      if (u.name == name) return fmt::format("{}: actual/{}: {}", s->path(), name, u.why);
    }
    return fmt::format("{}: {}/{} is missing", s->path(), s->part(), name);
  }
  const file_tensor& of_a = *find_tensor(a.outputs(in_a), name);
  const file_tensor& of_b = *find_tensor(b.outputs(in_b), name);
  if (!same_storage(of_a.type(), of_b.type())) {
    return fmt::format("{} is {} in {}, {} in {}", name, name_of(of_a.type()), a.path(),
                       name_of(of_b.type()), b.path());
  }
  if (of_a.at().shape != of_b.at().shape || of_a.bytes() != of_b.bytes()) {
    return fmt::format("{} has shape {} and {} bytes in {}, {} and {} in {}", name,
                       text_of(of_a.at()), of_a.bytes(), a.path(), text_of(of_b.at()), of_b.bytes(),
                       b.path());
  }
  return {};
}

case_result compare_case(const side& a, const side& b, case_outline& in_a, const case_outline& in_b,
                         meter& shown, picture_budget& pictures) {
  const bindings bound = a.file().check(in_a, false);
  check_same_case(a, b, in_a, in_b, shown.bytes());
  const kernel_contract& contract = contract_of(in_a.kernel);
  std::vector<std::string> names = output_names(a, in_a);
  const std::vector<std::string> more = output_names(b, in_b);
  names.insert(names.end(), more.begin(), more.end());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());

  case_result one = begin_case(a.file(), in_a, b.path());
  const call context = in_a.inputs_only();
  comparer to(contract, context, bound);
  std::vector<std::string> problems;
  if (names.empty()) problems.push_back("neither file has an output of it");
  for (const std::string& name : names) {
    const argument_spec* spec = contract.argument(name);
    if (spec == nullptr || spec->direction == role::input) {
      throw input_error(
          fmt::format("{}/{}: {} is not an output of this kernel: leave it out; "
                      "`kvcts describe {}` lists them",
                      in_a.kernel, in_a.name, name, in_a.kernel));
    }
    const std::string problem = misfit(a, b, in_a, in_b, name);
    if (!problem.empty()) {
      problems.push_back(problem);
      continue;
    }
    compare_tensors(to, *find_tensor(a.outputs(in_a), name), *find_tensor(b.outputs(in_b), name),
                    shown.bytes());
  }
  take(one, to, pictures);
  one.message = fmt::format("{}", fmt::join(problems, "; "));
  if (!problems.empty() || one.bytes_different != 0) {
    one.what = outcome::failed;
    one.replay = fmt::format("kvcts compare '{}' '{}'", a.path(), b.path());
  }
  return one;
}

void check_same_cases(const side& a, const side& b) {
  std::vector<entry> only;
  for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    std::set_difference(one->file().cases().begin(), one->file().cases().end(),
                        other->file().cases().begin(), other->file().cases().end(),
                        std::back_inserter(only), by_name());
    if (!only.empty()) {
      refuse_suites(a, b, only.front().kernel + "/" + only.front().name,
                    fmt::format("is only in {}", one->path()));
    }
  }
  if (a.file().cases().empty()) throw input_error(a.path() + ": holds no case");
}

}  // namespace

int verify_command(const exchange_arguments& arguments) {
  const interrupt_guard signals;
  const report_folder report(arguments.report);
  probe(arguments.a);
  probe(arguments.b);
  const vector_file expected(arguments.a);
  const vector_file actual(arguments.b);
  run_result result = begin_result(expected, arguments.b, actual.info().producer);
  const std::vector<entry>& filled = actual.cases();
  meter shown(expected.cases().size());
  picture_budget pictures;
  examined_cases examined(expected, actual);
  for (const entry& which : expected.cases()) {
    case_outline want = expected.outline(which);
    const bindings bound = expected.check(want, true);
    case_result one = begin_case(expected, want, arguments.b);
    std::vector<std::string> problems;
    if (!std::binary_search(filled.begin(), filled.end(), which, by_name())) {
      problems.push_back("the case is missing");
    } else {
      const case_outline got = actual.outline(which);
      const call context = want.inputs_only();
      comparer to(contract_of(want.kernel), context, bound);
      for (const file_tensor& e : want.expected) {
        const std::string problem = misfit(got, e);
        if (problem.empty()) {
          compare_tensors(to, e, *find_tensor(got.actual, e.name()), shown.bytes());
        } else {
          problems.push_back(problem);
        }
      }
      take(one, to, pictures);
    }
    one.message = fmt::format("{}", fmt::join(problems, "; "));
    if (!problems.empty() || one.bytes_different != 0) {
      one.what = outcome::failed;
      one.replay = fmt::format("kvcts verify '{}' '{}'", arguments.a, arguments.b);
    }
    if (problems.empty()) examined.add(which, want, one.bytes_different == 0);
    result.cases.push_back(std::move(one));
    shown.case_done();
  }
  clear_progress();
  result.kernels_claimed = result.kernels_total = static_cast<int>(kernels_of(result));
  result.verdict = verdict_of(result);
  examined.diagnose_into(result);
  print_result(result);
  report.write(result);
  return result.exit_status(false);
}

int compare_command(const exchange_arguments& arguments) {
  const interrupt_guard signals;
  const report_folder report(arguments.report);
  probe(arguments.a);
  probe(arguments.b);
  const side a(arguments.a), b(arguments.b);
  check_same_cases(a, b);
  run_result result = begin_result(
      a.file(), fmt::format("{} against {}", b.path(), a.path()),
      fmt::format("{} against {}", b.file().info().producer, a.file().info().producer));
  result.notices.push_back(
      fmt::format("A: {} of {}; B: {} of {}", a.part(), a.path(), b.part(), b.path()));
  if (a.file().info().profile != b.file().info().profile) {
    result.notices.push_back(
        fmt::format("profiles: {} and {}", a.file().info().profile, b.file().info().profile));
  }
  meter shown(a.file().cases().size());
  picture_budget pictures;
  std::uint64_t compared = 0, different = 0;
  std::size_t cases_different = 0;
  for (const entry& which : a.file().cases()) {
    case_outline in_a = a.file().outline(which);
    const case_outline in_b = b.file().outline(which);
    case_result one = compare_case(a, b, in_a, in_b, shown, pictures);
    compared += one.bytes_compared;
    different += one.bytes_different;
    cases_different += one.what == outcome::failed;
    result.cases.push_back(std::move(one));
    shown.case_done();
  }
  clear_progress();
  result.kernels_claimed = result.kernels_total = static_cast<int>(kernels_of(result));
  result.verdict =
      cases_different == 0
          ? fmt::format("equal: {} cases, {} bytes compared", result.cases.size(),
                        grouped(compared))
          : fmt::format("different: {} of {} cases differ ({} of {} bytes)", cases_different,
                        result.cases.size(), grouped(different), grouped(compared));
  print_result(result, {"A", "B"});
  report.write(result);
  return cases_different == 0 ? 0 : 1;
}

}  // namespace kvcts
