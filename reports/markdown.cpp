// report.md: a comment of a pull request, below the size that forges take.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "reports/reports.h"
#include "reports/text.h"

namespace kvcts {
namespace {

constexpr std::size_t most_bytes = 55'000;
constexpr std::size_t most_failures = 20;

// Markdown leaves an underscore between letters alone.
bool inside_word(const std::string& text, std::size_t at) {
  const auto word = [&](std::size_t i) {
    return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0;
  };
  return at > 0 && word(at - 1) && word(at + 1);
}

// Foreign text on one line, cut where it is long, and with no character that Markdown or a forge
// (mentions, issue numbers) would read.
std::string plain(const std::string& text, std::size_t most = 400) {
  std::string out;
  const std::string_view cut = cut_short(text, most);
  const std::string safe = escaped(cut);
  for (std::size_t i = 0; i < safe.size(); ++i) {
    const char c = safe[i];
    if (safe.compare(i, 4, "&#9;") == 0 || safe.compare(i, 5, "&#10;") == 0 ||
        safe.compare(i, 5, "&#13;") == 0) {
      out += ' ';
      i = safe.find(';', i);
    } else if (std::string_view("`*_[]|\\~@#").find(c) != std::string_view::npos &&
               !(c == '_' && inside_word(safe, i)) && !(c == '#' && i > 0 && safe[i - 1] == '&')) {
      out += fmt::format("&#{};", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return cut.size() < text.size() ? out + "…" : out;
}

std::string code(const std::string& text) { return "<code>" + plain(text) + "</code>"; }

std::string kernel_table(const run_result& result) {
  std::string out =
      "| kernel | result | passed | failed | crashed or timed out | not claimed | bytes compared "
      "|\n"
      "| --- | --- | ---: | ---: | ---: | ---: | ---: |\n";
  for (const kernel_counts& k : by_kernel(result)) {
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", code(k.kernel),
                       fmt::format("{} {}",
                                   k.all_waived() ? "⚠️"
                                   : k.fails()    ? "❌"
                                   : k.claimed()  ? "✅"
                                                  : "➖",
                                   words_of(k, result)),
                       with_commas(k.passed), with_commas(k.failed), with_commas(k.broken),
                       with_commas(k.unsupported), with_commas(k.compared));
    if (out.size() > most_bytes / 2) return out + "\nMore kernels are in report.json.\n";
  }
  return out;
}

std::string failure(const run_result& result, const case_result& c) {
  const bool sides = is_comparison(result);
  std::string out = fmt::format("<details><summary>{} {} / {}: {}</summary>\n\n",
                                waived_cases(result).has(c) ? "⚠️ waived:" : "❌",
                                code(c.kernel), code(c.name), plain(short_message(c)));
  if (!sides) {
    out += fmt::format("Expected bytes: {}. ", plain(words_of_provenance(c.provenance)));
  }
  out += fmt::format("Source: {}.\n\n", code(c.source));
  if (!c.message.empty()) out += plain(c.message) + "\n\n";
  if (!c.places.empty()) {
    out += fmt::format("| argument | place | {} |\n| --- | --- | --- | --- |\n",
                       sides ? "A | B" : "expected | got");
    for (const difference& d : c.places) {
      out += fmt::format("| {} | {} | {} | {} |\n", code(d.argument), plain(d.place),
                         code(d.expected), code(d.got));
    }
    out += "\n";
  }
  if (!c.replay.empty()) {
    out += (result.level == "file" ? "Again: " : "Alone: ") + code(c.replay) + "\n\n";
  }
  return out + "</details>\n\n";
}

}  // namespace

std::string report_markdown(const run_result& result) {
  const standing at = standing_of(result);
  std::string out = fmt::format("## {} KVCTS: {}\n\n",
                                at == standing::good      ? "✅"
                                : at == standing::limited ? "⚠️"
                                                          : "❌",
                                plain(result.verdict));
  out += fmt::format(
      "Candidate {} {}, suite version {}, profile {} (version {}), level {}, seed {}.\n\n",
      code(result.candidate), plain(result.candidate_version), result.suite_version,
      plain(result.profile), result.profile_rules, plain(result.level), result.seed);
  const auto add_list = [&](const std::string& line) {
    if (out.size() < most_bytes / 4) out += "> " + plain(line) + "\n";
  };
  for (const std::string& notice : result.notices) add_list(notice);
  if (!result.notices.empty()) out += "\n";
  out += kernel_table(result) + "\n";
  for (const sweep_result& s : result.sweeps) {
    out +=
        fmt::format("- {} {}: {} of {} inputs, {} mismatches {}\n", s.mismatches == 0 ? "✅" : "❌",
                    code(s.name), with_commas(s.inputs), with_commas(s.inputs_in_all),
                    with_commas(s.mismatches), plain(s.first_mismatch));
  }
  if (!result.sweeps.empty()) out += "\n";
  for (const diagnosis& d : result.diagnoses) {
    for (const std::string& line : text_of(d)) {
      if (out.size() < most_bytes * 3 / 4) out += "- " + plain(line) + "\n";
    }
  }
  if (!result.diagnoses.empty()) out += "\n";
  const std::string end = fmt::format(
      "Suite digest {}. report.html and report.json have the rest.\n", code(result.suite_digest));
  std::size_t all = 0, told = 0;
  for (const case_result& c : result.cases) all += is_failure(c.what) ? 1 : 0;
  for (const std::size_t i : first_failures(result, most_failures)) {
    const std::string one = failure(result, result.cases[i]);
    if (out.size() + one.size() > most_bytes) break;
    out += one;
    ++told;
  }
  if (told < all)
    out += fmt::format("{} more failures are in report.html.\n\n", with_commas(all - told));
  return out + end;
}

}  // namespace kvcts
