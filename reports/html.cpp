// report.html: one file that needs nothing else. What a reader must see stands in the HTML itself;
// the list of all cases is drawn by report.js from compact data.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reports/drawing.h"
#include "reports/embedded.h"
#include "reports/reports.h"
#include "reports/text.h"

namespace kvcts {
namespace {

using json = nlohmann::ordered_json;

// What the model says where there is no signal to compare errors with.
constexpr double no_signal_db = -10000;
constexpr std::size_t most_drawn = 700'000;    // bytes of pictures
constexpr std::size_t most_failures = 120;     // told in full
constexpr std::size_t most_told = 2000;        // bytes of a message there
constexpr std::size_t most_listed = 200;       // bytes of a message in the list of all cases
constexpr std::size_t most_of_list = 120'000;  // bytes of the messages in that list

// Names get the numbers that the data and the filters use.
class numbering {
 public:
  std::size_t of(const std::string& name) {
    const auto [found, is_new] = at_.try_emplace(name, names_.size());
    if (is_new) names_.push_back(name);
    return found->second;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::map<std::string, std::size_t> at_;
  std::vector<std::string> names_;
};

struct numbers {
  numbering kernels, flags, sources, provenances;

  explicit numbers(const run_result& result) {
    for (const case_result& c : result.cases) {
      kernels.of(c.kernel);
      sources.of(c.source);
      provenances.of(words_of_provenance(c.provenance));
      for (const std::string& flag : c.flags) flags.of(flag);
    }
  }
};

// The places {{name}} of the page; values are not looked into again.
std::string filled(std::string_view page, const std::map<std::string_view, std::string>& values) {
  std::string out;
  while (true) {
    const std::size_t open = page.find("{{");
    out += page.substr(0, open);
    if (open == std::string_view::npos) return out;
    const std::size_t close = page.find("}}", open);
    out += values.at(page.substr(open + 2, close - open - 2));
    page.remove_prefix(close + 2);
  }
}

std::string_view sign_of(outcome what) {
  return what == outcome::passed ? "✔" : what == outcome::unsupported ? "–" : "✖";
}
std::string_view kind_of(outcome what) {
  return what == outcome::passed ? "good" : what == outcome::unsupported ? "off" : "bad";
}

// Of a case or of several; waived failures are marked, not accused.
struct mark {
  std::string_view sign, kind;
};
constexpr mark waived_mark = {"!", "off"};
mark mark_of(const kernel_counts& n) {
  if (n.all_waived()) return waived_mark;
  const outcome what = n.fails()     ? outcome::failed
                       : n.claimed() ? outcome::passed
                                     : outcome::unsupported;
  return {sign_of(what), kind_of(what)};
}

std::string decibels(double db) {
  if (std::isinf(db)) return "exact";
  return db <= no_signal_db ? "no signal" : fmt::format("{:.2f}", db);
}

std::string head(std::string_view caption, const std::vector<std::string_view>& columns,
                 std::size_t first_number, std::string_view id = {}) {
  std::string out = fmt::format("<table{}><caption>{}</caption><thead><tr>",
                                id.empty() ? "" : fmt::format(" id=\"{}\"", id), escaped(caption));
  for (std::size_t i = 0; i < columns.size(); ++i) {
    out += fmt::format("<th scope=\"col\"{}>{}</th>", i >= first_number ? " class=\"number\"" : "",
                       escaped(columns[i]));
  }
  return out + "</tr></thead><tbody>\n";
}

std::string scrolling(std::string_view label, const std::string& table,
                      std::string_view kind = {}) {
  return fmt::format(
      "<div class=\"scroll {}\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">{}"
      "</tbody></table></div>\n",
      kind, escaped(label), table);
}

std::string number_cell(std::uint64_t n, std::string_view kind = {}) {
  return fmt::format("<td class=\"number {}\">{}</td>", kind, with_commas(n));
}

std::string tile(std::string_view name, const std::string& value) {
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, escaped(value));
}

std::string tiles(const run_result& result) {
  kernel_counts all;
  const waived_cases waived(result);
  for (const case_result& c : result.cases) all.add(c, waived);
  std::string out = "<dl class=\"tiles\">\n";
  out += tile("Cases passed",
              fmt::format("{} of {}", with_commas(all.passed), with_commas(all.cases)));
  out += tile("Failed", with_commas(all.failed) +
                            (all.waived == 0 ? "" : fmt::format(" ({} waived)", all.waived)));
  out += tile("Crashed or timed out", with_commas(all.broken));
  out += tile("Not claimed", with_commas(all.unsupported));
  out += tile("Bytes compared", with_commas(all.compared));
  out += tile("Bytes that differ", with_commas(all.different));
  out += tile("Kernels claimed",
              fmt::format("{} of {}", result.kernels_claimed, result.kernels_total));
  out += tile("Captured on hardware",
              fmt::format("{} case{}", with_commas(all.captured), all.captured == 1 ? "" : "s"));
  return out + "</dl>\n";
}

std::string subject(const run_result& result) {
  const auto time = result.environment.find("time");
  std::string out = fmt::format(
      "Candidate <strong>{}</strong> {} · suite version {} · profile {} (version {}) · level {} · "
      "seed {}",
      escaped(result.candidate), escaped(result.candidate_version), result.suite_version,
      escaped(result.profile), result.profile_rules, escaped(result.level), result.seed);
  if (result.shards > 1) out += fmt::format(" · shard {} of {}", result.shard, result.shards);
  return time == result.environment.end() ? out : out + " · " + escaped(time->second);
}

std::string notices(const run_result& result) {
  std::string out;
  for (const std::string& notice : result.notices) {
    out += fmt::format("<p class=\"notice{}\"><strong>Note:</strong> {}</p>\n",
                       is_neutral(notice) ? " neutral" : "", escaped(notice));
  }
  return out;
}

std::string kernel_table(const run_result& result) {
  std::string out =
      head("Outcomes of the cases of each kernel",
           {"Kernel", "Result", "Cases", "Passed", "Failed", "Crashed or timed out", "Not claimed",
            "Captured on hardware", "Bytes compared", "Bytes that differ"},
           2);
  for (const kernel_counts& k : by_kernel(result)) {
    const mark made = mark_of(k);
    out += fmt::format("<tr><th scope=\"row\" class=\"name\">{}</th><td class=\"{}\">{} {}</td>",
                       escaped(k.kernel), made.kind, made.sign, words_of(k, result));
    out += number_cell(k.cases) + number_cell(k.passed) +
           number_cell(k.failed, k.failed != 0 ? "bad" : "") +
           number_cell(k.broken, k.broken != 0 ? "bad" : "") + number_cell(k.unsupported) +
           number_cell(k.captured) + number_cell(k.compared) +
           number_cell(k.different, k.different != 0 ? "bad" : "") + "</tr>\n";
  }
  return scrolling("Kernels", out);
}

std::string diagnoses(const run_result& result) {
  std::string out;
  for (const diagnosis& d : result.diagnoses) {
    out += "<ul>";
    for (const std::string& line : text_of(d)) out += "<li>" + escaped(line) + "</li>";
    out += "</ul>\n";
  }
  return out;
}

// Flags down, kernels across: each cell counts the cases, and those that fail.
std::string matrix(const run_result& result, numbers& ids) {
  std::map<std::pair<std::size_t, std::size_t>, kernel_counts> cells;
  const waived_cases waived(result);
  for (const case_result& c : result.cases) {
    for (const std::string& flag : c.flags)
      cells[{ids.flags.of(flag), ids.kernels.of(c.kernel)}].add(c, waived);
  }
  std::string out =
      "<table class=\"matrix\"><caption>Cases by flag (rows) and kernel (columns). ✖ 3/12: 3 of 12 "
      "cases fail; ! 3/12: those are waived; ✔ 12: all 12 pass; – 12: not claimed; empty: no such "
      "case.</caption>"
      "<thead><tr><th scope=\"col\">Flag</th>";
  for (const std::string& kernel : ids.kernels.names()) {
    out += fmt::format("<th scope=\"col\" class=\"kernel\"><span>{}</span></th>", escaped(kernel));
  }
  out += "</tr></thead><tbody>\n";
  std::vector<std::pair<std::string, std::size_t>> flags;
  for (const std::string& flag : ids.flags.names()) flags.emplace_back(flag, ids.flags.of(flag));
  std::sort(flags.begin(), flags.end());
  for (const auto& [flag, f] : flags) {
    out += fmt::format("<tr><th scope=\"row\">{}</th>", escaped(flag));
    for (std::size_t k = 0; k < ids.kernels.names().size(); ++k) {
      const auto cell = cells.find({f, k});
      if (cell == cells.end()) {
        out += "<td></td>";
        continue;
      }
      const kernel_counts& n = cell->second;
      const std::uint64_t bad = n.failed + n.broken;
      const mark made = mark_of(n);
      out += fmt::format("<td class=\"{}\" data-f=\"{}\" data-k=\"{}\">{} {}{}</td>", made.kind, f,
                         k, made.sign, bad != 0 ? fmt::format("{}/", bad) : "", n.cases);
    }
    out += "</tr>\n";
  }
  return scrolling("Matrix of flags and kernels", out, "tall");
}

std::string filter(std::string_view field, std::string_view label) {
  return fmt::format(
      "<label>{1}<select id=\"by-{0}\"><option value=\"\">all</option></select></label>\n", field,
      label);
}

std::string filters() {
  return "<div class=\"filters\" id=\"find\" role=\"search\" aria-label=\"Filter the cases\">\n" +
         filter("kernel", "Kernel") + filter("flag", "Flag") + filter("outcome", "Outcome") +
         filter("provenance", "Provenance") +
         "<label>Text<input id=\"by-text\" type=\"search\"></label>\n"
         "<button type=\"button\" id=\"reset\">Show all</button>\n"
         "<p class=\"count\" id=\"count\" role=\"status\"></p></div>\n";
}

std::string command(const std::string& text) {
  return "<div class=\"command\"><code>" + escaped(text) +
         "</code><button type=\"button\">Copy</button></div>\n";
}

std::string places_table(const case_result& c, bool sides) {
  std::string out =
      head("Where the bytes differ",
           {"Argument", "Place", sides ? "A" : "Expected", sides ? "B" : "Got", "Byte"}, 4);
  for (const difference& d : c.places) {
    out += fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"name\">{}</td><td><code>{}</code></td>"
        "<td><code>{}</code></td>{}</tr>\n",
        escaped(d.argument), escaped(d.place), escaped(d.expected), escaped(d.got),
        number_cell(d.byte));
  }
  return scrolling("Places", out);
}

// `drawn_bytes`: of the pictures so far.
std::string failure(const run_result& result, std::size_t i, std::size_t& drawn_bytes) {
  const case_result& c = result.cases[i];
  const bool sides = is_comparison(result), waived = waived_cases(result).has(c);
  std::string out = fmt::format(
      "<details class=\"failure{}\" data-case=\"{}\"><summary><span class=\"word {}\">{} "
      "{}{}</span> "
      "<strong>{}</strong> / {} <span class=\"badge\">{}</span>",
      waived ? " waived" : "", i, waived ? waived_mark.kind : "bad",
      waived ? waived_mark.sign : "✖", words_of(c.what), waived ? ", waived" : "",
      escaped(c.kernel), escaped(c.name),
      sides ? "A against B" : escaped(words_of_provenance(c.provenance)));
  out += fmt::format("<span class=\"first\">{}{}</span></summary><div class=\"inside\">\n",
                     escaped_short(short_message(c), most_listed),
                     c.places.empty() ? ""
                                      : escaped(fmt::format("; first: {}: {}", c.places[0].argument,
                                                            c.places[0].place)));
  if (!c.message.empty()) out += "<p>" + escaped_short(c.message, most_told) + "</p>\n";
  if (!c.places.empty()) out += places_table(c, sides);
  const std::vector<std::string> why = diagnosis_lines(result, c.kernel);
  if (!why.empty()) {
    out += "<h3>Diagnosis of the kernel</h3><ul>";
    for (const std::string& line : why) out += "<li>" + escaped(line) + "</li>";
    out += "</ul>\n";
  }
  for (const buffer_picture& p : c.pictures) {
    const std::string picture = drawn(p);
    if (drawn_bytes + picture.size() > most_drawn) break;
    drawn_bytes += picture.size();
    out += picture;
  }
  if (!c.replay.empty()) {
    out += result.level == "file" ? "<h3>Run it again</h3>" : "<h3>Run it alone</h3>";
    out += command(c.replay);
  }
  std::string flags;
  for (const std::string& flag : c.flags) flags += (flags.empty() ? "" : ", ") + flag;
  out += fmt::format("<p>Source: {}. Flags: {}.</p>\n", escaped(c.source), escaped(flags));
  for (const auto& [argument, digest] : c.output_digests) {
    out +=
        fmt::format("<p>SHA-256 of {}: <code>{}</code></p>\n", escaped(argument), escaped(digest));
  }
  return out + "</div></details>\n";
}

std::string failures(const run_result& result) {
  const auto all = static_cast<std::size_t>(
      std::count_if(result.cases.begin(), result.cases.end(),
                    [](const case_result& c) { return is_failure(c.what); }));
  std::string out;
  if (all == 0) return "<p>No case failed.</p>\n";
  std::size_t drawn_bytes = 0;
  const std::vector<std::size_t> shown = first_failures(result, most_failures);
  if (shown.size() < all) {
    out += fmt::format(
        "<p>{} of {} failures are told here, every kernel among them; the list below "
        "and report.json have all.</p>\n",
        shown.size(), with_commas(all));
  }
  for (const std::size_t i : shown) out += failure(result, i, drawn_bytes);
  return out;
}

std::string case_list() {
  return scrolling("All cases",
                   head("Cases that match the filters",
                        {"Kernel", "Case", "Outcome", "Provenance", "Bytes that differ",
                         "Bytes compared", "Flags", "Source"},
                        99, "cases"),
                   "tall") +
         "<p><button type=\"button\" class=\"more\" id=\"more\" hidden>List more cases</button></p>"
         "<noscript><p>The list needs scripts; report.json holds every case.</p></noscript>\n";
}

std::string accuracy(const run_result& result) {
  std::string out =
      "<p>The quantized result against double-precision mathematics: what the format costs. It "
      "judges "
      "nobody.</p>\n" +
      accuracy_plot(result);
  std::string table = head(
      "Accuracy of each kernel's outputs",
      {"Kernel", "Output", "Values", "SQNR, dB", "Worst relative error", "Saturated values"}, 2);
  for (const accuracy_row& row : result.accuracy) {
    table += fmt::format(
        "<tr><th scope=\"row\" class=\"name\">{}</th><td>{}</td>{}"
        "<td class=\"number\">{}</td><td class=\"number\">{}</td>"
        "<td class=\"number\">{:.3f} %</td></tr>\n",
        escaped(row.kernel), escaped(row.argument), number_cell(row.values), decibels(row.sqnr_db),
        std::isfinite(row.worst_relative) ? fmt::format("{:.3g}", row.worst_relative) : "unbounded",
        row.saturated * 100);
  }
  return out + scrolling("Accuracy", table);
}

std::string speed(const speed_table& t) {
  std::string out = fmt::format(
      "<p>{} on {}{}. A copy moves {:.2f} TB/s here.</p>\n", escaped(t.candidate),
      escaped(t.device), t.source.empty() ? "" : ", recorded in " + escaped(t.source), t.copy_tb_s);
  std::string table =
      head("Time of each operation, and its share of the speed of a plain copy of as many bytes",
           {"Operation", "Size", "Bytes", "Time, µs", "Share of copy", "Target"}, 2);
  for (const speed_row& r : t.rows) {
    const bool below = r.target && r.share_of_copy < *r.target;
    table += fmt::format(
        "<tr><th scope=\"row\" class=\"name\">{}</th><td>{}</td>{}<td class=\"number\">{:.2f}</td>"
        "<td class=\"number{}\">{}{:.2f}</td><td class=\"number\">{}</td></tr>\n",
        escaped(r.op), escaped(r.size), number_cell(r.bytes), r.time_us, below ? " bad" : "",
        below ? "below target: " : "", r.share_of_copy,
        r.target ? fmt::format("{:.2f}", *r.target) : "none");
  }
  return out + scrolling("Speed", table);
}

std::string adequacy(const adequacy_score& a) {
  std::string out = fmt::format(
      "<p>The cases catch <strong>{} of {}</strong> pairs of a kernel and a fault, from a "
      "catalogue of {} "
      "faults.</p>\n",
      with_commas(a.caught), with_commas(a.pairs), a.faults);
  if (!a.survivors.empty()) out += "<p>Not caught:</p><ul>";
  for (const std::string& one : a.survivors) out += "<li>" + escaped(one) + "</li>";
  return out + (a.survivors.empty() ? "" : "</ul>\n");
}

std::string sweeps(const run_result& result) {
  std::string table = head("Rules against independent definitions of them, over all their inputs",
                           {"Sweep", "Result", "Inputs", "Of", "Mismatches"}, 2);
  for (const sweep_result& s : result.sweeps) {
    const bool bad = s.mismatches != 0;
    table += fmt::format(
        "<tr><th scope=\"row\" class=\"name\">{}: {}</th><td class=\"{}\">{}{}</td>{}{}{}</tr>\n",
        escaped(s.name), escaped(s.text), bad ? "bad" : "good", bad ? "✖ differs: " : "✔ agrees",
        escaped(s.first_mismatch), number_cell(s.inputs), number_cell(s.inputs_in_all),
        number_cell(s.mismatches, bad ? "bad" : ""));
  }
  return scrolling("Sweeps", table);
}

std::string facts(const run_result& result) {
  std::string table =
      "<table class=\"facts\"><caption>Where the run was made, and of what</caption><tbody>\n";
  const auto add = [&](const std::string& name, const std::string& value) {
    table += fmt::format("<tr><th scope=\"row\">{}</th><td class=\"name\">{}</td></tr>\n",
                         escaped(name), escaped(value));
  };
  add("suite version", std::to_string(result.suite_version));
  add("suite digest (SHA-256)", result.suite_digest);
  if (result.shards > 1) {
    add("shard", fmt::format("{} of {}, of {} cases in all", result.shard, result.shards,
                             with_commas(result.cases_of_all)));
    add("plan digest (SHA-256)", result.plan_digest);
    add("program digest (SHA-256)", result.program_digest);
  }
  for (const auto& [name, value] : result.environment) add(name, value);
  return scrolling("Environment and digests", table) +
         "<p>report.json holds the SHA-256 of every output of every case.</p>\n";
}

// For a script element: no "<" ends it early.
std::string data_text(const json& data) {
  std::string text = data.dump(-1, ' ', false, json::error_handler_t::replace);
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at)) {
    text.replace(at, 1, "\\u003c");
  }
  return text;
}

