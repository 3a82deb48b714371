// JSON Schema as far as docs/report.schema.json uses it.
#pragma once

#include <string>
#include <vector>

namespace kvcts {

// One line for each place of the document that the schema refuses, "/cases/0/name: ...". Throws
// std::logic_error on a keyword that is not known here, so that no rule is passed over.
std::vector<std::string> schema_faults(const std::string& document, const std::string& schema);

}  // namespace kvcts
