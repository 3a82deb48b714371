"""Accuracy once more, by numpy: computes SQNR, worst relative error and share of saturated values of
captured cases straight from their bytes, and compares them with the report of a run of the reference.
Usage: accuracy_check.py KVCTS SUITE.h5"""

import json
import subprocess
import sys
import tempfile

import h5py
import numpy as np

WIDTH = {"bf16": np.uint16, "f32": np.float32, "i32": np.int32, "i64": np.int64}
E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])


def tensor(group, name):
    data = group[name]
    dtype = data.attrs["dtype"]
    dtype = dtype.decode() if isinstance(dtype, bytes) else dtype
    flat = np.ascontiguousarray(data[...]).reshape(-1).view(WIDTH.get(dtype, np.uint8))
    if "shape" not in data.attrs:
        return flat.reshape(data.shape)
    return np.lib.stride_tricks.as_strided(
        flat[int(data.attrs["offset"]):], [int(n) for n in data.attrs["shape"]],
        [int(n) * flat.itemsize for n in data.attrs["strides"]])


def real(bits):
    """bf16 bits or f32 as f64."""
    if bits.dtype == np.uint16:
        bits = (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.astype(np.float64)


def e4m3(codes):
    codes = codes.astype(int)
    exponent, mantissa = codes >> 3 & 15, codes & 7
    size = np.where(exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0**(exponent - 7))
    size[codes & 127 == 127] = np.nan
    return np.where(codes > 127, -size, size), exponent == 0, codes & 127 == 126


def e2m1(packed):
    codes = np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1)
    return E2M1[codes], codes & 7 < 2, codes & 7 == 7


def power(byte):
    return np.where(byte == 255, np.nan, np.exp2(byte.astype(np.float64) - 127))


