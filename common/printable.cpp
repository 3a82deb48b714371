#include "common/printable.h"

#include <array>
#include <cstdint>

namespace kvcts {
namespace {

// Bytes of the UTF-8 sequence at the text's start, and its character; 0 where there is none.
std::size_t sequence_at(std::string_view text, std::uint32_t& code) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80           ? 1
                             : (lead >> 5) == 0x06 ? 2
                             : (lead >> 4) == 0x0E ? 3
                             : (lead >> 3) == 0x1E ? 4
                                                   : 0;
  if (length == 0 || text.size() < length) return 0;
  constexpr std::array<std::uint32_t, 5> lead_bits = {0, 0x7F, 0x1F, 0x0F, 0x07};
  constexpr std::array<std::uint32_t, 5> lowest = {0, 0, 0x80, 0x800, 0x10000};
  code = lead & lead_bits[length];
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return 0;
    code = code << 6 | (next & 0x3F);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < lowest[length] || code > 0x10FFFF || surrogate ? 0 : length;
}

bool acts_on_a_terminal(std::uint32_t code) {
  const auto within = [&](std::uint32_t first, std::uint32_t last) {
    return code >= first && code <= last;
  };
  // C0, C1; then separators of lines, marks and overrides of direction.
  return within(0, 0x1F) || within(0x7F, 0x9F) || within(0x200E, 0x200F) ||
         within(0x2028, 0x202E) || within(0x2066, 0x2069);
}

void append_byte(std::string& to, char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  to += "\\x";
  to += digits[byte >> 4];
  to += digits[byte & 15];
}

}  // namespace

std::string printable(std::string_view text, std::size_t longest) {
  const bool is_cut = text.size() > longest;
  text = text.substr(0, longest);
  std::string made;
  while (!text.empty()) {
    std::uint32_t code = 0;
    const std::size_t length = sequence_at(text, code);
    const std::string_view next = text.substr(0, length == 0 ? 1 : length);
    if (length != 0 && !acts_on_a_terminal(code)) {
      made += next;
    } else {
      for (const char c : next) append_byte(made, c);
    }
    text.remove_prefix(next.size());
  }
  return is_cut ? made + "..." : made;
}

}  // namespace kvcts
