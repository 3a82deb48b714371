#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "reference/layout/paged.h"

namespace kvcts {
namespace {

paged_view view_of(paged_record record, std::int64_t pages, std::int64_t block_size,
                   std::int64_t page_stride, std::int64_t first_byte = 0) {
  paged_view view;
  view.record = std::move(record);
  view.first_byte = first_byte;
  view.pages = pages;
  view.block_size = block_size;
  view.page_stride = page_stride;
  view.entry_stride = view.record.bytes();
  return view;
}

std::string place(const paged_view& view, std::int64_t byte) { return text_of(locate(view, byte)); }

TEST(paged_record, bytes_of_a_token) {
  EXPECT_EQ(mxfp4_indexer_record(128).bytes(), 68);
  EXPECT_EQ(mxfp4_indexer_record(1024).bytes(), 544);
  EXPECT_EQ(fp8_indexer_record(128, dtype::f8e4m3fn).bytes(), 132);
  EXPECT_EQ(v4_record(dtype::f8e4m3fn).bytes(), 584);
  EXPECT_EQ(v41_mxfp8_record(dtype::f8e4m3fn).bytes(), 528);
  EXPECT_EQ(v41_nvfp4_record().bytes(), 288);
  EXPECT_EQ(fp8_ds_mla_record(dtype::f8e4m3fn).bytes(), 656);
  EXPECT_EQ(plain_bf16_record().bytes(), 1024);
  EXPECT_EQ(plain_fp8_record(dtype::f8e4m3fn).bytes(), 512);
}

TEST(paged_record, found_by_bytes_or_name) {
  for (const auto& [bytes, name] :
       {std::pair{68, "mxfp4_indexer"}, std::pair{132, "fp8_indexer"}, std::pair{584, "v4"},
        std::pair{528, "v41_mxfp8"}, std::pair{288, "v41_nvfp4"}, std::pair{656, "fp8_ds_mla"},
        std::pair{1024, "bf16"}, std::pair{512, "fp8"}}) {
    ASSERT_TRUE(record_of("", bytes)) << bytes;
    EXPECT_EQ(record_of("", bytes)->name, name);
    EXPECT_EQ(record_of("", bytes)->bytes(), bytes);
  }
  // 68 bytes are head dim 64 of the FP8 record too.
  EXPECT_EQ(record_of("fp8_indexer", 68)->dims, 64);
  EXPECT_EQ(record_of("mxfp4_indexer", 17)->dims, 32);
  EXPECT_FALSE(record_of("", 100));
  EXPECT_FALSE(record_of("v4", 528));
  EXPECT_FALSE(record_of("mxfp4_indexer", 67));
}

TEST(locate, v4_page_is_segregated) {
  // Two pages of 64 tokens, 100 bytes of somebody else's between, 32 guard bytes before.
  const std::int64_t stride = 64 * 584 + 100;
  const paged_view view = view_of(v4_record(dtype::f8e4m3fn), 2, 64, stride, 32);
  EXPECT_EQ(place(view, 0), "outside the pages");
  EXPECT_EQ(place(view, 31), "outside the pages");
  EXPECT_EQ(place(view, 32), "page 0, position 0, dim 0 (f8e4m3fn)");
  EXPECT_EQ(place(view, 32 + 447), "page 0, position 0, dim 447 (f8e4m3fn)");
  EXPECT_EQ(place(view, 32 + 448), "page 0, position 0, dim 448 (bf16), byte 0");
  EXPECT_EQ(place(view, 32 + 575), "page 0, position 0, dim 511 (bf16), byte 1");
  EXPECT_EQ(place(view, 32 + 576), "page 0, position 1, dim 0 (f8e4m3fn)");
  const std::int64_t scales = 32 + 64 * 576;
  EXPECT_EQ(place(view, scales - 1), "page 0, position 63, dim 511 (bf16), byte 1");
  EXPECT_EQ(place(view, scales + 17 * 8 + 3),
            "page 0, position 17, scale of block 3 (dims 192..255)");
  EXPECT_EQ(place(view, scales + 17 * 8 + 7), "page 0, position 17, pad byte");
  EXPECT_EQ(place(view, 32 + 64 * 584), "between page 0 and the next");
  EXPECT_EQ(place(view, 32 + stride - 1), "between page 0 and the next");
  EXPECT_EQ(place(view, 32 + stride), "page 1, position 0, dim 0 (f8e4m3fn)");
  EXPECT_EQ(place(view, 32 + stride + 64 * 584 - 1), "page 1, position 63, pad byte");
  EXPECT_EQ(place(view, 32 + stride + 64 * 584), "behind the last page");
}

TEST(locate, other_segregated_records) {
  const paged_view mxfp8 = view_of(v41_mxfp8_record(dtype::f8e4m3fnuz), 3, 16, 16 * 528);
  EXPECT_EQ(place(mxfp8, 2 * 16 * 528 + 5 * 512 + 511), "page 2, position 5, dim 511 (f8e4m3fnuz)");
  EXPECT_EQ(place(mxfp8, 16 * 528 + 16 * 512 + 4 * 16 + 15),
            "page 1, position 4, scale of block 15 (dims 480..511)");
  const paged_view nvfp4 = view_of(v41_nvfp4_record(), 1, 4, 4 * 288);
  EXPECT_EQ(place(nvfp4, 256 + 3), "page 0, position 1, dims 6..7 (e2m1x2)");
  EXPECT_EQ(place(nvfp4, 4 * 256 + 32 + 31),
            "page 0, position 1, scale of block 31 (dims 496..511)");
  const paged_view mxfp4 = view_of(mxfp4_indexer_record(128), 1, 64, 64 * 68);
  EXPECT_EQ(place(mxfp4, 64 * 64 + 4 * 17 + 3),
            "page 0, position 17, scale of block 3 (dims 96..127)");
  // Values first, then all scales: token 1's scale is at B*128 + 4.
  const paged_view fp8 = view_of(fp8_indexer_record(128, dtype::f8e4m3fn), 1, 2, 2 * 132);
  EXPECT_EQ(place(fp8, 128), "page 0, position 1, dim 0 (f8e4m3fn)");
  EXPECT_EQ(place(fp8, 2 * 128 + 4), "page 0, position 1, scale of block 0 (dims 0..127), byte 0");
}

TEST(locate, interleaved_entries_with_a_stride) {
  paged_view view = view_of(fp8_ds_mla_record(dtype::f8e4m3fn), 2, 3, 3000);
  view.entry_stride = 700;
  EXPECT_EQ(place(view, 700 + 511), "page 0, position 1, dim 511 (f8e4m3fn)");
  EXPECT_EQ(place(view, 700 + 516), "page 0, position 1, scale of block 1 (dims 128..255), byte 0");
  EXPECT_EQ(place(view, 700 + 528), "page 0, position 1, dim 512 (bf16), byte 0");
  EXPECT_EQ(place(view, 700 + 655), "page 0, position 1, dim 575 (bf16), byte 1");
  EXPECT_EQ(place(view, 700 + 656), "page 0, behind the entry of position 1");
  EXPECT_EQ(place(view, 1400 + 656), "between page 0 and the next");
  EXPECT_EQ(place(view, 3000), "page 1, position 0, dim 0 (f8e4m3fn)");
}

TEST(locate, tiled_values) {
  paged_view view = view_of(fp8_indexer_record(128, dtype::f8e4m3fn), 1, 32, 32 * 132);
  view.tiled = true;
  EXPECT_EQ(place(view, 0), "page 0, position 0, dim 0 (f8e4m3fn)");
  EXPECT_EQ(place(view, 16), "page 0, position 1, dim 0 (f8e4m3fn)");
  EXPECT_EQ(place(view, 256), "page 0, position 0, dim 16 (f8e4m3fn)");
  EXPECT_EQ(place(view, 16 * 128 + 256 * 2 + 16 * 3 + 5), "page 0, position 19, dim 37 (f8e4m3fn)");
  EXPECT_EQ(place(view, 32 * 128 + 4 * 19),
            "page 0, position 19, scale of block 0 (dims 0..127), byte 0");
}

TEST(locate, an_empty_cache_has_no_pages) {
  EXPECT_EQ(place(view_of(v4_record(dtype::f8e4m3fn), 0, 64, 0), 0), "outside the pages");
}

TEST(swizzle, offsets_by_hand) {
  EXPECT_EQ(swizzled_offset(0, 0, 16), 0);
  EXPECT_EQ(swizzled_offset(0, 3, 16), 3);
  EXPECT_EQ(swizzled_offset(0, 4, 16), 512);
  EXPECT_EQ(swizzled_offset(1, 0, 16), 16);
  EXPECT_EQ(swizzled_offset(32, 0, 16), 4);
  EXPECT_EQ(swizzled_offset(33, 5, 16), 512 + 16 + 4 + 1);
  EXPECT_EQ(swizzled_offset(128, 0, 5), 128 * 8);  // groups padded to 8
  EXPECT_EQ(swizzled_bytes(129, 5), 256 * 8);
  EXPECT_EQ(swizzled_bytes(0, 5), 0);
}

TEST(swizzle, is_one_to_one_and_back) {
  std::set<std::int64_t> seen;
  for (std::int64_t row = 0; row < 256; ++row) {
    for (std::int64_t group = 0; group < 8; ++group) {
      const std::int64_t offset = swizzled_offset(row, group, 6);
      EXPECT_LT(offset, swizzled_bytes(256, 6));
      seen.insert(offset);
      const swizzled_place back = swizzled_place_of(offset, 6);
      EXPECT_EQ(std::pair(back.row, back.group), std::pair(row, group));
    }
  }
  EXPECT_EQ(seen.size(), 256U * 8U);
}

}  // namespace
}  // namespace kvcts
