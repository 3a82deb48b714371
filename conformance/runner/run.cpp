#include "conformance/runner/run.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "conformance/accuracy/accuracy.h"
#include "conformance/compare/compare.h"
#include "conformance/compare/picture.h"
#include "conformance/faults/diagnosis.h"
#include "conformance/runner/guarded.h"
#include "conformance/runner/oracle.h"
#include "vectors/file.h"
#include "vectors/version.h"

namespace kvcts {
namespace {

using steady = std::chrono::steady_clock;

double seconds_since(steady::time_point start) {
  return std::chrono::duration<double>(steady::now() - start).count();
}

void turn_bits(std::byte& b) { b ^= std::byte{0xFF}; }

// Turns the bits of every byte that no element of the tensor covers.
void turn_slack(buffer& b) {
  if (b.is_sparse()) return;
  const auto size = static_cast<std::int64_t>(size_of(b.type));
  if (is_dense(b.at) && static_cast<std::int64_t>(b.bytes.size()) == count(b.at.shape) * size) {
    return;
  }
  std::vector<bool> covered(b.bytes.size(), false);
  std::vector<std::int64_t> index(b.at.shape.size(), 0);
  for (std::int64_t left = count(b.at.shape); left > 0; --left) {
    std::int64_t element = b.at.offset;
    for (std::size_t axis = 0; axis < index.size(); ++axis) {
      element += index[axis] * b.at.strides[axis];
    }
    for (std::int64_t i = element * size; i < (element + 1) * size; ++i) {
      covered[static_cast<std::size_t>(i)] = true;
    }
    for (std::size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < b.at.shape[axis]) break;
      index[axis] = 0;
    }
  }
  for (std::size_t i = 0; i < covered.size(); ++i) {
    if (!covered[i]) turn_bits(b.bytes[i]);
  }
}

// Holes stay zero.
void turn_all(buffer& b) {
  std::for_each(b.bytes.begin(), b.bytes.end(), turn_bits);
  if (!b.is_sparse()) return;
  for (const byte_range& r : b.sparse.written()) {
    std::for_each(b.sparse.data() + r.first, b.sparse.data() + r.first + r.bytes, turn_bits);
  }
}

struct pass {
  std::vector<buffer> inputs;  // initial content of updated arguments too
  std::vector<buffer> expected;
  std::byte fill = canary;
  std::string_view note;
};

struct prepared_case {
  test_case header;  // names, flags, attributes; no tensors
  pass passes[2];
  std::string digest;
};

prepared_case prepare(test_case c, profile p) {
  const kernel_contract& contract = contract_of(c.kernel);
  const Rules rules = rules_for(p);
  prepared_case made;
  pass& first = made.passes[0];
  pass& second = made.passes[1];
  if (c.expected.empty()) {
    c.expected = expected_results(contract, c.attributes, c.inputs, canary, rules);
  }
  made.digest = digest_of(c);
  first.inputs = std::move(c.inputs);
  first.expected = std::move(c.expected);
  c.inputs.clear();
  c.expected.clear();
  second.inputs = first.inputs;
  second.fill = second_canary;
  second.note = "second canary 0x33";
  for (buffer& b : second.inputs) {
    const argument_spec* argument = contract.argument(b.name);
    if (argument != nullptr && argument->direction == role::updated) {
      turn_all(b);
    } else {
      turn_slack(b);
    }
  }
  second.expected =
      expected_results(contract, c.attributes, second.inputs, second.fill, rules, first.expected);
  made.header = std::move(c);
  return made;
}

// What a pass leaves behind, where it is asked for.
struct pass_record {
  std::map<std::string, std::string>* digests = nullptr;  // of the outputs
  std::vector<buffer>* results = nullptr;
  std::vector<accuracy_row>* accuracy = nullptr;
};

comparison run_pass(const test_case& header, pass& on, candidate& subject, profile p,
                    const pass_record& record) {
  const kernel_contract& contract = contract_of(header.kernel);
  std::deque<guarded_buffer> inputs, results;
  call c;
  c.kernel = header.kernel;
  c.attributes = header.attributes;
  for (const buffer& b : on.inputs) {
    const argument_spec* argument = contract.argument(b.name);
    if (argument != nullptr && argument->direction == role::updated) continue;
    inputs.emplace_back(b, on.fill, false);
    c.tensors[b.name] = inputs.back().view();
  }
  for (const buffer& e : on.expected) {
    buffer initial = e;  // an output: canary
    bool updated = false;
    for (const buffer& b : on.inputs) {
      if (b.name != e.name) continue;
      initial.bytes = b.bytes;
      initial.sparse = b.sparse;
      updated = true;
    }
    if (!updated) std::fill(initial.bytes.begin(), initial.bytes.end(), on.fill);
    results.emplace_back(initial, on.fill, !updated && !subject.has_own_guards());
    c.tensors[e.name] = results.back().view();
  }
  const bindings names = check(contract, c, true);
  const std::vector<guard_region> own_guards = subject.run_guarded(c, p, on.fill);

  std::vector<buffer> no_results;
  const call context = make_call(header.kernel, header.attributes, on.inputs, no_results);
  if (record.accuracy != nullptr) *record.accuracy = accuracy_of(context, c, names);
  comparer compare(contract, context, names);
  const std::string note(on.note);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const guarded_buffer& r = results[i];
    compare.compare(on.expected[i], r.view(), note);
    if (record.results != nullptr) record.results->push_back(r.content(on.expected[i]));
    if (record.digests != nullptr) {
      (*record.digests)[r.name()] = content_digest(r.data(), r.size(), r.view().holes);
    }
  }
  const std::string input_note = note.empty() ? "an input: must not change" : "an input, " + note;
  std::size_t next = 0;
  for (const buffer& b : on.inputs) {
    if (next < inputs.size() && inputs[next].name() == b.name) {
      compare.compare(b, inputs[next++].view(), input_note);
    }
  }
  for (const std::deque<guarded_buffer>* all : {&results, &inputs}) {
    for (const guarded_buffer& g : *all) {
      compare.compare_guard(g.name(), g.before(), guarded_buffer::guard_bytes, g.fill(), true,
                            note);
      compare.compare_guard(g.name(), g.behind(), guarded_buffer::guard_bytes, g.fill(), false,
                            note);
    }
  }
  for (const guard_region& g : own_guards) {
    compare.compare_guard(g.argument, g.at, g.bytes, on.fill, g.before, note);
  }
  comparison found = compare.result();
  found.pictures = compare.pictures();
  return found;
}

