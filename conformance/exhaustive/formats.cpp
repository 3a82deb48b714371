// Encoders, decoders and scale rules against definitions that share nothing with them.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#ifdef KVCTS_CUDA_CONVERSIONS
#include <cuda_bf16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#endif

#include "conformance/exhaustive/sweep.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/nearest.h"
#include "reference/formats/ue8m0.h"
#include "reference/numerics/arithmetic.h"
#include "reference/numerics/log2.h"

namespace kvcts {
namespace {

constexpr std::uint64_t all_f32 = std::uint64_t{1} << 32;
constexpr std::uint64_t piece = std::uint64_t{1} << 24;
constexpr std::uint32_t sign_bit = 0x80000000, infinity_bits = 0x7F800000;

// got(float) and wanted(bits) over every f32, by its bits.
template <class Got, class Wanted>
sweep over_f32(std::string name, std::string text, Got got, Wanted wanted) {
  sweep made;
  made.name = std::move(name);
  made.text = std::move(text);
  made.inputs = all_f32;
  made.piece = piece;
  made.check = [got, wanted](const sweep_range& range) {
    return compare_range(
        range,
        [&](std::uint64_t input) {
          return static_cast<std::uint32_t>(got(float_of(static_cast<std::uint32_t>(input))));
        },
        [&](std::uint64_t input) {
          return static_cast<std::uint32_t>(wanted(static_cast<std::uint32_t>(input)));
        },
        mismatch_text);
  };
  return made;
}

// The nearest value by distance.
template <class Encode>
sweep encoder(const std::string& format, Encode encode, const definition::encoding& wanted) {
  sweep made;
  made.name = "format." + format + ".encode";
  made.text = "f32 to " + format + " against the nearest of its values by distance";
  made.inputs = all_f32;
  made.piece = piece;
  made.check = [encode, wanted](const sweep_range& range) {
    definition::nearest_code nearest(wanted.values);
    std::uint32_t last = 0;
    return compare_range(
        range,
        [&](std::uint64_t input) {
          return static_cast<std::uint32_t>(encode(float_of(static_cast<std::uint32_t>(input))));
        },
        [&](std::uint64_t input) -> std::uint32_t {
          const auto bits = static_cast<std::uint32_t>(input);
          const std::uint32_t magnitude = bits & ~sign_bit;
          if (magnitude > infinity_bits) return wanted.nan;
          // The search goes on upwards; the other sign begins anew.
          if (magnitude < last) nearest.restart();
          last = magnitude;
          return wanted.with_sign(nearest(definition::from_bits(magnitude)), bits != magnitude);
        },
        mismatch_text);
  };
  return made;
}

// Every code; expected(code) is a double, NaN for the codes that are none.
template <class Decode, class Expected>
sweep decoder(const std::string& format, std::uint64_t codes, Decode decode, Expected expected) {
  sweep made;
  made.name = "format." + format + ".decode";
  made.text = "every code of " + format + " against its value";
  made.inputs = codes;
  made.piece = codes;
  made.check = [decode, expected](const sweep_range& range) {
    return compare_range(
        range, [&](std::uint64_t code) { return bits_of(decode(code)); },
        [&](std::uint64_t code) {
          const double value = expected(code);
          return std::isnan(value) ? canonical_nan_bits : bits_of(static_cast<float>(value));
        },
        mismatch_text);
  };
  return made;
}

// The value of a code with sign in a list of magnitudes; NaN past it.
double value_of(const definition::magnitudes& values, std::uint64_t code, int sign_shift) {
  const std::uint64_t magnitude = code & ((std::uint64_t{1} << sign_shift) - 1);
  if (magnitude >= values.size()) return std::numeric_limits<double>::quiet_NaN();
  return code >> sign_shift != 0 ? -values[magnitude] : values[magnitude];
}

definition::encoding ue8m0_encoding() {
  definition::magnitudes values;
  for (int byte = 0; byte < 255; ++byte) values.push_back(std::ldexp(1.0, byte - 127));
  return {values, 8, 0xFF, false};
}

// Round to nearest f32 of log2 in double, whose own error is far below the gaps at the borders.
std::uint32_t ceil_log2_by_library(std::uint32_t bits) {
  const float x = definition::from_bits(bits);
  if (std::isnan(x) || x < 0) return canonical_nan_bits;
  const auto rounded = static_cast<float>(std::log2(static_cast<double>(x)));
  return bits_of(std::ceil(rounded) + 0.0F);  // -0 becomes 0
}

// Least e with 2^e >= x, by frexp.
std::uint32_t ceil_log2_by_frexp(std::uint32_t bits) {
  const float x = definition::from_bits(bits);
  if (std::isnan(x) || x < 0) return canonical_nan_bits;
  if (x == 0) return bits_of(-std::numeric_limits<float>::infinity());
  if (std::isinf(x)) return bits;
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(x), &exponent);  // [0.5, 1)
  return bits_of(static_cast<float>(fraction == 0.5 ? exponent - 1 : exponent));
}

// The least byte up to 254 whose power of two is at least n.
std::uint32_t integer_scale_by_value(std::uint32_t bits) {
  const float n = definition::from_bits(bits);
  if (std::isnan(n)) return 254;
  if (n <= 0) return 0;
  if (std::isinf(n)) return 254;
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(n), &exponent);
  const int least = (fraction == 0.5 ? exponent - 1 : exponent) + 127;
  return static_cast<std::uint32_t>(std::min(std::max(least, 0), 254));
}

