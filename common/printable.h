// Texts from outside, fit for a terminal and for one line.
#pragma once

#include <string>
#include <string_view>

namespace kvcts {

// What a terminal acts on (control characters, marks that turn the direction of writing), and bytes
// that are no UTF-8, as "\x1b", byte by byte. Bytes past the longest are cut off: "...".
std::string printable(std::string_view text, std::size_t longest = std::string_view::npos);

}  // namespace kvcts
