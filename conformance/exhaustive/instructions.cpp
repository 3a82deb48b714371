// The approximate instructions against what an NVIDIA H200 gave: the captured results of one or two
// octaves, and what scaling makes of them elsewhere.
#include <fmt/format.h>
#include <zlib.h>

#include <cmath>
#include <memory>
#include <mutex>

#include "conformance/exhaustive/sweep.h"
#include "reference/layout/tensor.h"
#include "reference/numerics/arithmetic.h"
#include "reference/numerics/mufu_core.h"

namespace kvcts {
namespace {

constexpr std::uint64_t all_f32 = std::uint64_t{1} << 32;
constexpr std::uint64_t piece = std::uint64_t{1} << 24;
constexpr std::uint32_t sign_bit = 0x80000000, infinity_bits = 0x7F800000;
constexpr std::uint32_t one = 0x3F800000, octave = 1u << 23;

double value_of(std::uint32_t bits) { return static_cast<double>(float_of(bits)); }

// 2^e, -1022 <= e <= 1023.
double power(int e) {
  const std::uint64_t bits = static_cast<std::uint64_t>(e + 1023) << 52;
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// One rounding of an exact double; the hardware's NaN.
std::uint32_t rounded(double exact) {
  return std::isnan(exact) ? canonical_nan_bits : bits_of(static_cast<float>(exact));
}

// The whole content of a gzip file.
std::vector<std::int8_t> read_captured(const std::string& path, std::size_t size) {
  std::vector<std::int8_t> bytes(size + 1);  // one more, to see a longer file
  gzFile file = gzopen(path.c_str(), "rb");
  const int got =
      file == nullptr ? -1 : gzread(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  const bool closed = file != nullptr && gzclose(file) == Z_OK;
  if (!closed || got != static_cast<int>(size)) {
    throw input_error(fmt::format(
        "{}: does not hold the {} captured results: run in a whole checkout, or name one with "
        "--source",
        path, size));
  }
  bytes.resize(size);
  return bytes;
}

// CRC-32 of results in order, little-endian.
std::uint32_t checksum(const std::vector<std::uint32_t>& results) {
  static_assert(sizeof(std::uint32_t) == 4);
  return static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(results.data()),
                                          static_cast<uInt>(results.size() * 4)));
}

// Results of the hardware, by the input's bits above 1.
class measured {
 public:
  measured(std::string folder, const mufu_segment* ex2) : folder_(std::move(folder)), ex2_(ex2) {}

  // rcp over [1, 2), rsqrt over [1, 4).
  const std::vector<std::uint32_t>& rcp() {
    std::call_once(rcp_once_, [this] {
      const std::vector<std::int8_t> errors = read_captured(folder_ + "/rcp.i8.gz", octave);
      rcp_.resize(octave);
      for (std::uint32_t i = 0; i < octave; ++i) {
        rcp_[i] = rounded(1.0 / value_of(one + i)) + static_cast<std::uint32_t>(int{errors[i]});
      }
    });
    return rcp_;
  }
  const std::vector<std::uint32_t>& rsqrt() {
    std::call_once(rsqrt_once_, [this] {
      const std::vector<std::int8_t> errors = read_captured(folder_ + "/rsq.i8.gz", 2 * octave);
      rsqrt_.resize(2 * octave);
      for (std::uint32_t i = 0; i < 2 * octave; ++i) {
        rsqrt_[i] = rounded(1.0 / std::sqrt(value_of(one + i))) +
                    static_cast<std::uint32_t>(int{errors[i]});
      }
    });
    return rsqrt_;
  }
  // 2^x over [1, 2), and over (-2, -1]. Of these only the checksums of the hardware's results are
  // kept: the formula's results stand for them where theirs are the same, and are empty else.
  const std::vector<std::uint32_t>& ex2(bool negative) {
    std::call_once(ex2_once_, [this] {
      constexpr std::uint32_t hardware[2] = {0x676486CD, 0xC99445CD};
      for (const std::uint32_t side : {0u, 1u}) {
        std::vector<std::uint32_t>& results = ex2_results_[side];
        results.resize(octave);
        for (std::uint32_t i = 0; i < octave; ++i) {
          results[i] = mufu::ex2_bits((one + i) | side << 31, ex2_);
        }
        if (checksum(results) != hardware[side]) results.clear();
      }
    });
    return ex2_results_[negative ? 1 : 0];
  }

