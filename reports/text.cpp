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

std::string_view cut_short(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.substr(0, most);
}

std::string escaped_short(std::string_view text, std::size_t most) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(xml_character(text), 1);
    const std::string one = escaped(text.substr(0, length));
    if (out.size() + one.size() > most) return out + "…";
    out += one;
    text.remove_prefix(length);
  }
  return out;
}

std::string without_controls(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = xml_character(text);
    const auto first = static_cast<unsigned char>(text[0]);
    if (first < 0x20 || first == 0x7F) {
      out += ' ';
    } else {
      out += length == 0 ? replacement : text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

// "waived: KERNEL/CASES: 2 cases fail: ..."
waived_cases::waived_cases(const run_result& result) {
  constexpr std::string_view start = "waived: ";
  for (const std::string& notice : result.notices) {
    if (notice.rfind(start, 0) != 0) continue;
    const std::size_t slash = notice.find('/'), end = notice.find(": ", start.size());
    if (slash == std::string::npos || end == std::string::npos || slash > end) continue;
    patterns_.emplace_back(notice.substr(start.size(), slash - start.size()),
                           notice.substr(slash + 1, end - slash - 1));
  }
}

bool waived_cases::has(const case_result& c) const {
  return is_waivable(c) && std::any_of(patterns_.begin(), patterns_.end(), [&](const auto& p) {
           return is_named(p.first, p.second, c.kernel, c.name);
         });
}

standing standing_of(const run_result& result) {
  const waived_cases waived(result);
  const bool by_waivers = result.verdict.rfind("conforms with waivers", 0) == 0;
  const bool fails = std::any_of(
      result.cases.begin(), result.cases.end(),
      [&](const case_result& c) { return is_failure(c.what) && !(by_waivers && waived.has(c)); });
  if (fails || result.verdict.rfind("does not", 0) == 0) return standing::bad;
  if (by_waivers) return standing::limited;
  return result.exit_status(false) == 0 ? standing::good : standing::bad;
}

bool is_comparison(const run_result& result) {
  return result.level == "file" &&
         (result.verdict.rfind("equal: ", 0) == 0 || result.verdict.rfind("different: ", 0) == 0);
}

bool is_neutral(const std::string& notice) {
  return notice.rfind("GPU evidence is verified", 0) == 0 || notice.rfind("A: ", 0) == 0;
}

void kernel_counts::add(const case_result& c, const waived_cases& is_waived) {
  ++cases;
  passed += c.what == outcome::passed ? 1 : 0;
  failed += c.what == outcome::failed ? 1 : 0;
  broken += c.what == outcome::crashed || c.what == outcome::timed_out ? 1 : 0;
  unsupported += c.what == outcome::unsupported ? 1 : 0;
  captured += c.provenance == "captured" && c.what != outcome::unsupported ? 1 : 0;
  waived += is_waived.has(c) ? 1 : 0;
  compared += c.bytes_compared;
  different += c.bytes_different;
}

std::string_view words_of(const kernel_counts& kernel, const run_result& result) {
  if (kernel.all_waived()) return "differs, waived";
  if (kernel.fails()) return kernel.different != 0 ? "differs" : "fails";
  if (!kernel.claimed()) return "not claimed";
  return is_comparison(result) ? "equal" : "conforms";
}

std::vector<kernel_counts> by_kernel(const run_result& result) {
  const waived_cases waived(result);
  std::vector<kernel_counts> all;
  std::map<std::string, std::size_t> at;
  for (const case_result& c : result.cases) {
    const auto [found, is_new] = at.try_emplace(c.kernel, all.size());
    if (is_new) {
      all.emplace_back();
      all.back().kernel = c.kernel;
    }
    all[found->second].add(c, waived);
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

std::string place_line(const difference& d, const run_result& result) {
  const bool sides = is_comparison(result);
  return d.argument + ": byte " + std::to_string(d.byte) + ": " + d.place +
         (sides ? ": A " : ": expected ") + d.expected + (sides ? ", B " : ", got ") + d.got;
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
