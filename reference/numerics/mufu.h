// The approximate instructions of NVIDIA GPUs, in integers, exact for every input.
#pragma once

namespace kvcts {

float rcp_approx_ftz(float x);     // rcp.approx.ftz.f32
float rsqrt_approx_ftz(float x);   // rsqrt.approx.ftz.f32
float ex2_approx_ftz(float x);     // ex2.approx.ftz.f32
float ex2_approx(float x);         // ex2.approx.f32: subnormal results kept
float div_full(float a, float b);  // div.full.f32
// exp as the public kernels compute it: ex2.approx of RN(x * 0x3FB8AA3B).
float exp_approx(float x);

}  // namespace kvcts
