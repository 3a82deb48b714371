"""Vector files of docs/vectors.md through h5py: what a kernel gets, and where it writes."""

import h5py
import numpy as np

from numerics import bf16_to_f32


class Tensor:
    """One dataset: the whole storage, and the tensor in it as a strided view."""

    def __init__(self, storage, dtype, shape, strides, offset):
        self.storage, self.dtype, self.strides, self.offset = storage, dtype, strides, offset
        step = [s * storage.itemsize for s in strides]
        self.view = np.lib.stride_tricks.as_strided(storage[offset:], shape, step)

    @property
    def shape(self):
        return self.view.shape

    def f32(self):
        """The values of a bf16 or f32 tensor."""
        return bf16_to_f32(self.view) if self.dtype == "bf16" else np.array(self.view, np.float32)


def read(dataset, storage=None):
    """With `storage`, that instead of the dataset's own."""
    if storage is None:
        storage = dataset[...].reshape(-1)
    dtype = dataset.attrs["dtype"]
    dtype = dtype.decode() if isinstance(dtype, bytes) else str(dtype)
    if "shape" in dataset.attrs:
        layout = [dataset.attrs[name] for name in ("shape", "strides", "offset")]
        return Tensor(storage, dtype, *([int(i) for i in v] for v in layout[:2]), int(layout[2]))
    shape = dataset.shape
    strides = [int(np.prod(shape[i + 1:], dtype=np.int64)) for i in range(len(shape))]
    return Tensor(storage, dtype, shape, strides, 0)


def scalar(value):
    return value.decode() if isinstance(value, bytes) else value


class Case:
    """A call: `attributes`, `inputs`, and `outputs` to fill in."""

    def __init__(self, group):
        self.group = group
        self.attributes = {k: scalar(v) for k, v in group.attrs.items() if k != "flags"}
        self.inputs = {name: read(d) for name, d in group["inputs"].items()}
        # Of `expected` only the form is looked at. A buffer that is updated starts as its input,
        # any other output as 0xCC.
        self.outputs = {}
        for name, d in group["expected"].items():
            if name in self.inputs:
                storage = self.inputs[name].storage.copy()
            else:
                storage = np.empty(d.size, d.dtype)
                storage.view(np.uint8)[:] = 0xCC
            self.outputs[name] = read(d, storage)

    def save(self):
        if "actual" in self.group:
            del self.group["actual"]
        actual = self.group.create_group("actual")
        for name, tensor in self.outputs.items():
            like = self.group["expected"][name]
            actual[name] = tensor.storage.reshape(like.shape)


def cases(file: h5py.File, kernel):
    return [Case(group) for group in file[kernel].values()] if kernel in file else []
