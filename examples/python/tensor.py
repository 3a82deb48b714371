"""A tensor in the storage of a vector file (docs/vectors.md)."""

import numpy as np

from numerics import bf16_to_f32


class Tensor:
    """The whole storage, and the tensor in it as a strided view. Strides and offset in elements."""

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


def initial(size, dtype, updated):
    """The storage of an output before a call: 0xCC, or the input that is updated."""
    if updated is not None:
        return updated.storage.copy()
    storage = np.empty(size, dtype)
    storage.view(np.uint8)[:] = 0xCC
    return storage
