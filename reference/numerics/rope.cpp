#include "reference/numerics/rope.h"

namespace kvcts {
namespace {

void rotate_pair(const Rules& rules, rope_form form, float& even, float& odd, float c, float s) {
  const float a = even;
  const float b = odd;
  switch (form) {
    case rope_form::store:
      even = rules.rope_even(a, b, c, s);
      odd = rules.rope_odd(a, b, c, s);
      return;
    case rope_form::query:
      even = rules.rope_even(a, b, c, s);
      odd = rules.rope_odd_query(a, b, c, s);
      return;
    case rope_form::inverse:
      even = rules.inverse_rope_even(a, b, c, s);
      odd = rules.inverse_rope_odd(a, b, c, s);
      return;
  }
}

}  // namespace

void rotate(const Rules& rules, rope_form form, float* x, std::int64_t dims, const float* cos_sin,
            std::int64_t rope_dims) {
  const std::int64_t half = rope_dims / 2;
  float* rotated = x + rules.first_rope_dim(dims, rope_dims);
  for (std::int64_t i = 0; i < half; ++i) {
    const rope_pair pair = rules.rope_pair_of(i, rope_dims);
    rotate_pair(rules, form, rotated[pair.even], rotated[pair.odd], cos_sin[i], cos_sin[half + i]);
  }
}

void pass_through(const Rules& rules, rope_form form, float* x, std::int64_t dims,
                  std::int64_t rope_dims) {
  const std::int64_t first = rules.first_rope_dim(dims, rope_dims);
  for (std::int64_t i = 0; i + 1 < dims; i += 2) {
    const bool rotates = i >= first && i < first + rope_dims;
    if (!rotates) rotate_pair(rules, form, x[i], x[i + 1], 1.0F, 0.0F);
  }
}

}  // namespace kvcts
