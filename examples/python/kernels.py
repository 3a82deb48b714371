"""Two kernels by docs/kernels.md and docs/numerics.md. Each fills in the outputs of a case."""

import numpy as np

import numerics as n

f32 = np.float32


def mxfp4_k_norm_quant_insert(case, root=n.rsqrt):
    a, inputs, outputs = case.attributes, case.inputs, case.outputs
    tokens = int(a["num_tokens"])
    outputs["topk_indices_buffer"].view[:tokens] = -1

    slots = inputs["slot_mapping"].view
    rows = min(tokens, len(slots))
    if rows == 0:
        return
    y = n.layer_norm(inputs["k"].f32()[:rows], inputs["norm_weight"].f32(),
                     inputs["norm_bias"].f32(), f32(a["norm_eps"]), int(a.get("num_warps", 1)),
                     root)
    packed, scales = n.mxfp4_blocks(y)
    cache = outputs["kv_cache"]
    block_size = cache.shape[1]
    data_bytes, scale_bytes = packed.shape[1], scales.shape[1]
    for token, slot in enumerate(int(s) for s in slots[:rows]):
        if slot < 0:
            continue
        page = cache.offset + slot // block_size * cache.strides[0]
        data = page + slot % block_size * data_bytes
        scale = page + block_size * data_bytes + slot % block_size * scale_bytes
        cache.storage[data:data + data_bytes] = packed[token]
        cache.storage[scale:scale + scale_bytes] = scales[token]


def rotate_query(even, odd, c, s):
    return n.fma(even, c, -(odd * s)), n.fma(even, s, odd * c)


def fused_indexer_q_rope_quant(case, rotate=rotate_query):
    a, inputs, outputs = case.attributes, case.inputs, case.outputs
    q = inputs["index_q"].f32()  # [T, H, D]
    if q.size == 0:
        return
    table = inputs["index_q_cos_sin_cache"].f32()[inputs["positions"].view]  # [T, R]
    half = table.shape[1] // 2
    c, s = table[:, None, :half], table[:, None, half:]
    tail = q[..., q.shape[2] - 2 * half:]
    even, odd = rotate(tail[..., 0::2], tail[..., 1::2], c, s)
    tail[..., 0::2] = n.bf16_to_f32(n.f32_to_bf16(even))
    tail[..., 1::2] = n.bf16_to_f32(n.f32_to_bf16(odd))

    weights = inputs["index_weights"].f32()
    if a["use_fp4"]:
        outputs["q_packed"].view[:], outputs["q_scale"].view[:] = n.mxfp4_blocks(q)
    else:
        limit = f32(448 if a["fp8_format"] == "e4m3fn" else 224)
        scale = n.power_of_two(n.ceil_log2(n.amax(q, n.FLOOR_FP8) / limit))
        outputs["q_quant"].view[:] = n.encode_e4m3(q / scale[..., None], a["fp8_format"])
        weights = weights * scale
    weights = weights * f32(a["index_weights_softmax_scale"]) * f32(a["index_weights_head_scale"])
    out = outputs["weights_out"]
    out.view[:] = n.f32_to_bf16(weights) if out.dtype == "bf16" else n.canonical(weights)


# What one gets wrong easily: the true reciprocal root instead of the GPU's; the rotation of keys,
# which rounds the other product of the odd element, instead of that of queries.
def wrong_root(x):
    return (1 / np.sqrt(np.asarray(x, np.float64))).astype(f32)


def wrong_rotation(even, odd, c, s):
    return n.fma(even, c, -(odd * s)), n.fma(odd, c, even * s)
