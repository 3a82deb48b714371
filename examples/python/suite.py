"""Vector files of docs/vectors.md through h5py: what a kernel gets, and where it writes."""

import numpy as np

from tensor import Tensor, initial


def scalar(value):
    return value.decode() if isinstance(value, bytes) else value


def layout(dataset):
    """dtype, shape, strides and offset of a dataset of either storage form."""
    dtype = str(scalar(dataset.attrs["dtype"]))
    if "shape" in dataset.attrs:
        shape, strides = ([int(i) for i in dataset.attrs[name]] for name in ("shape", "strides"))
        return dtype, shape, strides, int(dataset.attrs["offset"])
    shape = dataset.shape
    strides = [int(np.prod(shape[i + 1:], dtype=np.int64)) for i in range(len(shape))]
    return dtype, list(shape), strides, 0


class Case:
    """A call: `attributes`, `inputs`, and `outputs` to fill in."""

    def __init__(self, group):
        self.group = group
        self.attributes = {k: scalar(v) for k, v in group.attrs.items() if k != "flags"}
        self.inputs = {name: Tensor(d[...].reshape(-1), *layout(d))
                       for name, d in group["inputs"].items()}
        # Of `expected` only the form is looked at.
        self.outputs = {name: Tensor(initial(d.size, d.dtype, self.inputs.get(name)), *layout(d))
                        for name, d in group["expected"].items()}

    def save(self):
        write_actual(self.group, {name: t.storage for name, t in self.outputs.items()})


def write_actual(group, storages):
    if "actual" in group:
        del group["actual"]
    actual = group.create_group("actual")
    for name, storage in storages.items():
        actual[name] = storage.reshape(group["expected"][name].shape)


def cases(file, kernel):
    return [Case(group) for group in file[kernel].values()] if kernel in file else []
