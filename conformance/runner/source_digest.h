// A digest of sources that comments and white space do not change.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvcts {

// C++ and CUDA: // and /* */ outside of texts. CMake: #. White space between words becomes one
// space.
std::string without_comments(std::string_view text, bool is_cmake);
// Of the named files below `root`, in the order of their names. Throws input_error where one cannot
// be read.
std::string digest_of_sources(const std::string& root, std::vector<std::string> files);

}  // namespace kvcts