using digest_map = std::map<std::string, std::string>;

// "q_packed, q_scale": the outputs whose digests differ.
std::string changed(const digest_map& a, const digest_map& b) {
  std::vector<std::string> names;
  for (const auto& [name, digest] : a) {
    const auto other = b.find(name);
    if (other == b.end() || other->second != digest) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

case_result judge(prepared_case& prepared, candidate& subject, profile p, int repeat) {
  case_result result;
  result.kernel = prepared.header.kernel;
  result.name = prepared.header.name;
  result.flags = prepared.header.flags;
  const steady::time_point start = steady::now();
  if (!subject.supports(result.kernel)) {
    result.what = outcome::unsupported;
    result.message = subject.name() + " does not have " + result.kernel;
    return result;
  }
  if (const std::optional<std::string> why = subject.not_claimed(prepared.header, p)) {
    result.what = outcome::unsupported;
    result.message = *why;
    return result;
  }
  try {
    for (pass& on : prepared.passes) {
      digest_map digests;
      for (int time = 1; time <= repeat && result.message.empty(); ++time) {
        digest_map again;
        const bool first = &on == prepared.passes && time == 1;
        comparison found = run_pass(prepared.header, on, subject, p,
                                    {.digests = time == 1 ? &digests : &again,
                                     .accuracy = first ? &result.accuracy : nullptr});
        if (time > 1 && again != digests) {
          result.what = outcome::failed;
          result.message = fmt::format("outputs change from run to run: {} (run {} of {}{})",
                                       changed(digests, again), time, repeat,
                                       on.note.empty() ? "" : fmt::format(", {}", on.note));
        }
        result.bytes_compared += found.compared;
        result.bytes_different += found.different;
        if (found.different != 0 && result.places.empty()) {
          result.places = std::move(found.places);
          result.pictures = std::move(found.pictures);
        }
      }
      if (&on == prepared.passes) result.output_digests = std::move(digests);
      if (result.bytes_different != 0) result.what = outcome::failed;
      if (result.what == outcome::failed) break;
    }
  } catch (const call_failure& failure) {
    result.what = failure.result();
    result.message = failure.what();
  } catch (const std::exception& error) {
    result.what = outcome::crashed;
    result.message = error.what();
  }
  result.seconds = seconds_since(start);
  return result;
}

// As a shell takes it.
std::string quoted(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || std::strchr("_./+-", c) != nullptr;
  });
  return plain ? text : "'" + text + "'";
}

