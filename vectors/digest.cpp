// Canonical digests: docs/vectors.md, "Digests". The bytes hashed do not depend on how a file
// stores the content.
#include <algorithm>
#include <bit>

#include "vectors/file.h"
#include "vectors/sha256.h"

namespace kvcts {
namespace {

void put_number(sha256_stream& to, std::uint64_t value) {
  unsigned char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(value >> (8 * i));
  to.add(bytes, sizeof bytes);
}

void put_text(sha256_stream& to, std::string_view text) {
  put_number(to, std::uint64_t{text.size()});
  to.add(text.data(), text.size());
}

void put_attribute(sha256_stream& to, const attribute_value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    put_text(to, "i");
    put_number(to, static_cast<std::uint64_t>(*integer));
  } else if (const auto* real = std::get_if<double>(&value)) {
    put_text(to, "r");
    put_number(to, std::bit_cast<std::uint64_t>(*real));
  } else {
    put_text(to, "t");
    put_text(to, std::get<std::string>(value));
  }
}

void put_content(sha256_stream& to, const std::byte* data, std::size_t bytes,
                 const holed_storage* holes) {
  if (holes == nullptr) {
    to.add(data, bytes);
    return;
  }
  constexpr std::uint64_t page = sparse_memory::page;
  for (const byte_range& r : holes->written()) {
    for (std::uint64_t at = r.first; at < r.first + r.bytes; at += page) {
      put_number(to, at);
      to.add(data + at, std::min(page, bytes - at));
    }
  }
}

void put_buffer(sha256_stream& to, const buffer& b) {
  put_text(to, b.name);
  // Three names of the same stored bytes count as one.
  put_text(to, name_of(same_storage(b.type, dtype::u8) ? dtype::u8 : b.type));
  put_number(to, std::uint64_t{b.at.shape.size()});
  const bool empty = count(b.at.shape) == 0;
  for (std::size_t i = 0; i < b.at.shape.size(); ++i) {
    // The stride of a dimension that is never stepped along says nothing.
    const bool stepped = !empty && b.at.shape[i] > 1;
    put_number(to, static_cast<std::uint64_t>(b.at.shape[i]));
    put_number(to, static_cast<std::uint64_t>(stepped ? b.at.strides[i] : 0));
  }
  put_number(to, static_cast<std::uint64_t>(b.at.offset));
  put_number(to, std::uint64_t{b.size()});
  put_content(to, b.data(), b.size(), b.holes());
}

void put_buffers(sha256_stream& to, const std::vector<buffer>& buffers) {
  std::vector<const buffer*> sorted;
  for (const buffer& b : buffers) sorted.push_back(&b);
  std::sort(sorted.begin(), sorted.end(),
            [](const buffer* a, const buffer* b) { return a->name < b->name; });
  put_number(to, std::uint64_t{sorted.size()});
  for (const buffer* b : sorted) put_buffer(to, *b);
}

}  // namespace

std::string content_digest(const std::byte* data, std::size_t bytes, const holed_storage* holes) {
  sha256_stream to;
  put_content(to, data, bytes, holes);
  return to.finish();
}

std::string digest_of(const test_case& c) {
  sha256_stream to;
  put_text(to, "kvcts case 1");
  put_text(to, c.kernel);
  put_text(to, c.name);
  std::vector<std::string> flags = c.flags;
  std::sort(flags.begin(), flags.end());
  put_number(to, std::uint64_t{flags.size()});
  for (const std::string& flag : flags) put_text(to, flag);
  put_number(to, std::uint64_t{c.attributes.size()});
  for (const auto& [name, value] : c.attributes) {
    put_text(to, name);
    put_attribute(to, value);
  }
  put_buffers(to, c.inputs);
  put_buffers(to, c.expected);
  return to.finish();
}

std::string digest_of(std::string_view profile, std::vector<std::string> case_digests) {
  std::sort(case_digests.begin(), case_digests.end());
  sha256_stream to;
  put_text(to, "kvcts suite 1");
  put_text(to, profile);
  put_number(to, std::uint64_t{case_digests.size()});
  for (const std::string& digest : case_digests) put_text(to, digest);
  return to.finish();
}

std::string digest_of(const suite& s) {
  std::vector<std::string> digests;
  for (const test_case& c : s.cases) digests.push_back(digest_of(c));
  return digest_of(s.info.profile, std::move(digests));
}

std::string digest_of(const vector_file& file) {
  std::vector<std::string> digests;
  for (const vector_file::entry& which : file.cases()) {
    digests.push_back(digest_of(file.decode(which)));
  }
  return digest_of(file.info().profile, std::move(digests));
}

}  // namespace kvcts
