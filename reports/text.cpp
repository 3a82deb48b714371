#include "reports/text.h"

#include <algorithm>
#include <map>

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

}  // namespace

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

std::string_view words_of(outcome what) {
  if (what == outcome::unsupported) return "not claimed";
  return what == outcome::timed_out ? "timed out" : name_of(what);
}

std::string words_of_provenance(const std::string& provenance) {
  if (provenance == "captured") return "captured on hardware";
  return provenance == "derived" ? "derived by rule" : provenance;
}

std::string with_commas(std::uint64_t n) {
  std::string text = std::to_string(n);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

bool is_good(const run_result& result) {
  return result.exit_status(false) == 0 && result.verdict.rfind("does not", 0) != 0;
}

void kernel_counts::add(const case_result& c) {
  ++cases;
  passed += c.what == outcome::passed ? 1 : 0;
  failed += c.what == outcome::failed ? 1 : 0;
  broken += c.what == outcome::crashed || c.what == outcome::timed_out ? 1 : 0;
  unsupported += c.what == outcome::unsupported ? 1 : 0;
  captured += c.provenance == "captured" ? 1 : 0;
  compared += c.bytes_compared;
  different += c.bytes_different;
}

std::vector<kernel_counts> by_kernel(const run_result& result) {
  std::vector<kernel_counts> all;
  std::map<std::string, std::size_t> at;
  for (const case_result& c : result.cases) {
    const auto [found, is_new] = at.try_emplace(c.kernel, all.size());
    if (is_new) {
      all.emplace_back();
      all.back().kernel = c.kernel;
    }
    all[found->second].add(c);
  }
  return all;
}

std::vector<std::size_t> first_failures(const run_result& result, std::size_t most) {
  std::map<std::string, std::vector<std::size_t>> failed;
  for (std::size_t i = 0; i < result.cases.size(); ++i) {
    if (is_failure(result.cases[i].what)) failed[result.cases[i].kernel].push_back(i);
  }
  std::vector<std::size_t> chosen;
  for (std::size_t turn = 0; !failed.empty() && chosen.size() < most; ++turn) {
    bool any = false;
    for (const auto& [kernel, cases] : failed) {
      if (turn >= cases.size() || chosen.size() == most) continue;
      chosen.push_back(cases[turn]);
      any = true;
    }
    if (!any) break;
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::string place_line(const difference& d) {
  return d.argument + ": byte " + std::to_string(d.byte) + ": " + d.place + ": expected " +
         d.expected + ", got " + d.got;
}

std::string short_message(const case_result& c) {
  if (c.what == outcome::failed && c.bytes_different != 0) {
    return std::to_string(c.bytes_different) + " of " + std::to_string(c.bytes_compared) +
           " bytes differ";
  }
  return c.message.empty() ? std::string(name_of(c.what)) : c.message;
}

std::vector<std::string> diagnosis_lines(const run_result& result, const std::string& kernel) {
  const auto found = std::find_if(result.diagnoses.begin(), result.diagnoses.end(),
                                  [&](const diagnosis& d) { return d.kernel == kernel; });
  return found == result.diagnoses.end() ? std::vector<std::string>() : text_of(*found);
}

}  // namespace kvcts
