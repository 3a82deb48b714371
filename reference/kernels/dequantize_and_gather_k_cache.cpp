#include "reference/kernels/dequantize_and_gather_k_cache.h"

#include "reference/formats/bf16.h"
#include "reference/formats/e4m3.h"
#include "reference/kernels/page_access.h"
#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

constexpr std::int64_t head_dim = 512;

// Writes the 512 bf16 values of one token.
using read_record = void (*)(const token_record&, fp8_format, const Rules&, const tensor_view& out,
                             std::int64_t request, std::int64_t row);

std::uint8_t number(std::byte b) { return std::to_integer<std::uint8_t>(b); }

void read_v4(const token_record& record, fp8_format format, const Rules& rules,
             const tensor_view& out, std::int64_t request, std::int64_t row) {
  constexpr std::int64_t nope = 448;
  for (std::int64_t d = 0; d < nope; ++d) {
    const float value = rules.decode_e4m3(number(record.data(d)), format);
    const float scale = rules.scale_of_byte(number(record.scale(d / 64)));
    store(out.element(request, row, d), rules.round_bf16(mul(value, scale)));
  }
  for (std::int64_t d = nope; d < head_dim; ++d) {  // copied, NaN payloads too
    out.element(request, row, d)[0] = record.data(nope + (d - nope) * 2);
    out.element(request, row, d)[1] = record.data(nope + (d - nope) * 2 + 1);
  }
}

void read_mxfp8(const token_record& record, fp8_format format, const Rules& rules,
                const tensor_view& out, std::int64_t request, std::int64_t row) {
  for (std::int64_t d = 0; d < head_dim; ++d) {
    const float value = rules.decode_e4m3(number(record.data(d)), format);
    const float scale = rules.scale_of_byte(number(record.scale(d / 32)));
    store(out.element(request, row, d), rules.round_bf16(mul(value, scale)));
  }
}

void read_nvfp4(const token_record& record, fp8_format /*format*/, const Rules& rules,
                const tensor_view& out, std::int64_t request, std::int64_t row) {
  for (std::int64_t d = 0; d < head_dim; ++d) {
    const auto codes = number(record.data(d / 2));
    const float value =
        rules.nvfp4_value(static_cast<std::uint8_t>(d % 2 == 0 ? codes & 0xF : codes >> 4));
    // The scale's sign bit counts; its NaN makes the block NaN.
    const float scale = rules.decode_e4m3(number(record.scale(d / 16)), fp8_format::e4m3fn);
    store(out.element(request, row, d), rules.round_bf16(mul(value, scale)));
  }
}

struct record_form {
  std::int64_t data_bytes, scale_bytes;
  read_record read;
};

record_form form_of(std::int64_t record_bytes) {
  if (record_bytes == 584) return {576, 8, read_v4};
  if (record_bytes == 528) return {512, 16, read_mxfp8};
  return {256, 32, read_nvfp4};  // 288
}

}  // namespace

void dequantize_and_gather_k_cache(const call& c, const Rules& rules) {
  const tensor_view& out = c.tensor("out");                // [R, M, 512] bf16
  const tensor_view& cache = c.tensor("k_cache");          // [blocks, B, record] u8
  const tensor_view& seq_lens = c.tensor("seq_lens");      // [R] i32
  const tensor_view* gather_lens = c.find("gather_lens");  // [R] i32
  const tensor_view& table = c.tensor("block_table");      // [R, max blocks] i32
  const std::int64_t block_size = c.integer("block_size");
  const std::int64_t offset = c.integer("offset");
  const bool fnuz = c.integer("use_fnuz") != 0;
  const fp8_format format = rules.read_format(fnuz ? fp8_format::e4m3fnuz : fp8_format::e4m3fn);
  const record_form form = form_of(cache.dim(2));
  const record_size size = {block_size, form.data_bytes, form.scale_bytes};

  for (std::int64_t r = 0; r < seq_lens.dim(0); ++r) {
    const std::int64_t seq_len = load<std::int32_t>(seq_lens.element(r));
    const std::int64_t gather_len =
        gather_lens == nullptr ? seq_len : load<std::int32_t>(gather_lens->element(r));
    for (std::int64_t i = 0; i < gather_len; ++i) {
      const std::int64_t position = rules.first_gathered(seq_len, gather_len) + i;
      const std::int64_t page = load<std::int32_t>(table.element(r, position / block_size));
      form.read(token_record(cache, rules, size, page, position % block_size), format, rules, out,
                r, offset + i);
    }
  }
}

}  // namespace kvcts