#ifdef KVCTS_CUDA_CONVERSIONS
void add_toolkit_sweeps(std::vector<sweep>& to, const format_functions& functions) {
  to.push_back(over_f32(
      "format.e2m1.toolkit", "f32 to e2m1 against the CUDA toolkit's conversion on the host",
      functions.encode_e2m1, [](std::uint32_t bits) {
        return __nv_cvt_float_to_fp4(definition::from_bits(bits), __NV_E2M1, cudaRoundNearest) &
               0xF;
      }));
  to.push_back(over_f32(
      "format.e4m3fn.toolkit", "f32 to e4m3fn against the CUDA toolkit's conversion on the host",
      [encode = functions.encode_e4m3](float x) { return encode(x, fp8_format::e4m3fn); },
      [](std::uint32_t bits) {
        return __nv_cvt_float_to_fp8(definition::from_bits(bits), __NV_SATFINITE, __NV_E4M3);
      }));
  to.push_back(over_f32(
      "format.bf16.toolkit", "f32 to bf16 against the CUDA toolkit's conversion on the host",
      functions.encode_bf16, [](std::uint32_t bits) {
        const __nv_bfloat16_raw raw = __float2bfloat16_rn(definition::from_bits(bits));
        return raw.x;
      }));
}
#endif

}  // namespace

std::string mismatch_text(std::uint64_t input, std::uint32_t have, std::uint32_t want) {
  return fmt::format("0x{:X} -> 0x{:X}, must be 0x{:X}", input, have, want);
}

format_functions::format_functions(const Rules& rules)
    : encode_e2m1(rules.encode_e2m1),
      encode_e4m3(rules.encode_e4m3),
      encode_bf16(rules.round_bf16),
      encode_ue8m0(kvcts::encode_ue8m0),
      decode_e2m1(kvcts::decode_e2m1),
      decode_e4m3(rules.decode_e4m3),
      decode_bf16(kvcts::decode_bf16),
      decode_ue8m0(kvcts::decode_ue8m0),
      ceil_log2(rules.scale_exponent),
      ceil_log2_exact(kvcts::ceil_log2_exact),
      integer_scale(rules.integer_scale) {}

