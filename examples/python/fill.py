#!/usr/bin/env python3
"""Copies a suite of `kvcts vectors generate` and fills in what the kernels of kernels.py write.

    fill.py SUITE COPY [--mistake KERNEL]

Then `kvcts verify SUITE COPY`. With --mistake that kernel has one error on purpose.
"""

import argparse
import shutil
import sys

try:
    import h5py
except ImportError as missing:
    sys.exit(f"{missing}; install h5py (Debian: python3-h5py) and run this by /usr/bin/python3")
import numpy as np

import kernels
import suite

KERNELS = {
    "mxfp4_k_norm_quant_insert": (kernels.mxfp4_k_norm_quant_insert, kernels.wrong_root),
    "fused_indexer_q_rope_quant": (kernels.fused_indexer_q_rope_quant, kernels.wrong_rotation),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite")
    parser.add_argument("copy")
    parser.add_argument("--mistake", choices=KERNELS)
    arguments = parser.parse_args()
    shutil.copyfile(arguments.suite, arguments.copy)
    with h5py.File(arguments.copy, "r+") as file, np.errstate(all="ignore"):
        if suite.scalar(file.attrs["profile"]) != "nvidia":
            parser.error("this example computes profile nvidia only")
        for kernel, (run, mistake) in KERNELS.items():
            for case in suite.cases(file, kernel):
                run(case, mistake) if arguments.mistake == kernel else run(case)
                case.save()
            print(f"{kernel}: {len(file.get(kernel, []))} cases")


if __name__ == "__main__":
    main()
