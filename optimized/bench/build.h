// Tools of the files that build problems.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "optimized/bench/problems.h"

namespace kvcts {

constexpr std::int64_t bench_page = 64;       // tokens a page
constexpr std::int64_t bench_request = 4096;  // tokens a request at most, rows of a cos/sin table

// Pages that hold `tokens`.
inline std::int64_t pages_for(std::int64_t tokens) {
  return (tokens + bench_page - 1) / bench_page;
}
// Requests of bench_request tokens, the last one shorter.
inline std::int64_t requests_for(std::int64_t tokens) {
  return (tokens + bench_request - 1) / bench_request;
}

// Numbers of both signs: magnitudes from 2^-8 to 8, or below 1.
enum class magnitudes : std::uint8_t { ordinary, below_one };

// "T=16".
std::string tokens_text(std::int64_t tokens);

class problem_builder {
 public:
  problem_builder(std::string kernel, std::string size);

  // A tensor that the kernel writes.
  void output(const char* name, dtype type, std::vector<std::int64_t> shape);
  // bf16 or f32.
  void values(const char* name, dtype type, std::vector<std::int64_t> shape,
              magnitudes what = magnitudes::ordinary);
  // Any other dtype: bytes, of E4M3 no NaN.
  void bytes(const char* name, dtype type, std::vector<std::int64_t> shape);
  template <class T>
  void numbers(const char* name, dtype type, std::vector<std::int64_t> shape,
               const std::vector<T>& from) {
    std::byte* to = add(name, type, std::move(shape));
    if (!from.empty()) std::memcpy(to, from.data(), from.size() * sizeof(T));
  }
  // Each of 0 .. tokens-1 once, in no order.
  void slots(const char* name, std::int64_t tokens);
  // The same as a prefill has them: pages in no order, a page's slots one after another.
  void slots_by_page(const char* name, std::int64_t tokens);
  // i64 positions of requests one after another, and the cos/sin rows that they read.
  void positions(std::int64_t tokens);
  void cos_sin(const char* name, std::int64_t tokens);
  // Pages of one of the records 584, 528 and 288, with scales of ordinary size.
  void cache(const char* name, std::int64_t pages, std::int64_t record);
  // i32 [requests, columns] of pages, each once, in no order.
  void block_table(const char* name, std::int64_t requests, std::int64_t columns);
  void attribute(const char* name, attribute_value value) {
    p_.work.attributes[name] = std::move(value);
  }

  // `bytes`: read and written.
  bench_problem done(std::int64_t bytes);

 private:
  std::byte* add(const char* name, dtype type, std::vector<std::int64_t> shape);
  bench_problem p_;
};

// 0 .. count-1 in no order.
std::vector<std::int64_t> shuffled(std::int64_t count);
// `count` numbers of 0 .. n-1.
std::vector<std::int32_t> drawn_below(std::int64_t n, std::int64_t count);
// The request of each token, and the first token of each request with the end behind the last.
std::vector<std::int32_t> request_of_tokens(std::int64_t tokens);
std::vector<std::int32_t> starts_of_requests(std::int64_t tokens);

// The forms of each family of kernels: kimi.cpp, deepseek.cpp, indices.cpp.
void add_kimi_ops(std::vector<bench_op>& to);
void add_deepseek_ops(std::vector<bench_op>& to);
void add_index_ops(std::vector<bench_op>& to);

}  // namespace kvcts