// Runs cases one after the other, and those that fail again alone.
class examiner {
 public:
  examiner(candidate& subject, int repeat) : subject_(subject), repeat_(repeat) {}

  case_result examine(prepared_case& prepared, profile p) {
    kernel_state& kernel = kernels_[prepared.header.kernel];
    if (kernel.timed_out >= most_timeouts) {
      case_result skipped;
      skipped.kernel = prepared.header.kernel;
      skipped.name = prepared.header.name;
      skipped.flags = prepared.header.flags;
      skipped.what = outcome::timed_out;
      skipped.message =
          fmt::format("not run, since {} cases of this kernel timed out before it", most_timeouts);
      return skipped;
    }
    case_result result = judge(prepared, subject_, p, repeat_);
    if (result.what == outcome::passed || result.what == outcome::unsupported) return result;
    // To see a time-out again takes as long as the first: once a kernel.
    const bool again = kernel.run_again < most_again &&
                       (result.what != outcome::timed_out || kernel.timed_out == 0);
    if (subject_.renew() && again) {
      ++kernel.run_again;
      case_result alone = judge(prepared, subject_, p, repeat_);
      if (alone.what == outcome::passed) {
        result.message += fmt::format(
            "{}alone in a fresh process it passes: an earlier case left damage or state behind",
            result.message.empty() ? "" : "; ");
      } else {
        result = std::move(alone);
      }
      subject_.renew();
    }
    kernel.timed_out += result.what == outcome::timed_out;
    return result;
  }

  // Counts a case of an earlier run as examine() would have.
  void recall(const case_result& result) {
    if (result.what == outcome::passed || result.what == outcome::unsupported) return;
    kernel_state& kernel = kernels_[result.kernel];
    const bool timed_out = result.what == outcome::timed_out;
    kernel.run_again += !timed_out || kernel.timed_out == 0;
    kernel.timed_out += timed_out;
  }

 private:
  static constexpr int most_timeouts = 8;
  static constexpr int most_again = 8;  // of a kernel: a fresh process takes its time
  struct kernel_state {
    int timed_out = 0, run_again = 0;
  };

  candidate& subject_;
  int repeat_;
  std::map<std::string, kernel_state> kernels_;
};

// Runs a failing case again and keeps what the candidate wrote in the first pass that differs.
observed_call observe(const planned_case& planned, candidate& subject) {
  prepared_case prepared = prepare(planned.load(), planned.rules);
  observed_call made;
  made.kernel = planned.kernel;
  made.name = planned.name;
  made.attributes = prepared.header.attributes;
  made.rules = planned.rules;
  for (pass& on : prepared.passes) {
    std::vector<buffer> results;
    const bool last = &on != prepared.passes;
    if (run_pass(prepared.header, on, subject, planned.rules, {.results = &results}).different ==
            0 &&
        !last) {
      continue;
    }
    made.inputs = std::move(on.inputs);
    made.expected = std::move(on.expected);
    made.got = std::move(results);
    made.fill = on.fill;
    break;
  }
  return made;
}

