#include "optimized/cuda/rows.h"
#include "optimized/kernels/rope_quant_insert.h"

namespace kvcts {
namespace {

template <profile P, latent_record Record, bool Aligned>
struct insert_body {
  static KVCTS_INLINE void run(const rope_quant_insert_arguments& a, std::int64_t row) {
    device::insert_latent<device::group, P, Record, Aligned>(a, row);
  }
};

bool is_aligned(const rope_quant_insert_arguments& a) {
  const bool plain = a.record == latent_record::bf16 || a.record == latent_record::fp8;
  return is_multiple(a.latent, 16) && is_multiple(a.latent_row_stride, 16) &&
         is_multiple(a.at.slots, 8) && is_multiple(a.at.positions, 8) &&
         is_multiple(a.table.start, 16) && is_multiple(a.table.stride, 16) &&
         is_multiple(a.cache.start, 16) && is_multiple(a.cache.page_stride, 16) &&
         (!plain || is_multiple(a.entry_stride, 16)) && is_multiple(a.fp8_scale, 4);
}

template <profile P, latent_record Record>
void launch_record(const rope_quant_insert_arguments& a, cudaStream_t stream) {
  const auto launch =
      is_aligned(a) ? launch_rows<insert_body<P, Record, true>, 4, rope_quant_insert_arguments>
                    : launch_rows<insert_body<P, Record, false>, 4, rope_quant_insert_arguments>;
  launch(a, a.at.rows, stream, "rope_quant_insert");
}

}  // namespace

void launch_rope_quant_insert(const rope_quant_insert_arguments& a, profile p,
                              cudaStream_t stream) {
  constexpr profile any = profile::nvidia;  // one code for both
  switch (a.record) {
    case latent_record::v4:
      return launch_record<any, latent_record::v4>(a, stream);
    case latent_record::v41_mxfp8:
      return launch_record<any, latent_record::v41_mxfp8>(a, stream);
    case latent_record::v41_nvfp4:
      return launch_record<any, latent_record::v41_nvfp4>(a, stream);
    case latent_record::bf16:
      return launch_record<any, latent_record::bf16>(a, stream);
    case latent_record::fp8:
      return (p == profile::nvidia ? launch_record<profile::nvidia, latent_record::fp8>
                                   : launch_record<profile::ieee, latent_record::fp8>)(a, stream);
  }
}

}  // namespace kvcts
