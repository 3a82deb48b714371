// Faults of scales: amax, floor, quotient, exponent, the bytes that hold them.
#include <algorithm>
#include <cmath>

#include "conformance/faults/parts.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/ue8m0.h"
#include "reference/numerics/arithmetic.h"
#include "reference/numerics/log2.h"

namespace kvcts::fault_parts {
namespace {

const float infinity = float_of(0x7F800000);

bool is_normal(float x) { return x >= 0x1p-126F && x < infinity; }
int field_of(float x) { return static_cast<int>(bits_of(x) >> 23) - 127; }
std::uint32_t mantissa_of(float x) { return bits_of(x) & 0x7FFFFF; }

float exponent_floored(float q) {
  return is_normal(q) ? static_cast<float>(field_of(q)) : ceil_log2(q);
}
// Up from 2^0.5, where log2 rounds up.
float exponent_nearest(float q) {
  if (!is_normal(q)) return ceil_log2(q);
  return static_cast<float>(field_of(q) + (mantissa_of(q) >= 0x3504F4 ? 1 : 0));
}
float exponent_of_fast_log2(float q) {
  const bool high = is_normal(q) && q < 1 && mantissa_of(q) == 0;
  return high ? static_cast<float>(field_of(q) + 1) : ceil_log2(q);
}
float exponent_of_frexp(float q) {
  return is_normal(q) ? static_cast<float>(field_of(q) + 1) : ceil_log2(q);
}

float nan_kept(float so_far, float x) {
  return std::isnan(so_far) || std::isnan(x) ? float_of(canonical_nan_bits) : max(so_far, abs(x));
}

float floored_after_division(const Rules& rules, float amax, float limit, quotient as_written) {
  return max(rules_for(rules.name == "ieee" ? profile::ieee : profile::nvidia)
                 .scale_quotient(rules, amax, limit, as_written),
             float_of(0x38D1B717));
}
float quotient_by_other_limit(const Rules& rules, float amax, float limit, quotient as_written) {
  return rules_for(profile::nvidia)
      .scale_quotient(rules, amax, limit == 224.0F ? 240.0F : limit, as_written);
}
float quotient_divided(const Rules& rules, float amax, float limit, quotient /*as_written*/) {
  return rules.true_div(amax, limit);
}
float quotient_multiplied(const Rules& /*rules*/, float amax, float limit,
                          quotient /*as_written*/) {
  return mul(amax, true_div(1.0F, limit));
}

std::uint8_t byte_one_high(float exponent) {
  return static_cast<std::uint8_t>(min(max(add(exponent, 128.0F), 0.0F), 255.0F));
}

std::uint8_t integer_scale_floored(float n) {
  const std::uint8_t right = rules_for(profile::nvidia).integer_scale(n);
  return is_normal(n) ? static_cast<std::uint8_t>(bits_of(n) >> 23) : right;
}
std::uint8_t integer_scale_of_frexp(float n) {
  const std::uint8_t right = rules_for(profile::nvidia).integer_scale(n);
  return is_normal(n) ? static_cast<std::uint8_t>(std::min((bits_of(n) >> 23) + 1, 254U)) : right;
}
std::uint8_t integer_scale_nan_zero(float n) {
  return std::isnan(n) ? std::uint8_t{0} : rules_for(profile::nvidia).integer_scale(n);
}
float multiplier_of_any_byte(std::uint8_t scale) { return std::ldexp(1.0F, 127 - scale); }

std::uint8_t nvfp4_scale_truncated(const Rules& r, float amax) {
  const std::uint8_t code = rules_for(profile::nvidia).nvfp4_scale(r, amax);
  const float t = r.scale_quotient(r, amax, 6.0F, quotient::mul);
  return code > 1 && decode_e4m3fn(code) > t ? static_cast<std::uint8_t>(code - 1) : code;
}
std::uint8_t nvfp4_scale_ties_away(const Rules& r, float amax) {
  const float t = min(max(r.scale_quotient(r, amax, 6.0F, quotient::mul), 0x1p-9F), 448.0F);
  const std::uint32_t bits = bits_of(t);
  return encode_e4m3fn((bits & 0x7FFFF) == 0 && t < 448.0F ? float_of(bits + 1) : t);
}
std::uint8_t nvfp4_scale_unfloored(const Rules& r, float amax) {
  return encode_e4m3fn(min(r.scale_quotient(r, amax, 6.0F, quotient::mul), 448.0F));
}
std::uint8_t nvfp4_scale_power(const Rules& r, float amax) {
  const float t = min(max(r.scale_quotient(r, amax, 6.0F, quotient::mul), 0x1p-9F), 448.0F);
  return encode_e4m3fn(min(r.exp2_int(ceil_log2_exact(t)), 256.0F));
}

std::uint32_t big_endian(const std::uint8_t b[4]) {
  return static_cast<std::uint32_t>(b[0]) << 24 | static_cast<std::uint32_t>(b[1]) << 16 |
         static_cast<std::uint32_t>(b[2]) << 8 | b[3];
}

float scale_of_zero_byte(std::uint8_t byte, profile p) {
  // What the other profile makes of byte 0, and only of it.
  return rules_for(byte == 0 ? (p == profile::nvidia ? profile::ieee : profile::nvidia) : p)
      .scale_of_byte(byte);
}
float zero_byte_kept(std::uint8_t byte) { return scale_of_zero_byte(byte, profile::nvidia); }
float zero_byte_flushed(std::uint8_t byte) { return scale_of_zero_byte(byte, profile::ieee); }
float last_byte_is_nan(std::uint8_t byte) {
  return byte == 255 ? decode_ue8m0(byte) : rules_for(profile::nvidia).scale_of_byte(byte);
}
float last_byte_is_infinite(std::uint8_t byte) {
  return byte == 255 ? infinity : decode_ue8m0(byte);
}

float tile_scale_unfloored(const Rules& r, float amax, float limit, tile_rule rule) {
  const float ratio = r.scale_quotient(r, amax, limit, quotient::mul);
  return rule == tile_rule::amax ? ratio : r.exp2_int(r.scale_exponent(ratio));
}
float tile_scale_amax(const Rules& r, float amax, float limit, tile_rule /*rule*/) {
  return rules_for(profile::nvidia).tile_scale(r, amax, limit, tile_rule::amax);
}
float tile_scale_pow2(const Rules& r, float amax, float limit, tile_rule /*rule*/) {
  return rules_for(profile::nvidia).tile_scale(r, amax, limit, tile_rule::pow2);
}

constexpr names ceil_users = {q_quant, key_mxfp4, prologue_mxfp4, key_fp8,  prologue_fp8,
                              insert,  query,     inverse,        key_rope, rope_insert};
constexpr names amax_users = {q_quant, key_mxfp4, prologue_mxfp4, key_fp8,     prologue_fp8, insert,
                              query,   inverse,   key_rope,       rope_insert, norm_quant};
// How the quotient is taken, and the window of ceil_log2, show only where amax is an f32: for each
// bf16 amax, 6, 448 and 224, all ways (and both profiles' divisions) give the same exponent, as an
// enumeration of the 32,640 of them shows. Of f32 amax, amax * RN(1/limit) and the approximate
// amax/limit have one exponent, for each of the 2,130,706,432 normal ones and 6, 224 and 448. So
// the approximate division is quotient_multiplied, where the quotient is all that is divided; in
// key_mxfp4 it is division_approximate, where the profile is ieee.
constexpr names f32_amax_users = {key_mxfp4,    prologue_mxfp4, key_fp8,
                                  prologue_fp8, inverse,        rope_insert};
constexpr names byte_writers = {q_quant, key_mxfp4, prologue_mxfp4, query,
                                insert,  key_rope,  rope_insert};
constexpr names prologues = {prologue_mxfp4, prologue_fp8};

}  // namespace

void add_scales(std::vector<fault>& to) {
  const std::vector<fault> part = {
      {"amax_signed", "amax is the largest element, not the largest magnitude", amax_users,
       [](Rules& r) { r.amax = [](float so_far, float x) { return max(so_far, x); }; }},
      {"amax_keeps_nan", "a NaN makes the whole block's amax NaN", amax_users,
       [](Rules& r) { r.amax = nan_kept; }},
      {"amax_floor_missing", "amax has no floor: a block of zeros has no scale", ceil_users,
       [](Rules& r) { r.floor_amax = [](float amax, float) { return amax; }; }},
      {"amax_floor_added", "the floor is added to amax, not a lower bound", ceil_users,
       [](Rules& r) { r.floor_amax = [](float amax, float floor) { return add(amax, floor); }; }},
      {"floor_after_division", "the quotient amax/limit is floored at 1e-4 instead of amax",
       ceil_users, [](Rules& r) { r.scale_quotient = floored_after_division; }},
      {"fnuz_scale_limit_240",
       "FNUZ scales come from 240, not from 224",
       {key_fp8, prologue_mxfp4, prologue_fp8, insert, query},
       [](Rules& r) { r.scale_quotient = quotient_by_other_limit; }},
      {"quotient_divided",
       "amax is divided by the limit where the rule multiplies by its inverse",
       {prologue_mxfp4, prologue_fp8, inverse, rope_insert},
       [](Rules& r) { r.scale_quotient = quotient_divided; }},
      {"quotient_multiplied",
       "amax is multiplied by 1/limit, or divided approximately, where the rule divides exactly",
       {key_fp8, prologue_fp8},
       [](Rules& r) { r.scale_quotient = quotient_multiplied; }},
      {"mxfp4_quotient_multiplied",
       "amax is multiplied by 1/6 where the rule divides",
       {prologue_mxfp4},
       [](Rules& r) { r.scale_quotient = quotient_multiplied; },
       profile::ieee},
      {"scale_floored", "the scale exponent is floor(log2), not ceil", ceil_users,
       [](Rules& r) { r.scale_exponent = exponent_floored; }},
      {"scale_nearest", "the scale exponent is log2 rounded to nearest, not up", ceil_users,
       [](Rules& r) { r.scale_exponent = exponent_nearest; }},
      {"scale_fast_log2", "a fast log2: one too high at exact powers of two below 1", ceil_users,
       [](Rules& r) { r.scale_exponent = exponent_of_fast_log2; }},
      {"scale_frexp", "the exponent as frexp gives it: one too high at every power of two",
       ceil_users, [](Rules& r) { r.scale_exponent = exponent_of_frexp; }},
      {"scale_from_bits", "exponent field + 1 for any mantissa: no window above powers of two",
       f32_amax_users, [](Rules& r) { r.scale_exponent = ceil_log2_exact; }},
      {"scale_byte_high", "scale bytes are biased by 128, not by 127", byte_writers,
       [](Rules& r) { r.exponent_byte = byte_one_high; }},
      {"scale_limit_missing",
       "the scale exponent of an infinite amax is not limited to 127",
       {q_quant, key_mxfp4, prologue_mxfp4, query, key_rope},
       [](Rules& r) { r.limit_exponent = [](float e, float, float) { return e; }; }},
      {"scales_big_endian",
       "the first scale is in the highest byte of a word",
       {q_quant, inverse},
       [](Rules& r) { r.pack_scales = big_endian; }},
      {"integer_scale_floored",
       "the exponent field alone: not rounded up for a mantissa",
       {norm_quant},
       [](Rules& r) { r.integer_scale = integer_scale_floored; }},
      {"integer_scale_high",
       "exponent field + 1 at exact powers of two too",
       {norm_quant},
       [](Rules& r) { r.integer_scale = integer_scale_of_frexp; }},
      {"integer_scale_nan_zero",
       "a block of NaN takes scale byte 0, not 254",
       {norm_quant},
       [](Rules& r) { r.integer_scale = integer_scale_nan_zero; }},
      {"multiplier_of_extremes",
       "blocks of scale byte 0 or 254 are scaled, not zeroed",
       {norm_quant},
       [](Rules& r) { r.integer_multiplier = multiplier_of_any_byte; }},
      {"nvfp4_scale_truncated",
       "E4M3 block scales are cut off, not rounded",
       {rope_insert},
       [](Rules& r) { r.nvfp4_scale = nvfp4_scale_truncated; }},
      {"nvfp4_scale_ties_away",
       "E4M3 block scales: ties go up",
       {rope_insert},
       [](Rules& r) { r.nvfp4_scale = nvfp4_scale_ties_away; }},
      {"nvfp4_scale_unfloored",
       "E4M3 block scales have no smallest value 2^-9: they reach zero",
       {rope_insert},
       [](Rules& r) { r.nvfp4_scale = nvfp4_scale_unfloored; }},
      {"nvfp4_scale_power_of_two",
       "block scales are rounded up to powers of two",
       {rope_insert},
       [](Rules& r) { r.nvfp4_scale = nvfp4_scale_power; }},
      {"scale_byte_zero_kept",
       "scale byte 0 is read as 2^-127, not as 0",
       {gather},
       [](Rules& r) { r.scale_of_byte = zero_byte_kept; },
       profile::nvidia},
      {"scale_byte_zero_flushed",
       "scale byte 0 is read as 0, not as 2^-127",
       {gather},
       [](Rules& r) { r.scale_of_byte = zero_byte_flushed; },
       profile::ieee},
      {"scale_byte_255_nan",
       "scale byte 255 is read as NaN, not as infinity",
       {gather},
       [](Rules& r) { r.scale_of_byte = last_byte_is_nan; },
       profile::nvidia},
      {"scale_byte_255_infinite",
       "scale byte 255 is read as infinity, not as NaN",
       {gather},
       [](Rules& r) { r.scale_of_byte = last_byte_is_infinite; },
       profile::ieee},
      {"tile_scale_unfloored", "MLA tile scales have no floor: a tile of zeros has scale 0",
       prologues, [](Rules& r) { r.tile_scale = tile_scale_unfloored; }},
      {"tile_scale_not_a_power", "MLA tile scales stay amax/448 where powers of two are asked for",
       prologues, [](Rules& r) { r.tile_scale = tile_scale_amax; }},
      {"tile_scale_power", "MLA tile scales are powers of two where amax/448 is asked for",
       prologues, [](Rules& r) { r.tile_scale = tile_scale_pow2; }},
  };
  to.insert(to.end(), part.begin(), part.end());
}

}  // namespace kvcts::fault_parts
