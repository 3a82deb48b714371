#include "fuzz/fuzz.h"

#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <set>
#include <utility>

#include "conformance/runner/costs.h"
#include "conformance/runner/oracle.h"
#include "conformance/runner/run.h"
#include "fuzz/relations.h"
#include "vectors/file.h"

namespace kvcts {
namespace {

using steady = std::chrono::steady_clock;

// --- Generator.

// inRange() narrows with the size: the nominal one leaves the range whole.
std::uint32_t number_below(rc::Random& random, std::uint32_t n) {
  return rc::gen::inRange<std::uint32_t>(0, n)(random.split(), rc::kNominalSize).value();
}

std::vector<std::uint32_t> different_numbers(rc::Random& random, std::size_t count) {
  std::set<std::uint32_t> taken;
  std::vector<std::uint32_t> numbers;
  while (numbers.size() < count) {
    const std::uint32_t n = number_below(random, 1u << 31);
    if (taken.insert(n).second) numbers.push_back(n);
  }
  return numbers;
}

// Mostly few; sometimes none, sometimes more than any tile holds.
std::size_t any_count(rc::Random& random, int size, std::uint32_t most) {
  const std::uint32_t turn = number_below(random, 16);
  if (turn == 0) return 0;
  if (turn == 1) return 1 + number_below(random, most);
  return 1 + number_below(random, 2 + static_cast<std::uint32_t>(size) / 8);
}

// Fewer tokens, then fewer heads, then plainer knobs.
rc::Seq<fuzz_case> smaller(const fuzz_case& c) {
  auto fewer_tokens =
      rc::seq::map(rc::shrink::removeChunks(c.tokens), [c](std::vector<std::uint32_t> tokens) {
        fuzz_case made = c;
        made.tokens = std::move(tokens);
        return made;
      });
  auto fewer_heads = rc::seq::map(
      rc::seq::filter(rc::shrink::removeChunks(c.heads),
                      [](const std::vector<std::uint32_t>& heads) { return !heads.empty(); }),
      [c](std::vector<std::uint32_t> heads) {
        fuzz_case made = c;
        made.heads = std::move(heads);
        return made;
      });
  auto plainer = rc::seq::map(
      rc::shrink::eachElement(
          c.knobs, [](std::uint8_t turn) { return rc::shrink::towards<std::uint8_t>(turn, 0); }),
      [c](std::vector<std::uint8_t> knobs) {
        fuzz_case made = c;
        made.knobs = std::move(knobs);
        return made;
      });
  return rc::seq::concat(std::move(fewer_tokens), std::move(fewer_heads), std::move(plainer));
}

rc::Gen<fuzz_case> cases_of(const fuzz_plan& plan) {
  return [&plan](const rc::Random& start, int size) {
    rc::Random random(start);
    fuzz_case c;
    c.plan = &plan;
    c.seed = random.split().next();
    c.tokens = different_numbers(random, any_count(random, size, 70));
    c.heads = different_numbers(random, std::max<std::size_t>(any_count(random, size, 70), 1));
    for (const fuzz_knob& k : knobs_of(plan)) {
      // Content is mostly mixed: each block draws its own.
      const auto count = static_cast<std::uint32_t>(k.values.size());
      std::uint32_t turn = number_below(random, 3) == 0 ? 0 : number_below(random, count);
      if (k.name == "content" && number_below(random, 2) == 0) turn = count - 1;
      c.knobs.push_back(static_cast<std::uint8_t>(turn));
    }
    return rc::shrinkable::shrinkRecur(c, [](const fuzz_case& from) { return smaller(from); });
  };
}

rc::Shrinkable<fuzz_case> drawn(const fuzz_plan& plan, std::uint64_t seed, std::uint64_t number) {
  const rc::Random random(seed_of(seed, plan.kernel, fmt::format("fuzz_{}", number)));
  return cases_of(plan)(random, static_cast<int>(number % rc::kNominalSize));
}

// --- Plain values, once there are as few of them as can be.

// A case, and where the next chunk lies that may become zeros.
struct plain_step {
  test_case c;
  std::size_t buffer = 0;
  std::int64_t chunk = -1;  // bytes; -1: the largest of the buffer
  std::int64_t at = 0;
};

bool holds_values(const buffer& b) {
  return !b.is_sparse() && b.type != dtype::i64 && b.type != dtype::boolean;
}
// Indices must stay inside: only those that the call writes over are plain as zeros.
bool may_be_zero(const test_case& c, const buffer& b) {
  const argument_spec* spec = contract_of(c.kernel).argument(b.name);
  return holds_values(b) &&
         (b.type != dtype::i32 || (spec != nullptr && spec->direction == role::updated));
}

class plain_steps {
 public:
  explicit plain_steps(plain_step from) : step_(std::move(from)) {}

