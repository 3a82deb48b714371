#!/usr/bin/env python3
"""Runs a Triton kernel of mxfp4_q_quant on the cases of a .npz.

    mxfp4_q_quant.py CASES.npz RESULTS.npz [--numpy]

Ends with status 77 where torch, Triton or a GPU is missing. --numpy computes on the CPU without
any of them: for a look at the exchange itself.
"""

import sys

import numpy as np

import npz
import numerics

try:
    import torch
    import triton
    import triton.language as tl

    missing = None if torch.cuda.is_available() else "torch sees no GPU"
except ImportError as error:
    missing = str(error)


def with_numpy(case):
    q, out = case.inputs["index_q"].f32(), case.outputs
    heads = q.shape[1]
    for tensor in out.values():
        tensor.view[...] = 0  # the padded heads
    if q.size == 0:
        return
    packed, scales = numerics.mxfp4_blocks(q)
    out["q_packed"].view[:, :heads] = packed
    out["q_scale"].view[:, :heads] = np.ascontiguousarray(scales).view("<i4")[..., 0]
    weights = case.inputs["index_weights"].f32() * np.float32(case.attributes["weight_scale"])
    out["weights"].view[:, :heads] = numerics.canonical(weights)


if missing is None:

    @triton.jit
    def e2m1(x, multiplier):
        bits = x.to(tl.int32, bitcast=True)
        a = tl.abs(x * multiplier)
        # Ties to the even code: the middles between codes are on the side of the even one.
        code = (a > 0.25).to(tl.int32) + (a >= 0.75).to(tl.int32) + (a > 1.25).to(tl.int32)
        code += (a >= 1.75).to(tl.int32) + (a > 2.5).to(tl.int32) + (a >= 3.5).to(tl.int32)
        code += (a > 5.0).to(tl.int32)
        nan = (bits & 0x7FFFFFFF) > 0x7F800000
        return tl.where(nan, 7, code | ((bits >> 28) & 8))

    @triton.jit
    def quantize(q, w, weight_scale, packed, scale, weights, token_stride, head_stride, w_stride,
                 heads, padded):
        token = tl.program_id(0).to(tl.int64)
        head = tl.program_id(1)
        live = head < heads
        block = tl.arange(0, 4)
        pair = block[:, None] * 16 + tl.arange(0, 16)[None, :]  # bytes of the head
        row = q + token * token_stride + head.to(tl.int64) * head_stride
        even = tl.load(row + 2 * pair, mask=live, other=0.0).to(tl.float32)
        odd = tl.load(row + 2 * pair + 1, mask=live, other=0.0).to(tl.float32)

        # amax by the bits of magnitudes, which order as integers; NaNs do not count.
        a = even.to(tl.int32, bitcast=True) & 0x7FFFFFFF
        b = odd.to(tl.int32, bitcast=True) & 0x7FFFFFFF
        a = tl.where(a > 0x7F800000, 0, a)
        b = tl.where(b > 0x7F800000, 0, b)
        amax = tl.maximum(tl.max(tl.maximum(a, b), axis=1), 0x01C00000)
        # Of bf16 values: e - 2 up to a mantissa of 1.5, else e - 1; 127 with an infinity.
        e = (amax >> 23) - 127
        e = tl.where((amax & 0x7FFFFF) <= 0x400000, e - 2, e - 1)
        e = tl.where(amax == 0x7F800000, 127, e)
        # 2^-e; 2^-127 is subnormal.
        multiplier = tl.where(e == 127, 0x00400000, (127 - e) << 23).to(tl.float32, bitcast=True)
        codes = e2m1(even, multiplier[:, None]) | (e2m1(odd, multiplier[:, None]) << 4)

        at = token * padded + head
        tl.store(packed + at * 64 + pair, tl.where(live, codes, 0).to(tl.uint8))
        four = tl.sum((e + 127) << (8 * block), axis=0)
        tl.store(scale + at, tl.where(live, four, 0))
        weight = tl.load(w + token * w_stride + head, mask=live, other=0.0).to(tl.float32)
        weight = weight * tl.load(weight_scale)
        tl.store(weights + at, tl.where(live, weight, 0.0))

    def on_gpu(tensor):
        storage = torch.from_numpy(tensor.storage.view(np.int16) if tensor.dtype == "bf16"
                                   else tensor.storage).cuda()
        if tensor.dtype == "bf16":
            storage = storage.view(torch.bfloat16)
        return storage[tensor.offset:]


def with_triton(case):
    q, w, out = case.inputs["index_q"], case.inputs["index_weights"], case.outputs
    tokens, heads = q.shape[:2]
    padded = out["weights"].shape[1]
    if tokens == 0 or padded == 0:
        return
    packed = torch.empty((tokens, padded, 64), dtype=torch.uint8, device="cuda")
    scale = torch.empty((tokens, padded), dtype=torch.int32, device="cuda")
    weights = torch.empty((tokens, padded), dtype=torch.float32, device="cuda")
    # As a tensor: an argument of Triton could be folded into the code as a constant.
    factor = torch.from_numpy(np.float32([case.attributes["weight_scale"]])).cuda()
    quantize[(tokens, padded)](on_gpu(q), on_gpu(w), factor, packed, scale, weights, q.strides[0],
                               q.strides[1], w.strides[0], heads, padded)
    for name, result in (("q_packed", packed), ("q_scale", scale), ("weights", weights)):
        out[name].view[...] = result.cpu().numpy()


def main():
    arguments = [a for a in sys.argv[1:] if a != "--numpy"]
    numpy = "--numpy" in sys.argv
    if len(arguments) != 2:
        sys.exit(__doc__)
    if missing and not numpy:
        print(f"skipped: {missing}; this example needs torch, Triton and a GPU")
        sys.exit(77)
    cases = npz.load(arguments[0], "mxfp4_q_quant")
    for case in cases:
        with np.errstate(all="ignore"):
            with_numpy(case) if numpy else with_triton(case)
    npz.save(arguments[1], cases)
    print(f"{arguments[1]}: {len(cases)} cases")


if __name__ == "__main__":
    main()
