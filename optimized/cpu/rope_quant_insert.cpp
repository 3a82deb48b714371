#include "optimized/kernels/rope_quant_insert.h"

#include "optimized/cpu/kernel.h"

namespace kvcts::KVCTS_TARGET {

template <profile P, latent_record Record>
static void insert_rows(const rope_quant_insert_arguments& a, std::int64_t first,
                        std::int64_t last) {
  for (std::int64_t row = first; row < last; ++row) {
    insert_latent<group, P, Record, false>(a, row);
  }
}

void rope_quant_insert(const rope_quant_insert_arguments& a, profile p, std::int64_t first,
                       std::int64_t last) {
  constexpr profile any = profile::nvidia;  // one code for both
  switch (a.record) {
    case latent_record::v4:
      return insert_rows<any, latent_record::v4>(a, first, last);
    case latent_record::v41_mxfp8:
      return insert_rows<any, latent_record::v41_mxfp8>(a, first, last);
    case latent_record::v41_nvfp4:
      return insert_rows<any, latent_record::v41_nvfp4>(a, first, last);
    case latent_record::bf16:
      return insert_rows<any, latent_record::bf16>(a, first, last);
    case latent_record::fp8:
      return (p == profile::nvidia
                  ? insert_rows<profile::nvidia, latent_record::fp8>
                  : insert_rows<profile::ieee, latent_record::fp8>)(a, first, last);
  }
}

}  // namespace kvcts::KVCTS_TARGET
