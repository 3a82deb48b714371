// A tar archive (USTAR) that two runs write alike: fixed mode, time and owner, members in the order
// of their names. The reader takes nothing else: what it has read, write_archive() writes again
// byte for byte.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvcts {

struct archive_member {
  std::string name;  // letters, digits, '.', '_', '-'; no leading '.'; 1 to 100 bytes
  std::string content;
};

// Sorts the members. Throws input_error: a name that is not of this form, or there twice.
std::string write_archive(std::vector<archive_member> members);

// Throws input_error with one line on what is wrong and where.
std::vector<archive_member> read_archive(std::string_view bytes);

// Name of the first member, or nothing where the bytes do not begin as such an archive does.
std::string_view first_member_of(std::string_view bytes);

}  // namespace kvcts
