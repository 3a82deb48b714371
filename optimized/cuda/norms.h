// Alignment of rows and their norms, and a launch's arguments with its profile.
#pragma once

#include "optimized/cuda/rows.h"

namespace kvcts {

inline bool is_aligned(const norm_vector& v) { return is_multiple(v.data, 16); }
inline bool is_aligned(const norm_rows& a) {
  return is_multiple(a.from, 16) && is_multiple(a.from_stride, 16) && is_multiple(a.to, 16) &&
         is_multiple(a.to_stride, 16) && is_aligned(a.weight);
}

template <class Arguments>
struct with_profile {
  Arguments of;
  profile rules;
};

}  // namespace kvcts
