#include "reference/kernels/rope_quant_insert.h"

#include <vector>

#include "reference/kernels/cos_sin.h"
#include "reference/kernels/fp8_block.h"
#include "reference/kernels/group_rows.h"
#include "reference/kernels/norm.h"
#include "reference/kernels/page_access.h"
#include "reference/numerics/rope.h"

namespace kvcts {
namespace {

constexpr std::int64_t head_dim = 512;
constexpr std::int64_t rope_dim = 64;
constexpr std::int64_t nope_dim = head_dim - rope_dim;
constexpr std::int64_t dims_per_nvfp4_scale = 16;
constexpr fp8_format format = fp8_format::e4m3fn;  // readers of this cache know no other
const fp8_form block_form = {float_of(0x38D1B717) /* 1e-4 */, quotient::mul, fp8_scaling::multiply,
                             true};

using row = std::vector<float>;

// Dims [0, dims) as E4M3 with a UE8M0 scale for each `dims_per_scale`.
void store_fp8_blocks(const Rules& rules, const row& x, std::int64_t dims,
                      std::int64_t dims_per_scale, const token_record& record) {
  std::uint8_t codes[64];
  for (std::int64_t first = 0; first < dims; first += dims_per_scale) {
    const float exponent =
        quantize_fp8_block(rules, block_form, x.data() + first, dims_per_scale, format, codes);
    for (std::int64_t i = 0; i < dims_per_scale; ++i) {
      record.set_data(first + i, std::byte{codes[i]});
    }
    const float limited = rules.limit_exponent(exponent, -127.0F, 128.0F);  // byte 0..255
    record.set_scale(first / dims_per_scale, std::byte{rules.exponent_byte(limited)});
  }
}

// The scales are those of the row before its rotation, which only the bf16 tail shows.
void store_v4(const Rules& rules, const row& loaded, const row& rotated,
              const token_record& record) {
  store_fp8_blocks(rules, loaded, nope_dim, 64, record);
  if (rules.write_pad_byte) record.set_scale(nope_dim / 64, std::byte{0});
  for (std::int64_t i = 0; i < rope_dim; ++i) {
    const std::uint16_t bits = rules.round_bf16(rotated[static_cast<std::size_t>(nope_dim + i)]);
    record.set_data(nope_dim + 2 * i, static_cast<std::byte>(bits & 0xFF));
    record.set_data(nope_dim + 2 * i + 1, static_cast<std::byte>(bits >> 8));
  }
}

void store_nvfp4(const Rules& rules, const row& x, const token_record& record) {
  for (std::int64_t first = 0; first < head_dim; first += dims_per_nvfp4_scale) {
    const float* block = x.data() + first;
    const float amax = block_amax(rules, block, dims_per_nvfp4_scale);
    const std::uint8_t scale = rules.nvfp4_scale(rules, amax);
    const float divisor = rules.decode_e4m3(scale, format);
    for (std::int64_t i = 0; i < dims_per_nvfp4_scale; i += 2) {
      const std::uint8_t even = rules.encode_e2m1(rules.true_div(block[i], divisor));
      const std::uint8_t odd = rules.encode_e2m1(rules.true_div(block[i + 1], divisor));
      record.set_data((first + i) / 2, std::byte{rules.pack_nibbles(even, odd)});
    }
    record.set_scale(first / dims_per_nvfp4_scale, std::byte{scale});
  }
}

// Element 0 of a slot's plain row; null outside the buffer, where only a fault goes.
std::byte* plain_row(const Rules& rules, const tensor_view& cache, std::int64_t slot) {
  const auto element = static_cast<std::int64_t>(size_of(cache.type));
  const std::int64_t block_size = cache.dim(1);
  const std::int64_t page = rules.page_of(slot, block_size, cache.dim(0));
  const std::int64_t at = page_start(cache, rules, page, block_size, head_dim * element) +
                          position_of(slot, block_size) * cache.stride(1) * element;
  const std::int64_t end = at + head_dim * element;
  if (at < 0 || static_cast<std::uint64_t>(end) > cache.storage_bytes) return nullptr;
  return cache.storage + at;
}

void store_plain_bf16(const Rules& rules, const row& x, std::byte* to) {
  for (const float value : x) {
    store(to, rules.round_bf16(value));
    to += 2;
  }
}

void store_plain_fp8(const Rules& rules, const row& x, float inverse_scale, std::byte* to) {
  const float limit = fp8_limit(format);
  for (const float value : x) {
    const float scaled = mul(rules.through_bf16(value), inverse_scale);
    *to++ = std::byte{rules.encode_e4m3(rules.clamp_before_encode(scaled, limit), format)};
  }
}

}  // namespace

void rope_quant_insert(const call& c, const Rules& rules) {
  const tensor_view& latent = c.tensor("latent");        // [N, 512] bf16
  const tensor_view& positions = c.tensor("positions");  // [P] i64
  const tensor_view& table = c.tensor("cos_sin_cache");  // [max_pos, 64] f32 or bf16
  const tensor_view& cache = c.tensor("kv_cache");       // [blocks, B, record]
  const tensor_view& slots = c.tensor("slot_mapping");   // [S] i64
  const std::int64_t ratio = c.integer("compress_ratio");
  const std::string& record = c.text("record");
  const std::int64_t block_size = cache.dim(1);

  for (const group_row& at : rows_at_group_ends(rules, slots, positions, latent.dim(0), ratio)) {
    const row loaded = read_row(latent, at.row);
    row x = loaded;
    pass_through(rules, rope_form::store, x.data(), head_dim, rope_dim);
    const row cos_sin = cos_sin_row(table, rules.rope_position(at.position, ratio));
    rotate(rules, rope_form::store, x.data(), head_dim, cos_sin.data(), rope_dim);

    if (record == "bf16" || record == "fp8") {
      std::byte* to = plain_row(rules, cache, at.slot);
      if (to == nullptr) continue;
      if (record == "bf16") {
        store_plain_bf16(rules, x, to);
      } else {
        const auto scale = load<float>(c.tensor("fp8_scale").element(0));
        store_plain_fp8(rules, x, rules.div(1.0F, scale), to);
      }
    } else if (record == "v4") {
      const record_size size = {block_size, nope_dim + 2 * rope_dim, 8};
      store_v4(rules, loaded, x, record_of_slot(cache, rules, size, at.slot));
    } else if (record == "v41_mxfp8") {
      const record_size size = {block_size, head_dim, head_dim / 32};
      for (float& value : x) value = rules.kept_f32(value);
      store_fp8_blocks(rules, x, head_dim, 32, record_of_slot(cache, rules, size, at.slot));
    } else {
      const record_size size = {block_size, head_dim / 2, head_dim / dims_per_nvfp4_scale};
      for (float& value : x) value = rules.kept_f32(value);
      store_nvfp4(rules, x, record_of_slot(cache, rules, size, at.slot));
    }
  }
}

}  // namespace kvcts
