"""Gathers marks into steps, counts the work of parts that are new, and follows gradients into buckets."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from ._count import Layers, Memory, make_counter
from ._import import Progress, tensors_of, tf32_flags, torch_version
from ._kernels import LIST_TENSORS, Kernel, Shapes
from ._steps import Listener, Part, parameters_of
from ._trace import Network, Step

MAX_PARTS = 20_000  # of one step
MAX_VARIANTS = 8  # of steps that do different things
# DistributedDataParallel closes its first bucket at 1 MiB and the others at 25 MiB (bucket_cap_mb).
FIRST_BUCKET, BUCKET = 1 << 20, 25 << 20


class Buckets:
    """The buckets of one network's gradients, in the order in which they become ready."""

    def __init__(self, parameters: List[Any], closed: Optional[List[int]] = None) -> None:
        """Fills buckets as DistributedDataParallel does; `closed` are its real bucket sizes in bytes, if known."""
        self.bytes: List[int] = []
        self.of: Dict[int, int] = {}
        self.parameters = parameters
        limits = list(closed or [])
        size = 0
        for parameter in parameters:
            self.of[id(parameter)] = len(self.bytes)
            size += parameter.numel() * parameter.element_size()
            done = len(self.bytes)
            limit = limits[done] if done < len(limits) else FIRST_BUCKET if done == 0 else BUCKET
            if size >= limit:
                self.bytes.append(size)
                size = 0
        if size:
            self.bytes.append(size)
        self.members: List[Set[int]] = [set() for _ in self.bytes]
        for parameter, bucket in self.of.items():
            self.members[bucket].add(parameter)
        self.waiting: List[Set[int]] = []
        self.ready: Dict[int, Tuple[int, Any]] = {}
        self.last: Set[int] = set()  # parameters that have completed a bucket
        self.thin = False  # only these are followed any more

    def restart(self) -> None:
        if self.thin:
            return
        self.waiting = [set(one) for one in self.members]

    def add(self, parameter: int) -> Optional[int]:
        """The bucket that this gradient completes, if it does."""
        bucket = self.of.get(parameter)
        if bucket is None or self.thin:
            return bucket
        if not self.waiting:
            return None
        self.waiting[bucket].discard(parameter)
        if self.waiting[bucket]:
            return None
        self.last.add(parameter)
        return bucket

    def follow_last(self) -> Set[int]:
        """From now on only the parameters that complete buckets are followed: these."""
        self.thin = True
        return self.last