 private:
  std::string folder_;
  const mufu_segment* ex2_;
  std::once_flag rcp_once_, rsqrt_once_, ex2_once_;
  std::vector<std::uint32_t> rcp_, rsqrt_, ex2_results_[2];
};

std::uint32_t rcp_by_octave(std::uint32_t bits, const std::vector<std::uint32_t>& results) {
  const std::uint32_t sign = bits & sign_bit, magnitude = bits & ~sign_bit;
  if (magnitude > infinity_bits) return canonical_nan_bits;
  if (magnitude == infinity_bits) return sign;
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  if (exponent == -127) return sign | infinity_bits;  // zero and subnormals
  const double exact = value_of(results[magnitude & 0x7FFFFF]) * power(-exponent);
  return sign | (exact < 0x1p-126 ? 0 : rounded(exact));
}

std::uint32_t rsqrt_by_octaves(std::uint32_t bits, const std::vector<std::uint32_t>& results) {
  const std::uint32_t sign = bits & sign_bit, magnitude = bits & ~sign_bit;
  if (magnitude > infinity_bits) return canonical_nan_bits;
  if (magnitude < 0x00800000) return sign | infinity_bits;
  if (sign != 0) return canonical_nan_bits;
  if (magnitude == infinity_bits) return 0;
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  const int odd = exponent & 1;
  const std::uint32_t mantissa = magnitude & 0x7FFFFF;
  return rounded(value_of(results[mantissa + (odd != 0 ? octave : 0)]) *
                 power(-(exponent - odd) / 2));
}

// 2^x is that of the octave with the same fraction bits, times a power of two: the bits of |x|
// below 2^-23 are dropped.
std::uint32_t ex2_by_octave(std::uint32_t bits, measured& from) {
  const float x = float_of(bits);
  if (std::isnan(x)) return canonical_nan_bits;
  if (x >= 128) return infinity_bits;
  if (x < -126) return 0;
  const bool negative = std::signbit(x);
  const auto steps =
      static_cast<std::uint64_t>(std::floor(std::fabs(static_cast<double>(x)) * 0x1p23));
  const int whole = static_cast<int>(steps >> 23);
  const std::vector<std::uint32_t>& results = from.ex2(negative);
  if (results.empty()) return ~canonical_nan_bits;  // equals nothing that an instruction gives
  const double exact =
      value_of(results[steps & 0x7FFFFF]) * power(negative ? 1 - whole : whole - 1);
  return exact < 0x1p-126 ? 0 : rounded(exact);
}

std::uint32_t ex2_full_by_octave(std::uint32_t bits, measured& from) {
  const float x = float_of(bits);
  if (!(x < -126)) return ex2_by_octave(bits, from);
  const double root = value_of(ex2_by_octave(rounded(static_cast<double>(x) / 2), from));
  return rounded(root * root);
}

std::uint32_t div_by_octave(std::uint32_t a, std::uint32_t b,
                            const std::vector<std::uint32_t>& results) {
  const double magnitude = std::fabs(value_of(b));
  double scale = 1;
  if (magnitude > 0x1p126 && !std::isinf(magnitude)) scale = 0.25;
  if (magnitude < 0x1p-126) scale = 0x1p24;
  const std::uint32_t dividend = rounded(value_of(a) * scale);
  const std::uint32_t divisor = rounded(value_of(b) * scale);
  return rounded(value_of(dividend) * value_of(rcp_by_octave(divisor, results)));
}

// Bits that look random (splitmix64).
std::uint64_t mixed(std::uint64_t i) {
  std::uint64_t z = (i + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// One operand in four is subnormal, huge, infinite, zero, a NaN, or beside a border of the scaling.
std::uint32_t operand(std::uint32_t bits, std::uint32_t choice) {
  const std::uint32_t sign = bits & sign_bit, mantissa = bits & 0x7FFFFF;
  constexpr std::uint32_t with_mantissa[] = {0, 0x7F000000, 0x7E800000, 0x00800000, 0x7F800000};
  constexpr std::uint32_t alone[] = {0x7F800000, 0, 0x7E800000};
  const std::uint32_t kind = choice & 31;
  if (kind < 5) return sign | with_mantissa[kind] | mantissa;
  if (kind < 8) return sign | alone[kind - 5];
  return bits;
}

struct operand_pair {
  std::uint32_t a, b;
};
operand_pair pair_of(std::uint64_t i) {
  const std::uint64_t bits = mixed(2 * i), choice = mixed(2 * i + 1);
  return {
      operand(static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(choice)),
      operand(static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(choice >> 32))};
}

template <class Formula, class Hardware>
sweep unary(const std::string& instruction, Formula formula, Hardware hardware) {
  sweep made;
  made.name = "instruction." + instruction;
  made.text = "the formula against results of an H200, scaled to every f32";
  made.inputs = all_f32;
  made.piece = piece;
  made.check = [formula, hardware](const sweep_range& range) {
    return compare_range(
        range, [&](std::uint64_t input) { return formula(static_cast<std::uint32_t>(input)); },
        [&](std::uint64_t input) { return hardware(static_cast<std::uint32_t>(input)); },
        mismatch_text);
  };
  return made;
}

}  // namespace

std::vector<sweep> instruction_sweeps(const std::string& captured,
                                      const instruction_tables& tables) {
  const auto from = std::make_shared<measured>(captured, tables.ex2);
  std::vector<sweep> all;
  all.push_back(unary(
      "rcp.approx.ftz", [t = tables.rcp](std::uint32_t x) { return mufu::rcp_bits(x, t); },
      [from](std::uint32_t x) { return rcp_by_octave(x, from->rcp()); }));
  all.push_back(unary(
      "rsqrt.approx.ftz", [t = tables.rsqrt](std::uint32_t x) { return mufu::rsqrt_bits(x, t); },
      [from](std::uint32_t x) { return rsqrt_by_octaves(x, from->rsqrt()); }));
  all.push_back(unary(
      "ex2.approx.ftz", [t = tables.ex2](std::uint32_t x) { return mufu::ex2_bits(x, t); },
      [from](std::uint32_t x) { return ex2_by_octave(x, *from); }));
  all.push_back(unary(
      "ex2.approx", [t = tables.ex2](std::uint32_t x) { return mufu::ex2_full_range_bits(x, t); },
      [from](std::uint32_t x) { return ex2_full_by_octave(x, *from); }));

  sweep div;
  div.name = "instruction.div.full";
  div.text = "2^32 drawn pairs: the formula against the product with the measured reciprocal";
  div.inputs = all_f32;
  div.piece = piece;
  div.check = [from, t = tables.rcp](const sweep_range& range) {
    const std::vector<std::uint32_t>& results = from->rcp();
    return compare_range(
        range,
        [&](std::uint64_t input) {
          const operand_pair p = pair_of(input);
          return mufu::div_full_bits(p.a, p.b, t);
        },
        [&](std::uint64_t input) {
          const operand_pair p = pair_of(input);
          return div_by_octave(p.a, p.b, results);
        },
        [](std::uint64_t input, std::uint32_t have, std::uint32_t want) {
          const operand_pair p = pair_of(input);
          return fmt::format("0x{:08X} / 0x{:08X} -> 0x{:X}, must be 0x{:X}", p.a, p.b, have, want);
        });
  };
  all.push_back(std::move(div));
  return all;
}

}  // namespace kvcts
