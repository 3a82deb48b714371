// Rows of i32 indices: columns shared out among the lanes, pages found through a table. A negative
// index is a u32 from 2^31 on.
#pragma once

#include "optimized/arguments/indices.h"
#include "optimized/warp/group.h"

namespace kvcts::KVCTS_TARGET {

constexpr std::uint32_t no_index = 0xFFFFFFFFu;
constexpr std::uint32_t first_negative = 0x80000000u;

// The number of words a lane, as a type.
template <int Words>
struct words_a_lane {
  static constexpr int value = Words;
};

// Word `word` of a lane is this column of the step.
template <class G, int Words>
KVCTS_INLINE typename G::u32 column_of(int word) {
  if constexpr (Words == 1) return G::lane();
  return G::lane() * static_cast<std::uint32_t>(Words) + static_cast<std::uint32_t>(word);
}
// A count of columns of a few steps or of those behind them, as a lane compares it.
KVCTS_INLINE std::uint32_t columns_left(std::int64_t count) {
  return count <= 0 ? 0u : count < 0x10000 ? static_cast<std::uint32_t>(count) : 0x10000u;
}

// A step's columns, `left` of which the row has; the others are 0.
template <class G, int Words, bool Aligned>
KVCTS_INLINE typename G::template words<Words> load_columns(const unsigned char* from,
                                                            std::int64_t left) {
  if constexpr (Words == 1) {
    return {{G::bits(G::template load_f32<Aligned>(from, left))}};
  } else {
    if (left >= 32 * Words) return G::template load_words<Words, 32, Aligned>(from, 0, 1);
    typename G::template words<Words> x;
    KVCTS_UNROLL for (int j = 0; j < Words; ++j) {
      const typename G::u32 column = column_of<G, Words>(j);
      x.w[j] = G::template gather<Aligned>(from, column, column < columns_left(left), 0u);
    }
    return x;
  }
}
// A step's columns, all 32 * Words of them unless Words is 1.
template <class G, int Words, bool Aligned>
KVCTS_INLINE void store_columns(unsigned char* to, const typename G::template words<Words>& x,
                                std::int64_t left) {
  if constexpr (Words == 1) {
    G::template store_f32<Aligned>(to, G::as_f32(x.w[0]), left);
  } else {
    G::template store_words<Words, 32, Aligned>(to, 0, 1, x);
  }
}

// Steps at once, so that their loads overlap: registers hold them on the device. (On the CPU rows
// are made of runs of columns: optimized/cpu/index_rows.h.)
constexpr int steps_together = 4;

// A step: the first column of the steps that are made at once, and how far behind it this one
// begins.
struct column_step {
  std::int64_t column;
  std::uint32_t behind;
};
template <class G, int Words, bool Aligned, int Together, class Load, class Map>
KVCTS_INLINE void make_steps(unsigned char* to, std::int64_t column, std::int64_t left,
                             const Load& load, const Map& map) {
  typename G::template words<Words> ids[Together];
  KVCTS_UNROLL for (int i = 0; i < Together; ++i) {
    ids[i] = load(words_a_lane<Words>{},
                  column_step{column, static_cast<std::uint32_t>(32 * Words * i)});
  }
  KVCTS_UNROLL for (int i = 0; i < Together; ++i) {
    map(words_a_lane<Words>{}, column_step{column, static_cast<std::uint32_t>(32 * Words * i)},
        ids[i]);
  }
  KVCTS_UNROLL for (int i = 0; i < Together; ++i) {
    store_columns<G, Words, Aligned>(to + column * 4 + 128 * Words * i, ids[i],
                                     left - 32 * Words * i);
  }
}
// Columns [0, columns) of a row in steps of 32 * Words, and what is left in steps of 32: a step is
// load(words_a_lane, column_step), then map(the same and what was loaded).
template <class G, int Words, bool Aligned, int Together = steps_together, class Load, class Map>
KVCTS_INLINE void make_columns(unsigned char* to, std::int64_t columns, const Load& load,
                               const Map& map) {
  constexpr std::int64_t step = 32 * Words;
  std::int64_t column = 0;
  if constexpr (Together > 1) {
    for (; column + Together * step <= columns; column += Together * step) {
      make_steps<G, Words, Aligned, Together>(to, column, columns - column, load, map);
    }
  }
  if constexpr (Words > 1) {
    for (; column + step <= columns; column += step) {
      make_steps<G, Words, Aligned, 1>(to, column, columns - column, load, map);
    }
  }
  for (; column < columns; column += 32) {
    make_steps<G, 1, Aligned, 1>(to, column, columns - column, load, map);
  }
}

// x / size of x below 2^31.
template <class G, bool PowerOfTwo = false>
KVCTS_INLINE typename G::u32 quotient(const typename G::u32& x, const index_divider& d) {
  if constexpr (PowerOfTwo) return x >> d.shift;
  return G::mul_high(x + x, d.factor) >> d.shift;
}

// Slots of entries of a request: page * span + place in the page, where `pages` is the request's
// row of the table, read for entries that are not negative. A negative one has no slot; the slot of
// a negative page is `page * span + place` too, or none where `Remapped`.
template <class G, bool Aligned, bool Remapped, bool PowerOfTwo = false>
KVCTS_INLINE typename G::u32 slot_of_entry(const unsigned char* pages, const typename G::u32& entry,
                                           const index_divider& block, std::uint32_t span) {
  using u32 = typename G::u32;
  const u32 column = quotient<G, PowerOfTwo>(entry, block);
  const u32 place = entry - column * block.size;
  const auto live = entry < first_negative;
  const u32 page = G::template gather<Aligned>(pages, column, live, no_index);
  const u32 slot = page * span + place;
  if constexpr (Remapped) return G::select(page < first_negative, slot, G::splat(no_index));
  return G::select(live, slot, G::splat(no_index));
}

// A slot of pages of block.size entries as one of pages of `span`; a negative one is none.
template <class G, bool PowerOfTwo = false>
KVCTS_INLINE typename G::u32 remapped(const typename G::u32& slot, const index_divider& block,
                                      std::uint32_t span) {
  const typename G::u32 page = quotient<G, PowerOfTwo>(slot, block);
  const typename G::u32 moved = page * span + (slot - page * block.size);
  return G::select(slot < first_negative, moved, G::splat(no_index));
}

// 1 for each index that is not negative.
template <class G>
KVCTS_INLINE typename G::u32 live_index(const typename G::u32& index) {
  return G::select(index < first_negative, G::splat(1), G::splat(0));
}
// The sum over the lanes as a scalar.
template <class G>
KVCTS_INLINE std::uint32_t total(typename G::u32 x) {
  x = x + G::template shuffle_xor<16>(x);
  x = x + G::template shuffle_xor<8>(x);
  x = x + G::template shuffle_xor<4>(x);
  x = x + G::template shuffle_xor<2>(x);
  return G::first(x + G::template shuffle_xor<1>(x));
}

template <class G, bool Aligned>
KVCTS_INLINE void store_scalar(unsigned char* to, std::int64_t x) {
  G::template store_word<Aligned>(to, G::splat(static_cast<std::uint32_t>(x)));
}

// min((position + 1) / ratio, topk), 0 where ratio is 0. A position is a length less a start and
// more a token, i32 all, so that 32 bits and a sign divide it: faster than 64.
KVCTS_INLINE std::int64_t compressed_entries(std::int64_t position, std::int64_t ratio,
                                             std::int64_t topk) {
  if (ratio <= 0) return 0;
  const std::int64_t tokens = position + 1;
  std::int64_t seen = 0;
  if (ratio <= 0xFFFFFFFF) {
    seen = static_cast<std::uint32_t>(tokens < 0 ? -tokens : tokens) /
           static_cast<std::uint32_t>(ratio);
    seen = tokens < 0 ? -seen : seen;
  }
  return seen < topk ? seen : topk;
}

}  // namespace kvcts::KVCTS_TARGET
