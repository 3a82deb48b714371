#include "reports/archive.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "common/printable.h"
#include "reference/layout/tensor.h"

namespace kvcts {
namespace {

constexpr std::size_t block = 512;
constexpr std::size_t most_name = 100;
constexpr std::uint64_t most_content = 077777777777;  // 11 octal digits

// Fields of a header: offset and bytes.
struct field {
  std::size_t at, bytes;
};
constexpr field name_field{0, most_name}, mode_field{100, 8}, uid_field{108, 8}, gid_field{116, 8},
    size_field{124, 12}, time_field{136, 12}, checksum_field{148, 8}, type_field{156, 1},
    magic_field{257, 8};
constexpr std::string_view magic(
    "ustar\0"
    "00",
    8);

bool is_plain(std::string_view name) {
  return !name.empty() && name.size() <= most_name && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

using header = std::array<char, block>;

void put(header& to, field at, std::string_view text) {
  std::copy_n(text.begin(), std::min(text.size(), at.bytes), to.begin() + at.at);
}

// Octal digits and a NUL that fill the field.
void put_number(header& to, field at, std::uint64_t value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%0*llo", static_cast<int>(at.bytes - 1),
                static_cast<unsigned long long>(value));
  put(to, at, text.data());
}

header header_of(std::string_view name, std::uint64_t bytes) {
  header made{};
  put(made, name_field, name);
  put_number(made, mode_field, 0644);
  put_number(made, uid_field, 0);
  put_number(made, gid_field, 0);
  put_number(made, size_field, bytes);
  put_number(made, time_field, 0);
  put(made, type_field, "0");
  put(made, magic_field, magic);
  // The sum is taken with blanks in its own place, and stands in six digits, NUL, blank.
  put(made, checksum_field, "        ");
  std::uint64_t sum = 0;
  for (const char c : made) sum += static_cast<unsigned char>(c);
  put_number(made, {checksum_field.at, 7}, sum);
  made[checksum_field.at + 6] = '\0';
  return made;
}

std::string_view text_in(std::string_view from, field at) {
  const std::string_view whole = from.substr(at.at, at.bytes);
  return whole.substr(0, whole.find('\0'));
}

std::optional<std::uint64_t> octal(std::string_view text) {
  std::uint64_t value = 0;
  if (text.size() != size_field.bytes - 1) return std::nullopt;
  for (const char c : text) {
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

bool all_zero(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; });
}

std::size_t padding_of(std::uint64_t bytes) {
  return static_cast<std::size_t>((block - bytes % block) % block);
}

std::string shown(std::string_view name) { return "'" + printable(name) + "'"; }

}  // namespace

std::string write_archive(std::vector<archive_member> members) {
  std::sort(members.begin(), members.end(),
            [](const archive_member& a, const archive_member& b) { return a.name < b.name; });
  std::string out;
  std::string_view last;
  for (const archive_member& m : members) {
    if (!is_plain(m.name)) throw input_error("member name " + shown(m.name) + " is not plain");
    if (m.name == last) throw input_error("member " + shown(m.name) + " is there twice");
    if (m.content.size() > most_content) throw input_error("member " + m.name + " is too large");
    last = m.name;
    const header made = header_of(m.name, m.content.size());
    out.append(made.data(), made.size());
    out.append(m.content);
    out.append(padding_of(m.content.size()), '\0');
  }
  return out.append(2 * block, '\0');
}

std::vector<archive_member> read_archive(std::string_view bytes) {
  std::vector<archive_member> members;
  std::size_t at = 0;
  for (;;) {
    const std::string_view rest = bytes.substr(at);
    if (rest.size() < block) throw input_error("it is cut off: the end of the archive is missing");
    const std::string_view head = rest.substr(0, block);
    if (all_zero(head)) {
      if (rest.size() != 2 * block || !all_zero(rest)) {
        throw input_error("its end is not two blocks of zeros");
      }
      return members;
    }
    const std::string_view name = text_in(head, name_field);
    if (!is_plain(name)) throw input_error("member name " + shown(name) + " is not allowed");
    const std::string where = "member " + std::string(name);
    const std::optional<std::uint64_t> size = octal(text_in(head, size_field));
    if (!size) throw input_error(where + ": its size is no octal number");
    if (*size > rest.size() - block || padding_of(*size) > rest.size() - block - *size) {
      throw input_error(where + " is cut off");
    }
    const header expected = header_of(name, *size);
    if (head != std::string_view(expected.data(), block)) {
      throw input_error(where + ": its header is not as the suite writes it");
    }
    const auto length = static_cast<std::size_t>(*size);
    if (!all_zero(rest.substr(block + length, padding_of(length)))) {
      throw input_error(where + ": bytes follow its content");
    }
    if (!members.empty() && name == members.back().name) {
      throw input_error(where + " is there twice");
    }
    if (!members.empty() && name < members.back().name) {
      throw input_error(where + " is out of order");
    }
    members.push_back({std::string(name), std::string(rest.substr(block, length))});
    at += block + length + padding_of(length);
  }
}

std::string_view first_member_of(std::string_view bytes) {
  if (bytes.size() < block || bytes.substr(magic_field.at, magic_field.bytes) != magic) return {};
  return text_in(bytes, name_field);
}

}  // namespace kvcts
