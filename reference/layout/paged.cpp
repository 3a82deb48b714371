#include "reference/layout/paged.h"

namespace kvcts {
namespace {

constexpr std::int64_t tile = 16;  // tokens, and bytes, of one tile

std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

record_region values(dtype type, std::int64_t first_byte, std::int64_t first_dim,
                     std::int64_t dims) {
  const std::int64_t packed = type == dtype::e2m1x2 ? 2 : 1;
  return {region_kind::value, type, first_byte, dims / packed, first_dim, packed};
}

record_region scales(dtype type, std::int64_t first_byte, std::int64_t dims, std::int64_t block) {
  return {region_kind::scale, type, first_byte, dims / block, 0, block};
}

// The region that holds byte `at` of a token's part; pad where none does.
void find_region(const std::vector<record_region>& regions, std::int64_t at, page_place& place) {
  place.region = {region_kind::pad, dtype::u8, at, 1, 0, 0};
  for (const record_region& region : regions) {
    const auto size = static_cast<std::int64_t>(size_of(region.type));
    const std::int64_t from = at - region.first_byte;
    if (from < 0 || from >= region.elements * size) continue;
    place.region = region;
    place.element = from / size;
    place.byte_in_element = from % size;
    place.first_dim = region.first_dim + place.element * region.dims_per_element;
    place.last_dim = place.first_dim + region.dims_per_element - 1;
    return;
  }
}

std::string dims_text(const page_place& place) {
  if (place.first_dim == place.last_dim) return "dim " + std::to_string(place.first_dim);
  return "dims " + std::to_string(place.first_dim) + ".." + std::to_string(place.last_dim);
}

}  // namespace

paged_record mxfp4_indexer_record(std::int64_t dims) {
  return {.name = "mxfp4_indexer",
          .dims = dims,
          .data_bytes = dims / 2,
          .scale_bytes = dims / 32,
          .data = {values(dtype::e2m1x2, 0, 0, dims)},
          .scales = {scales(dtype::ue8m0, 0, dims, 32)}};
}

paged_record fp8_indexer_record(std::int64_t dims, dtype fp8) {
  return {.name = "fp8_indexer",
          .dims = dims,
          .data_bytes = dims,
          .scale_bytes = 4,
          .data = {values(fp8, 0, 0, dims)},
          .scales = {scales(dtype::f32, 0, dims, dims)}};
}

paged_record v4_record(dtype fp8) {
  return {.name = "v4",
          .dims = 512,
          .data_bytes = 576,
          .scale_bytes = 8,  // seven scales and a pad byte
          .data = {values(fp8, 0, 0, 448), values(dtype::bf16, 448, 448, 64)},
          .scales = {scales(dtype::ue8m0, 0, 448, 64)}};
}

paged_record v41_mxfp8_record(dtype fp8) {
  return {.name = "v41_mxfp8",
          .dims = 512,
          .data_bytes = 512,
          .scale_bytes = 16,
          .data = {values(fp8, 0, 0, 512)},
          .scales = {scales(dtype::ue8m0, 0, 512, 32)}};
}

paged_record v41_nvfp4_record() {
  return {.name = "v41_nvfp4",
          .dims = 512,
          .data_bytes = 256,
          .scale_bytes = 32,
          .data = {values(dtype::e2m1x2, 0, 0, 512)},
          .scales = {scales(dtype::f8e4m3fn, 0, 512, 16)}};
}

paged_record fp8_ds_mla_record(dtype fp8) {
  return {.name = "fp8_ds_mla",
          .dims = 576,
          .data_bytes = 656,
          .scale_bytes = 0,
          .interleaved = true,
          .data = {values(fp8, 0, 0, 512), scales(dtype::f32, 512, 512, 128),
                   values(dtype::bf16, 528, 512, 64)},
          .scales = {}};
}

paged_record plain_bf16_record() {
  return {.name = "bf16",
          .dims = 512,
          .data_bytes = 1024,
          .scale_bytes = 0,
          .interleaved = true,
          .data = {values(dtype::bf16, 0, 0, 512)},
          .scales = {}};
}

paged_record plain_fp8_record(dtype fp8) {
  return {.name = "fp8",
          .dims = 512,
          .data_bytes = 512,
          .scale_bytes = 0,
          .interleaved = true,
          .data = {values(fp8, 0, 0, 512)},
          .scales = {}};
}

std::optional<paged_record> record_of(std::string_view name, std::int64_t bytes, dtype fp8) {
  const bool any = name.empty();
  std::optional<paged_record> record;
  if (name == "mxfp4_indexer" || (any && bytes == 68)) {
    record = mxfp4_indexer_record(bytes * 32 / 17);
  } else if (name == "fp8_indexer" || (any && bytes == 132)) {
    record = fp8_indexer_record(bytes - 4, fp8);
  } else if (name == "v4" || (any && bytes == 584)) {
    record = v4_record(fp8);
  } else if (name == "v41_mxfp8" || (any && bytes == 528)) {
    record = v41_mxfp8_record(fp8);
  } else if (name == "v41_nvfp4" || (any && bytes == 288)) {
    record = v41_nvfp4_record();
  } else if (name == "fp8_ds_mla" || (any && bytes == 656)) {
    record = fp8_ds_mla_record(fp8);
  } else if (name == "bf16" || (any && bytes == 1024)) {
    record = plain_bf16_record();
  } else if (name == "fp8" || (any && bytes == 512)) {
    record = plain_fp8_record(fp8);
  }
  if (record && record->bytes() != bytes) return std::nullopt;
  return record;
}

page_place locate(const paged_view& view, std::int64_t byte) {
  page_place place;
  const std::int64_t from = byte - view.first_byte;
  const paged_record& record = view.record;
  const std::int64_t entry = record.interleaved ? view.entry_stride : record.bytes();
  if (from < 0 || view.pages == 0 || view.block_size == 0) return place;
  place.page = view.pages == 1 ? 0 : from / view.page_stride;
  std::int64_t at = view.pages == 1 ? from : from % view.page_stride;
  if (place.page >= view.pages) {
    place.page = -1;
    return place;
  }
  const std::int64_t payload = (view.block_size - 1) * entry + record.bytes();
  if (at >= payload) {
    place.in = place.page == view.pages - 1 ? page_place::where::outside : page_place::where::gap;
    return place;
  }
  const std::int64_t all_data = record.interleaved ? payload : view.block_size * record.data_bytes;
  const bool in_data = at < all_data;
  if (in_data && view.tiled) {
    // [B/16, D/16, 16 tokens, 16 bytes] instead of [B, D].
    const std::int64_t band = at / (tile * record.data_bytes);
    const std::int64_t in_band = at % (tile * record.data_bytes);
    const std::int64_t in_tile = in_band % (tile * tile);
    place.position = band * tile + in_tile / tile;
    at = in_band / (tile * tile) * tile + in_tile % tile;
  } else {
    const std::int64_t token = record.interleaved ? entry
                               : in_data          ? record.data_bytes
                                                  : record.scale_bytes;
    if (!in_data) at -= all_data;
    place.position = at / token;
    at %= token;
  }
  if (record.interleaved && at >= record.bytes()) {
    place.in = page_place::where::gap;
    return place;
  }
  place.in = page_place::where::record;
  find_region(in_data ? record.data : record.scales, at, place);
  return place;
}

std::string text_of(const page_place& place) {
  if (place.in == page_place::where::outside) {
    return place.page < 0 ? "outside the pages" : "behind the last page";
  }
  std::string text = "page " + std::to_string(place.page);
  if (place.in == page_place::where::gap) {
    if (place.position < 0) return "between " + text + " and the next";
    return text + ", behind the entry of position " + std::to_string(place.position);
  }
  text += ", position " + std::to_string(place.position) + ", ";
  switch (place.region.kind) {
    case region_kind::pad:
      return text + "pad byte";
    case region_kind::scale:
      text += "scale of block " + std::to_string(place.element) + " (" + dims_text(place) + ")";
      break;
    case region_kind::value:
      text += dims_text(place) + " (" + std::string(name_of(place.region.type)) + ")";
      break;
  }
  if (size_of(place.region.type) > 1) text += ", byte " + std::to_string(place.byte_in_element);
  return text;
}

std::int64_t swizzled_bytes(std::int64_t rows, std::int64_t groups) {
  return round_up(rows, 128) * round_up(groups, 4);
}

std::int64_t swizzled_offset(std::int64_t row, std::int64_t group, std::int64_t groups) {
  return row / 128 * 128 * round_up(groups, 4) + group / 4 * 512 + row % 32 * 16 +
         row % 128 / 32 * 4 + group % 4;
}

swizzled_place swizzled_place_of(std::int64_t offset, std::int64_t groups) {
  const std::int64_t band = 128 * round_up(groups, 4);
  const std::int64_t in_band = offset % band;
  const std::int64_t in_tile = in_band % 512;  // 128 rows x 4 groups
  return {offset / band * 128 + in_tile % 16 / 4 * 32 + in_tile / 16,
          in_band / 512 * 4 + in_tile % 4};
}

}  // namespace kvcts
