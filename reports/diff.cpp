#include "reports/diff.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "common/printable.h"
#include "reports/archive.h"
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

using names = std::pair<std::string, std::string>;  // kernel, case
// Names; file, where a report has several cases of these names; which of those of one file.
using key = std::tuple<names, std::string, std::size_t>;

// Names that one report has more than once.
std::set<names> repeated(const run_result& before, const run_result& after) {
  std::set<names> many;
  for (const run_result* r : {&before, &after}) {
    std::set<names> seen;
    for (const case_result& c : r->cases) {
      if (!seen.insert({c.kernel, c.name}).second) many.insert({c.kernel, c.name});
    }
  }
  return many;
}

std::map<key, const case_result*> by_key(const run_result& result, const std::set<names>& many) {
  std::map<key, const case_result*> found;
  for (const case_result& c : result.cases) {
    const names named = {c.kernel, c.name};
    const std::string file = many.count(named) != 0 ? file_name(c.source) : "";
    std::size_t which = 0;
    while (!found.emplace(key{named, file, which}, &c).second) ++which;
  }
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
  differ(const run_result& before, const run_result& after) : before_(before), after_(after) {
    const std::set<names> many = repeated(before, after);
    old_cases_ = by_key(before, many);
    new_cases_ = by_key(after, many);
  }

  report_difference found() {
    verdicts();
    cases();
    accuracy();
    speed();
    adequacy();
    sweeps();
    frames();
    return std::move(made_);
  }

 private:
  // How bad a verdict is.
  static int rank_of_verdict(const run_result& r) {
    if (r.verdict.rfind("conforms", 0) != 0) return 2;
    return r.verdict.rfind("conforms with waivers", 0) == 0 ? 1 : 0;
  }

  void verdicts() {
    if (before_.verdict == after_.verdict) return;
    const int was = rank_of_verdict(before_), is = rank_of_verdict(after_);
    // To waive what fails makes nothing better.
    const bool waived = was == 2 && is == 1;
    (is > was              ? made_.worse
     : is < was && !waived ? made_.better
                           : made_.other)
        .push_back("verdict: \"" + before_.verdict + "\" before, \"" + after_.verdict + "\" now");
  }

  static void append(const happenings& what, std::vector<std::string>& to) {
    for (const auto& [kernel_and_text, which] : what) {
      to.push_back(kernel_and_text.first + ": " + kernel_and_text.second + ": " + which.text());
    }
  }

  void cases() {
    happenings worse, better, other;
    for (const auto& [k, was] : old_cases_) {
      const auto at = new_cases_.find(k);
      if (at == new_cases_.end()) {
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
      frame_of_case(*was, is, other);
    }
    for (const auto& [k, is] : new_cases_) {
      if (old_cases_.count(k) != 0) continue;
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

  static std::string flags_of(const case_result& c) {
    std::string text;
    for (const std::string& flag : c.flags) text += (text.empty() ? "" : ", ") + flag;
    return text.empty() ? "none" : text;
  }

  // What of a case is no result.
  static void frame_of_case(const case_result& was, const case_result& is, happenings& other) {
    const auto both = [&](const std::string& what, const std::string& before,
                          const std::string& now) {
      if (before == now) return;
      other[{is.kernel, what + ": " + before + " before, " + now + " now"}].add(is.name);
    };
    both("file", file_name(was.source), file_name(is.source));
    both("provenance", was.provenance, is.provenance);
    both("flags", flags_of(was), flags_of(is));
    if (was.what != is.what) return;
    if (was.bytes_compared != is.bytes_compared) {
      other[{is.kernel, spoken(is.what) + " both times, with another count of bytes compared"}].add(
          is.name);
    }
    if (was.message != is.message) {
      other[{is.kernel, spoken(is.what) + " both times, with another message"}].add(is.name);
    }
  }

  // Of cases that both reports have, so that another choice of cases does not read as another
  // accuracy.
  void accuracy() {
    happenings worse, better, other;
    const auto only_in = [&](const case_result& one, const case_result& another,
                             const std::string& words) {
      for (const accuracy_row& row : one.accuracy) {
        if (std::none_of(another.accuracy.begin(), another.accuracy.end(),
                         [&](const accuracy_row& r) { return r.argument == row.argument; })) {
          other[{one.kernel + ", " + row.argument, words}].add(one.name);
        }
      }
    };
    for (const auto& [k, is] : new_cases_) {
      const auto at = old_cases_.find(k);
      if (at == old_cases_.end()) continue;
      for (const accuracy_row& now : is->accuracy) {
        for (const accuracy_row& was : at->second->accuracy) {
          if (was.argument == now.argument) accuracy(*is, was, now, worse, better);
        }
      }
      only_in(*at->second, *is, "accuracy measured before, not now");
      only_in(*is, *at->second, "accuracy measured now, not before");
    }
    append(worse, made_.worse);
    append(better, made_.better);
    append(other, made_.other);
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
    const auto only_in = [&](const speed_table& one, const speed_table& another,
                             const std::string& words) {
      for (const speed_row& row : one.rows) {
        if (std::none_of(another.rows.begin(), another.rows.end(), [&](const speed_row& r) {
              return r.op == row.op && r.size == row.size;
            })) {
          made_.other.push_back("speed of " + row.op + ", " + row.size + ": " + words);
        }
      }
    };
    only_in(*before_.speed, *after_.speed, "measured before, not now");
    only_in(*after_.speed, *before_.speed, "measured now, not before");
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
    if (!before_.adequacy || !after_.adequacy) {
      if (before_.adequacy) made_.other.emplace_back("adequacy: tried before, not now");
      if (after_.adequacy) made_.other.emplace_back("adequacy: tried now, not before");
      return;
    }
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

  void sweeps() {
    std::map<std::string, const sweep_result*> old_ones, new_ones;
    for (const sweep_result& s : before_.sweeps) old_ones.emplace(s.name, &s);
    for (const sweep_result& s : after_.sweeps) new_ones.emplace(s.name, &s);
    const auto changed = [&](const std::string& name, const std::string& what, std::uint64_t was,
                             std::uint64_t is) {
      return "sweep " + name + ": " + std::to_string(was) + " " + what + " before, " +
             std::to_string(is) + " now";
    };
    for (const auto& [name, was] : old_ones) {
      const auto at = new_ones.find(name);
      if (at == new_ones.end()) {
        made_.worse.push_back("sweep " + name + ": gone");
        continue;
      }
      const sweep_result& is = *at->second;
      if (was->mismatches != is.mismatches) {
        (is.mismatches > was->mismatches ? made_.worse : made_.better)
            .push_back(changed(name, "mismatches", was->mismatches, is.mismatches));
      } else if (was->first_mismatch != is.first_mismatch) {
        made_.other.push_back("sweep " + name + ": the first mismatch is another");
      }
      if (was->inputs != is.inputs) {
        made_.other.push_back(changed(name, "inputs", was->inputs, is.inputs));
      }
    }
    for (const auto& [name, is] : new_ones) {
      if (old_ones.count(name) != 0) continue;
      (is->mismatches != 0 ? made_.worse : made_.better)
          .push_back("sweep " + name + ": new, " + std::to_string(is->mismatches) + " mismatches");
    }
  }

  // Lines of one report alone.
  void lines(const std::vector<std::string>& was, const std::vector<std::string>& is,
             const std::string& verb) {
    for (const std::string& line : is) {
      if (std::find(was.begin(), was.end(), line) == was.end()) {
        made_.other.push_back(verb + " now: " + line);
      }
    }
    for (const std::string& line : was) {
      if (std::find(is.begin(), is.end(), line) == is.end()) {
        made_.other.push_back(verb + " before: " + line);
      }
    }
  }

  static std::vector<std::string> diagnoses_of(const run_result& r) {
    std::vector<std::string> all;
    for (const diagnosis& d : r.diagnoses) {
      for (const std::string& line : text_of(d)) all.push_back(line);
    }
    return all;
  }

  static std::string claimed(const run_result& r) {
    return std::to_string(r.kernels_claimed) + " of " + std::to_string(r.kernels_total);
  }

  // What the runs were of.
  void frames() {
    const auto both = [&](const std::string& what, const std::string& was, const std::string& is) {
      if (was != is) made_.other.push_back(what + ": " + was + " before, " + is + " now");
    };
    both("candidate", before_.candidate, after_.candidate);
    both("version of the candidate", before_.candidate_version, after_.candidate_version);
    both("profile", before_.profile, after_.profile);
    both("version of the profile", std::to_string(before_.profile_rules),
         std::to_string(after_.profile_rules));
    both("level", before_.level, after_.level);
    both("seed", std::to_string(before_.seed), std::to_string(after_.seed));
    both("kernels claimed", claimed(before_), claimed(after_));
    both("version of the suite", std::to_string(before_.suite_version),
         std::to_string(after_.suite_version));
    both("suite digest", before_.suite_digest.substr(0, 12), after_.suite_digest.substr(0, 12));
    lines(before_.notices, after_.notices, "noticed");
    lines(diagnoses_of(before_), diagnoses_of(after_), "diagnosed");
  }

  const run_result& before_;
  const run_result& after_;
  std::map<key, const case_result*> old_cases_, new_cases_;
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
    for (const std::string& line : *lines) text += "  " + printable(line) + "\n";
  }
  return text + (d.worse.empty() ? "nothing got worse\n"
                                 : std::to_string(d.worse.size()) + " got worse\n");
}

}  // namespace kvcts
