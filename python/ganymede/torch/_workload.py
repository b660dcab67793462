"""Counts a training step without running it: on fake tensors, which have shapes and no numbers."""
from __future__ import annotations

import collections
import contextlib
import functools
import importlib
import inspect
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Counter, Dict, Iterator, List, Optional, Tuple

from . import _device, _trace
from ._import import Progress, RecordError, load_torch, replaced, tensors_of, torch_version
from ._kernels import Kernel
from ._marks import Marks
from ._steps import Hooks, check_models
from ._trace import Recorded, Step

NOMINAL = {"name": "no device", "kind": "gpu", "fp32": "10Tflop/s", "memory_bandwidth": "1TB/s"}


@dataclass
class Workload:
    """A step that was counted. Bytes and FLOPs are those of the whole step, times those of the kernel model."""
    trace: Dict[str, Any]
    notes: List[str]
    flops: float
    launches: float
    memory_bytes: Dict[str, float]
    seconds: Optional[float] = None
    interval_s: Optional[Tuple[float, float]] = None
    decided_by: str = ""

    def save(self, output: Any) -> None:
        """Writes the trace, from which `ganymede plan --trace FILE` makes a plan."""
        _trace.write(self.trace, output)

    def __str__(self) -> str:
        entry = self.trace["batches"][0]
        text = (f"{self.trace['model']} at batch {entry['batch']}: {self.flops / 1e9:.1f} GFLOP, {self.launches:.0f} "
                f"launches, {sum(self.memory_bytes.values()) / 2**20:.0f} MiB")
        if self.seconds is not None and self.interval_s is not None:
            text += (f"; a step of {self.seconds * 1e3:.1f} ms ({self.interval_s[0] * 1e3:.1f} to "
                     f"{self.interval_s[1] * 1e3:.1f}) on {self.trace['device']['name']}, decided by {self.decided_by}")
        return text


def find_models(torch: Any, function: Callable[..., Any]) -> Dict[str, Any]:
    """The networks that a function sees by name: of its closure, its globals, and the object that it is a method of."""
    function = inspect.unwrap(function)
    seen: Dict[str, Any] = {}
    while isinstance(function, functools.partial):
        seen.update({str(i): one for i, one in enumerate(function.args)}, **function.keywords)
        function = function.func
    owner = getattr(function, "__self__", None)
    if owner is not None:
        seen.update(vars(owner))
    target = function if inspect.isfunction(function) or inspect.ismethod(function) else type(function).__call__
    if not inspect.isfunction(function) and owner is None:
        seen.update(vars(function) if hasattr(function, "__dict__") else {})
    try:
        variables = inspect.getclosurevars(target)
        seen.update(variables.globals)
        seen.update(variables.nonlocals)
    except TypeError:
        pass
    found: Dict[str, Any] = {}
    for name, value in seen.items():
        if isinstance(value, torch.nn.Module) and any(True for _ in value.parameters()):
            if not any(value is other for other in found.values()):
                found[name] = value
    return found


@contextlib.contextmanager
def unchanged(torch: Any, models: Dict[str, Any], marks: List[CountingMarks]) -> Iterator[None]:
    """Puts back what a step on fake tensors replaces: gradients, members of modules, states of optimizers."""
    modules = [module for model in models.values() for module in model.modules()]
    members = [(module, dict(module._parameters), dict(module._buffers)) for module in modules]
    gradients = [(p, p.grad, p.requires_grad) for model in models.values() for p in model.parameters()]
    random = torch.get_rng_state()
    # Fake tensors carry single numbers along, and change those of the real tensor too.
    single = [(one, one.detach().clone()) for model in models.values()
              for one in [*model.parameters(), *model.buffers()] if one.dim() == 0]
    try:
        yield
    finally:
        for module, parameters, buffers in members:
            module._parameters.clear()
            module._parameters.update(parameters)
            module._buffers.clear()
            module._buffers.update(buffers)
        for parameter, gradient, wanted in gradients:
            parameter.requires_grad_(wanted)
            parameter.grad = gradient
        for one in marks:
            for optimizer, state in one.states:
                optimizer.state.clear()
                optimizer.state.update(state)
            single += one.single
        with torch.no_grad():
            for tensor, value in single:
                tensor.copy_(value)
        torch.set_rng_state(random)


