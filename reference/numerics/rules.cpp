#include "reference/numerics/rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/ue8m0.h"
#include "reference/layout/paged.h"
#include "reference/numerics/arithmetic.h"
#include "reference/numerics/ieee.h"
#include "reference/numerics/log2.h"
#include "reference/numerics/mufu.h"

namespace kvcts {
namespace {

// 2^n, exact: n is integral or infinite; below 2^-149 zero.
float power_of_two(float n) {
  if (std::isnan(n)) {
    return float_of(canonical_nan_bits);
  }
  if (n >= 128) {
    return std::numeric_limits<float>::infinity();
  }
  if (n < -149) {
    return 0.0f;
  }
  return std::ldexp(1.0f, static_cast<int>(n));
}

float power_of_two_flushed(float n) { return n < -126 ? 0.0f : power_of_two(n); }

float byte_scale_nvidia(std::uint8_t byte) {
  if (byte == 0) {
    return 0.0f;
  }
  if (byte == 255) {
    return std::numeric_limits<float>::infinity();
  }
  return decode_ue8m0(byte);
}

float floor_amax(float amax, float floor) { return max(amax, floor); }

float scale_quotient(const Rules& rules, float amax, float limit, quotient as_written) {
  switch (as_written) {
    case quotient::div:
      return rules.div(amax, limit);
    case quotient::mul:
      return mul(amax, true_div(1.0f, limit));  // the source's rounded constant
    case quotient::true_div:
      return rules.true_div(amax, limit);
  }
  return float_of(canonical_nan_bits);
}

float limit_exponent(float exponent, float lowest, float highest) {
  return min(max(exponent, lowest), highest);
}

std::uint8_t exponent_byte(float exponent) {
  return static_cast<std::uint8_t>(limit_exponent(add(exponent, 127.0f), 0.0f, 255.0f));
}

fp8_format cache_format(fp8_format asked) { return asked; }

// The first block's byte lowest.
std::uint32_t pack_scales(const std::uint8_t bytes[4]) {
  return static_cast<std::uint32_t>(bytes[0]) | static_cast<std::uint32_t>(bytes[1]) << 8 |
         static_cast<std::uint32_t>(bytes[2]) << 16 | static_cast<std::uint32_t>(bytes[3]) << 24;
}

bool slot_is_live(std::int64_t slot) { return slot >= 0; }

std::int64_t page_of(std::int64_t slot, std::int64_t block_size, std::int64_t /*pages*/) {
  return slot / block_size;
}

std::int64_t page_offset(std::int64_t page, std::int64_t block_stride, std::int64_t /*block_size*/,
                         std::int64_t /*record_bytes*/) {
  return page * block_stride;
}

// The data of all the page's tokens, then their scales.
std::int64_t data_offset(std::int64_t position, std::int64_t index, std::int64_t /*block_size*/,
                         std::int64_t data_bytes, std::int64_t /*scale_bytes*/) {
  return position * data_bytes + index;
}
std::int64_t scale_offset(std::int64_t position, std::int64_t index, std::int64_t block_size,
                          std::int64_t data_bytes, std::int64_t scale_bytes) {
  return block_size * data_bytes + position * scale_bytes + index;
}

// One rounding; 1/n itself is rounded where it is inexact.
float variance_nvidia(float sum_of_squares, std::int64_t n, float eps) {
  return fma(sum_of_squares, true_div(1.0f, static_cast<float>(n)), eps);
}

float variance_ieee(float sum_of_squares, std::int64_t n, float eps) {
  const bool inverse_is_exact = (n & (n - 1)) == 0;
  if (inverse_is_exact) {
    return variance_nvidia(sum_of_squares, n, eps);
  }
  return add(true_div(sum_of_squares, static_cast<float>(n)), eps);
}

float scale_and_shift(float normalized, float weight, float bias) {
  return fma(normalized, weight, bias);
}

float scale_row(float x, float r, float weight) { return mul(mul(x, r), weight); }

float amax(float so_far, float x) { return max(so_far, abs(x)); }

// t = amax/6 limited to [2^-9, 448]; a NaN becomes 2^-9.
std::uint8_t nvfp4_scale(const Rules& rules, float block_amax) {
  const float t = rules.scale_quotient(rules, block_amax, 6.0f, quotient::mul);
  const float limited = min(max(t, 0x1p-9f), 448.0f);
  return rules.encode_e4m3(limited, fp8_format::e4m3fn);
}

// Negative codes are 0 - magnitude: code 8 is +0.
float nvfp4_value(std::uint8_t code) {
  const float magnitude = decode_e2m1(code & 0x7u);
  return (code & 0x8u) != 0 ? sub(0.0f, magnitude) : magnitude;
}

// The exponent field of n, one more for any mantissa.
std::uint8_t integer_scale(float n) {
  if (std::isnan(n)) {
    return 254;
  }
  if (n <= 0x1p-127f) {
    return 0;
  }
  const std::uint32_t bits = bits_of(n);
  const std::uint32_t field = bits >> 23;
  const bool above = (bits & 0x7FFFFF) != 0;
  return static_cast<std::uint8_t>(std::min(above ? field + 1 : field, 254u));
}

float integer_multiplier(std::uint8_t scale) {
  if (scale == 0 || scale >= 254) {
    return 0.0f;
  }
  return float_of((254u - scale) << 23);
}

float tile_scale(const Rules& rules, float tile_amax, float limit, tile_rule rule) {
  const float ratio = rules.scale_quotient(rules, tile_amax, limit, quotient::mul);
  if (rule == tile_rule::amax) {
    return rules.floor_amax(ratio, 0x1p-126f);
  }
  const float floored = rules.floor_amax(ratio, float_of(0x38D1B717));  // 1e-4
  return rules.exp2_int(rules.scale_exponent(floored));
}

float rope_even(float even, float odd, float c, float s) { return fma(even, c, -mul(odd, s)); }
float rope_odd(float even, float odd, float c, float s) { return fma(odd, c, mul(even, s)); }
float rope_odd_query(float even, float odd, float c, float s) { return fma(even, s, mul(odd, c)); }
float inverse_rope_even(float even, float odd, float c, float s) {
  return fma(even, c, mul(odd, s));
}
float inverse_rope_odd(float even, float odd, float c, float s) {
  return fma(odd, c, -mul(even, s));
}

std::int64_t first_rope_dim(std::int64_t dims, std::int64_t rope_dims) { return dims - rope_dims; }
rope_pair interleaved_pair(std::int64_t pair, std::int64_t /*rope_dims*/) {
  return {2 * pair, 2 * pair + 1};
}
std::int64_t rope_position(std::int64_t position, std::int64_t ratio) {
  return position / ratio * ratio;
}

float through_bf16(float x) { return decode_bf16(encode_bf16(x)); }
float kept_f32(float x) { return x; }

std::int64_t topk_columns_filled(std::int64_t columns) { return columns; }
bool topk_row_filled(std::int64_t /*slot*/) { return true; }

bool index_is_live(std::int64_t index) { return index >= 0; }

std::int64_t window_start(std::int64_t position, std::int64_t window, std::int64_t lowest) {
  return std::max(position - window + 1, lowest);
}

std::int64_t gathered_base(std::int64_t request, std::int64_t rows) { return request * rows; }

std::int64_t first_gathered(std::int64_t seq_len, std::int64_t gather_len) {
  return seq_len - gather_len;
}

std::int64_t topk_length(std::int64_t position, std::int64_t ratio, std::int64_t topk) {
  return ratio > 0 ? std::min((position + 1) / ratio, topk) : 0;
}

std::int64_t remap_index(std::int64_t index, std::int64_t block_size, std::int64_t span) {
  return index < 0 ? -1 : index / block_size * span + index % block_size;
}

// Ends of groups are the positions ratio-1, 2*ratio-1, ...
bool group_ends_at(std::int64_t position, std::int64_t ratio) {
  return position % ratio == ratio - 1;
}

std::int64_t first_kept_token(std::int64_t start, std::int64_t end, std::int64_t capacity) {
  return std::max(start, end - capacity);
}

float pool_pair(float p0, float kv0, float p1, float kv1) { return fma(p0, kv0, mul(p1, kv1)); }

std::int64_t scale_place(std::int64_t k, std::int64_t token, std::int64_t /*inner*/,
                         std::int64_t padded) {
  return k * padded + token;
}

std::int64_t interleaved_row(std::int64_t head, std::int64_t dim, std::int64_t heads,
                             std::int64_t /*dims*/, std::int64_t chunk) {
  return (dim / chunk * heads + head) * chunk + dim % chunk;
}

// [B/16, D/16, 16 tokens, 16 bytes].
std::int64_t tiled_offset(std::int64_t position, std::int64_t dim, std::int64_t dims) {
  return position / 16 * 16 * dims + dim / 16 * 256 + position % 16 * 16 + dim % 16;
}

Rules nvidia_rules() {
  Rules rules;
  rules.name = name_of(profile::nvidia);

  rules.rsqrt = rsqrt_approx_ftz;
  rules.div = div_full;
  rules.true_div = true_div;
  rules.exp = exp_approx;
  rules.exp2_int = power_of_two_flushed;
  rules.scale_of_byte = byte_scale_nvidia;

  rules.floor_amax = floor_amax;
  rules.scale_quotient = scale_quotient;
  rules.scale_exponent = ceil_log2;
  rules.limit_exponent = limit_exponent;
  rules.exponent_byte = exponent_byte;

  rules.encode_e2m1 = encode_e2m1;
  rules.encode_e4m3 = encode_e4m3;
  rules.decode_e4m3 = decode_e4m3;
  rules.clamp_before_encode = clamp_magnitude;
  rules.round_bf16 = encode_bf16;
  rules.cache_format = cache_format;
  rules.read_format = cache_format;

  rules.pack_nibbles = pack_e2m1;
  rules.pack_scales = pack_scales;
  rules.slot_is_live = slot_is_live;
  rules.page_of = page_of;
  rules.page_offset = page_offset;
  rules.data_offset = data_offset;
  rules.scale_offset = scale_offset;

  rules.tree = tree_of;
  rules.sum = tree_sum;
  rules.sum_of_squares = tree_sum_of_squares;
  rules.variance = variance_nvidia;
  rules.scale_and_shift = scale_and_shift;
  rules.scale_row = scale_row;
  rules.norm_parameter = kept_f32;

  rules.amax = amax;
  rules.nvfp4_scale = nvfp4_scale;
  rules.nvfp4_value = nvfp4_value;
  rules.integer_scale = integer_scale;
  rules.integer_multiplier = integer_multiplier;
  rules.fold_weight = mul;
  rules.tile_scale = tile_scale;

  rules.rope_even = rope_even;
  rules.rope_odd = rope_odd;
  rules.rope_odd_query = rope_odd_query;
  rules.inverse_rope_even = inverse_rope_even;
  rules.inverse_rope_odd = inverse_rope_odd;
  rules.first_rope_dim = first_rope_dim;
  rules.rope_pair_of = interleaved_pair;
  rules.rope_position = rope_position;
  rules.through_bf16 = through_bf16;
  rules.kept_f32 = kept_f32;

  rules.index_is_live = index_is_live;
  rules.window_start = window_start;
  rules.gathered_base = gathered_base;
  rules.first_gathered = first_gathered;
  rules.topk_columns_filled = topk_columns_filled;
  rules.topk_row_filled = topk_row_filled;
  rules.remap_index = remap_index;
  rules.topk_length = topk_length;

  rules.group_ends_at = group_ends_at;
  rules.first_kept_token = first_kept_token;
  rules.softmax_shift = max;
  rules.shifted_score = sub;
  rules.pool_pair = pool_pair;
  rules.swizzled_offset = swizzled_offset;
  rules.tiled_offset = tiled_offset;
  rules.scale_place = scale_place;
  rules.interleaved_row = interleaved_row;
  return rules;
}

}  // namespace

std::string_view name_of(profile p) { return p == profile::nvidia ? "nvidia" : "ieee"; }

Rules rules_for(profile p) {
  Rules rules = nvidia_rules();
  if (p == profile::ieee) {
    rules.name = name_of(profile::ieee);
    rules.rsqrt = rsqrt_rn;
    rules.div = true_div;
    rules.exp = exp_rn;
    rules.variance = variance_ieee;
    rules.exp2_int = power_of_two;
    rules.scale_of_byte = decode_ue8m0;
  }
  return rules;
}

}  // namespace kvcts