  rc::Maybe<plain_step> operator()() {
    for (; step_.buffer < step_.c.inputs.size(); ++step_.buffer, step_.chunk = -1) {
      const buffer& b = step_.c.inputs[step_.buffer];
      const auto bytes = static_cast<std::int64_t>(b.bytes.size());
      const auto element = static_cast<std::int64_t>(size_of(b.type));
      if (!may_be_zero(step_.c, b)) continue;
      if (step_.chunk < 0) {
        step_.chunk = element;
        while (step_.chunk < bytes) step_.chunk *= 2;
        step_.at = 0;
      }
      // Of caches no more than a few hundred pieces.
      const std::int64_t least = std::max(element, bytes / 1024);
      for (; step_.chunk >= least; step_.chunk /= 2, step_.at = 0) {
        while (step_.at < bytes) {
          const std::int64_t first = step_.at, end = std::min(first + step_.chunk, bytes);
          step_.at = end;
          const auto begins = b.bytes.begin() + first, ends = b.bytes.begin() + end;
          if (std::all_of(begins, ends, [](std::byte x) { return x == std::byte{0}; })) continue;
          plain_step made = step_;
          std::fill(made.c.inputs[step_.buffer].bytes.begin() + first,
                    made.c.inputs[step_.buffer].bytes.begin() + end, std::byte{0});
          return made;
        }
      }
    }
    return rc::Nothing;
  }

 private:
  plain_step step_;
};

rc::Seq<plain_step> plainer(const plain_step& from) { return rc::makeSeq<plain_steps>(from); }

// --- Search.

class limits {
 public:
  explicit limits(const fuzz_options& o)
      : left_(o.shrink_trials),
        end_(steady::now() + std::chrono::duration_cast<steady::duration>(
                                 std::chrono::duration<double>(o.shrink_seconds))) {}
  bool take() {
    if (left_ == 0 || steady::now() > end_) return false;
    --left_;
    ++used_;
    return true;
  }
  std::size_t used() const { return used_; }

 private:
  std::size_t left_, used_ = 0;
  steady::time_point end_;
};

// Walks to a shrinkable of which no shrink fails. False where the limits end the walk.
template <class T, class Fails>
bool shrink(rc::Shrinkable<T>& from, limits& within, const Fails& fails) {
  for (bool found = true; found;) {
    found = false;
    rc::Seq<rc::Shrinkable<T>> shrinks = from.shrinks();
    while (auto smaller_one = shrinks.next()) {
      if (!within.take()) return false;
      if (!fails(smaller_one->value())) continue;
      from = std::move(*smaller_one);
      found = true;
      break;
    }
  }
  return true;
}

struct verdict {
  bool failed = false;
  const relation* broken = nullptr;  // null: agreement
  test_case differs;                 // the call that the reference answers otherwise, if any does
  case_result result;                // of it
};

class examiner {
 public:
  examiner(candidate& subject, profile p) : subject_(subject), profile_(p) {}

  verdict agreement(const test_case& c) {
    verdict v;
    v.result = run_case(c, subject_, profile_);
    v.failed = v.result.what != outcome::passed && v.result.what != outcome::unsupported;
    if (v.failed) v.differs = c;
    return v;
  }

  // `applied` counts where the relation says something about the case.
  verdict related(const test_case& c, const relation& r, std::uint64_t seed, bool& applied) {
    verdict v;
    std::vector<test_case> made;
    relation_calls by;
    by.supports = [&](std::string_view kernel) { return subject_.supports(kernel); };
    by.run = [&](const test_case& one) {
      made.push_back(one);
      return results_of(one);
    };
    draw from(seed);
    try {
      const relation_outcome what = r.check(c, from, by);
      applied = what != relation_outcome::does_not_apply;
      v.failed = what == relation_outcome::broken;
    } catch (const call_failure& failure) {
      applied = failure.result() != outcome::unsupported;
      v.failed = applied;
    }
    if (!v.failed) return v;
    v.broken = &r;
    v.differs = c;
    for (const test_case& one : made) {
      verdict alone = agreement(one);
      if (!alone.failed) continue;
      v.differs = std::move(alone.differs);
      v.result = std::move(alone.result);
      break;
    }
    return v;
  }

 private:
  std::vector<buffer> results_of(test_case c) {
    const kernel_contract& contract = contract_of(c.kernel);
    std::vector<buffer> results = initial_results(contract, c.attributes, c.inputs, canary);
    const call made = make_call(c.kernel, c.attributes, c.inputs, results);
    check(contract, made, true);
    subject_.run(made, profile_);
    return results;
  }

