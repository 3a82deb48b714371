// Files of conformance/candidate, as the program carries them.
#pragma once

namespace kvcts {

extern const char* const embedded_header;   // kvcts_candidate.h
extern const char* const embedded_project;  // template/CMakeLists.txt
extern const char* const embedded_source;   // template/candidate.c

}  // namespace kvcts
