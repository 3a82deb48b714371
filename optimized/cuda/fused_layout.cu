#include "optimized/cuda/rows.h"
#include "optimized/kernels/fused_layout.h"

namespace kvcts {
namespace {

// A row is a piece of a unit: at most 4 words of a lane.
template <class Word>
struct piece {
  fused_layout_arguments layout;
  std::int64_t words;   // of a unit
  std::int64_t pieces;  // of a unit
};
constexpr int words_a_lane = 4;
constexpr int words_a_piece = 32 * words_a_lane;

template <class Word>
struct move_body {
  static __device__ __forceinline__ void run(const piece<Word>& p, std::int64_t row) {
    const std::int64_t unit = device::divided(row, p.pieces);
    const std::int64_t first = (row - unit * p.pieces) * words_a_piece + device::group::lane();
    const std::int64_t before = device::unit_before(p.layout, unit);
    const Word* from = reinterpret_cast<const Word*>(p.layout.x) + before * p.words + first;
    Word* to = reinterpret_cast<Word*>(p.layout.y) + unit * p.words + first;
    Word x[words_a_lane];
#pragma unroll
    for (int i = 0; i < words_a_lane; ++i) {
      if (first + i * 32 < p.words) x[i] = device::load_global(from + i * 32);
    }
#pragma unroll
    for (int i = 0; i < words_a_lane; ++i) {
      if (first + i * 32 < p.words) to[i * 32] = x[i];
    }
  }
};

template <class Word>
void launch_of(const fused_layout_arguments& a, cudaStream_t stream) {
  piece<Word> p{a, a.unit_bytes / static_cast<std::int64_t>(sizeof(Word)), 0};
  p.pieces = (p.words + words_a_piece - 1) / words_a_piece;
  launch_rows<move_body<Word>>(p, a.units * p.pieces, stream, "fused_layout");
}

bool is_aligned(const fused_layout_arguments& a, std::int64_t bytes) {
  return is_multiple(a.x, bytes) && is_multiple(a.y, bytes) && is_multiple(a.unit_bytes, bytes);
}

}  // namespace

void launch_fused_layout(const fused_layout_arguments& a, profile /*p*/, cudaStream_t stream) {
  if (is_aligned(a, 16)) {
    launch_of<uint4>(a, stream);
  } else if (is_aligned(a, 4)) {
    launch_of<unsigned>(a, stream);
  } else {
    launch_of<unsigned char>(a, stream);
  }
}

}  // namespace kvcts
