"""Imports PyTorch only when something needs it, and says what to do where it is missing or lacks something."""
from __future__ import annotations

import contextlib
from typing import Any, Iterator, List, Optional, Tuple


class RecordError(RuntimeError):
    """What was asked for cannot be recorded or counted; the message says why, and what to do instead."""


def load_torch() -> Any:
    """The module torch. Raises RecordError where it is not installed."""
    try:
        import torch
    except ImportError as error:
        raise RecordError(
            "ganymede.torch needs PyTorch, which this Python cannot import: install it with \"pip install torch\", or "
            f"on Debian with \"apt-get install python3-torch\" ({error})") from error
    return torch


def torch_version(torch: Any) -> Tuple[int, int]:
    """(2, 4) for "2.4.1+cu121"."""
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int("".join(c for c in minor if c.isdigit()) or 0)


def require_cuda(torch: Any) -> None:
    """Raises RecordError if CUDA times cannot be had from this PyTorch."""
    if torch.cuda.is_available():
        return
    why = "is built without CUDA" if torch.version.cuda is None else "finds no CUDA device"
    raise RecordError(
        f"device=\"cuda\" asks for times of a GPU, but this PyTorch {torch.__version__} {why}: leave device out to "
        "record this CPU's times, or let ganymede.torch.workload(step, device=\"A100\") count the step for a GPU")


class Progress:
    """What happened that its user should know. `notes` is in the order in which it happened, each note once."""

    def __init__(self) -> None:
        self.notes: List[str] = []

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replaces an attribute as long as the block runs."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def tf32_flags(torch: Any) -> Tuple[bool, bool]:
    """Whether convolutions, and whether matrix products of 32-bit numbers may run as TF32 on a GPU that has it."""
    def allowed(module: Optional[Any], default: bool) -> bool:
        try:
            return bool(module.allow_tf32)  # type: ignore[union-attr]
        except (AttributeError, RuntimeError):  # RuntimeError: the newer fp32_precision was set in another way
            return default

    return allowed(torch.backends.cudnn, True), allowed(torch.backends.cuda.matmul, False)


def tensors_of(value: Any, torch: Any) -> List[Any]:
    """All tensors in nested lists, tuples, dictionaries and objects that hold them as attributes, as outputs of models."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    elif not isinstance(value, (list, tuple)):
        value = list(vars(value).values()) if hasattr(value, "__dict__") and not isinstance(value, type) else []
        return [one for one in value if isinstance(one, torch.Tensor)]
    return [tensor for one in value for tensor in tensors_of(one, torch)]
