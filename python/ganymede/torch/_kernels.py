"""The kernels that an operator of PyTorch launches on a GPU, with their shapes, FLOPs and traffic.

They are those of eager PyTorch: an operator of ATen is one kernel, but for convolutions with a bias, backward passes of
convolutions and group norms, attention, and lists of tensors. The kinds are those of `kernels` in docs/step-trace.md.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

# Operators that give memory or read facts and launch nothing, beside those that return views.
FREE = {
    "empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided", "_local_scalar_dense", "lift_fresh", "lift",
    "set_", "resize_", "item", "equal", "is_same_size", "_efficientzerotensor", "record_stream", "is_pinned",
    "_pin_memory", "sym_size", "sym_numel", "sym_stride", "dim", "stride", "detach_", "squeeze_", "unsqueeze_", "t_",
    "transpose_", "_unsafe_view", "_reshape_alias", "retains_grad", "is_nonzero", "_nested_tensor_size", "sym_storage_offset"}
ELSEWHERE = {"prim", "c10d", "_c10d_functional"}  # namespaces of facts and of communication
# In-place operators that do not read what they overwrite.
OVERWRITES = {
    "copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_", "geometric_", "cauchy_",
    "log_normal_"}
REDUCTIONS = {
    "sum", "mean", "amax", "amin", "max", "min", "norm", "linalg_vector_norm", "var", "std", "var_mean", "std_mean",
    "prod", "any", "all", "argmax", "argmin", "logsumexp", "nansum"}
CONVOLUTIONS = {"convolution", "_convolution", "cudnn_convolution", "convolution_overrideable"}
SOFTMAX = {
    "_softmax": 1, "_log_softmax": 1, "_softmax_backward_data": 2, "_log_softmax_backward_data": 2}
BATCH_NORMS = {
    "native_batch_norm": 1, "_native_batch_norm_legit": 1, "_native_batch_norm_legit_functional": 1,
    "cudnn_batch_norm": 1, "batch_norm_with_update": 1, "_batch_norm_with_update": 1, "miopen_batch_norm": 1,
    "native_batch_norm_backward": 2, "cudnn_batch_norm_backward": 2, "batch_norm_backward": 2}
# Tensors that one launch of PyTorch's multi_tensor_apply takes, by the number of lists it works on, and its limits
# (ATen/native/cuda/MultiTensorApply.cuh).
LIST_TENSORS = {1: 110, 2: 64, 3: 48, 4: 36, 5: 30}
LIST_BLOCKS, LIST_CHUNK = 320, 65536


@dataclass
class Kernel:
    """A launch. `shape` has the members of the trace's format; FLOPs and bytes are those of the whole batch."""
    shape: Dict[str, Any]
    flops: float = 0
    read: float = 0
    written: float = 0
    layer: str = ""
    base: int = 0  # numbers that it works on, for kinds without matrix work