@contextlib.contextmanager
def as_if_cuda(torch: Any, progress: Progress) -> Iterator[None]:
    """Where there is no GPU, what asks for "cuda" gets a fake tensor of the CPU, and autocast for CUDA is autocast."""
    if torch.cuda.is_available():
        yield
        return
    from torch.overrides import TorchFunctionMode

    def here(value: Any) -> Any:
        if isinstance(value, torch.device) and value.type == "cuda" or isinstance(value, str) and value.startswith("cuda"):
            progress.note("the step asks for \"cuda\", which is not here: its fake tensors are the CPU's, with the same "
                          "shapes")
            return torch.device("cpu")
        return value

    class Moved(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = {name: here(value) if name == "device" else value for name, value in (kwargs or {}).items()}
            if getattr(func, "__name__", "") == "cuda":
                return args[0]
            if getattr(func, "__name__", "") == "to":
                args = tuple(here(value) for value in args)
            return func(*args, **kwargs)

    autocast_class = importlib.import_module("torch.amp.autocast_mode").autocast
    begin = autocast_class.__init__

    def autocast(self: Any, device_type: str, dtype: Any = None, *args: Any, **kwargs: Any) -> None:
        if device_type == "cuda":
            dtype, device_type = dtype or torch.float16, "cpu"
        begin(self, device_type, dtype, *args, **kwargs)

    with Moved(), replaced(autocast_class, "__init__", autocast):
        yield


class CountingMarks(Marks):
    """Counts everything of the step, and keeps the states that its optimizers had before."""

    def __init__(self, torch: Any, models: Dict[str, Any], batch: int, progress: Progress) -> None:
        super().__init__(torch, models, batch, progress, lambda: 0.0, lambda: 0.0, guess=True)
        self.states: List[Tuple[Any, Dict[Any, Any]]] = []
        self.single: List[Tuple[Any, Any]] = []
        self.count_always = True

    def before_update(self, optimizer: Any) -> None:
        if not any(optimizer is known for known, _ in self.states):
            self.states.append((optimizer, {p: dict(state) if isinstance(state, dict) else state
                                            for p, state in optimizer.state.items()}))
            self.single += [(one, self._value(one)) for state in optimizer.state.values()
                            for one in tensors_of(state, self.torch) if type(one) is self.torch.Tensor and one.dim() == 0]

    def _value(self, tensor: Any) -> Any:
        from torch.utils._python_dispatch import _disable_current_modes
        with _disable_current_modes():
            return tensor.detach().clone()


def _first_extents(models: Dict[str, Any], torch: Any, into: Counter[int]) -> List[Any]:
    """Counts the first extents of what the networks are called with."""
    def hook(module: Any, inputs: Any) -> None:
        for tensor in tensors_of(inputs, torch)[:1]:
            if tensor.dim() > 1:
                into[int(tensor.shape[0])] += 1
    return [model.register_forward_pre_hook(hook) for model in models.values()]


def _explain(torch: Any, error: Exception) -> RecordError:
    name = type(error).__name__
    if "DataDependent" in name or "DynamicOutputShape" in name:
        return RecordError(f"the step's shapes or its course depend on numbers, which fake tensors do not have: {error}; "
                           "take that out of the step function, or record a real training with ganymede.torch.record")
    if "numpy" in str(error).lower():
        return RecordError(f"the step turns tensors into numpy arrays, which fake tensors cannot be: {error}; take the "
                           "batch and all that is logged out of the step function")
    return RecordError(f"the step function fails on fake tensors with {name}: {error}")


def _pass(torch: Any, function: Callable[[], Any], marks: CountingMarks, progress: Progress,
          extents: Counter[int]) -> Step:
    """Makes one step under hooks."""
    hooks = Hooks(torch, marks.models, marks, progress)
    watching = _first_extents(marks.models, torch, extents)
    hooks.before_update = marks.before_update
    hooks.install()
    try:
        marks.start()
        function()
        return marks.finish()[0]
    except RecordError:
        raise
    except Exception as error:  # the function is its user's: whatever it raises is explained
        raise _explain(torch, error) from error
    finally:
        marks.stop_counting()
        hooks.remove()
        for handle in watching:
            handle.remove()


def _set_times(step: Step, work: Dict[int, List[Kernel]], time_of: Callable[[Kernel], float]) -> None:
    """Gives the parts the times of their kernels, and the buckets the share of those that come before."""
    now = 0.0
    for i, key in enumerate(step.keys):
        step.starts[i] = now
        now += sum(time_of(kernel) for kernel in work.get(key, []))
    step.wall_s = max(now, 1e-9)
    ready = []
    for network, bucket, update, part, count in step.ready:
        kernels = work.get(step.keys[part], [])
        before = sum(time_of(kernel) for kernel in (kernels if count is None else kernels[:count]))
        ready.append((network, bucket, update, part, step.starts[part] + before))
    step.ready = ready


def _ask_times(trace: Dict[str, Any], gpu: str) -> Dict[str, Any]:
    """The step kernel by kernel, from the program."""
    import os
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "step.json")
        _trace.write(trace, path)
        return dict(_device.ask("kernels", "--gpu", gpu, "--model", path, "--batch", str(trace["batches"][0]["batch"])))


def _retime(trace: Dict[str, Any], answer: Dict[str, Any]) -> None:
    """Sets the times of the phases to those of the kernel model on the trace's device."""
    seconds: Dict[str, float] = collections.defaultdict(float)
    for kernel in answer["kernels"]:
        seconds[kernel["phase"]] += kernel["launches"] * kernel["seconds"]
    entry = trace["batches"][0]
    idle = max(1.0, answer["step"]["seconds"] / max(1e-12, sum(seconds.values())))
    now = 0.0
    for phase in entry["phases"]:
        phase["start_s"] = [now]
        phase["seconds"] = [seconds[phase["name"]] * idle]
        now += phase["seconds"][0]
    entry["wall_s"] = [max(now, 1e-9)]


