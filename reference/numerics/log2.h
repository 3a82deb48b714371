// The exponent of a scale.
#pragma once

namespace kvcts {

// ceil of the correctly rounded f32 log2(x), x normal and positive; +inf gives +inf. Just above
// powers of two the rounded log2 is the power itself: there the result is e, not e + 1.
float ceil_log2(float x);
// ceil of the exact log2(x): e, or e + 1 for any mantissa above 1. Not used by a profile.
float ceil_log2_exact(float x);

}  // namespace kvcts
