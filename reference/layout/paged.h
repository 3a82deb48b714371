// Paged cache records as data (docs/formats.md), and the way back from a byte of a page view to
// what it means.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/layout/tensor.h"

namespace kvcts {

enum class region_kind : std::uint8_t { value, scale, pad };

// A run of equal elements inside a token's data or scales.
struct record_region {
  region_kind kind = region_kind::value;
  dtype type = dtype::u8;
  std::int64_t first_byte = 0;  // from the token's data, or scales; from the entry if interleaved
  std::int64_t elements = 0;
  std::int64_t first_dim = 0;
  std::int64_t dims_per_element = 1;  // values: 1, packed codes: 2, scales: dims of their block
};

struct paged_record {
  std::string name;  // "v4", "v41_mxfp8", ...
  std::int64_t dims = 0;
  std::int64_t data_bytes = 0;   // a token
  std::int64_t scale_bytes = 0;  // a token, pad bytes included
  // True: each entry holds its scales, which are regions of `data`. False: segregated, the data of
  // all tokens of a page first, then the scales of all.
  bool interleaved = false;
  std::vector<record_region> data;
  std::vector<record_region> scales;

  std::int64_t bytes() const { return data_bytes + scale_bytes; }
};

// The records' makers; `fp8` is f8e4m3fn or f8e4m3fnuz.
paged_record mxfp4_indexer_record(std::int64_t dims);           // dims/2 + dims/32 bytes
paged_record fp8_indexer_record(std::int64_t dims, dtype fp8);  // dims + 4
paged_record v4_record(dtype fp8);                              // 584
paged_record v41_mxfp8_record(dtype fp8);                       // 528
paged_record v41_nvfp4_record();                                // 288
paged_record fp8_ds_mla_record(dtype fp8);                      // 656
paged_record plain_bf16_record();                               // 1024
paged_record plain_fp8_record(dtype fp8);                       // 512

// By name ("mxfp4_indexer", "fp8_indexer", "v4", "v41_mxfp8", "v41_nvfp4", "fp8_ds_mla", "bf16",
// "fp8"), where the bytes fit the record; an empty name takes the one record of 68, 132, 584, 528,
// 288, 656, 1024 or 512 bytes, head dim 128 for the first two.
std::optional<paged_record> record_of(std::string_view name, std::int64_t bytes,
                                      dtype fp8 = dtype::f8e4m3fn);

// Where a cache's records lie, in bytes of the whole storage.
struct paged_view {
  paged_record record;
  std::int64_t first_byte = 0;  // of page 0
  std::int64_t pages = 0;
  std::int64_t block_size = 0;    // tokens a page
  std::int64_t page_stride = 0;   // bytes
  std::int64_t entry_stride = 0;  // bytes; interleaved records only
  bool tiled = false;  // values of the FP8 indexer record in tiles of 16 tokens x 16 bytes
};

struct page_place {
  // outside: before page 0 or behind the last page. gap: inside the pages' span, but of no record.
  enum class where : std::uint8_t { outside, gap, record };
  where in = where::outside;
  std::int64_t page = -1;
  std::int64_t position = -1;  // of the token in its page
  record_region region;
  std::int64_t element = 0;  // of the region: the block's number for a scale
  std::int64_t byte_in_element = 0;
  std::int64_t first_dim = 0;
  std::int64_t last_dim = 0;
};

// What byte `byte` of the storage is.
page_place locate(const paged_view& view, std::int64_t byte);
// "page 2, position 17, scale of block 3 (dims 96..127)".
std::string text_of(const page_place& place);

// F8_128x4 swizzle of MXFP8 GEMM scales: rows padded to 128, groups to 4.
std::int64_t swizzled_bytes(std::int64_t rows, std::int64_t groups);
std::int64_t swizzled_offset(std::int64_t row, std::int64_t group, std::int64_t groups);
struct swizzled_place {
  std::int64_t row, group;
};
swizzled_place swizzled_place_of(std::int64_t offset, std::int64_t groups);

}  // namespace kvcts