// A case that passed: what is expected is what the candidate wrote.
observed_call observe_passed(const planned_case& planned) {
  test_case c = planned.load();
  if (c.expected.empty()) fill_expected(c, planned.rules);
  observed_call made;
  made.kernel = planned.kernel;
  made.name = planned.name;
  made.attributes = std::move(c.attributes);
  made.inputs = std::move(c.inputs);
  made.expected = c.expected;
  made.got = std::move(c.expected);
  made.rules = planned.rules;
  return made;
}

bool is_past_2gib(const planned_case& c) {
  return std::any_of(c.flags.begin(), c.flags.end(),
                     [](const std::string& f) { return f == "Past2GiB" || f == "Past4GiB"; });
}

// Of each kernel with failures: the smallest cases tell which faults wrote the bytes.
std::vector<diagnosis> diagnoses_of(const std::vector<planned_case>& plan, const run_result& result,
                                    candidate& subject, const run_options& options) {
  std::vector<std::size_t> order(result.cases.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return result.cases[a].bytes_compared < result.cases[b].bytes_compared;
  });
  std::map<std::string, examined_calls> kernels;
  for (const std::size_t i : order) {
    examined_calls& calls = kernels[plan[i].kernel];
    if (result.cases[i].what == outcome::failed) {
      calls.failing.emplace_back([&plan, &subject, i] { return observe(plan[i], subject); });
    } else if (result.cases[i].what == outcome::passed && !is_past_2gib(plan[i])) {
      calls.passing.emplace_back([&plan, i] { return observe_passed(plan[i]); });
    }
  }
  std::vector<diagnosis> found;
  for (const auto& [kernel, calls] : kernels) {
    if (calls.failing.empty()) continue;
    try {
      found.push_back(diagnose(calls, options.threads, options.diagnose_seconds));
    } catch (const call_failure&) {
      // Once more it did not even return: there are no bytes to explain.
      subject.renew();
    }
  }
  return found;
}

}  // namespace

void for_each_parallel(std::size_t count, int threads,
                       const std::function<void(std::size_t)>& work) {
  threads = thread_count(threads);
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex guard;
  const auto loop = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard<std::mutex> hold(guard);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::thread> workers;
  const std::size_t helpers = std::min<std::size_t>(static_cast<std::size_t>(threads), count);
  for (std::size_t i = 1; i < helpers; ++i) workers.emplace_back(loop);
  loop();
  for (std::thread& worker : workers) worker.join();
  if (failure) std::rethrow_exception(failure);
}

case_result run_case(const test_case& c, candidate& subject, profile p, int repeat) {
  prepared_case prepared = prepare(c, p);
  return examiner(subject, repeat).examine(prepared, p);
}

