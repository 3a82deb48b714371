#include "reference/kernels/quantize_and_insert_k_cache.h"

#include "reference/formats/bf16.h"
#include "reference/kernels/page_access.h"
#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

const float amax_floor = float_of(0x38D1B717);  // 1e-4
constexpr std::int64_t head_dim = 512;

// The two records: how many dims are E4M3, and what their scales take.
struct record_form {
  std::int64_t fp8_dims;
  std::int64_t dims_per_scale;
  quotient scale_as_written;
  bool divides_values;  // DIV(x, 2^E); otherwise RN(x * 2^-E)
  bool pad_byte;        // behind the scales
};
constexpr record_form v4 = {448, 64, quotient::div, true, true};           // 584
constexpr record_form v41_mxfp8 = {512, 32, quotient::mul, false, false};  // 528

record_size size_of_form(const record_form& form, std::int64_t block_size) {
  const std::int64_t tail_bytes = (head_dim - form.fp8_dims) * 2;
  const std::int64_t scales = form.fp8_dims / form.dims_per_scale;
  return {block_size, form.fp8_dims + tail_bytes, scales + (form.pad_byte ? 1 : 0)};
}

void insert_row(const tensor_view& k, std::int64_t row, const record_form& form, fp8_format format,
                const token_record& record, const Rules& rules) {
  const float limit = fp8_limit(format);
  for (std::int64_t first = 0; first < form.fp8_dims; first += form.dims_per_scale) {
    float x[64];
    float amax = 0.0F;
    for (std::int64_t i = 0; i < form.dims_per_scale; ++i) {
      x[i] = decode_bf16(load<std::uint16_t>(k.element(row, first + i)));
      amax = i == 0 ? abs(x[i]) : rules.amax(amax, x[i]);
    }
    const float floored = rules.floor_amax(amax, amax_floor);
    const float q = rules.scale_quotient(rules, floored, limit, form.scale_as_written);
    const float exponent = rules.scale_exponent(q);
    const float scale = rules.exp2_int(exponent);
    const float inverse = rules.exp2_int(-exponent);
    for (std::int64_t i = 0; i < form.dims_per_scale; ++i) {
      const float scaled = form.divides_values ? rules.div(x[i], scale) : mul(x[i], inverse);
      const float clamped = rules.clamp_before_encode(scaled, limit);
      record.set_data(first + i, std::byte{rules.encode_e4m3(clamped, format)});
    }
    const float limited = rules.limit_exponent(exponent, -127.0F, 128.0F);  // byte 0..255
    record.set_scale(first / form.dims_per_scale, std::byte{rules.exponent_byte(limited)});
  }
  // The last dims of a 584 record: bf16, bit for bit.
  for (std::int64_t dim = form.fp8_dims; dim < head_dim; ++dim) {
    const std::int64_t at = form.fp8_dims + (dim - form.fp8_dims) * 2;
    record.set_data(at, k.element(row, dim)[0]);
    record.set_data(at + 1, k.element(row, dim)[1]);
  }
  if (form.pad_byte && rules.write_pad_byte) {
    record.set_scale(form.fp8_dims / form.dims_per_scale, std::byte{0});
  }
}

}  // namespace

void quantize_and_insert_k_cache(const call& c, const Rules& rules) {
  const tensor_view& k = c.tensor("k");                 // [N, 512] bf16
  const tensor_view& cache = c.tensor("k_cache");       // [blocks, B, record] u8
  const tensor_view& slots = c.tensor("slot_mapping");  // [S] i64
  const record_form& form = c.integer("bytes_per_token") == 584 ? v4 : v41_mxfp8;
  const record_size size = size_of_form(form, c.integer("block_size"));
  const bool fnuz = c.integer("use_fnuz") != 0;
  const fp8_format format = rules.cache_format(fnuz ? fp8_format::e4m3fnuz : fp8_format::e4m3fn);

  const std::int64_t mapped = slots.dim(0);
  const std::int64_t rows = rules.rows_past_mapping ? k.dim(0) : mapped;
  for (std::int64_t row = 0; row < rows; ++row) {
    // Only a fault goes past the mapping; there the row's number stands for the slot it finds.
    const std::int64_t slot = row < mapped ? load<std::int64_t>(slots.element(row)) : row;
    if (!rules.slot_is_live(slot)) continue;
    insert_row(k, row, form, format, record_of_slot(cache, rules, size, slot), rules);
  }
}

}  // namespace kvcts
