"""Counts what a step does: its kernels by phase and layer, and the memory that its tensors take together."""
from __future__ import annotations

import weakref
from typing import Any, Callable, Dict, List, Optional, Sequence

from ._import import torch_version
from ._kernels import Kernel, Shapes, is_view, tensors


class Memory:
    """Bytes of all tensors that live, each storage once. It needs PyTorch 2.1, whose storages can be watched."""

    def __init__(self, torch: Any) -> None:
        self.works = torch_version(torch) >= (2, 1)
        self.now = 0
        self.peak = 0
        self._live: Dict[int, int] = {}

    def see(self, tensor: Any, was_there: bool = False) -> None:
        """Counts a tensor's storage from now on until it is freed; one that was there already raises the peak so far."""
        if not self.works:
            return
        try:
            storage = tensor.untyped_storage()
            key, size = storage._cdata, int(storage.nbytes())
        except (RuntimeError, NotImplementedError, AttributeError):  # sparse tensors and others without a storage
            return
        if key in self._live:
            return
        self._live[key] = size
        self.now += size
        self.peak = max(self.peak + (size if was_there else 0), self.now)
        weakref.finalize(storage, self._freed, key).atexit = False

    def _freed(self, key: int) -> None:
        self.now -= self._live.pop(key, 0)

    def restart(self) -> None:
        self.peak = self.now


class Layers:
    """Names the layer that an operator belongs to: forward by the modules that run, backward by the graph's nodes."""

    def __init__(self, torch: Any, models: Dict[str, Any]) -> None:
        self._torch = torch
        self._names = {module: name or network for network, model in models.items()
                       for name, module in model.named_modules()}
        self._stack: List[str] = []
        self._node: Optional[Callable[[], Any]] = getattr(torch._C, "_current_autograd_node", None)
        self._hooks: List[Any] = []

    def watch(self) -> None:
        modules = self._torch.nn.modules.module
        self._hooks = [modules.register_module_forward_pre_hook(self._enter),
                       modules.register_module_forward_hook(self._leave)]

    def forget(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks, self._stack = [], []

    def _enter(self, module: Any, inputs: Any) -> None:
        self._stack.append(self._names.get(module, ""))

    def _leave(self, module: Any, inputs: Any, out: Any) -> None:
        name = self._stack.pop() if self._stack else ""
        if not name or self._node is None:
            return
        # Nodes that an inner module has named keep their names.
        waiting = [tensor.grad_fn for tensor in tensors(out, self._torch) if tensor.grad_fn is not None]
        for _ in range(256):
            if not waiting:
                return
            node = waiting.pop()
            if node is None or "layer" in node.metadata:
                continue
            node.metadata["layer"] = name
            waiting.extend(before for before, _ in node.next_functions)

    def current(self) -> str:
        node = self._node() if self._node is not None else None
        if node is not None:
            return str(node.metadata.get("layer", ""))
        return next((name for name in reversed(self._stack) if name), "")


def make_counter(torch: Any, shapes: Shapes, layers: Layers, memory: Memory, guess: bool) -> Any:
    """A dispatch mode that appends the kernels of each operator to its list `into`. With `guess`, for fake tensors, a
    number that a program reads from a tensor is 1, but that of a gradient scaler's check for infinities, which is 0."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counter(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.into: List[Kernel] = []
            self._checks: List[Any] = []

        def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (),
                               kwargs: Optional[Dict[str, Any]] = None) -> Any:
            kwargs = kwargs or {}
            name = func._schema.name.split("::")[-1]
            if guess and name in ("_local_scalar_dense", "item", "is_nonzero"):
                return self._guess(args[0])
            if "non_finite_check" in name:
                self._checks.append(args[1])
            for tensor in tensors((args, kwargs), torch):
                if not guess or type(tensor) in (torch.Tensor, torch.nn.Parameter):
                    memory.see(tensor, was_there=True)
            out = func(*args, **kwargs)
            kernels = shapes.of(func, args, kwargs, out)
            if kernels:
                layer = layers.current()
                for kernel in kernels:
                    kernel.layer = layer
                self.into.extend(kernels)
            if not is_view(func) and not name.endswith("_"):
                for tensor in tensors(out, torch):
                    memory.see(tensor)
            return out

        def _guess(self, tensor: Any) -> Any:
            if tensor.dtype == torch.bool:
                return True
            check = any(one is tensor for one in self._checks)
            return 0.0 if check else 1.0 if tensor.dtype.is_floating_point else 1

    return Counter()
