// The child's half of probe_vectors().
#pragma once

namespace kvcts {

// Opens the file and decodes every object in it. 0 where that went well; 2 after one line on
// standard error where it did not. It may crash, which is why it has a process of its own.
int probe_main(const char* path);

}  // namespace kvcts