def workload(step_function: Callable[[], Any], device: Optional[str] = "A100", *, models: Optional[Dict[str, Any]] = None,
             batch: Optional[int] = None, output: Any = "workload.json", model: Optional[str] = None,
             seed: int = 0) -> Workload:
    """Counts one training step on fake tensors: nothing is computed, no GPU is needed, and nothing changes.

    step_function: makes one whole step, with all passes and updates; it is called twice
    device: a GPU of `ganymede list gpus`, on which the step is timed by the kernel model; None: not timed
    models: the networks by their names; default: those that the function sees and its optimizers update
    batch:  images of a step; default: the first extent of most inputs of the networks
    output: file of the trace for `ganymede plan --trace`; None: it is only in the result
    """
    torch = load_torch()
    if torch_version(torch) < (2, 1):
        raise RecordError(f"workload() needs PyTorch 2.1 or later: {torch.__version__} has no fake tensors that work with "
                          "existing models; ganymede.torch.record works with it")
    if not callable(step_function):
        raise RecordError(f"step_function is a {type(step_function).__name__}, expected a function that makes one step")
    if batch is not None and (not isinstance(batch, int) or batch < 1):
        raise RecordError(f"batch={batch!r}, expected a whole number of at least 1")
    progress = Progress()
    known = check_models(torch, models, progress) if models is not None else find_models(torch, step_function)
    if not known:
        raise RecordError("step_function sees no torch.nn.Module by name: say models={\"generator\": G, ...}")
    sheet = dict(_device.from_sheet(device)) if device is not None else dict(NOMINAL)
    kept: List[CountingMarks] = []
    with unchanged(torch, known, kept):
        recorded = _count(torch, step_function, known, models is None, batch, progress, kept, sheet)
    recorded.seed, recorded.model = seed, model or recorded.model
    trace = _trace.Builder(recorded, progress).build()
    phases = trace["batches"][0]["phases"]
    result = Workload(trace, progress.notes, sum(phase["flops"] for phase in phases),
                      sum(phase["launches"] for phase in phases), recorded.memory)
    if device is not None:
        answer = _ask_times(trace, sheet["name"])
        _retime(trace, answer)
        result.seconds, result.interval_s = answer["step"]["seconds"], tuple(answer["step"]["interval_s"])
        result.decided_by = answer["step"]["decided_by"]
    if output is not None:
        result.save(output)
    return result


def _count(torch: Any, function: Callable[[], Any], known: Dict[str, Any], found: bool, batch: Optional[int],
           progress: Progress, kept: List[CountingMarks], sheet: Dict[str, Any]) -> Recorded:
    """Two steps: the first makes gradients and the states of the optimizers, and finds what is trained; the second is
    the one that counts."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    extents: Counter[int] = collections.Counter()
    with FakeTensorMode(allow_non_fake_inputs=True), as_if_cuda(torch, progress), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = CountingMarks(torch, known, batch or 1, progress)
        kept.append(first)
        step = _pass(torch, function, first, progress, extents)
        updated = {part.network for part in step.parts if part.kind == "update"}
        if not updated:
            raise RecordError("the step function updates none of the networks: is the call of the optimizer in it?")
        if batch is None:
            if not extents:
                raise RecordError("the step function calls none of the networks: say models={...} and batch=...")
            batch = extents.most_common(1)[0][0]
            progress.note(f"batch={batch} was taken from the first extent of most inputs of the networks")
        trained = {name: one for name, one in known.items() if not found or name in updated}
        marks = CountingMarks(torch, trained, batch, progress)
        for name in trained:
            if name in first.buckets:
                marks.buckets[name] = first.buckets[name]
                marks.buckets[name].ready.clear()
        marks.watch_memory([optimizer for optimizer, _ in first.states])
        step = _pass(torch, function, marks, progress, extents)
    if marks.shapes.unknown:
        progress.note("operators that are not PyTorch's own count as kernels that only move numbers: "
                      + ", ".join(sorted(marks.shapes.unknown)))
    rate = float(sheet["fp32"].replace("Tflop/s", "e12").replace("flop/s", ""))
    bandwidth = float(sheet["memory_bandwidth"].replace("TB/s", "e12").replace("B/s", ""))
    _set_times(step, marks.work, lambda kernel: 2e-6 + max(kernel.flops / rate,
                                                           (kernel.read + kernel.written) / bandwidth))
    device = {**sheet, "name": f"{sheet['name']} by kernel model" if sheet["name"] != NOMINAL["name"] else sheet["name"],
              "launch": "2us"}
    name = "-".join(type(one).__name__ for one in trained.values()).lower()
    return Recorded(device, {"name": "PyTorch", "version": torch.__version__, "backend": "roofline"}, name, batch, 0,
                    marks.networks(), [step], marks.work, marks.memory_by_kind(float(marks.memory.peak)))