class Marks(Listener):
    """Listens to hooks. `now` gives a time when it is called: seconds, or what becomes seconds later."""

    def __init__(self, torch: Any, models: Dict[str, Any], batch: int, progress: Progress, now: Callable[[], Any],
                 host: Callable[[], float], guess: bool = False) -> None:
        self.torch, self.models, self.progress, self.now, self._host = torch, models, progress, now, host
        self.parameters = parameters_of(models)
        self.shapes = Shapes(batch, torch, *tf32_flags(torch))
        self.memory = Memory(torch)
        self._layers = Layers(torch, models)
        self.counter = make_counter(torch, self.shapes, self._layers, self.memory, guess)
        self.work: Dict[int, List[Kernel]] = {}
        self.buckets: Dict[str, Buckets] = {}
        self.bucket_sizes: Dict[str, List[int]] = {}  # of DistributedDataParallel
        self.optimizers: Dict[int, Any] = {}
        self.updates: Dict[str, int] = {}
        self.counting = False
        self.variants = 0
        self.count_always = False  # the next step is counted from its beginning
        self.stopped = False
        self.step = Step()
        self._host_marks: List[float] = []
        self._chain = 0
        self._order: Dict[str, Dict[int, Any]] = {name: {} for name in models}
        self.counted_step = False

    # Steps.

    def start(self) -> None:
        """A step begins."""
        self.step, self._chain, self._host_marks = Step(), 0, []
        self.updates = dict.fromkeys(self.models, 0)
        self.counted_step = False
        for order in self._order.values():
            order.clear()
        self.begin(Part("prepare", ""))

    def finish(self) -> Tuple[Step, Any, bool]:
        """The step ends: the step, the time of its end, and whether its work was counted, which takes time."""
        end, host = self.now(), self._host()
        step, marks = self.step, self._host_marks + [host]
        step.host_marks = marks
        step.host_s = [0.0] * len(step.parts)
        counted = self.counted_step
        self.stop_counting()
        return step, end, counted

    def stop_counting(self) -> None:
        if self.counting:
            self.counter.__exit__(None, None, None)
            self._layers.forget()
            self.counting = False

    def interrupt(self) -> Tuple[bool, bool]:
        """Nothing is marked until resume(), which takes what this returns."""
        before = self.stopped, self.counting
        self.stop_counting()
        self.stopped = True
        return before

    def resume(self, stopped: bool, counting: bool) -> bool:
        """True if something of the step came before the interruption; else the step begins now."""
        self.stopped = stopped
        self.variants -= counting
        if len(self.step.parts) == 1 and not stopped:
            self.count_always |= counting
            self.start()
            return False
        if counting:
            self._start_counting()
        return True

    def _start_counting(self) -> None:
        self.counting = self.counted_step = True
        self.variants += 1
        self._layers.watch()
        self.counter.__enter__()

    # Parts.

    def begin(self, part: Part) -> None:
        if self.stopped:
            return
        self._chain = hash((self._chain, part))
        new = self._chain not in self.work
        if not self.counting and (self.count_always or (new and self.variants < MAX_VARIANTS)):
            self.count_always = False
            self._start_counting()
        if part.kind in ("backward", "gradient"):
            for buckets in self.buckets.values():
                buckets.restart()
        self._mark(part)

    def _mark(self, part: Part) -> None:
        step = self.step
        step.parts.append(part)
        step.keys.append(self._chain)
        if self.counting:
            # What was counted before counts anew: a first update also makes the state of its optimizer.
            self.counter.into = self.work[self._chain] = []
            if part.kind == "load":
                self.counter.into = []  # a loader's operators are the host's
        step.starts.append(self.now())
        self._host_marks.append(self._host())
        if len(step.parts) > MAX_PARTS:
            self.stopped = True
            self.progress.note(f"a step of more than {MAX_PARTS} passes never ended: call r.step() at the end of each "
                               "step; recording has stopped")

    def reached(self, network: str) -> None:
        if self.stopped or not self.step.parts:
            return
        last = self.step.parts[-1]
        if last.kind not in ("backward", "gradient") or last.network == network:
            return
        self._chain = hash((self._chain, "reached", network))
        if not last.network:
            self.step.parts[-1] = Part(last.kind, network)
            return
        if not self.counting and self._chain not in self.work and self.variants < MAX_VARIANTS:
            self.count_always = True  # counting cannot begin within a backward pass
        self._mark(Part(last.kind, network))

    # Gradients and updates.

    def ready(self, network: str, parameter: Any) -> None:
        buckets = self.buckets.get(network)
        if buckets is None:
            order = self._order[network]
            order.pop(id(parameter), None)
            order[id(parameter)] = parameter
            return
        done = buckets.add(id(parameter))
        if done is not None and not self.stopped:
            buckets.ready[done] = (len(self.step.parts) - 1, self._when())

    def _when(self) -> Any:
        """The time, or, while work is counted, the share of the part's work that is done."""
        return len(self.counter.into) if self.counting else self.now()

    def updated(self, network: str, optimizer: Any) -> None:
        self.optimizers[id(optimizer)] = optimizer
        if self.counting:
            self._count_update(optimizer)
        buckets = self.buckets.get(network)
        if buckets is None:
            if self._order[network]:
                self._plan(network)
            return
        update = self.updates[network]
        if update == 0 or buckets.ready:
            last = max((i for i, part in enumerate(self.step.parts) if part.kind == "backward"), default=None)
            for bucket in range(len(buckets.bytes)):
                part, when = buckets.ready.get(bucket, (last, None))
                if part is not None:
                    self.step.ready.append((network, bucket, update, part, when))
        buckets.ready.clear()
        self.updates[network] += 1

    def _plan(self, network: str) -> None:
        """Divides a network's gradients into buckets by the order in which its first update saw them."""
        self.buckets[network] = Buckets(list(self._order[network].values()), self.bucket_sizes.get(network))

    def set_bucket_sizes(self, network: str, sizes: List[int]) -> None:
        """Takes the sizes of the real buckets, in bytes."""
        self.bucket_sizes[network] = sizes
        if network in self.buckets:
            self.buckets[network] = Buckets(self.buckets[network].parameters, sizes)

    def _count_update(self, optimizer: Any) -> None:
        if torch_version(self.torch) < (2, 0):
            return
        loops = all(group.get("foreach", False) is None and not group.get("fused") for group in optimizer.param_groups)
        kernels = self.counter.into
        if loops and not any(kernel.shape.get("op", "").startswith("foreach") for kernel in kernels):
            kernels[:] = as_lists(kernels)

    # Sums.

    def networks(self) -> Dict[str, Network]:
        found = {}
        for name, model in self.models.items():
            if name in self.buckets:
                buckets = self.buckets[name]
                found[name] = Network(sum(p.numel() for p in buckets.parameters), buckets.bytes)
            else:
                found[name] = Network(sum(p.numel() for p in model.parameters() if p.requires_grad))
        return found

    def watch_memory(self, optimizers: Sequence[Any] = ()) -> None:
        """Counts what lives before the first step."""
        for optimizer in optimizers:
            for state in optimizer.state.values():
                for tensor in tensors_of(state, self.torch):
                    self.memory.see(tensor)
        for model in self.models.values():
            for tensor in list(model.parameters()) + list(model.buffers()):
                self.memory.see(tensor)
                if tensor.grad is not None:
                    self.memory.see(tensor.grad)

    def memory_by_kind(self, peak: float) -> Dict[str, float]:
        """Bytes at the peak. Activations are what is neither of the other kinds."""
        def size(some: Any) -> float:
            return float(sum(t.numel() * t.element_size() for t in some))

        parameters = size(p for _, p in self.parameters.values())
        kinds = {"parameters": parameters,
                 "gradients": size(p for _, p in self.parameters.values() if p.requires_grad or p.grad is not None),
                 "optimizer": size(t for opt in self.optimizers.values() for state in opt.state.values()
                                   for t in tensors_of(state, self.torch))}
        statistics = size(t for model in self.models.values() for t in model.buffers())
        if statistics:
            kinds["statistics"] = statistics
        if peak > 0:
            kinds["activations"] = max(0.0, peak - sum(kinds.values()))
        return kinds


