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

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

// Bytes of the UTF-8 sequence at the text's start whose character XML 1.0 allows; 0 where there is
// none.
std::size_t xml_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) {
    return lead >= 0x20 || lead == '\t' || lead == '\n' || lead == '\r' ? 1 : 0;
  }
  std::size_t length = 0;
  std::uint32_t code = 0;
  std::uint32_t lowest = 0;
  if ((lead & 0xE0) == 0xC0) {
    length = 2;
    code = lead & 0x1F;
    lowest = 0x80;
  } else if ((lead & 0xF0) == 0xE0) {
    length = 3;
    code = lead & 0x0F;
    lowest = 0x800;
  } else if ((lead & 0xF8) == 0xF0) {
    length = 4;
    code = lead & 0x07;
    lowest = 0x10000;
  }
  if (length == 0 || text.size() < length) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) {
      return 0;
    }
    code = code << 6 | (next & 0x3F);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  const bool allowed =
      code >= lowest && code <= 0x10FFFF && !surrogate && code != 0xFFFE && code != 0xFFFF;
  return allowed ? length : 0;
}

// Text for element content and for attribute values alike: line breaks and tabs as references,
// since a parser turns them into spaces inside attributes.
std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = xml_character(text);
    if (length == 0) {
      out += replacement;
      text.remove_prefix(1);
      continue;
    }
    switch (text[0]) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\t':
        out += "&#9;";
        break;
      case '\n':
        out += "&#10;";
        break;
      case '\r':
        out += "&#13;";
        break;
      default:
        out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

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

std::string place_line(const difference& d) {
  return d.argument + ": byte " + std::to_string(d.byte) + ": " + d.place + ": expected " +
         d.expected + ", got " + d.got;
}

std::string short_message(const case_result& c) {
  if (c.what == outcome::failed && c.bytes_different != 0) {
    std::string text = std::to_string(c.bytes_different) + " of " +
                       std::to_string(c.bytes_compared) + " bytes differ";
    return c.places.empty() ? text : text + "; first: " + place_line(c.places.front());
  }
  return c.message.empty() ? std::string(name_of(c.what)) : c.message;
}

std::string details(const case_result& c) {
  std::string text;
  for (const difference& d : c.places) {
    text += place_line(d) + "\n";
  }
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

std::string testcase(const case_result& c) {
  std::string out = "    <testcase" + attribute("classname", c.kernel + "." + source_name(c)) +
                    attribute("name", c.name) + attribute("time", in_seconds(c.seconds));
  if (c.what == outcome::passed) {
    return out + "/>\n";
  }
  if (c.what == outcome::unsupported) {
    return out + ">\n      <skipped" + attribute("message", short_message(c)) +
           "/>\n    </testcase>\n";
  }
  const std::string element = c.what == outcome::failed ? "failure" : "error";
  return out + ">\n      <" + element + attribute("type", name_of(c.what)) +
         attribute("message", short_message(c)) + ">" + escaped(details(c)) + "</" + element +
         ">\n    </testcase>\n";
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
        cases += testcase(c);
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
