// The schema's reader over any tree: it reads, or refuses in one line; all ways to read agree.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "fuzz/parsers/memory_tree.h"
#include "vectors/file.h"
#include "vectors/reduction_trees.h"

namespace kvcts {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// Of what is done: the message of a refusal; no value where it went well.
template <class Action>
std::optional<std::string> refusal(const Action& action) {
  try {
    action();
  } catch (const input_error& error) {
    const std::string said = error.what();
    require(!said.empty() && said.find('\n') == std::string::npos);
    return said;
  }
  return std::nullopt;
}

void require_same(const std::vector<file_tensor>& pieces, const std::vector<buffer>& whole) {
  require(pieces.size() == whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const file_tensor& t = pieces[i];
    require(t.name() == whole[i].name && t.at() == whole[i].at &&
            t.bytes() == whole[i].bytes.size());
    std::vector<std::byte> read(whole[i].bytes.size());
    for (std::uint64_t at = 0; at < t.bytes(); at += t.piece()) {
      t.read({at, std::min(t.piece(), t.bytes() - at)}, read.data() + at);
    }
    require(read == whole[i].bytes);
  }
}

void try_case(const vector_file& file, const vector_file::entry& which) {
  static_cast<void>(refusal([&] { file.has_actual(which); }));
  std::optional<case_outline> outline;
  if (refusal([&] { outline = file.outline(which); })) return;
  static_cast<void>(refusal([&] {
    const test_case c = file.decode(which);
    require_same(outline->inputs, c.inputs);
    require_same(outline->expected, c.expected);
    require_same(outline->actual, c.actual);
  }));
  std::optional<test_case> read;
  if (refusal([&] { read = file.read(which); })) return;
  require(!refusal([&] { file.check(*outline, true); }));
  require(!digest_of(*read).empty());
}

}  // namespace
}  // namespace kvcts

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kvcts;
  fuzz::set_tree({reinterpret_cast<const char*>(data), size});
  static_cast<void>(refusal([] { schema_of("memory"); }));
  static_cast<void>(refusal([] {
    const vector_file file("memory");
    for (const vector_file::entry& which : file.cases()) try_case(file, which);
  }));
  static_cast<void>(refusal([] {
    const reduction_tree_file file("memory");
    for (const std::string& group : file.groups()) file.read(group);
  }));
  return 0;
}