def as_lists(kernels: List[Kernel]) -> List[Kernel]:
    """The kernels of an update as a GPU launches them, where PyTorch updates lists of tensors at once and counts steps on
    the host; on a CPU it updates tensor by tensor."""
    groups: Dict[Tuple[Any, ...], List[Kernel]] = {}
    for kernel in kernels:
        if kernel.shape["kind"] != "elementwise":
            groups.setdefault((id(kernel),), []).append(kernel)
        elif kernel.base > 1:
            groups.setdefault((kernel.shape["op"], kernel.shape["precision"]), []).append(kernel)
    found = []
    for group in groups.values():
        at_once = LIST_TENSORS[3]
        for first in range(0, len(group), at_once):
            part = group[first:first + at_once]
            if len(part) == 1:
                found.append(part[0])
                continue
            base = sum(kernel.base for kernel in part)
            width = 2 if part[0].shape["precision"] in ("fp16", "bf16") else 4
            read, written = sum(k.read for k in part), sum(k.written for k in part)
            shape = {"kind": "elementwise", "op": part[0].shape["op"], "grows": "none", "cols": base,
                     "reads": read / width / base, "writes": written / width / base,
                     "precision": part[0].shape["precision"]}
            found.append(Kernel(shape, 0, read, written, part[0].layer, base))
    return found