std::vector<sweep> format_sweeps(const format_functions& functions) {
  std::vector<sweep> all;
  const auto e4m3 = [encode = functions.encode_e4m3](fp8_format format) {
    return [encode, format](float x) { return encode(x, format); };
  };
  all.push_back(encoder("e2m1", functions.encode_e2m1, definition::e2m1_encoding()));
  all.push_back(encoder("e4m3fn", e4m3(fp8_format::e4m3fn), definition::e4m3fn_encoding()));
  all.push_back(encoder("e4m3fnuz", e4m3(fp8_format::e4m3fnuz), definition::e4m3fnuz_encoding()));
  all.push_back(encoder("bf16", functions.encode_bf16, definition::bf16_encoding()));
  all.push_back(over_f32(
      "format.ue8m0.encode", "f32 to ue8m0 against the nearest power of two by distance",
      functions.encode_ue8m0, [nearest = ue8m0_encoding()](std::uint32_t bits) -> std::uint32_t {
        const float x = definition::from_bits(bits);
        if (x == 0) return 0;
        if (std::isnan(x) || std::isinf(x) || x < 0) return nearest.nan;
        // Only the powers beside x matter.
        const int at = std::max(0, std::ilogb(x) + 127);
        const auto code = static_cast<std::size_t>(at);
        const bool next =
            code + 1 < nearest.values.size() && definition::next_is_nearer(x, nearest.values, code);
        return static_cast<std::uint32_t>(next ? code + 1 : code);
      }));
#ifdef KVCTS_CUDA_CONVERSIONS
  add_toolkit_sweeps(all, functions);
#endif

  const auto decode_by = [decode = functions.decode_e4m3](fp8_format format) {
    return [decode, format](std::uint64_t code) {
      return decode(static_cast<std::uint8_t>(code), format);
    };
  };
  all.push_back(decoder(
      "e2m1", 16,
      [decode = functions.decode_e2m1](std::uint64_t code) {
        return decode(static_cast<std::uint8_t>(code));
      },
      [values = definition::e2m1_magnitudes()](std::uint64_t code) {
        return value_of(values, code, 3);
      }));
  all.push_back(decoder("e4m3fn", 256, decode_by(fp8_format::e4m3fn),
                        [values = definition::e4m3fn_magnitudes()](std::uint64_t code) {
                          return value_of(values, code, 7);
                        }));
  all.push_back(decoder("e4m3fnuz", 256, decode_by(fp8_format::e4m3fnuz),
                        [values = definition::e4m3fnuz_magnitudes()](std::uint64_t code) {
                          return code == 0x80 ? std::numeric_limits<double>::quiet_NaN()
                                              : value_of(values, code, 7);
                        }));
  all.push_back(decoder(
      "ue8m0", 256,
      [decode = functions.decode_ue8m0](std::uint64_t code) {
        return decode(static_cast<std::uint8_t>(code));
      },
      [values = ue8m0_encoding().values](std::uint64_t code) {
        return value_of(values, code, 8);
      }));
  // NaN payloads stay.
  all.push_back(decoder(
      "bf16", 65536,
      [decode = functions.decode_bf16](std::uint64_t code) {
        const float x = decode(static_cast<std::uint16_t>(code));
        if (!std::isnan(x)) return x;
        return bits_of(x) == code << 16 ? float_of(canonical_nan_bits) : 0.0F;
      },
      [values = definition::bf16_magnitudes()](std::uint64_t code) {
        return value_of(values, code, 15);
      }));

  all.push_back(over_f32(
      "scale.ceil_log2", "the exponent of a scale against the rounded log2 of the C library",
      [rule = functions.ceil_log2](float x) { return bits_of(rule(x)); }, ceil_log2_by_library));
  all.push_back(over_f32(
      "scale.ceil_log2_exact", "the exact ceiling of log2 against frexp",
      [rule = functions.ceil_log2_exact](float x) { return bits_of(rule(x)); },
      ceil_log2_by_frexp));
  all.push_back(over_f32("scale.integer",
                         "the integer rule's byte against the least power of two that covers n",
                         functions.integer_scale, integer_scale_by_value));
  return all;
}

}  // namespace kvcts
