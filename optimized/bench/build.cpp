#include "optimized/bench/build.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <numeric>

namespace kvcts {
namespace {

// splitmix64.
class mixer {
 public:
  explicit mixer(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }

 private:
  std::uint64_t state_;
};

// Large inputs repeat a pattern of a prime number of elements, so that rows differ.
constexpr std::size_t pattern_elements = 499979;

std::uint32_t f32_bits(std::uint64_t r, magnitudes what) {
  const std::uint64_t binades = what == magnitudes::ordinary ? 11 : 8;
  const auto exponent = static_cast<std::uint32_t>(119 + (r >> 32) % binades);
  return static_cast<std::uint32_t>(r >> 63) << 31 | exponent << 23 |
         static_cast<std::uint32_t>(r & 0x7FFFFF);
}

template <class T, class Make>
std::vector<T> pattern(std::uint64_t seed, const Make& make) {
  mixer draw(seed);
  std::vector<T> values(pattern_elements);
  for (T& v : values) v = make(draw.next());
  return values;
}

template <class T>
void repeat(const std::vector<T>& from, std::byte* to, std::int64_t elements) {
  for (std::int64_t done = 0; done < elements;) {
    const std::int64_t part = std::min(elements - done, static_cast<std::int64_t>(from.size()));
    std::memcpy(to + done * static_cast<std::int64_t>(sizeof(T)), from.data(),
                static_cast<std::size_t>(part) * sizeof(T));
    done += part;
  }
}

const std::vector<std::uint16_t>& bf16_pattern(magnitudes what) {
  static const auto make = [](magnitudes m) {
    return pattern<std::uint16_t>(
        1, [m](std::uint64_t r) { return static_cast<std::uint16_t>(f32_bits(r, m) >> 16); });
  };
  static const std::vector<std::uint16_t> ordinary = make(magnitudes::ordinary);
  static const std::vector<std::uint16_t> below_one = make(magnitudes::below_one);
  return what == magnitudes::ordinary ? ordinary : below_one;
}

const std::vector<std::uint32_t>& f32_pattern(magnitudes what) {
  static const auto make = [](magnitudes m) {
    return pattern<std::uint32_t>(2, [m](std::uint64_t r) { return f32_bits(r, m); });
  };
  static const std::vector<std::uint32_t> ordinary = make(magnitudes::ordinary);
  static const std::vector<std::uint32_t> below_one = make(magnitudes::below_one);
  return what == magnitudes::ordinary ? ordinary : below_one;
}

// Codes of a cache: no E4M3 NaN among them, and the bf16 that they make in a 584 record are finite.
const std::vector<std::uint8_t>& code_pattern() {
  static const auto codes =
      pattern<std::uint8_t>(3, [](std::uint64_t r) { return static_cast<std::uint8_t>(r & 0xBF); });
  return codes;
}

// As UE8M0 2^-8 to 2^-1, as E4M3 of a 288 record 240 to 448: neither is NaN.
const std::vector<std::uint8_t>& scale_pattern() {
  static const auto scales = pattern<std::uint8_t>(
      4, [](std::uint64_t r) { return static_cast<std::uint8_t>(119 + (r & 7)); });
  return scales;
}

}  // namespace

void heap_free::operator()(std::byte* p) const { std::free(p); }

std::string tokens_text(std::int64_t tokens) { return "T=" + std::to_string(tokens); }

problem_builder::problem_builder(std::string kernel, std::string size) {
  p_.size = std::move(size);
  p_.work.kernel = std::move(kernel);
}

std::byte* problem_builder::add(const char* name, dtype type, std::vector<std::int64_t> shape) {
  constexpr std::size_t line = 64;
  const std::size_t bytes = static_cast<std::size_t>(count(shape)) * size_of(type);
  auto* start = static_cast<std::byte*>(std::calloc(bytes + line, 1));
  if (start == nullptr) throw std::bad_alloc();
  p_.buffers.emplace_back(start);
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(start) % line;
  tensor_view v;
  v.storage = start + (line - beyond) % line;
  v.storage_bytes = bytes;
  v.type = type;
  v.at = dense(std::move(shape));
  p_.work.tensors[name] = v;
  return v.storage;
}

void problem_builder::output(const char* name, dtype type, std::vector<std::int64_t> shape) {
  add(name, type, std::move(shape));
  p_.outputs.insert(name);
}

void problem_builder::values(const char* name, dtype type, std::vector<std::int64_t> shape,
                             magnitudes what) {
  const std::int64_t elements = count(shape);
  std::byte* to = add(name, type, std::move(shape));
  if (type == dtype::bf16) {
    repeat(bf16_pattern(what), to, elements);
  } else {
    repeat(f32_pattern(what), to, elements);
  }
}

void problem_builder::bytes(const char* name, dtype type, std::vector<std::int64_t> shape) {
  const std::int64_t all = count(shape) * static_cast<std::int64_t>(size_of(type));
  repeat(code_pattern(), add(name, type, std::move(shape)), all);
}

void problem_builder::slots(const char* name, std::int64_t tokens) {
  numbers(name, dtype::i64, {tokens}, shuffled(tokens));
}

void problem_builder::slots_by_page(const char* name, std::int64_t tokens) {
  const std::vector<std::int64_t> pages = shuffled(tokens / bench_page);
  std::vector<std::int64_t> slots;
  for (const std::int64_t page : pages) {
    for (std::int64_t i = 0; i < bench_page; ++i) slots.push_back(page * bench_page + i);
  }
  for (auto slot = static_cast<std::int64_t>(slots.size()); slot < tokens; ++slot) {
    slots.push_back(slot);  // of the last page, which is not full
  }
  numbers(name, dtype::i64, {tokens}, slots);
}

void problem_builder::positions(std::int64_t tokens) {
  std::vector<std::int64_t> at(static_cast<std::size_t>(tokens));
  for (std::int64_t t = 0; t < tokens; ++t) {
    at[static_cast<std::size_t>(t)] = t % bench_request;
  }
  numbers("positions", dtype::i64, {tokens}, at);
}

void problem_builder::cos_sin(const char* name, std::int64_t tokens) {
  values(name, dtype::f32, {std::min(tokens, bench_request), 64}, magnitudes::below_one);
}

void problem_builder::cache(const char* name, std::int64_t pages, std::int64_t record) {
  const std::int64_t scales = record == 584 ? 8 : record == 528 ? 16 : 32;
  std::byte* to = add(name, dtype::u8, {pages, bench_page, record});
  repeat(code_pattern(), to, pages * bench_page * record);
  for (std::int64_t page = 0; page < pages; ++page) {
    repeat(scale_pattern(), to + (page * record + record - scales) * bench_page,
           bench_page * scales);
  }
}

void problem_builder::block_table(const char* name, std::int64_t requests, std::int64_t columns) {
  const std::vector<std::int64_t> pages = shuffled(requests * columns);
  numbers(name, dtype::i32, {requests, columns},
          std::vector<std::int32_t>(pages.begin(), pages.end()));
}

bench_problem problem_builder::done(std::int64_t bytes) {
  p_.bytes = bytes;
  return std::move(p_);
}

std::vector<std::int64_t> shuffled(std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  mixer draw(5);
  for (std::size_t i = numbers.size(); i > 1; --i) {
    std::swap(numbers[i - 1], numbers[draw.next() % i]);
  }
  return numbers;
}

std::vector<std::int32_t> drawn_below(std::int64_t n, std::int64_t count) {
  const auto range = static_cast<std::uint64_t>(n);
  const auto drawn = pattern<std::int32_t>(
      6, [range](std::uint64_t r) { return static_cast<std::int32_t>((r >> 32) * range >> 32); });
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
  repeat(drawn, reinterpret_cast<std::byte*>(numbers.data()), count);
  return numbers;
}

std::vector<std::int32_t> request_of_tokens(std::int64_t tokens) {
  std::vector<std::int32_t> requests(static_cast<std::size_t>(tokens));
  for (std::int64_t t = 0; t < tokens; ++t) {
    requests[static_cast<std::size_t>(t)] = static_cast<std::int32_t>(t / bench_request);
  }
  return requests;
}

std::vector<std::int32_t> starts_of_requests(std::int64_t tokens) {
  std::vector<std::int32_t> starts;
  for (std::int64_t t = 0; t < tokens; t += bench_request) {
    starts.push_back(static_cast<std::int32_t>(t));
  }
  starts.push_back(static_cast<std::int32_t>(tokens));
  return starts;
}

const std::vector<bench_op>& bench_ops() {
  static const std::vector<bench_op> ops = [] {
    std::vector<bench_op> all;
    add_kimi_ops(all);
    add_deepseek_ops(all);
    add_index_ops(all);
    return all;
  }();
  return ops;
}

}  // namespace kvcts
