"""The arithmetic of docs/numerics.md in numpy: what the two example kernels need of profile nvidia.

numpy rounds every f32 operation once and fuses none, so the formulas stand here as written there.
"""

import pathlib
import re

import numpy as np

f32 = np.float32
R6 = np.uint32(0x3E2AAAAB).view(f32)  # 1/6, rounded
FLOOR_MXFP4 = np.uint32(0x01C00000).view(f32)  # 6 * 2^-126
FLOOR_FP8 = np.uint32(0x38D1B717).view(f32)  # 1e-4


def bf16_to_f32(bits):
    return (np.ascontiguousarray(bits).astype(np.uint32) << 16).view(f32)


def f32_to_bf16(x):
    bits = np.ascontiguousarray(x, dtype=f32).view(np.uint32)
    even = bits + 0x7FFF + ((bits >> 16) & 1)
    return np.where(np.isnan(x), 0x7FFF, even >> 16).astype(np.uint16)


def canonical(x):
    """A NaN that arithmetic makes is 0x7FFFFFFF."""
    return np.where(np.isnan(x), np.uint32(0x7FFFFFFF).view(f32), x).astype(f32)


def fma(a, b, c):
    """One rounding: the f64 sum is made odd where it is not exact, then rounded to f32."""
    a, b, c = (np.asarray(v, f32).astype(np.float64) for v in np.broadcast_arrays(a, b, c))
    product = a * b
    total = product + c
    back = total - product
    error = (product - (total - back)) + (c - back)
    bits = total.view(np.int64)
    move = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    away = (error > 0) == (total > 0)  # a larger magnitude
    return np.where(move, bits + np.where(away, 1, -1), bits).view(np.float64).astype(f32)


def _table(title):
    """128 segments (C0, C1, C2), from the page itself."""
    page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "numerics.md"
    text = page.read_text().split("\n" + title + ", 128 segments", 1)[1]
    found = re.findall(r"\b([0-9A-F]{7}) ([0-9A-F]{4}) ([0-9A-F]{4})\b", text)[:128]
    return np.array([[int(c, 16) for c in segment] for segment in found], dtype=np.int64)


ROOTS = _table("Reciprocal root")


def rsqrt(x):
    """rsqrt.approx.ftz."""
    x = np.asarray(x, f32)
    bits = x.view(np.int32).astype(np.int64)
    exponent = (bits >> 23 & 0xFF) - 127
    k = exponent >> 1  # x = 4^k * [1, 4)
    i = (bits & 0x7FFFFF) + ((exponent - 2 * k) << 23)
    c0, c1, c2 = np.moveaxis(ROOTS[i >> 17], -1, 0)
    low = i & 0x1FFFF
    square = (low >> 9) ** 2 >> 1
    for bit in range(2, 9):
        square += np.where(low >> bit & 1, low >> (18 - bit), 0)
    t = (c0 << 14) + 16383 - c1 * low + 2 * c2 * square
    root = (0x3E800000 + (t >> 16)).astype(np.int32).view(f32)
    root = np.where(i == 0, f32(1), root)
    root = np.ldexp(root, -k.astype(np.int32)).astype(f32)
    root = np.where(exponent == 128, f32(0), root)
    root = np.where(np.isnan(x) | (x < 0), np.uint32(0x7FFFFFFF).view(f32), root)
    tiny = np.copysign(f32(np.inf), x)
    return np.where(np.abs(x) < f32(2.0**-126), tiny, root).astype(f32)


def ceil_log2(q):
    """Of normal numbers and +infinity, which gives 128."""
    bits = np.asarray(q, f32).view(np.int32).astype(np.int64)
    exponent = (bits >> 23 & 0xFF) - 127
    # How far above 2^e the rounded logarithm still is e: by the distance of e from -1/2.
    distance = np.where(exponent >= 0, exponent, -exponent - 1)
    window = np.select([distance < 4, distance < 8, distance < 16, distance < 32, distance < 64],
                       [0, 1, 2, 5, 11], 22)
    return exponent + (bits & 0x7FFFFF > window)


def power_of_two(e):
    return np.ldexp(np.float64(1), np.asarray(e, np.int32)).astype(f32)


