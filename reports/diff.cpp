#include "reports/diff.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "reports/text.h"

namespace kvcts {
namespace {

constexpr double least_db = 0.05;        // of SQNR
constexpr double least_relative = 0.01;  // of a worst relative error
constexpr double least_speed = 0.05;     // of a ratio: measurements vary

// Reports of two machines have their vector files in other folders.
std::string file_name(const std::string& source) {
  return source.substr(source.find_last_of('/') + 1);
}

using key = std::tuple<std::string, std::string, std::string>;  // kernel, case, file
key key_of(const case_result& c) { return {c.kernel, c.name, file_name(c.source)}; }

std::map<key, const case_result*> by_key(const run_result& result) {
  std::map<key, const case_result*> found;
  for (const case_result& c : result.cases) found.emplace(key_of(c), &c);
  return found;
}

std::string decimal(double value, int digits) {
  if (std::isinf(value)) return value > 0 ? "exact" : "nothing";
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// Things of one kind, of which a line names the first.
class named {
 public:
  void add(const std::string& name) {
    ++count_;
    if (count_ <= most) names_ += (names_.empty() ? "" : ", ") + name;
  }
  // "3 cases (a, b, c)".
  std::string text() const {
    std::string made = std::to_string(count_) + (count_ == 1 ? " case (" : " cases (") + names_;
    if (count_ > most) made += " and " + std::to_string(count_ - most) + " more";
    return made + ")";
  }

 private:
  static constexpr std::size_t most = 3;
  std::size_t count_ = 0;
  std::string names_;
};

// Lines by kernel and what happened.
using happenings = std::map<std::pair<std::string, std::string>, named>;

std::string spoken(outcome what) {
  return what == outcome::timed_out     ? "timed out"
         : what == outcome::unsupported ? "not claimed"
                                        : std::string(name_of(what));
}

// How bad an outcome is.
int rank(outcome what) {
  switch (what) {
    case outcome::passed:
      return 0;
    case outcome::unsupported:
      return 1;
    case outcome::failed:
      return 2;
    case outcome::crashed:
    case outcome::timed_out:
      break;
  }
  return 3;
}

class differ {
 public:
  differ(const run_result& before, const run_result& after) : before_(before), after_(after) {}

  report_difference found() {
    verdicts();
    cases();
    accuracy();
    speed();
    adequacy();
    frames();
    return std::move(made_);
  }

 private:
  static bool conforms(const run_result& r) { return r.verdict.rfind("conforms", 0) == 0; }

  void verdicts() {
    if (conforms(before_) == conforms(after_)) return;
    (conforms(before_) ? made_.worse : made_.better)
        .push_back("verdict: \"" + before_.verdict + "\" before, \"" + after_.verdict + "\" now");
  }

  static void append(const happenings& what, std::vector<std::string>& to) {
    for (const auto& [kernel_and_text, which] : what) {
      to.push_back(kernel_and_text.first + ": " + kernel_and_text.second + ": " + which.text());
    }
  }

  void cases() {
    const auto old_cases = by_key(before_);
    const auto new_cases = by_key(after_);
    happenings worse, better, other;
    for (const auto& [k, was] : old_cases) {
      const auto at = new_cases.find(k);
      if (at == new_cases.end()) {
        worse[{was->kernel, "gone"}].add(was->name);
        continue;
      }
      const case_result& is = *at->second;
      const std::string change = spoken(was->what) + " before, " + spoken(is.what) + " now";
      if (rank(is.what) != rank(was->what)) {
        (rank(is.what) > rank(was->what) ? worse : better)[{is.kernel, change}].add(is.name);
      } else if (is.what != was->what) {
        other[{is.kernel, change}].add(is.name);
      } else if (is.bytes_different > was->bytes_different) {
        worse[{is.kernel, "more bytes differ"}].add(is.name);
      } else if (is.bytes_different < was->bytes_different) {
        better[{is.kernel, "fewer bytes differ"}].add(is.name);
      } else if (is.output_digests != was->output_digests) {
        other[{is.kernel, spoken(is.what) + " both times, with other bytes"}].add(is.name);
      }
    }
    for (const auto& [k, is] : new_cases) {
      if (old_cases.count(k) != 0) continue;
      if (rank(is->what) > 1) {
        worse[{is->kernel, "new, " + spoken(is->what)}].add(is->name);
      } else if (is->what == outcome::passed) {
        better[{is->kernel, "new, passed"}].add(is->name);
      } else {
        other[{is->kernel, "new, not claimed"}].add(is->name);
      }
    }
    append(worse, made_.worse);
    append(better, made_.better);
    append(other, made_.other);
  }

  // Of cases that both reports have, so that another choice of cases does not read as another
  // accuracy.
  void accuracy() {
    const auto old_cases = by_key(before_);
    happenings worse, better;
    for (const auto& [k, is] : by_key(after_)) {
      const auto at = old_cases.find(k);
      if (at == old_cases.end()) continue;
      for (const accuracy_row& now : is->accuracy) {
        for (const accuracy_row& was : at->second->accuracy) {
          if (was.argument == now.argument) accuracy(*is, was, now, worse, better);
        }
      }
    }
    append(worse, made_.worse);
    append(better, made_.better);
  }

  static void accuracy(const case_result& of, const accuracy_row& was, const accuracy_row& is,
                       happenings& worse, happenings& better) {
    const std::string name =
        of.name + ": " + decimal(was.sqnr_db, 2) + " before, " + decimal(is.sqnr_db, 2) + " now";
    const std::string what = of.kernel + ", " + is.argument;
    if (is.sqnr_db < was.sqnr_db - least_db) {
      worse[{what, "lower SQNR in dB"}].add(name);
    } else if (is.sqnr_db > was.sqnr_db + least_db) {
      better[{what, "higher SQNR in dB"}].add(name);
    } else if (is.worst_relative > was.worst_relative * (1 + least_relative)) {
      worse[{what, "larger worst relative error"}].add(of.name);
    } else if (was.worst_relative > is.worst_relative * (1 + least_relative)) {
      better[{what, "smaller worst relative error"}].add(of.name);
    }
  }

  void speed() {
    if (!before_.speed || !after_.speed) {
      if (before_.speed) made_.other.emplace_back("speed: measured before, not now");
      if (after_.speed) made_.other.emplace_back("speed: measured now, not before");
      return;
    }
    if (before_.speed->device != after_.speed->device) {
      made_.other.push_back("speed: on " + before_.speed->device + " before, on " +
                            after_.speed->device + " now");
    }
    for (const speed_row& is : after_.speed->rows) {
      for (const speed_row& was : before_.speed->rows) {
        if (is.op != was.op || is.size != was.size) continue;
        const double lost = was.share_of_copy - is.share_of_copy;
        if (std::abs(lost) <= least_speed * was.share_of_copy) continue;
        (lost > 0 ? made_.worse : made_.better)
            .push_back("speed of " + is.op + ", " + is.size + ": " + decimal(was.share_of_copy, 3) +
                       " of a copy before, " + decimal(is.share_of_copy, 3) + " now");
      }
    }
  }

  void adequacy() {
    if (!before_.adequacy || !after_.adequacy) return;
    const std::set<std::string> old_ones(before_.adequacy->survivors.begin(),
                                         before_.adequacy->survivors.end());
    const std::set<std::string> new_ones(after_.adequacy->survivors.begin(),
                                         after_.adequacy->survivors.end());
    for (const std::string& s : new_ones) {
      if (old_ones.count(s) == 0) made_.worse.push_back("adequacy: survives now: " + s);
    }
    for (const std::string& s : old_ones) {
      if (new_ones.count(s) == 0) made_.better.push_back("adequacy: is caught now: " + s);
    }
    if (before_.adequacy->pairs != after_.adequacy->pairs) {
      (before_.adequacy->pairs > after_.adequacy->pairs ? made_.worse : made_.better)
          .push_back("adequacy: " + std::to_string(before_.adequacy->pairs) +
                     " pairs of a fault and a kernel tried before, " +
                     std::to_string(after_.adequacy->pairs) + " now");
    }
  }

  // What the runs were of.
  void frames() {
    const auto both = [&](const std::string& what, const std::string& was, const std::string& is) {
      if (was != is) made_.other.push_back(what + ": " + was + " before, " + is + " now");
    };
    both("candidate", before_.candidate, after_.candidate);
    both("version of the candidate", before_.candidate_version, after_.candidate_version);
    both("profile", before_.profile, after_.profile);
    both("level", before_.level, after_.level);
    both("seed", std::to_string(before_.seed), std::to_string(after_.seed));
    both("version of the suite", std::to_string(before_.suite_version),
         std::to_string(after_.suite_version));
    both("suite digest", before_.suite_digest.substr(0, 12), after_.suite_digest.substr(0, 12));
    for (const std::string& notice : after_.notices) {
      const auto& all = before_.notices;
      if (std::find(all.begin(), all.end(), notice) == all.end()) {
        made_.other.push_back("noticed now: " + notice);
      }
    }
    for (const std::string& notice : before_.notices) {
      const auto& all = after_.notices;
      if (std::find(all.begin(), all.end(), notice) == all.end()) {
        made_.other.push_back("noticed before: " + notice);
      }
    }
  }

  const run_result& before_;
  const run_result& after_;
  report_difference made_;
};

}  // namespace

report_difference difference_of(const run_result& before, const run_result& after) {
  return differ(before, after).found();
}

std::string text_of(const report_difference& d) {
  if (d.none()) return "no difference\n";
  std::string text;
  for (const auto& [title, lines] : {std::pair("worse", &d.worse), std::pair("better", &d.better),
                                     std::pair("also different", &d.other)}) {
    if (lines->empty()) continue;
    text += std::string(title) + "\n";
    for (const std::string& line : *lines) text += "  " + line + "\n";
  }
  return text + (d.worse.empty() ? "nothing got worse\n"
                                 : std::to_string(d.worse.size()) + " got worse\n");
}

}  // namespace kvcts
