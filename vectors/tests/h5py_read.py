"""Checks that our writer's file is what the schema says: the counterpart of h5py_test.cpp."""
import sys

import h5py
import numpy as np


def filled(seed, count):
    state, out = seed, bytearray()
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        out.append(state >> 24)
    return bytes(out)


with h5py.File(sys.argv[1], "r") as f:
    assert f.attrs["schema"] == b"kvcts-vectors", f.attrs["schema"]
    assert f.attrs["schema_version"] == 1
    assert f.attrs["seed"] == 0xFEDCBA9876543210 and f.attrs["seed"].dtype == np.uint64
    assert sorted(f) == ["mxfp4_q_quant", "quantize_and_insert_k_cache"]

    q = f["mxfp4_q_quant/t3_h2_p4"]
    assert q.attrs["flags"].shape == (0,) and q.attrs["flags"].dtype.kind == "S"
    assert q.attrs["weight_scale"] == 0.125 and q.attrs["weight_scale"].dtype == np.float64
    assert q.attrs["padded_num_heads"].dtype == np.int64
    index_q = q["inputs/index_q"]
    assert index_q.ndim == 1 and index_q.dtype == np.uint16 and index_q.attrs["dtype"] == b"bf16"
    assert list(index_q.attrs["shape"]) == [3, 2, 128]
    assert list(index_q.attrs["strides"]) == [400, 160, 1]
    assert index_q.attrs["offset"] == 8
    assert index_q[()].tobytes() == filled(1, 2 * index_q.size)
    weights = q["inputs/index_weights"]
    assert weights.shape == (3, 2) and weights.dtype == np.float32
    assert set(weights.attrs) == {"dtype"}
    assert weights[()].tobytes() == filled(2, 24)
    assert q["expected/q_scale"].dtype == np.int32 and q["expected/q_packed"].shape == (3, 4, 64)

    n5 = f["quantize_and_insert_k_cache/n5"]
    assert list(n5.attrs["flags"]) == [b"StridedPage", b"NegativeSlot"]
    assert n5.attrs["use_fnuz"].dtype == np.uint8 and n5.attrs["block_size"] == 4
    assert list(n5["inputs/slot_mapping"]) == [7, -1, 0, 3, -2]
    before, after = n5["inputs/k_cache"][()], n5["expected/k_cache"][()]
    assert list(np.nonzero(before != after)[0]) == [21]
    skipped = f["quantize_and_insert_k_cache/n5_skipped"]
    assert skipped["inputs/k_cache"] == skipped["expected/k_cache"]  # one object
    assert n5["inputs/k"] == skipped["inputs/k"] and n5["inputs/k"].shape == (5, 512)