def amax(x, floor):
    """Over the last axis; NaNs do not count (signalling ones neither, which C's fmax lets pass)."""
    return np.maximum(np.max(np.where(np.isnan(x), 0, np.abs(x)), axis=-1), floor)


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E4M3 = {
    "e4m3fn": np.array([m * 2.0**-9 if e == 0 else (8 + m) * 2.0 ** (e - 10)
                        for e in range(16) for m in range(8)][:-1]),
    "e4m3fnuz": np.array([m * 2.0**-10 if e == 0 else (8 + m) * 2.0 ** (e - 11)
                          for e in range(16) for m in range(8)]),
}


def encode(x, magnitudes, sign, nan):
    """The nearest code, ties to the even one; past the largest it saturates."""
    size = np.abs(np.where(np.isnan(x), 0, x)).astype(np.float64)
    middles = (magnitudes[:-1] + magnitudes[1:]) / 2
    below = np.searchsorted(middles, size, side="left")
    above = np.searchsorted(middles, size, side="right")
    code = np.where(below % 2 == 0, below, above)
    code = code + np.where(np.signbit(x), sign, 0)
    return np.where(np.isnan(x), nan, code).astype(np.uint8)


def encode_e4m3(x, name):
    if name == "e4m3fn":
        return encode(x, E4M3[name], 0x80, 0x7F)
    code = encode(x, E4M3[name], 0x80, 0x80)
    return np.where((code == 0x80) & ~np.isnan(x), 0, code).astype(np.uint8)


def mxfp4_blocks(x):
    """f32 [..., n] -> codes packed [..., n/2], scale bytes [..., n/32]."""
    blocks = x.reshape(*x.shape[:-1], -1, 32)
    e = np.clip(ceil_log2(amax(blocks, FLOOR_MXFP4) * R6), -127, 127)
    codes = encode(blocks * power_of_two(-e)[..., None], E2M1, 8, 7).reshape(x.shape)
    packed = codes[..., 0::2] | codes[..., 1::2] << 4
    return packed, (e + 127).astype(np.uint8)


def _owned(block, warps, element_bytes):
    """[warps, lanes, own]: which elements of a row each lane adds, in order."""
    lanes = 32 * warps
    per = max(1, min(16 // element_bytes, block // lanes))
    chunks = np.arange(0, block, lanes * per)
    w = np.arange(max(1, min(warps, block // (32 * per))))
    l = np.arange(min(32, block // per))
    first = (w[:, None] * 32 + l) * per
    return (first[..., None, None] + chunks[:, None] + np.arange(per)).reshape(*first.shape, -1)


def _halve(p):
    while p.shape[-1] > 1:
        h = p.shape[-1] // 2
        p = p[..., :h] + p[..., h:]
    return p[..., 0]


def tree_sum(x, warps, element_bytes):
    """Over rows [N, block]."""
    own = x[:, _owned(x.shape[1], warps, element_bytes)]
    total = own[..., 0]
    for j in range(1, own.shape[-1]):
        total = total + own[..., j]
    return _halve(_halve(total))


def tree_squares(x, warps, element_bytes, mirrored=False):
    own = x[:, _owned(x.shape[1], warps, element_bytes)]
    if own.shape[-1] == 1:
        half = own.shape[2] // 2
        a, b = own[:, :, :half, 0], own[:, :, half:, 0]
        if mirrored:
            a, b = b, a
        return _halve(_halve(fma(a, a, b * b)))
    total = own[..., 1] * own[..., 1]
    for j in [0, *range(2, own.shape[-1])]:
        total = fma(own[..., j], own[..., j], total)
    return _halve(_halve(total))


def layer_norm(x, weight, bias, eps, warps, root=rsqrt):
    """Rows of a power of two of bf16 elements, given as f32; the result stays f32."""
    d = x.shape[1]
    inverse = f32(1 / d)
    mean = tree_sum(x, warps, 2) * inverse
    x = x - mean[:, None]
    r = root(fma(tree_squares(x, warps, 2), inverse, eps))[:, None]
    if d == 32:  # inside one warp the upper half has a sum of its own
        other = root(fma(tree_squares(x, warps, 2, mirrored=True), inverse, eps))[:, None]
        r = np.where(np.arange(d) < 16, r, other)
    return fma(x * r, weight, bias)