  candidate& subject_;
  profile profile_;
};

// A shrunk case may break the contract: it does not fail then.
template <class Examine>
bool fails_alike(const Examine& examine, outcome as) {
  try {
    const verdict v = examine();
    return v.failed && v.result.what == as;
  } catch (const input_error&) {
    return false;
  } catch (const std::logic_error&) {
    return false;
  }
}

fuzz_failure minimized(rc::Shrinkable<fuzz_case> found, const std::string& name, verdict v,
                       std::uint64_t relation_seed, examiner& examine, const fuzz_options& o) {
  limits within(o);
  fuzz_failure made;
  const outcome as = v.result.what;
  const relation* broken = v.broken;
  made.property = broken == nullptr ? "agreement" : broken->name;
  if (broken != nullptr) made.text = broken->text;
  made.tokens = found.value().tokens.size();
  made.heads = found.value().heads.size();
  const auto built = [&](const fuzz_case& c) {
    test_case t = build(c);
    t.name = name;
    return t;
  };
  bool applied = false;
  const auto judged = [&](const fuzz_case& c) {
    return broken == nullptr ? examine.agreement(built(c))
                             : examine.related(built(c), *broken, relation_seed, applied);
  };
  made.shrunk_fully = shrink(found, within, [&](const fuzz_case& c) {
    return fails_alike([&] { return judged(c); }, as);
  });
  made.least_tokens = found.value().tokens.size();
  made.least_heads = found.value().heads.size();
  v = judged(found.value());
  if (v.result.what != outcome::passed) {
    // Values one by one, of the call that differs.
    rc::Shrinkable<plain_step> plain = rc::shrinkable::shrinkRecur(
        plain_step{.c = v.differs}, [](const plain_step& from) { return plainer(from); });
    const bool done = shrink(plain, within, [&](const plain_step& s) {
      return fails_alike([&] { return examine.agreement(s.c); }, as);
    });
    made.shrunk_fully = made.shrunk_fully && done;
    v = examine.agreement(plain.value().c);
  }
  made.trials = within.used();
  made.smallest = std::move(v.differs);
  made.smallest.name = name;
  made.result = std::move(v.result);
  made.kernel = made.smallest.kernel;
  return made;
}

void save(fuzz_failure& failure, const fuzz_options& o) {
  fill_expected(failure.smallest, failure.rules);
  if (o.save.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(o.save, error);
  const std::string path = fmt::format("{}/{}-{}-{}-{}.h5", o.save, failure.kernel, o.seed,
                                       failure.number, name_of(failure.rules));
  suite made;
  made.info.profile = name_of(failure.rules);
  made.info.producer = "kvcts fuzz";
  made.info.seed = o.seed;
  made.cases.push_back(failure.smallest);
  write_vectors(path, made);
  failure.file = path;
}

}  // namespace

int fuzz_report::exit_status() const {
  bool broken = false, claimed = false;
  for (const fuzz_failure& f : failures) {
    broken = broken || f.result.what == outcome::crashed || f.result.what == outcome::timed_out;
  }
  for (const auto& [of, r] : rows) claimed = claimed || r.cases != 0;
  if (broken) return 3;
  return failures.empty() && claimed && rejected.empty() ? 0 : 1;
}

fuzz_case drawn_case(const fuzz_plan& plan, std::uint64_t seed, std::uint64_t number) {
  return drawn(plan, seed, number).value();
}

std::string joined_digest(const std::string& a, const std::string& b) {
  constexpr std::string_view digits = "0123456789abcdef";
  if (a.size() != b.size()) throw input_error("'" + a + "' or '" + b + "' is no digest");
  std::string made;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::size_t of_a = digits.find(a[i]), of_b = digits.find(b[i]);
    if (of_a > 15 || of_b > 15) throw input_error("'" + a + "' or '" + b + "' is no digest");
    made += digits[of_a ^ of_b];
  }
  return made;
}

std::string fuzz_report::digest() const {
  std::string all(64, '0');
  for (const auto& [of, r] : rows) all = joined_digest(all, r.digest);
  return all;
}

numbers_of_shard::numbers_of_shard(const shard& part, const std::vector<std::uint64_t>& costs,
                                   std::uint64_t most)
    : index_(static_cast<std::uint64_t>(part.index - 1)),
      count_(static_cast<std::uint64_t>(part.count)),
      turns_(costs.size()),
      blocks_(turns_ == 0 ? 0 : most / (count_ * turns_)) {
  if (turns_ == 0) return;
  const std::uint64_t first = blocks_ * count_ * turns_;
  std::vector<std::uint64_t> of_rest;
  for (std::uint64_t number = first; number < most && number - first < count_ * turns_; ++number) {
    of_rest.push_back(costs[number % turns_]);
  }
  for (const std::size_t i : items_of(part, of_rest)) rest_.insert(rest_.begin(), first + i);
}

std::optional<std::uint64_t> numbers_of_shard::next() {
  if (block_ < blocks_) {
    const std::uint64_t round = block_ * count_ + (index_ + block_) % count_;
    const std::uint64_t number = round * turns_ + turn_;
    if (++turn_ == turns_) {
      turn_ = 0;
      ++block_;
    }
    return number;
  }
  if (rest_.empty()) return std::nullopt;
  const std::uint64_t number = rest_.back();
  rest_.pop_back();
  return number;
}

fuzz_report fuzz(candidate& subject, const fuzz_options& options) {
  const kernel_filter kernels(options.kernels);
  fuzz_report report;
  // Every kernel in one profile, then every kernel in the next: a round.
  struct turn {
    const fuzz_plan* plan;
    profile rules;
    fuzz_report::row* row;
    bool failed = false;
  };
  std::vector<turn> turns;
  std::vector<std::uint64_t> costs;
  for (const profile p : options.profiles) {
    for (const fuzz_plan& plan : fuzz_plans()) {
      if (!kernels.matches(plan.kernel) || !subject.supports(plan.kernel)) continue;
      turns.push_back({&plan, p, &report.rows[{std::string(plan.kernel), p}]});
      costs.push_back(cost_of_drawn(plan.kernel));
    }
  }
  for (const fuzz_plan& plan : fuzz_plans()) {
    if (kernels.matches(plan.kernel) && !subject.supports(plan.kernel)) {
      report.not_claimed.emplace_back(plan.kernel);
    }
  }
  const std::uint64_t most = options.cases     ? *options.cases
                             : options.seconds ? UINT64_MAX
                                               : std::uint64_t{1000};
  const steady::time_point start = steady::now();
  const auto seconds_since = [](steady::time_point from) {
    return std::chrono::duration<double>(steady::now() - from).count();
  };
  numbers_of_shard numbers(options.part, costs, most);
  while (!options.seconds || seconds_since(start) < *options.seconds) {
    if (!options.cases && report.failures.size() == turns.size()) break;  // nothing is left to run
    const std::optional<std::uint64_t> number = numbers.next();
    if (!number) break;
    turn& now = turns[*number % turns.size()];
    ++report.cases;
    ++now.row->cases;
    if (now.failed) continue;
    const steady::time_point begun = steady::now();
    const rc::Shrinkable<fuzz_case> found = drawn(*now.plan, options.seed, *number);
    test_case c = build(found.value());
    c.name = fmt::format("fuzz_{}_{}", options.seed, *number);
    const std::string text = digest_of(c) + std::string(name_of(now.rules));
    now.row->digest = joined_digest(
        now.row->digest, sha256(reinterpret_cast<const std::byte*>(text.data()), text.size()));
    examiner examine(subject, now.rules);
    const std::uint64_t relation_seed = seed_of(options.seed, "relation", c.name);
    try {
      verdict v = examine.agreement(c);
      now.row->bytes += v.result.bytes_compared;
      for (const relation& r : relations()) {
        if (v.failed) break;
        bool applied = false;
        v = examine.related(c, r, relation_seed, applied);
        now.row->relations += applied;
      }
      if (v.failed) {
        fuzz_failure made = minimized(found, c.name, std::move(v), relation_seed, examine, options);
        made.number = *number;
        made.rules = now.rules;
        try {
          save(made, options);
        } catch (const input_error& error) {
          made.not_saved = error.what();
        }
        now.failed = true;
        const std::uint64_t cases = now.row->cases;
        *now.row = {};
        now.row->cases = cases;
        if (options.found) options.found(made);
        report.failures.push_back(std::move(made));
      }
    } catch (const input_error& error) {
      report.rejected.push_back({*number, fmt::format("{}: {}", c.name, error.what())});
    }
    if (!now.failed) now.row->seconds += seconds_since(begun);
    if (options.progress) options.progress(report.cases, report.failures.size());
  }
  return report;
}

run_result replay(const fuzz_failure& failure, candidate& subject, const run_options& options) {
  std::vector<planned_case> plan = plan_file(failure.file, kernel_filter(""));
  run_result alone = run_suite(plan, subject, options);
  if (alone.diagnoses.empty() || alone.diagnoses[0].explanations.size() < 2) return alone;
  std::vector<planned_case> more =
      plan_built_in(kernel_filter(failure.kernel), level::smoke, 1, failure.rules);
  std::move(more.begin(), more.end(), std::back_inserter(plan));
  alone.diagnoses = run_suite(plan, subject, options).diagnoses;
  return alone;
}

}  // namespace kvcts
