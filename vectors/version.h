#pragma once

namespace kvcts {

// Of the suite: its cases and their expected bytes. vectors/CHANGELOG.md has an entry for each.
constexpr int suite_version = 4;

}  // namespace kvcts
