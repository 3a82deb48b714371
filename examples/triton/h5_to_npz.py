#!/usr/bin/env python3
"""h5_to_npz.py SUITE.h5 CASES.npz: a suite's inputs, and the form of its outputs."""

import json
import sys

try:
    import h5py
except ImportError as missing:
    sys.exit(f"{missing}; install h5py (Debian: python3-h5py) and run this by /usr/bin/python3")
import numpy as np

import npz  # noqa: F401  (the path of the modules below)
from suite import layout, scalar


def plain(value):
    return value.item() if isinstance(value, np.generic) else value


def main():
    arrays, index = {}, {}
    with h5py.File(sys.argv[1]) as file:
        for kernel, cases in file.items():
            for name, group in cases.items():
                case = f"{kernel}/{name}"
                for n, d in group["inputs"].items():
                    arrays[f"{case}/inputs/{n}"] = d[...].reshape(-1)
                index[case] = {
                    "attributes": {k: plain(scalar(v)) for k, v in group.attrs.items()
                                   if k != "flags"},
                    "inputs": {n: {"layout": layout(d)} for n, d in group["inputs"].items()},
                    "outputs": {n: {"layout": layout(d), "size": int(d.size),
                                    "stored": d.dtype.str}
                                for n, d in group["expected"].items()},
                }
    arrays["index"] = np.frombuffer(json.dumps(index).encode(), np.uint8)
    np.savez_compressed(sys.argv[2], **arrays)
    print(f"{sys.argv[2]}: {len(index)} cases")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main()
