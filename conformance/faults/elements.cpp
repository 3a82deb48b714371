// Faults of elements: rounding, saturation, signs, NaN, formats.
#include <cmath>

#include "conformance/faults/parts.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e4m3.h"
#include "reference/numerics/arithmetic.h"

namespace kvcts::fault_parts {
namespace {

constexpr std::uint32_t magnitude_bits = 0x7FFFFFFF;
constexpr std::uint32_t infinity_bits = 0x7F800000;

bool is_finite(float x) { return (bits_of(x) & magnitude_bits) < infinity_bits; }
float by_bf16(float x) { return decode_bf16(encode_bf16(x)); }

// A tie has no bit set below the mantissa's last kept bits: one more ulp takes it away from zero.
float past_ties(float x, std::uint32_t below) {
  const std::uint32_t bits = bits_of(x);
  return is_finite(x) && (bits & magnitude_bits) != 0 && (bits & below) == 0 ? float_of(bits + 1)
                                                                             : x;
}
std::uint8_t e2m1_ties_away(float x) { return encode_e2m1(past_ties(x, 0x1FFFFF)); }
std::uint8_t e4m3_ties_away(float x, fp8_format f) { return encode_e4m3(past_ties(x, 0x7FFFF), f); }

// The code below where the nearest one is larger in magnitude.
std::uint8_t e2m1_truncated(float x) {
  const std::uint8_t code = encode_e2m1(x);
  const bool above = std::abs(decode_e2m1(code)) > std::abs(x);
  return static_cast<std::uint8_t>(above ? code - 1 : code);
}
std::uint8_t e4m3_truncated(float x, fp8_format f) {
  const std::uint8_t code = encode_e4m3(x, f);
  const bool above = std::abs(decode_e4m3(code, f)) > std::abs(x);
  const auto below = static_cast<std::uint8_t>(above ? code - 1 : code);
  return f == fp8_format::e4m3fnuz && below == 0x80 && above ? std::uint8_t{0} : below;
}

std::uint8_t e2m1_without_negative_zero(float x) {
  const std::uint8_t code = encode_e2m1(x);
  return code == 8 ? std::uint8_t{0} : code;
}
std::uint8_t e4m3_without_negative_zero(float x, fp8_format f) {
  const std::uint8_t code = encode_e4m3(x, f);
  return f == fp8_format::e4m3fn && code == 0x80 ? std::uint8_t{0} : code;
}

std::uint8_t e2m1_by_bf16(float x) { return encode_e2m1(by_bf16(x)); }
std::uint8_t e4m3_by_bf16(float x, fp8_format f) { return encode_e4m3(by_bf16(x), f); }

std::uint8_t e2m1_subnormals_flushed(float x) {
  const std::uint8_t code = encode_e2m1(x);
  return (code & 7) == 1 ? static_cast<std::uint8_t>(code & 8) : code;
}
std::uint8_t e4m3_subnormals_flushed(float x, fp8_format f) {
  const std::uint8_t code = encode_e4m3(x, f);
  if ((code & 0x7F) >= 8) return code;
  return f == fp8_format::e4m3fn ? static_cast<std::uint8_t>(code & 0x80)
                                 : static_cast<std::uint8_t>(code == 0x80 ? code : 0);
}

// The test for the largest exponent field where that for the largest code belongs.
std::uint8_t e4m3_saturates_early(float x, fp8_format f) {
  const std::uint8_t code = encode_e4m3(x, f);
  const std::uint8_t largest = f == fp8_format::e4m3fn ? 0x7E : 0x7F;
  const bool nan = f == fp8_format::e4m3fn ? (code & 0x7F) == 0x7F : code == 0x80;
  if (nan || (code & 0x7F) < 0x78) return code;
  return static_cast<std::uint8_t>((code & 0x80) | largest);
}

std::uint8_t e2m1_nan_is_zero(float x) { return std::isnan(x) ? std::uint8_t{0} : encode_e2m1(x); }
std::uint8_t e4m3_nan_is_largest(float x, fp8_format f) {
  return encode_e4m3(std::isnan(x) ? float_of(infinity_bits) : x, f);
}

// 0x7F and 0xFF taken as numbers, 480 and -480; FNUZ's NaN as -0.
float e4m3_nan_is_a_number(std::uint8_t code, fp8_format f) {
  if (f == fp8_format::e4m3fn && (code & 0x7F) == 0x7F) return (code & 0x80) != 0 ? -480.F : 480.F;
  if (f == fp8_format::e4m3fnuz && code == 0x80) return -0.0F;
  return decode_e4m3(code, f);
}
// Exponent field 0 read as a normal one.
float e4m3_subnormal_is_normal(std::uint8_t code, fp8_format f) {
  const int mantissa = code & 7;
  if ((code & 0x78) != 0 || mantissa == 0) return decode_e4m3(code, f);
  const float magnitude =
      std::ldexp(8.0F + static_cast<float>(mantissa), f == fp8_format::e4m3fn ? -10 : -11);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}
float e2m1_subnormal_is_normal(std::uint8_t code) {
  if ((code & 7) > 1) return rules_for(profile::nvidia).nvfp4_value(code);
  const float magnitude = (code & 7) == 0 ? 0.5F : 0.75F;
  return (code & 8) != 0 ? -magnitude : magnitude;
}

fp8_format other_table(fp8_format asked) {
  return asked == fp8_format::e4m3fn ? fp8_format::e4m3fnuz : fp8_format::e4m3fn;
}

float nan_clamped_low(float x, float limit) {
  return std::isnan(x) ? -limit : clamp_magnitude(x, limit);
}
float clamped_to_nan(float x, float limit) {
  return std::abs(x) > limit ? float_of(canonical_nan_bits) : clamp_magnitude(x, limit);
}
float clamped_to_largest_fnuz(float x, float limit) {
  return clamp_magnitude(x, limit == 224.0F ? 240.0F : limit);
}

std::uint16_t bf16_truncated(float x) {
  return std::isnan(x) ? encode_bf16(x) : static_cast<std::uint16_t>(bits_of(x) >> 16);
}
std::uint16_t bf16_ties_away(float x) {
  return std::isnan(x) ? encode_bf16(x) : static_cast<std::uint16_t>((bits_of(x) + 0x8000) >> 16);
}
std::uint16_t bf16_nan_quiet(float x) {
  return std::isnan(x) ? std::uint16_t{0x7FC0} : encode_bf16(x);
}
std::uint16_t bf16_subnormals_flushed(float x) {
  const std::uint16_t bits = encode_bf16(x);
  return (bits & 0x7F80) == 0 ? static_cast<std::uint16_t>(bits & 0x8000) : bits;
}

constexpr names e2m1_writers = {q_quant, key_mxfp4, prologue_mxfp4, query, key_rope, rope_insert};
constexpr names e4m3_writers = {key_fp8, prologue_mxfp4, prologue_fp8, insert,     query,
                                inverse, key_rope,       norm_quant,   rope_insert};
constexpr names fnuz_writers = {key_fp8, prologue_mxfp4, prologue_fp8, insert, query};
constexpr names clampers = {insert, inverse, key_rope, rope_insert};
// NaNs: every one that reaches the rounding was made by an operation, so it has no payload to keep.
constexpr names bf16_writers = {prologue_mxfp4, prologue_fp8, query,       inverse,
                                norm_quant,     compress,     rope_insert, gather};

}  // namespace

void add_elements(std::vector<fault>& to) {
  const std::vector<fault> part = {
      {"e2m1_ties_away", "FP4 ties go away from zero, not to the even code", e2m1_writers,
       [](Rules& r) { r.encode_e2m1 = e2m1_ties_away; }},
      {"e2m1_truncated", "FP4 codes are cut off, not rounded", e2m1_writers,
       [](Rules& r) { r.encode_e2m1 = e2m1_truncated; }},
      {"e2m1_negative_zero_lost", "FP4 -0 and what underflows to it become +0", e2m1_writers,
       [](Rules& r) { r.encode_e2m1 = e2m1_without_negative_zero; }},
      {"e2m1_subnormal_flushed", "FP4 codes of +-0.5 become zeros", e2m1_writers,
       [](Rules& r) { r.encode_e2m1 = e2m1_subnormals_flushed; }},
      {"e2m1_by_bf16",
       "values are rounded to bf16 before FP4: two roundings",
       {key_mxfp4, prologue_mxfp4, rope_insert},
       [](Rules& r) { r.encode_e2m1 = e2m1_by_bf16; }},
      {"e2m1_nan_is_zero", "a NaN becomes FP4 0, not 6", e2m1_writers,
       [](Rules& r) { r.encode_e2m1 = e2m1_nan_is_zero; }},
      {"e4m3_ties_away", "FP8 ties go away from zero, not to the even code", e4m3_writers,
       [](Rules& r) { r.encode_e4m3 = e4m3_ties_away; }},
      {"e4m3_truncated", "FP8 codes are cut off, not rounded", e4m3_writers,
       [](Rules& r) { r.encode_e4m3 = e4m3_truncated; }},
      {"e4m3_negative_zero_lost", "FP8 -0 and what underflows to it become +0", e4m3_writers,
       [](Rules& r) { r.encode_e4m3 = e4m3_without_negative_zero; }},
      {"e4m3_subnormal_flushed", "FP8 subnormals become zeros", e4m3_writers,
       [](Rules& r) { r.encode_e4m3 = e4m3_subnormals_flushed; }},
      {"e4m3_saturates_early", "FP8 values of the largest exponent all become the largest code",
       e4m3_writers, [](Rules& r) { r.encode_e4m3 = e4m3_saturates_early; }},
      {"e4m3_by_bf16",
       "values are rounded to bf16 before FP8: two roundings",
       {key_fp8, prologue_mxfp4, prologue_fp8, inverse, rope_insert},
       [](Rules& r) { r.encode_e4m3 = e4m3_by_bf16; }},
      {"e4m3_nan_is_largest",
       "a NaN becomes the largest FP8 number, not NaN",
       {key_fp8, prologue_mxfp4, prologue_fp8, query, norm_quant},
       [](Rules& r) { r.encode_e4m3 = e4m3_nan_is_largest; }},
      {"e4m3_other_table", "OCP and FNUZ codes are swapped on writing", fnuz_writers,
       [](Rules& r) { r.cache_format = other_table; }},
      {"fnuz_ignored", "OCP codes are written where FNUZ is asked for", fnuz_writers,
       [](Rules& r) { r.cache_format = [](fp8_format) { return fp8_format::e4m3fn; }; }},
      {"e4m3_other_table_read",
       "OCP and FNUZ codes are swapped on reading",
       {gather},
       [](Rules& r) { r.read_format = other_table; }},
      {"e4m3_nan_read_as_number",
       "the NaN codes of FP8 are read as +-480, as -0 in FNUZ",
       {gather},
       [](Rules& r) { r.decode_e4m3 = e4m3_nan_is_a_number; }},
      {"e4m3_subnormal_read_as_normal",
       "FP8 exponent field 0 is read as a normal one",
       {gather, rope_insert},
       [](Rules& r) { r.decode_e4m3 = e4m3_subnormal_is_normal; }},
      {"e2m1_subnormal_read_as_normal",
       "FP4 exponent field 0 is read as a normal one",
       {gather},
       [](Rules& r) { r.nvfp4_value = e2m1_subnormal_is_normal; }},
      {"e2m1_negative_zero_read",
       "FP4 code 8 is read as -0, not as +0",
       {gather},
       [](Rules& r) { r.nvfp4_value = decode_e2m1; }},
      {"clamp_missing", "values are not clamped before the FP8 encode, so that a NaN stays one",
       clampers, [](Rules& r) { r.clamp_before_encode = [](float x, float) { return x; }; }},
      {"clamp_nan_low", "the clamp turns a NaN to the lowest number, not the highest", clampers,
       [](Rules& r) { r.clamp_before_encode = nan_clamped_low; }},
      {"clamp_to_nan",
       "values past the largest FP8 number become NaN",
       {rope_insert},
       [](Rules& r) { r.clamp_before_encode = clamped_to_nan; }},
      {"fnuz_clamp_at_240",
       "FNUZ is clamped at its largest number, 240, not at the limit 224",
       {insert},
       [](Rules& r) { r.clamp_before_encode = clamped_to_largest_fnuz; }},
      {"bf16_truncated", "bf16 results are cut off, not rounded", bf16_writers,
       [](Rules& r) { r.round_bf16 = bf16_truncated; }},
      {"bf16_ties_away", "bf16 ties go away from zero, not to even", bf16_writers,
       [](Rules& r) { r.round_bf16 = bf16_ties_away; }},
      {"bf16_nan_quiet", "a bf16 NaN is 0x7FC0, not 0x7FFF", bf16_writers,
       [](Rules& r) { r.round_bf16 = bf16_nan_quiet; }},
      {"bf16_subnormal_flushed", "bf16 subnormal results become zeros", bf16_writers,
       [](Rules& r) { r.round_bf16 = bf16_subnormals_flushed; }},
  };
  to.insert(to.end(), part.begin(), part.end());
}

}  // namespace kvcts::fault_parts
