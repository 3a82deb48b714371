"""Writes a vector file in the manner of h5py: the counterpart of h5py_test.cpp.

usage: h5py_write.py FILE COMPRESSION
"""
import sys

import h5py
import numpy as np

with h5py.File(sys.argv[1], "w") as f:
    f.attrs["schema"] = "kvcts-vectors"
    f.attrs["schema_version"] = 1
    f.attrs["profile"] = "ieee"
    f.attrs["producer"] = "h5py \u00e9"
    f.attrs["seed"] = np.uint64(2**64 - 1)
    case = f.create_group("quantize_and_insert_k_cache/from_python")
    case.attrs["flags"] = ["FromPython", "StridedPage"]
    case.attrs["block_size"] = np.int16(4)
    case.attrs["use_fnuz"] = True
    case.attrs["bytes_per_token"] = np.uint32(584)

    def put(name, data, dtype, extent=None, **options):
        dataset = case.create_dataset(name, data=data, **options)
        dataset.attrs["dtype"] = dtype
        if extent:
            dataset.attrs["shape"], dataset.attrs["strides"], dataset.attrs["offset"] = extent

    index = np.arange(6 * 512, dtype=np.uint64)
    k = ((index * 2654435761) >> 8).astype(np.uint16).reshape(6, 512)
    put("inputs/k", k.astype(">u2"), "bf16", compression=sys.argv[2], fletcher32=True)
    slots = np.array([11, -1, 0, 5, -9223372036854775808], np.int64)
    put("inputs/slot_mapping", slots, "i64")
    cache = (np.arange(7300) * 7 % 251).astype(np.uint8)
    extent = ([3, 4, 584], np.array([2400, 584, 1], np.int32), 7)
    put("inputs/k_cache", cache, "u8", extent, compression="gzip", chunks=(1000,))
    case["expected/k_cache"] = case["inputs/k_cache"]  # a hard link
    case["actual/k_cache"] = cache  # no attributes