def blocks(values, scales):
    """Each scale for as many values as there are."""
    number, small, large = values
    return number * np.repeat(scales, number.shape[-1] // scales.shape[-1], -1), small, large


def plain(bits):
    number = real(bits)
    return number, np.abs(number) < 2.0**-126, np.zeros(number.shape, bool)


def stacked(rows):
    return [np.array(part) for part in zip(*rows)]


def slots_of(case, name):
    """(token, slot) of the tokens that are inserted."""
    slots = tensor(case["inputs"], name)
    return [(t, s) for t, s in enumerate(slots) if s >= 0]


def page(cache, slot, data, scales):
    """The data and the scale bytes of a slot of a page view; cache is [pages, ...]."""
    tokens = cache.shape[1] if cache.ndim == 3 else None
    base = np.lib.stride_tricks.as_strided(cache, [cache.shape[0], tokens * (data + scales)],
                                           [cache.strides[0], 1])[slot // tokens]
    at = slot % tokens
    return (base[at * data:(at + 1) * data],
            base[tokens * data + at * scales:tokens * data + (at + 1) * scales])


def q_quant(case):
    packed, scale = (tensor(case["expected"], n) for n in ("q_packed", "q_scale"))
    q = real(tensor(case["inputs"], "index_q"))
    heads = q.shape[1]
    bytes_of = np.ascontiguousarray(scale).view(np.uint8).reshape(*scale.shape, 4)
    yield "q_packed", q, blocks(e2m1(packed[:, :heads]), power(bytes_of[:, :heads]))


def key_insert(case):
    k, weight, bias = (real(tensor(case["inputs"], n)) for n in ("k", "norm_weight", "norm_bias"))
    cache = tensor(case["expected"], "kv_cache")
    eps = float(np.float32(case.attrs["norm_eps"]))
    rows, got = [], []
    for t, s in slots_of(case, "slot_mapping"):
        if t >= case.attrs["num_tokens"]:
            continue
        d = k[t] - k[t].mean()
        rows.append(d / np.sqrt((d * d).mean() + eps) * weight + bias)
        codes, scales = page(cache, s, k.shape[1] // 2, k.shape[1] // 32)
        got.append(blocks(e2m1(codes), power(scales)))
    yield "kv_cache (mxfp4_indexer)", np.array(rows), stacked(got)


def quantize_and_insert(case):
    k = real(tensor(case["inputs"], "k"))
    cache = tensor(case["expected"], "k_cache")
    record = int(case.attrs["bytes_per_token"])
    if cache.ndim == 2:
        cache = np.lib.stride_tricks.as_strided(
            cache, [cache.shape[0], int(case.attrs["block_size"]), record],
            [cache.strides[0], record, 1])
    rows, got = [], []
    for t, s in slots_of(case, "slot_mapping"):
        rows.append(k[t])
        if record == 584:
            rows[-1] = k[t, :448]  # the others are copied
            codes, scales = page(cache, s, 576, 8)
            got.append(blocks(e4m3(codes[:448]), power(scales[:7])))
        else:
            codes, scales = page(cache, s, 512, 16)
            got.append(blocks(e4m3(codes), power(scales)))
    yield "k_cache (v4)" if record == 584 else "k_cache (v41_mxfp8)", np.array(rows), stacked(got)


def inverse_rope(case):
    o, table = (real(tensor(case["inputs"], n)) for n in ("o", "cos_sin_cache"))
    positions = tensor(case["inputs"], "positions")
    heads, rope, size = (int(case.attrs[n]) for n in ("heads_per_group", "rope_dim",
                                                      "quant_group_size"))
    cosines = table[positions, None, :rope // 2]
    sines = table[positions, None, rope // 2:]
    turned = (o[..., -rope::2] + 1j * o[..., 1 - rope::2]) * (cosines - 1j * sines)
    exact = o.copy()
    exact[..., -rope::2] = turned.real
    exact[..., 1 - rope::2] = turned.imag
    tokens, _, dims = o.shape
    output, scales = (tensor(case["expected"], n) for n in ("output", "scales"))
    groups = output.shape[0]
    per_group = heads * dims // size
    padded = (tokens + 3) // 4 * 4
    if case.attrs["tma_aligned_scales"]:
        raw = np.ascontiguousarray(scales).view(np.uint8).reshape(groups, per_group // 4, padded, 4)
        factors = power(raw.transpose(0, 2, 1, 3).reshape(groups, padded, per_group))
    else:
        factors = scales.reshape(groups, per_group, padded).transpose(0, 2, 1).astype(np.float64)
    wanted = exact.reshape(tokens, groups, heads * dims).transpose(1, 0, 2)
    by_head = (groups, tokens, heads, dims)
    yield "output", wanted.reshape(by_head), [
        part.reshape(by_head) for part in blocks(e4m3(output), factors[:, :tokens])]


def q_kv_norm(case):
    eps = float(np.float32(case.attrs["eps"]))

    def norm(name, weight):
        x = real(tensor(case["inputs"], name))
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * real(
            tensor(case["inputs"], weight))

    q = norm("qr", "q_weight")
    groups = q.shape[1] // 32
    raw = tensor(case["expected"], "q_scales")
    # F8_128x4: [row / 128, group / 4, row % 32, row / 32 % 4, group % 4].
    tiles = raw.reshape(-1, (groups + 3) // 4, 32, 4, 4).transpose(0, 3, 2, 1, 4)
    scales = tiles.reshape(-1, (groups + 3) // 4 * 4)[:q.shape[0], :groups]
    yield "q_quant", q, blocks(e4m3(tensor(case["expected"], "q_quant")), power(scales))
    yield "kv_out", norm("kv", "kv_weight"), plain(tensor(case["expected"], "kv_out"))


KERNELS = {
    "mxfp4_q_quant": q_quant,
    "mxfp4_k_norm_quant_insert": key_insert,
    "quantize_and_insert_k_cache": quantize_and_insert,
    "fused_inv_rope_fp8_quant": inverse_rope,
    "fused_q_kv_rmsnorm_quant": q_kv_norm,
}


def figures(exact, got):
    """Each row (the last axis) has its SQNR; of all their lower median."""
    exact, number, small, large = (np.reshape(a, (-1, a.shape[-1])) for a in (exact, *got))
    counted = np.isfinite(exact) & np.isfinite(number)
    if not counted.any():
        return None
    error = np.where(counted, number - exact, 0)
    exact = np.where(counted, exact, 0)
    rows = counted.any(1)
    noise = (error[rows]**2).sum(1)
    sqnr = np.where(noise == 0, np.inf, 10 * np.log10((exact[rows]**2).sum(1) / noise))
    sized = counted & ~small & (exact != 0)
    relative = np.abs(error[sized] / exact[sized]).max(initial=0)
    median = np.sort(sqnr)[(len(sqnr) - 1) // 2]
    return counted.sum(), max(median, -10000), relative, large[counted].mean()


def main():
    program, suite = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "run", "--candidate", "reference", "--vectors", suite, "--kernels",
                        ",".join(KERNELS), "--report", folder], check=True,
                       stdout=subprocess.DEVNULL)
        with open(folder + "/report.json", encoding="utf-8") as file:
            rows = {(c["kernel"], c["name"], r["argument"]): r
                    for c in json.load(file)["cases"] for r in c["accuracy"]}
    compared = 0
    with h5py.File(suite, "r") as file, np.errstate(all="ignore"):
        for kernel, compute in KERNELS.items():
            for name, case in file[kernel].items():
                for argument, exact, got in compute(case):
                    own = figures(exact, got) if len(exact) else None
                    row = rows.get((kernel, name, argument))
                    if own is None:
                        assert row is None, (kernel, name, argument, row)
                        continue
                    theirs = (row["values"], np.inf if row["sqnr_db"] is None else row["sqnr_db"],
                              row["worst_relative"], row["saturated"])
                    assert np.allclose(own, theirs, rtol=1e-6, atol=1e-9), (
                        kernel, name, argument, own, theirs)
                    compared += 1
    print(f"{compared} outputs of captured cases: numpy finds the same accuracy")
    assert compared > 60, compared


if __name__ == "__main__":
    main()
