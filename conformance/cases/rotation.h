// Cosine/sine tables, and the rotated dims that go with them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "conformance/cases/build.h"

namespace kvcts {

enum class turns : std::uint8_t {
  drawn,     // cosines and sines of any mantissa, within -1 .. 1
  exact,     // rows turn by 0, a quarter and a half: the values pass through
  any_bits,  // every f32 bit pattern, infinities and NaNs among them
  window,    // "cosines" that carry an f32 amax just beside limit * 2^e into its block
  hard       // rotated values beside a rounding border: each way to contract gives other bytes
};
std::string_view name_of(turns how);
std::vector<std::string_view> flags_of(turns how);

// Where the values of `hard` lie.
enum class border : std::uint8_t {
  code,          // a midpoint of two codes, met in f32
  code_by_bf16,  // the midpoint of the two bf16 numbers that lie at and beside such a midpoint
  bf16           // a midpoint of two bf16 numbers
};

// A positive value there. `rules` and `scale` are those of its block.
double border_value(draw& from, border at, const block_rules& rules, std::int64_t scale);
// n * 2^exponent, exact.
double scaled(std::uint64_t n, std::int64_t exponent);
// +-[2^-8, 1), any mantissa.
float draw_factor(draw& from);

struct rotation_options {
  turns how = turns::drawn;
  std::int64_t dims = 64;  // rotated ones: cosines and sines of a row together
  std::int64_t rows = 16;  // positions
  bool inverse = false;
  // Used by `window` and `hard`.
  block_rules rules = e4m3_rules(fp8_format::e4m3fn);
  std::int64_t block = 32;            // dims that share a scale
  border at = border::code;           // hard
  std::int64_t scale = 0;             // hard: the exponent of every scale
  std::vector<std::uint32_t> amaxes;  // window: f32 bits to come near to; empty: limit * 2^e
};

class rotation {
 public:
  rotation(draw& from, const rotation_options& options);
  std::int64_t rows() const { return options_.rows; }
  // [rows, dims] of f32 or bf16 (the upper halves), `gap` elements between rows.
  buffer table(std::string_view name, dtype type, std::int64_t gap = 0) const;
  // Puts the values that belong to a row over the rotated dims of a head, where there are some.
  void put(std::int64_t position, std::uint16_t* rotated) const;

 private:
  struct row {
    std::vector<float> cosines, sines;  // [dims / 2]
    std::vector<std::uint16_t> values;  // [dims] bf16, or none
  };
  void draw_plain(draw& from, std::int64_t number, row& to) const;
  void draw_window(draw& from, row& to) const;
  void draw_hard(draw& from, row& to) const;

  rotation_options options_;
  std::vector<row> rows_;
};

}  // namespace kvcts