run_result run_suite(const std::vector<planned_case>& plan, candidate& subject,
                     const run_options& options) {
  run_result result;
  result.candidate = subject.name();
  result.candidate_version = subject.version();
  result.profile = name_of(options.rules);
  result.level = name_of(options.up_to);
  result.seed = options.seed;
  result.suite_version = suite_version;
  result.environment = environment_here();
  result.environment.merge(subject.about());

  // A few cases at a time are prepared by all threads; the candidate has the machine to itself.
  const int threads = thread_count(options.threads);
  std::deque<examiner> devices;
  devices.emplace_back(subject, options.repeat);
  for (candidate* other : options.on_other_devices) devices.emplace_back(*other, options.repeat);
  const std::size_t batch =
      std::max<std::size_t>(static_cast<std::size_t>(threads), devices.size()) * 4;
  std::vector<const case_result*> known(plan.size(), nullptr);
  if (options.recall) {
    for (std::size_t i = 0; i < plan.size(); ++i) known[i] = options.recall(plan[i]);
  }
  result.cases.resize(plan.size());
  std::size_t done = 0;
  std::mutex guard;  // of what is told of a case
  for (std::size_t start = 0; start < plan.size(); start += batch) {
    const std::size_t end = std::min(start + batch, plan.size());
    std::vector<prepared_case> prepared(end - start);
    for_each_parallel(end - start, threads, [&](std::size_t i) {
      const planned_case& planned = plan[start + i];
      if (known[start + i] != nullptr) return;
      if (subject.supports(planned.kernel)) {
        prepared[i] = prepare(planned.load(), planned.rules);
      } else {
        // The suite's digest is the same whatever the candidate claims.
        prepared[i].header = planned.load();
        if (prepared[i].header.expected.empty()) {
          fill_expected(prepared[i].header, planned.rules);
        }
        prepared[i].digest = digest_of(prepared[i].header);
      }
    });
    for_each_parallel(devices.size(), static_cast<int>(devices.size()), [&](std::size_t device) {
      for (std::size_t i = start; i < end; ++i) {
        if (i % devices.size() != device) continue;
        const planned_case& planned = plan[i];
        case_result one;
        if (known[i] != nullptr) {
          one = *known[i];
          devices[device].recall(one);
        } else {
          one = devices[device].examine(prepared[i - start], planned.rules);
          one.position = planned.position;
          one.digest = std::move(prepared[i - start].digest);
          one.provenance = planned.provenance;
          one.source = planned.source;
          if (one.what != outcome::passed) {
            one.replay = fmt::format("kvcts run --candidate {} {}", quoted(subject.argument()),
                                     planned.replay);
            if (options.repeat > 1) one.replay += fmt::format(" --repeat {}", options.repeat);
          }
        }
        const std::lock_guard<std::mutex> hold(guard);
        if (known[i] == nullptr && options.record) options.record(one);
        result.cases[i] = std::move(one);
        if (options.progress) options.progress(++done, plan.size());
      }
    });
  }
  sum_up(result);
  if (options.diagnose_seconds > 0) {
    result.diagnoses = diagnoses_of(plan, result, subject, options);
  }
  return result;
}

void sum_up(run_result& result) {
  std::set<std::string> kernels, claimed;  // claimed: a case was run
  std::vector<std::string> digests;
  picture_budget pictures;
  for (case_result& c : result.cases) {
    pictures.limit(c);
    kernels.insert(c.kernel);
    if (c.what != outcome::unsupported) claimed.insert(c.kernel);
    digests.push_back(c.digest);
  }
  result.kernels_total = static_cast<int>(kernels.size());
  result.kernels_claimed = static_cast<int>(claimed.size());
  // Sweeps bring their own.
  if (result.sweeps.empty()) result.suite_digest = digest_of(result.profile, std::move(digests));
  result.accuracy = rows_of_kernels(result.cases);
  result.verdict = verdict_of(result);
}

