// The vocabulary that the kernels are written in, once for every target.
//
// A group is 32 lanes. A kernel function runs once a group: on the device each lane is a thread and
// a lane-wise value is an ordinary variable; on the CPU a lane-wise value is a struct of vectors
// that holds all 32 lanes. Scalars (addresses, counts, slots) are the same in all lanes.
//
//   u32, f32, mask     lane-wise values; + - * & | ^ << >> and < > == on u32, & | on masks, and
//                      + - * / < > on f32 (no NaN is made canonical here)
//   words<N>           N consecutive words a lane; bf16x8 = words<4>: 8 bf16, two a word, the even
//                      one in the low half
//   lane()             0..31
//   splat, splat_f32   a scalar in all lanes;  first: lane 0's value as a scalar
//   select(m, a, b)    a where m holds
//   bits, as_f32       the same bits as u32, f32
//   mul                one rounding; a NaN result is 0x7FFFFFFF
//   fma                one rounding; has_fma: in one instruction, faster than a division
//   fma_in<Lanes>      fma in the lanes whose bit is set; in the others b is 1, or none looks there
//   is_nan             a mask
//   smaller(x, y)      x where it is below y, else y: of values that are not negative, x may be NaN
//                      (of two NaN, a NaN)
//   larger(x, y)       the larger; y where x is NaN (y is none)
//   shuffle_xor<M>     the value of lane ^ M
//   rsqrt_halves<P>    the profile's 1/sqrt of values that are alike in lanes 0..15 and in 16..31
//   amax<Lanes>        the bits of the largest |x| over a block of Lanes lanes, NaN ignored, at
//                      least `floor`; in every lane of the block; 4, 8 or 16 lanes
//   encode_e2m1        8 codes of RN(x * factor), element 0 in the low nibble; <true> where an
//                      infinity may meet the factor 0
//   encode_e4m3        8 codes of RN(x * factor) limited to +-448, NaN as +448
//   pack_bf16          two f32 rounded to bf16, in a word
//   load_words, store_words<Words, LanesPerRow>   rows of LanesPerRow lanes, Words words a lane;
//                      absent rows are read as zeros and not written
//   load_halves<Words> 2 * Words bf16 a lane; those from `count` on are read as zeros
//   load_changing_words          a row of memory that the same launch may write
//   converge           the lanes wait for one another, and see what each has written
//   store_pairs, store_raw       8 (16) bytes a lane from the first (last) lanes
//   store_block_bytes  a byte a block of Lanes lanes, blocks in order, value after value
//   load_f32, load_bf16, store_f32, store_halves, store_bytes    an element a lane, of the first
//                      `count` lanes (store_halves, store_bytes: the low bits of a u32)
//   scatter_words      a word a lane where a mask holds, `offset` bytes behind
//   store_word         lane 0's word;  fill_words: `count` words of one value, all lanes together
//   mul_high           the high word of the product with a scalar
//   gather             the word base[index] where m holds, and `otherwise` elsewhere
//   count_not_above    of `count` i32 that never fall, those up to a limit: a scalar
//   load_block_bytes   a byte a block of Lanes lanes, in all of them;  copy_bytes: Bytes bytes
//   load_i64, load_i32, load_u16    a scalar
//   negate             the other sign
//   gather_f32, gather_bf16    the element of each lane's index, at any address; 0 outside a mask
//   store_row_words<LanesPerRow>    the word of each row's first lane
//   store_even_bytes   a byte of each even lane, 16 in all
//   store_tiles<LanesPerRow>    rows of 8 bytes a lane, every 16 bytes 256 behind those before
//
// What follows from these for every target is in elements.h (codes, roundings, scale exponents) and
// approximate_*.h (rsqrt and division of each profile).
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