std::string case_data(const run_result& result, numbers& ids) {
  json cases = json::array();
  const waived_cases waived(result);
  const std::size_t waived_outcome = std::size(all_outcomes);  // one more to choose
  bool any_waived = false;
  std::size_t listed = 0;
  for (const case_result& c : result.cases) {
    const bool is_waived = waived.has(c);
    any_waived = any_waived || is_waived;
    json flags = json::array();
    for (const std::string& flag : c.flags) flags.push_back(ids.flags.of(flag));
    json one = {ids.kernels.of(c.kernel),
                c.name,
                flags,
                ids.provenances.of(words_of_provenance(c.provenance)),
                ids.sources.of(c.source),
                is_waived ? waived_outcome
                          : static_cast<std::size_t>(std::find(std::begin(all_outcomes),
                                                               std::end(all_outcomes), c.what) -
                                                     std::begin(all_outcomes)),
                c.bytes_compared,
                c.bytes_different};
    const std::string message(cut_short(without_controls(c.message), most_listed));
    const std::size_t bytes = data_text(message).size();
    if (!message.empty() && listed + bytes <= most_of_list) {
      one.push_back(message);
      listed += bytes;
    }
    cases.push_back(std::move(one));
  }
  json data = {{"kernels", ids.kernels.names()},
               {"flags", ids.flags.names()},
               {"sources", ids.sources.names()},
               {"provenances", ids.provenances.names()}};
  for (const outcome what : all_outcomes) {
    data["outcomes"].push_back(words_of(what));
    data["signs"].push_back(sign_of(what));
    data["kinds"].push_back(kind_of(what));
  }
  if (any_waived) {
    data["outcomes"].push_back("failed, waived");
    data["signs"].push_back(waived_mark.sign);
    data["kinds"].push_back(waived_mark.kind);
  }
  data["cases"] = std::move(cases);
  return data_text(data);
}

