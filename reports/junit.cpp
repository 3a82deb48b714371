#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/reports.h"
#include "reports/text.h"

namespace kvcts {
namespace {

std::string attribute(std::string_view name, std::string_view value) {
  std::string out(1, ' ');
  return out.append(name).append("=\"").append(escaped(value)).append("\"");
}

std::string in_seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6f", std::isfinite(seconds) ? seconds : 0.0);
  return text;
}

struct tally {
  std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
  double seconds = 0;

  void add(const case_result& c) {
    ++tests;
    failures += c.what == outcome::failed ? 1 : 0;
    errors += c.what == outcome::crashed || c.what == outcome::timed_out ? 1 : 0;
    skipped += c.what == outcome::unsupported ? 1 : 0;
    seconds += c.seconds;
  }
  std::string attributes() const {
    return attribute("tests", std::to_string(tests)) +
           attribute("failures", std::to_string(failures)) +
           attribute("errors", std::to_string(errors)) +
           attribute("skipped", std::to_string(skipped)) + attribute("time", in_seconds(seconds));
  }
};

std::string junit_message(const run_result& result, const case_result& c) {
  const std::string text = (waived_cases(result).has(c) ? "waived: " : "") + short_message(c);
  return c.places.empty() ? text : text + "; first: " + place_line(c.places.front(), result);
}

std::string details(const run_result& result, const case_result& c) {
  std::string text;
  for (const difference& d : c.places) text += place_line(d, result) + "\n";
  for (const std::string& line : diagnosis_lines(result, c.kernel)) text += line + "\n";
  if (!c.message.empty()) {
    text += c.message + "\n";
  }
  if (!c.replay.empty()) {
    text += "replay: " + c.replay + "\n";
  }
  return text;
}

std::string source_name(const case_result& c) {
  return c.source.substr(c.source.find_last_of('/') + 1);
}

std::string testcase(const run_result& result, const case_result& c) {
  std::string out = "    <testcase" + attribute("classname", c.kernel + "." + source_name(c)) +
                    attribute("name", c.name) + attribute("time", in_seconds(c.seconds));
  if (c.what == outcome::passed) {
    return out + "/>\n";
  }
  if (c.what == outcome::unsupported) {
    return out + ">\n      <skipped" + attribute("message", junit_message(result, c)) +
           "/>\n    </testcase>\n";
  }
  const std::string element = c.what == outcome::failed ? "failure" : "error";
  return out + ">\n      <" + element + attribute("type", name_of(c.what)) +
         attribute("message", junit_message(result, c)) + ">" + escaped(details(result, c)) + "</" +
         element + ">\n    </testcase>\n";
}

}  // namespace

std::string report_junit(const run_result& result) {
  std::vector<std::string> kernels;  // in the run's order
  tally all;
  for (const case_result& c : result.cases) {
    all.add(c);
    if (std::find(kernels.begin(), kernels.end(), c.kernel) == kernels.end()) {
      kernels.push_back(c.kernel);
    }
  }
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" +
                    attribute("name", "kvcts " + result.candidate) + all.attributes() + ">\n";
  for (const std::string& kernel : kernels) {
    tally of_kernel;
    std::string cases;
    for (const case_result& c : result.cases) {
      if (c.kernel == kernel) {
        of_kernel.add(c);
        cases += testcase(result, c);
      }
    }
    out += "  <testsuite" + attribute("name", kernel) + of_kernel.attributes() + ">\n";
    out += "    <properties>\n";
    const std::pair<std::string_view, std::string_view> properties[] = {
        {"verdict", result.verdict},
        {"candidate", result.candidate},
        {"candidate_version", result.candidate_version},
        {"profile", result.profile},
        {"level", result.level},
        {"suite_digest", result.suite_digest},
    };
    for (const auto& [name, value] : properties) {
      out += "      <property" + attribute("name", name) + attribute("value", value) + "/>\n";
    }
    out += "    </properties>\n" + cases + "  </testsuite>\n";
  }
  return out + "</testsuites>\n";
}

}  // namespace kvcts
