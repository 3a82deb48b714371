// Correctly rounded functions of the portable profile, the same on every platform.
#pragma once

namespace kvcts {

float rsqrt_rn(float x);  // RN(1/sqrt(x)); signed zeros give signed infinities
float exp_rn(float x);    // RN(e^x), subnormal results kept

}  // namespace kvcts
