// Captured data that tests read: vectors/captured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvcts::test {

// The whole content of a gzip file there as signed bytes; empty where it is missing or damaged.
std::vector<std::int8_t> captured_bytes(const std::string& name, std::size_t expected_size);

}  // namespace kvcts::test