std::string grouped(std::uint64_t n) {
  const std::string digits = std::to_string(n);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

namespace {

std::string verdict_of_sweeps(const std::vector<sweep_result>& sweeps) {
  std::uint64_t inputs = 0, mismatches = 0;
  std::size_t wrong = 0;
  for (const sweep_result& s : sweeps) {
    inputs += s.inputs;
    mismatches += s.mismatches;
    wrong += s.mismatches != 0;
  }
  if (wrong != 0) {
    return fmt::format("does not conform: {} of {} sweeps have mismatches, {} in all", wrong,
                       sweeps.size(), grouped(mismatches));
  }
  if (inputs == 0) return "no input is in this shard";
  return fmt::format("conforms: {} sweeps, {} inputs, 0 mismatches", sweeps.size(),
                     grouped(inputs));
}

}  // namespace

// Why cases of claimed kernels were left out, as far as the candidate's claims say so: ": the
// profile ieee".
std::string reasons_of(const std::set<std::string>& messages) {
  constexpr std::string_view claims = " does not claim ";
  constexpr std::size_t most = 3;
  std::vector<std::string> reasons;
  for (const std::string& message : messages) {
    const std::size_t at = message.find(claims);
    if (at != std::string::npos) reasons.push_back(message.substr(at + claims.size()));
  }
  if (reasons.empty()) return "";
  const bool more = reasons.size() > most;
  reasons.resize(std::min(reasons.size(), most));
  return fmt::format(": {}{}", fmt::join(reasons, ", "), more ? ", ..." : "");
}

std::string verdict_of(const run_result& result) {
  std::uint64_t compared = 0, different = 0;
  std::size_t failed = 0, broken = 0, unsupported = 0, of_claimed = 0;
  std::set<std::string> claimed, reasons;
  for (const case_result& c : result.cases) {
    if (c.what != outcome::unsupported) claimed.insert(c.kernel);
  }
  for (const case_result& c : result.cases) {
    compared += c.bytes_compared;
    different += c.bytes_different;
    failed += c.what == outcome::failed;
    broken += c.what == outcome::crashed || c.what == outcome::timed_out;
    unsupported += c.what == outcome::unsupported;
    if (c.what != outcome::unsupported || claimed.count(c.kernel) == 0) continue;
    ++of_claimed;
    reasons.insert(c.message);
  }
  const std::size_t cases = result.cases.size();
  if (cases == 0 && !result.sweeps.empty()) return verdict_of_sweeps(result.sweeps);
  if (result.shards > 1 && broken + failed == 0 && unsupported == cases) {
    return cases == 0 ? "no case is in this shard" : "none of this shard's cases is claimed";
  }
  if (broken != 0) {
    return fmt::format("does not conform: the candidate crashed or timed out in {} of {} cases{}",
                       broken, cases - unsupported,
                       failed == 0 ? "" : fmt::format(", {} more fail", failed));
  }
  if (failed != 0) {
    return fmt::format("does not conform: {} of {} cases {} ({} bytes)", failed,
                       cases - unsupported, different != 0 ? "differ" : "fail", grouped(different));
  }
  if (cases == 0) return "does not conform: no case was run";
  if (unsupported == cases) {
    return fmt::format("does not conform: the candidate supports none of the {} cases", cases);
  }
  std::string limits;
  if (result.kernels_claimed < result.kernels_total) {
    limits = fmt::format("{} of {} claimed", result.kernels_claimed, result.kernels_total);
  }
  if (of_claimed != 0) {
    limits += fmt::format("{}{} cases of claimed kernels not claimed{}", limits.empty() ? "" : ", ",
                          of_claimed, reasons_of(reasons));
  }
  // Where a run was of chosen kernels its verdict says so.
  std::set<std::string> kernels;
  for (const case_result& c : result.cases) kernels.insert(c.kernel);
  const std::size_t all = contracts().size();
  return fmt::format(
      "conforms{}: {} cases, {} bytes compared, 0 differ{}",
      limits.empty() ? "" : " (" + limits + ")", cases - unsupported, grouped(compared),
      kernels.size() < all ? fmt::format(", {} of {} kernels chosen", kernels.size(), all) : "");
}

std::map<std::string, std::string> environment_here() {
  std::map<std::string, std::string> env;
  utsname name{};
  if (uname(&name) == 0) {
    env["host"] = name.nodename;
    env["system"] = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
  }
  env["compiler"] = "g++ " __VERSION__;
#ifdef __clang__
  env["compiler"] = __VERSION__;
#endif
  env["version"] = KVCTS_VERSION;
  env["profile version"] = std::to_string(profile_version);
  env["cores"] = std::to_string(std::thread::hardware_concurrency());
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  env["time"] = text;
  return env;
}

}  // namespace kvcts
