#!/usr/bin/env python3
"""npz_to_h5.py SUITE.h5 RESULTS.npz COPY.h5: a copy of the suite with `actual` filled in."""

import shutil
import sys

try:
    import h5py
except ImportError as missing:
    sys.exit(f"{missing}; install h5py (Debian: python3-h5py) and run this by /usr/bin/python3")
import numpy as np

import npz  # noqa: F401  (the path of the module below)
from suite import write_actual


def main():
    suite, results, copy = sys.argv[1:]
    shutil.copyfile(suite, copy)
    filled = {}
    with np.load(results) as arrays:
        for key in arrays.files:
            case, name = key.split("/actual/")
            filled.setdefault(case, {})[name] = arrays[key]
    with h5py.File(copy, "r+") as file:
        for case, storages in filled.items():
            write_actual(file[case], storages)
    print(f"{copy}: {len(filled)} cases filled in")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main()
