"""Cases in a .npz, for machines that have numpy but no h5py.

One array for each storage, and `index`, a JSON text: for each case its attributes, inputs and
outputs, each with dtype, shape, strides and offset as in docs/vectors.md.
"""

import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from tensor import Tensor, initial  # noqa: E402


class Case:
    def __init__(self, name, entry, arrays):
        self.name = name  # kernel/case
        self.attributes = entry["attributes"]
        self.inputs = {n: Tensor(arrays[f"{name}/inputs/{n}"], *t["layout"])
                       for n, t in entry["inputs"].items()}
        self.outputs = {
            n: Tensor(initial(t["size"], t["stored"], self.inputs.get(n)), *t["layout"])
            for n, t in entry["outputs"].items()
        }


def load(path, kernel):
    with np.load(path) as arrays:
        index = json.loads(bytes(arrays["index"]))
        return [Case(name, entry, arrays) for name, entry in index.items()
                if name.split("/")[0] == kernel]


def save(path, cases):
    np.savez_compressed(path, **{f"{c.name}/actual/{n}": t.storage
                                 for c in cases for n, t in c.outputs.items()})
