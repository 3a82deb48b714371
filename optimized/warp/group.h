// The vocabulary that the kernels are written in, once for every target.
//
// A group is 32 lanes. A kernel function runs once a group: on the device each lane is a thread and
// a lane-wise value is an ordinary variable; on the CPU a lane-wise value is a struct of vectors
// that holds all 32 lanes. Scalars (addresses, counts, slots) are the same in all lanes.
//
//   u32, f32, mask     lane-wise values; + - & | ^ << >> and < > on u32
//   bf16x8             8 consecutive bf16 a lane, two a word, the even one in the low half
//   lane()             0..31
//   select(m, a, b)    a where m holds
//   bits, as_f32       the same bits as u32, f32
//   mul                one rounding; a NaN result is 0x7FFFFFFF
//   shuffle_xor<M>     the value of lane ^ M
//   amax<Lanes>        the bits of the largest |x| over a block of Lanes lanes, NaN ignored, at
//                      least `floor`; in every lane of the block
//   encode_e2m1        8 codes of RN(x * factor), element 0 in the low nibble
//   encode_e4m3        8 codes of RN(x * factor) limited to +-448, NaN as +448
//   load_rows, store_rows        rows of LanesPerRow lanes, 16 (4) bytes a lane; absent rows are
//                                read as zeros and not written
//   store_pairs, store_raw       8 (16) bytes a lane from the first (last) lanes
//   store_block_bytes  a byte a block of Lanes lanes, blocks in order, value after value
//   load_f32, load_bf16, store_f32   an element a lane, of the first `count` lanes
//
// `Aligned` promises natural alignment of every access (16, 8, 4 bytes); without it the device goes
// byte by byte. Factors are powers of two, or 0.
#pragma once

#include "reference/numerics/rules.h"  // the profile's name only

#if defined(__CUDACC__)
#include "optimized/warp/group_cuda.h"
#else
#include "optimized/warp/group_cpu.h"
#endif
