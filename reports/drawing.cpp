#include "reports/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "reports/text.h"

namespace kvcts {
namespace {

constexpr double width = 1000;           // units of a strip, whatever its bytes
constexpr double top = 10, bottom = 38;  // of the band; marks begin at 0
constexpr double narrowest_mark = 2.5;

// At most one digit behind the point.
std::string coordinate(double x) {
  std::string text = fmt::format("{:.1f}", x);
  if (text.size() > 2 && text.substr(text.size() - 2) == ".0") text.resize(text.size() - 2);
  return text;
}

double to_scale(const picture_strip& strip, std::uint64_t bytes) {
  return static_cast<double>(bytes) * width / static_cast<double>(strip.bytes);
}

std::string bands(const picture_strip& strip) {
  std::string out, edges, cuts;
  for (const picture_region& r : strip.regions) {
    const double x = to_scale(strip, r.first), w = to_scale(strip, r.bytes);
    out += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                       escaped(r.kind), coordinate(x), top, coordinate(w), bottom - top);
    edges += fmt::format("M{} {}V{}", coordinate(x), top, bottom);
    for (std::uint64_t i = 1; i < r.parts && r.parts <= 256; ++i) {
      const double at = x + w * static_cast<double>(i) / static_cast<double>(r.parts);
      cuts += fmt::format("M{} {}V{}", coordinate(at), top, bottom);
    }
  }
  if (!cuts.empty()) {
    out +=
        fmt::format("<path class=\"cuts\" vector-effect=\"non-scaling-stroke\" d=\"{}\"/>", cuts);
  }
  return out + fmt::format("<path class=\"edges\" vector-effect=\"non-scaling-stroke\" d=\"{}\"/>",
                           edges);
}

std::string marks(const picture_strip& strip) {
  std::string path;
  for (const byte_run& run : strip.wrong) {
    const double w = std::max(to_scale(strip, run.bytes), narrowest_mark);
    const double x = std::min(to_scale(strip, run.first), width - w);
    path += fmt::format("M{} 0h{}v{}h-{}z", coordinate(x), coordinate(w), bottom, coordinate(w));
  }
  return fmt::format("<path class=\"marks\" d=\"{}\"/>", path);
}

// Left to right; regions that read alike once.
std::string key(const picture_strip& strip) {
  std::string out = "<p class=\"key\">left to right: ";
  const std::size_t shown = std::min<std::size_t>(strip.regions.size(), 5);
  for (std::size_t i = 0; i < shown; ++i) {
    const picture_region& r = strip.regions[i];
    out += fmt::format("<span><i class=\"{}\"></i>{}{} ({} bytes)</span> ", escaped(r.kind),
                       escaped(r.name), r.parts > 1 ? fmt::format(", {} parts", r.parts) : "",
                       with_commas(r.bytes));
  }
  if (shown < strip.regions.size()) {
    out += fmt::format("<span>… {} (of {})</span> ", escaped(strip.regions.back().name),
                       strip.regions.size());
  }
  return out + "<span><i class=\"wrong\"></i>wrong, standing out above</span></p>";
}

std::string drawn(const picture_strip& strip) {
  const std::string bytes =
      fmt::format("{} of {} bytes {} wrong", with_commas(strip.different), with_commas(strip.bytes),
                  strip.different == 1 ? "is" : "are");
  std::string where;
  if (!strip.wrong.empty()) {
    where = fmt::format(", the first at byte {}, the last at byte {}", strip.wrong.front().first,
                        strip.wrong.back().first + strip.wrong.back().bytes - 1);
  }
  return fmt::format(
      "<div class=\"strip\"><p><strong>{}</strong>: {}</p>"
      "<svg viewBox=\"0 0 1000 38\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">"
      "<rect class=\"base\" x=\"0\" y=\"{}\" width=\"1000\" height=\"{}\"/>{}{}</svg>{}</div>\n",
      escaped(strip.name), bytes, escaped(strip.name + ": " + bytes + where), top, bottom - top,
      bands(strip), marks(strip), key(strip));
}

struct spread {
  std::vector<double> cases;  // dB, limited to the plot
  double whole = NAN;
  bool exact = false;
};

}  // namespace

std::string drawn(const buffer_picture& picture) {
  std::string out =
      fmt::format("<figure class=\"picture\"><figcaption>Map of {} ({} bytes)</figcaption>\n",
                  escaped(picture.argument), with_commas(picture.bytes));
  for (const picture_strip& strip : picture.strips) out += drawn(strip);
  if (!picture.left_out.empty()) out += "<p>Not drawn: " + escaped(picture.left_out) + ".</p>\n";
  return out + "</figure>\n";
}

std::string accuracy_plot(const run_result& result) {
  constexpr double left = 330, right = 690, line = 22, step = 20, end = 100;
  const auto limited = [&](double db) { return std::clamp(db, 0.0, end); };
  const auto at = [&](double db) { return left + (right - left) * db / end; };
  std::map<std::pair<std::string, std::string>, spread> spans;
  for (const accuracy_row& row : result.accuracy) {
    spread& s = spans[{row.kernel, row.argument}];
    s.exact = std::isinf(row.sqnr_db);
    s.whole = limited(row.sqnr_db);
  }
  for (const case_result& c : result.cases) {
    for (const accuracy_row& row : c.accuracy) {
      spans[{c.kernel, row.argument}].cases.push_back(limited(row.sqnr_db));
    }
  }
  const double height = 24 + line * static_cast<double>(spans.size());
  std::string out = fmt::format(
      "<figure><figcaption>SQNR in dB, right is better: the dot is the kernel's output, the line "
      "the "
      "middle half of its cases; 100 stands for all above</figcaption>\n<svg class=\"plot\" "
      "viewBox=\"0 0 720 {}\" role=\"img\" "
      "aria-label=\"Plot of SQNR; the table below has its numbers\">",
      height);
  for (double db = 0; db <= end; db += step) {
    out += fmt::format(
        "<path class=\"axis\" d=\"M{0} 18V{1}\"/><text x=\"{0}\" y=\"12\" "
        "text-anchor=\"middle\">{2:.0f}</text>",
        coordinate(at(db)), height, db);
  }
  double y = 34;
  for (auto& [name, s] : spans) {
    out += fmt::format("<text x=\"0\" y=\"{}\">{}</text>", y + 4,
                       escaped((name.first + ": " + name.second).substr(0, 52)));
    std::sort(s.cases.begin(), s.cases.end());
    const std::size_t n = s.cases.size();
    if (n > 1 && s.cases[n / 4] < s.cases[3 * n / 4]) {
      out += fmt::format("<path class=\"span\" d=\"M{} {}H{}\"/>", coordinate(at(s.cases[n / 4])),
                         y, coordinate(at(s.cases[3 * n / 4])));
    }
    if (s.exact) {
      out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">exact</text>", right, y + 4);
    } else if (!std::isnan(s.whole)) {
      out += fmt::format("<circle class=\"dot\" cx=\"{}\" cy=\"{}\" r=\"5\"/>",
                         coordinate(at(s.whole)), y);
    }
    y += line;
  }
  return out + "</svg></figure>\n";
}

}  // namespace kvcts
