// A candidate's library, loaded into this process.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

#include "conformance/candidate/kvcts_candidate.h"

namespace kvcts::worker {

struct candidate_library {
  const kvcts_candidate_info* info = nullptr;
  kvcts_answer (*run)(const kvcts_call*) = nullptr;
};

// Throws std::runtime_error with the end of a sentence that starts with the library's name. It
// stays loaded.
candidate_library load(const char* path);

// A function of the library, which must let no exception out.
template <class Function, class... Arguments>
auto called(const char* name, Function function, Arguments... arguments) {
  try {
    return function(arguments...);
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string("an exception came out of ") + name +
                             "(): " + error.what());
  }
}

kvcts_storage_type storage_of(kvcts_dtype type);

}  // namespace kvcts::worker
