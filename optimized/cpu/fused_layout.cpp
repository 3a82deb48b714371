#include "optimized/kernels/fused_layout.h"

#include "optimized/cpu/kernel.h"

namespace kvcts::KVCTS_TARGET {

// Bytes: a unit's, or 0 where it has another size.
template <int Bytes>
static void move_units(const fused_layout_arguments& a, std::int64_t first, std::int64_t last) {
  const std::int64_t bytes = Bytes > 0 ? Bytes : a.unit_bytes;
  unsigned char* to = a.y + first * bytes;
  std::int64_t at = first;
  while (at < last) {
    // A chunk's units lie `chunks` apart in x.
    const unsigned char* from = a.x + unit_before(a, at) * bytes;
    const std::int64_t heads = a.heads - at % a.heads;
    const std::int64_t end = at + heads < last ? at + heads : last;
    for (; at < end; ++at) {
      __builtin_memcpy(to, from, static_cast<std::size_t>(bytes));
      to += bytes;
      from += a.chunks * bytes;
    }
  }
}

void fused_layout(const fused_layout_arguments& a, profile /*p*/, std::int64_t first,
                  std::int64_t last) {
  switch (a.unit_bytes) {  // small ones without a call each
    case 1:
      return move_units<1>(a, first, last);
    case 2:
      return move_units<2>(a, first, last);
    case 4:
      return move_units<4>(a, first, last);
    case 8:
      return move_units<8>(a, first, last);
    case 16:
      return move_units<16>(a, first, last);
    case 32:
      return move_units<32>(a, first, last);
    case 64:
      return move_units<64>(a, first, last);
    default:
      return move_units<0>(a, first, last);
  }
}

}  // namespace kvcts::KVCTS_TARGET