// Sections, and the links to them.
class page_body {
 public:
  void add(std::string_view id, std::string_view title, const std::string& content) {
    links += fmt::format("<a href=\"#{}\">{}</a>\n", id, title);
    sections += fmt::format(
        "<section id=\"{0}\" aria-labelledby=\"{0}-title\"><h2 id=\"{0}-title\">{1}</h2>\n{2}"
        "</section>\n",
        id, title, content);
  }
  std::string links, sections;
};

}  // namespace

std::string report_html(const run_result& result) {
  numbers ids(result);
  const standing at = standing_of(result);
  const bool good = at == standing::good, limited = at == standing::limited;
  page_body body;
  body.sections = notices(result);
  body.add("kernels", "Kernels", kernel_table(result));
  if (!result.diagnoses.empty()) body.add("diagnosis", "Diagnosis", diagnoses(result));
  body.add("matrix", "Kernels and flags", matrix(result, ids));
  body.add("failures", "Failures", filters() + failures(result));
  body.add("all", "All cases", case_list());
  if (!result.sweeps.empty()) body.add("sweeps", "Exhaustive sweeps", sweeps(result));
  if (!result.accuracy.empty()) body.add("accuracy", "Accuracy", accuracy(result));
  if (result.speed) body.add("speed", "Speed", speed(*result.speed));
  if (result.adequacy) body.add("adequacy", "Adequacy of the suite", adequacy(*result.adequacy));
  body.add("environment", "Environment and digests", facts(result));
  return filled(embedded_page,
                {{"title", escaped("KVCTS: " + result.candidate + ": " + result.verdict)},
                 {"style", embedded_style},
                 {"script", embedded_script},
                 {"state", good      ? "good"
                           : limited ? "limited"
                                     : "bad"},
                 {"sign", good      ? "✔"
                          : limited ? "!"
                                    : "✖"},
                 {"verdict", escaped(result.verdict)},
                 {"subject", subject(result)},
                 {"tiles", tiles(result)},
                 {"links", body.links},
                 {"sections", body.sections},
                 {"data", case_data(result, ids)}});
}

}  // namespace kvcts