def numbers(tensor: Any) -> int:
    """Numbers that a kernel reads of a tensor; an expanded dimension is read once."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride()):
        count *= int(size) if stride != 0 or size <= 1 else 1
    return count


def size_of(tensor: Any) -> float:
    return float(numbers(tensor) * tensor.element_size())


@dataclass
class Shapes:
    """Turns operators into kernels for a batch of `images`."""
    images: int
    torch: Any
    tf32_convolutions: bool = True
    tf32_products: bool = False
    unknown: Dict[str, int] = field(default_factory=dict)

    # The kinds of kernels.

    def precision(self, tensor: Any, tf32: bool) -> str:
        if tensor.dtype == self.torch.float16:
            return "fp16"
        if tensor.dtype == self.torch.bfloat16:
            return "bf16"
        return "tf32" if tf32 else "fp32"

    def moving(self, op: str, base: float, read: float, written: float, kind: str = "elementwise", cols: int = 0,
               grows: bool = True, half: Optional[Any] = None) -> Kernel:
        """A kernel over `base` numbers. `read` and `written` are bytes; `cols` numbers are worked on together."""
        width = 2 if half is not None and half.element_size() == 2 else 4
        base = max(1, int(base))
        shape: Dict[str, Any] = {"kind": kind, "op": op}
        rows = base // cols if cols else 1
        cols = cols or base
        if grows and self.images > 1 and rows % self.images == 0 and rows > 1:
            rows //= self.images
        elif grows and rows == 1 and cols % self.images == 0:
            cols //= self.images
        else:
            shape["grows"] = "none"
        if rows > 1:
            shape["rows"] = rows
        shape["cols"] = cols
        reads, writes = min(1e6, read / width / base), min(1e6, written / width / base)
        if reads != 1:
            shape["reads"] = reads
        if writes != 1:
            shape["writes"] = writes
        shape["precision"] = self.precision(half, False) if width == 2 else "fp32"
        return Kernel(shape, 0, read, written, base=base)

    def product(self, a: Any, b: Any, batch: int, m: int, n: int, k: int) -> List[Kernel]:
        if min(batch, m, n, k) < 1:
            return []
        shape: Dict[str, Any] = {"kind": "batched-product" if batch > 1 else "product"}
        sizes = {"batch": batch, "m": m, "n": n, "k": k}
        by = next((one for one in (("batch",) if batch > 1 else ("m", "k", "n")) if sizes[one] % self.images == 0), None)
        shape["grows"] = by or "none"
        if by:
            sizes[by] //= self.images
        shape.update({one: size for one, size in sizes.items() if one != "batch" or size > 1})
        stored = [not t.is_contiguous() and t.dim() >= 2 and t.stride(-2) == 1 for t in (a, b)]
        if any(stored):
            shape["transposed"] = ("a" if stored[0] else "") + ("b" if stored[1] else "")
        shape["precision"] = self.precision(a, self.tf32_products)
        width = a.element_size()
        return [Kernel(shape, 2.0 * batch * m * n * k, width * float(batch) * (m * k + k * n),
                       width * float(batch) * m * n)]

    def convolution(self, kind: str, large: Any, small: Any, weight: Any, how: Dict[str, Any]) -> Kernel:
        """`large` is the input of the forward convolution and `small` its output, whichever of them is computed."""
        places, window = [int(s) for s in small.shape[2:]], [int(s) for s in weight.shape[2:]]
        extent, stride, padding = [int(s) for s in large.shape[2:]], list(how["stride"]), list(how["padding"])
        for i, (size, step, pad) in enumerate(zip(extent, stride, padding)):
            # Dilated windows have no place in the format: an undilated one over as many places has the same work.
            if (size + 2 * pad - window[i]) // step + 1 != places[i] or window[i] > size + 2 * pad:
                extent[i], padding[i] = (places[i] - 1) * step + window[i], 0
        while len(window) < 2:
            for values, one in ((places, 1), (window, 1), (extent, 1), (stride, 1), (padding, 0)):
                values.insert(0, one)
        images, channels = int(large.shape[0]), int(large.shape[1])
        shape: Dict[str, Any] = {"kind": kind, "in": [channels, *extent], "out": int(small.shape[1]), "window": window,
                                 "padding": padding, "stride": stride, "groups": int(how["groups"])}
        if images % self.images == 0:
            shape["batch"] = images // self.images
        else:
            shape["batch"], shape["grows"] = images, "none"
        if self.last(large) or self.last(weight):
            shape["channels_last"] = True
        shape["precision"] = self.precision(large, self.tf32_convolutions)
        flops = 2.0 * images * math.prod(places) * math.prod(window) * int(small.shape[1]) * channels / how["groups"]
        parts = {"convolution": (large, weight, small), "convolution-dgrad": (small, weight, large),
                 "convolution-wgrad": (large, small, weight)}[kind]
        return Kernel(shape, flops, size_of(parts[0]) + size_of(parts[1]), size_of(parts[2]))

    def last(self, tensor: Any) -> bool:
        if tensor.dim() != 4 or tensor.is_contiguous():
            return False
        return bool(tensor.is_contiguous(memory_format=self.torch.channels_last))

    # Operators.

    def of(self, func: Any, args: Sequence[Any], kwargs: Dict[str, Any], out: Any) -> List[Kernel]:
        """The kernels of a call that returned `out`."""
        name = func._schema.name.split("::")[-1]
        if name in FREE or func.namespace in ELSEWHERE or is_view(func):
            return []
        made = tensors(out, self.torch)
        if not made and not tensors((args, kwargs), self.torch):
            return []
        special = self.special(name)
        if special is not None:
            return special(args, made)
        if name.startswith("_foreach_") or name.startswith("_fused_") or name.startswith("_amp_foreach"):
            return self.of_lists(name, args, made)
        return self.generic(func, name, args, kwargs, made)

    def special(self, name: str) -> Optional[Callable[[Sequence[Any], List[Any]], List[Kernel]]]:
        if name in CONVOLUTIONS:
            return self.forward_convolution
        if name == "convolution_backward":
            return self.backward_convolution
        if name in ("mm", "addmm", "bmm", "baddbmm", "addmv", "mv", "dot", "linear"):
            return lambda args, made: self.matrices(name, args, made)
        if name.startswith("_scaled_dot_product_") or name in ("_flash_attention_forward", "_flash_attention_backward"):
            return lambda args, made: self.attention(name, args)
        if name in SOFTMAX:
            return lambda args, made: self.softmax(name, args)
        if name in BATCH_NORMS:
            return lambda args, made: self.batch_norm(name, args)
        if name in ("native_layer_norm", "native_layer_norm_backward", "native_group_norm",
                    "native_group_norm_backward", "_fused_rms_norm", "_fused_rms_norm_backward"):
            return lambda args, made: self.row_norm(name, args)
        return None

    def forward_convolution(self, args: Sequence[Any], made: List[Any]) -> List[Kernel]:
        image, weight, bias = args[0], args[1], args[2]
        how = {"stride": args[3], "padding": args[4], "groups": args[8]}
        result = made[0]
        kernels = [self.convolution("convolution-dgrad", result, image, weight, how) if args[6] else
                   self.convolution("convolution", image, result, weight, how)]
        if bias is not None:
            kernels.append(self.moving("bias", result.numel(), size_of(result), size_of(result), half=result))
        return kernels

    def backward_convolution(self, args: Sequence[Any], made: List[Any]) -> List[Kernel]:
        slope, image, weight, transposed, wanted = args[0], args[1], args[2], args[7], args[10]
        how = {"stride": args[4], "padding": args[5], "groups": args[9]}
        large, small = (slope, image) if transposed else (image, slope)
        kernels = []
        if wanted[0]:
            kind = "convolution" if transposed else "convolution-dgrad"
            kernels.append(self.convolution(kind, large, small, weight, how))
        if wanted[1]:
            kernels.append(self.convolution("convolution-wgrad", large, small, weight, how))
        if wanted[2]:
            kernels.append(self.moving("sum", slope.numel(), size_of(slope), 0, "normalization",
                                       int(slope.shape[1]), half=slope))
        return kernels

    def matrices(self, name: str, args: Sequence[Any], made: List[Any]) -> List[Kernel]:
        a, b = (args[1], args[2]) if name in ("addmm", "baddbmm", "addmv") else (args[0], args[1])
        if name in ("bmm", "baddbmm"):
            return self.product(a, b, int(a.shape[0]), int(a.shape[1]), int(b.shape[2]), int(a.shape[2]))
        if name == "linear":
            k = int(a.shape[-1])
            return self.product(a, b.t(), 1, a.numel() // max(1, k), int(b.shape[0]), k)
        if name == "dot":
            return self.product(a, b, 1, 1, 1, a.numel())
        return self.product(a, b, 1, int(a.shape[0]), int(b.shape[1]) if b.dim() > 1 else 1, int(a.shape[1]))

    def attention(self, name: str, args: Sequence[Any]) -> List[Kernel]:
        """Fused attention, as the matrix products that it consists of: two forward, five backward."""
        backward = "backward" in name
        query, key, value = args[1:4] if backward else args[0:3]
        batch = int(query.shape[0]) * int(query.shape[1])
        rows, others, width, deep = (int(query.shape[2]), int(key.shape[2]), int(query.shape[3]), int(value.shape[3]))
        if name.startswith("_scaled_dot_product_efficient") and query.shape[1] != key.shape[1]:
            batch = int(query.shape[0]) * int(query.shape[1])
        score = self.product(query, key, batch, rows, others, width)
        mix = self.product(query, value, batch, rows, deep, others)
        if not backward:
            return score + mix
        to_key = self.product(query, key, batch, others, width, rows)
        return score + mix + to_key + self.product(query, key, batch, rows, width, others) + self.product(
            query, value, batch, others, deep, rows)

    def softmax(self, name: str, args: Sequence[Any]) -> List[Kernel]:
        values = args[0]
        along = args[1] if SOFTMAX[name] == 1 else args[2]
        cols = int(values.shape[along]) if values.dim() else 1
        return [self.moving(name.strip("_"), values.numel(), SOFTMAX[name] * size_of(values), size_of(values), "softmax",
                            max(1, cols), half=values)]

    def batch_norm(self, name: str, args: Sequence[Any]) -> List[Kernel]:
        passes = BATCH_NORMS[name]
        values = args[0]
        op = "batch_norm" if passes == 1 else "batch_norm_backward"
        return [self.moving(op, values.numel(), passes * size_of(values), size_of(values), "normalization",
                            int(values.shape[1]) if values.dim() > 1 else 1, half=values)]

    def row_norm(self, name: str, args: Sequence[Any]) -> List[Kernel]:
        """Layer norms work on rows in one kernel; group norms take their statistics in another one first."""
        values, backward = args[0], name.endswith("_backward")
        passes = 2 if backward else 1
        size = size_of(values)
        if "group" in name:
            cols = max(1, values.numel() // max(1, int(values.shape[0]) * int(args[6] if not backward else args[8])))
            first = self.moving("norm_sums" if backward else "norm_statistics", values.numel(), passes * size, 0,
                                "normalization", cols, half=values)
            return [first, self.moving("norm_backward" if backward else "norm", values.numel(), passes * size, size,
                                       half=values)]
        normalized = args[2] if backward else args[1]
        cols = max(1, math.prod(int(s) for s in normalized))
        kernels = [self.moving("ln" if not backward else "ln_backward", values.numel(), passes * size, size,
                               "normalization", cols, half=values)]
        if backward:
            kernels.append(self.moving("sum", values.numel(), 2 * size, 0, "normalization", cols, half=values))
        return kernels

    def of_lists(self, name: str, args: Sequence[Any], made: List[Any]) -> List[Kernel]:
        lists = [tensors(one, self.torch) for one in args if isinstance(one, (list, tuple))]
        lists = [one for one in lists if one]
        if not lists:
            return []
        first = lists[0]
        base = sum(t.numel() for t in first)
        one = sum(size_of(t) for t in first)
        fused = name.startswith("_fused_")
        read = sum(size_of(t) for tensors_of_list in lists for t in tensors_of_list)
        written = 3 * one if fused else one
        if name in ("_foreach_zero_", "_foreach_copy_"):
            read -= one
        depth = min(5, len(lists) + (0 if name.endswith("_") or fused else 1))
        chunks = sum(-(-max(1, t.numel()) // LIST_CHUNK) for t in first)
        launches = max(-(-len(first) // LIST_TENSORS[depth]), -(-chunks // LIST_BLOCKS))
        kernel = self.moving("adam" if "adam" in name else name.strip("_"), base / launches, read / launches,
                             written / launches, grows=False, half=first[0])
        return [Kernel(dict(kernel.shape), 0, kernel.read, kernel.written, base=kernel.base) for _ in range(launches)]

    def generic(self, func: Any, name: str, args: Sequence[Any], kwargs: Dict[str, Any], made: List[Any]) -> List[Kernel]:
        given = tensors((args, kwargs), self.torch)
        in_place = name.endswith("_") and not name.endswith("__")
        written_to = given[:1] if in_place else made
        if name in OVERWRITES:
            given = given[1:]
        read, written = sum(size_of(t) for t in given), sum(size_of(t) for t in written_to)
        largest = max(given + written_to, key=lambda t: t.numel(), default=None)
        if largest is None or largest.numel() == 0:
            return []
        if func.namespace != "aten":
            self.unknown[str(func)] = self.unknown.get(str(func), 0) + 1
        grows = bool(largest.dim()) and int(largest.shape[0]) % self.images == 0
        half = largest if all(t.element_size() == 2 for t in given + written_to) else None
        if name in REDUCTIONS and made and made[0].numel() < largest.numel():
            cols = max(1, largest.numel() // max(1, made[0].numel()))
            return [self.moving(name, largest.numel(), read, written, "normalization", cols, grows, half)]
        return [self.moving(name.strip("_"), largest.numel(), read, written, grows=grows, half=half)]


def tensors(value: Any, torch: Any) -> List[Any]:
    """All tensors in nested lists, tuples and dictionaries."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [tensor for one in value for tensor in tensors(one, torch)]


_views: Dict[Any, bool] = {}


def is_view(func: Any) -> bool:
    """True for operators whose result shares its memory with an argument that they do not change."""
    known = _views.get(func)
    if known is None:
        aliases: Iterable[Any] = (one.alias_info for one in func._schema.returns)
        known = bool(func._schema.returns) and all(alias is not None and not alias.is_write for alias in aliases)
        _views[func] = known
    return known


def key_of(kernel: Kernel) -> Tuple[Any, ...]:
    """Equal for kernels of the same shape and layer."""
    return (kernel.layer,) + tuple((name, tuple(v) if isinstance(v, list) else v) for name, v in kernel.shape.items())
