// Rows of i32 indices on the CPU: runs of columns that are made alike, 32 at a time.
#pragma once

#include "optimized/warp/indices.h"

namespace kvcts::KVCTS_TARGET {

template <bool Value>
struct constant {
  static constexpr bool value = Value;
};
// run(constant<whether the size is a power of two>): one divides by a shift.
template <class Run>
KVCTS_INLINE void with_divider(const index_divider& d, const Run& run) {
  if ((d.size & (d.size - 1)) == 0) {
    run(constant<true>{});
  } else {
    run(constant<false>{});
  }
}

// Asks for the two lines of memory, 2 KB on, that a later step of 32 words reads and writes: a row
// of 512 indices ahead. Past a buffer's end it does nothing.
KVCTS_INLINE void prefetch_ahead(const byte* from, byte* to) {
  for (std::int64_t line = 2048; line < 2048 + 128; line += 64) {
    __builtin_prefetch(from + line);
    __builtin_prefetch(to + line, 1);
  }
}

// [0, count): map(index) of each index. Gives the number of indices that are not negative.
template <class Map>
KVCTS_INLINE std::uint32_t map_indices(byte* to, const byte* from, std::int64_t count,
                                       const Map& map) {
  lane_u32 found = group::splat(0);
  std::int64_t column = 0;
  for (; column + 32 <= count; column += 32) {
    prefetch_ahead(from + column * 4, to + column * 4);
    const auto index = group::load_words<1, 32, false>(from + column * 4, 0, 1).w[0];
    found = found + live_index<group>(index);
    group::store_words<1, 32, false>(to + column * 4, 0, 1, {{map(index)}});
  }
  if (column < count) {
    const std::int64_t left = count - column;
    const lane_u32 some = group::bits(group::load_f32<false>(from + column * 4, left));
    const lane_u32 index =
        group::select(group::lane() < columns_left(left), some, group::splat(no_index));
    found = found + live_index<group>(index);
    group::store_f32<false>(to + column * 4, group::as_f32(map(index)), left);
  }
  return total<group>(found);
}

// [0, count): the slots of a request's entries, by its row of the table. Gives the number of
// entries that are not negative. Remapped as slot_of_entry has it.
template <bool Remapped, bool PowerOfTwo>
KVCTS_INLINE std::uint32_t entry_slots(byte* to, const byte* from, std::int64_t count,
                                       const byte* table, const index_divider& block,
                                       std::uint32_t span) {
#if KVCTS_VECTOR_BYTES > 16
  return map_indices(to, from, count, [&](const lane_u32& entry) KVCTS_INLINE_LAMBDA {
    return slot_of_entry<group, false, Remapped, PowerOfTwo>(table, entry, block, span);
  });
#else
  // Without instructions that gather, one at a time is faster.
  std::uint32_t found = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto entry = static_cast<std::uint32_t>(group::load_i32<false>(from + i * 4));
    std::uint32_t slot = no_index;
    if (entry < first_negative) {
      ++found;
      const auto column = static_cast<std::uint32_t>(
          PowerOfTwo ? entry >> block.shift
                     : (std::uint64_t{2 * entry} * block.factor >> 32) >> block.shift);
      const auto page = static_cast<std::uint32_t>(
          group::load_i32<false>(table + static_cast<std::int64_t>(column) * 4));
      slot = page * span + (entry - column * block.size);
      if (Remapped && page >= first_negative) slot = no_index;
    }
    __builtin_memcpy(to + i * 4, &slot, 4);
  }
  return found;
#endif
}

// [0, count): first, first + 1, ...
KVCTS_INLINE void count_up(byte* to, std::int64_t count, std::uint32_t first) {
  if (count < 32) {
    for (std::int64_t column = 0; column < count; ++column) {
      const std::uint32_t id = first + static_cast<std::uint32_t>(column);
      __builtin_memcpy(to + column * 4, &id, 4);
    }
    return;
  }
  for (std::int64_t column = 0; column < count; column += 32) {
    const std::int64_t at = column + 32 <= count ? column : count - 32;  // the last ones twice
    const lane_u32 ids = group::lane() + (first + static_cast<std::uint32_t>(at));
    group::store_words<1, 32, false>(to + at * 4, 0, 1, {{ids}});
  }
}
// [0, count): -1.
KVCTS_INLINE void fill_none(byte* to, std::int64_t count) {
  if (count > 0) __builtin_memset(to, 0xFF, static_cast<std::size_t>(count) * 4);
}

}  // namespace kvcts::KVCTS_TARGET
