"""Marks where the parts of a training step begin, from hooks of modules, of autograd, of optimizers and of loaders.

A mark ends the part before it, so that the parts of a step leave no gaps. A part is named when the step has ended,
because only its update tells whose step it was.
"""
from __future__ import annotations

import functools
import gc
import importlib
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from ._import import Progress, RecordError, tensors_of


class Part(NamedTuple):
    """What begins at a mark. `kind` is "prepare", "load", "forward", "backward", "gradient" or "update"; `network` is
    the one that computes, "" while a backward pass has not reached any, or for what belongs to none."""
    kind: str
    network: str


class Listener:
    """What is told of marks. `begin` comes at each of them, `ready` when a parameter's gradient has been added."""

    def begin(self, part: Part) -> None:
        """`part` begins now."""

    def reached(self, network: str) -> None:
        """A backward pass has reached the outputs of a network."""

    def ready(self, network: str, parameter: Any) -> None:
        """The gradient of a parameter has been added up."""

    def updated(self, network: str, optimizer: Any) -> None:
        """An optimizer has made its update."""


def parameters_of(models: Dict[str, Any]) -> Dict[int, Tuple[str, Any]]:
    """The network and the parameter of each id. A parameter that two networks share belongs to the first."""
    known: Dict[int, Tuple[str, Any]] = {}
    for network, model in models.items():
        for parameter in model.parameters():
            known.setdefault(id(parameter), (network, parameter))
    return known


def check_models(torch: Any, models: Any, progress: Progress) -> Dict[str, Any]:
    """The networks to record, checked. DistributedDataParallel and DataParallel stay around what they wrap."""
    if isinstance(models, torch.nn.Module):
        raise RecordError("models is a module, expected a dictionary that names the networks, for example "
                          "models={\"generator\": G, \"discriminator\": D}")
    if not isinstance(models, dict) or not models:
        raise RecordError("models names no network, expected for example models={\"generator\": G, "
                          "\"discriminator\": D}")
    for name, model in models.items():
        if not isinstance(model, torch.nn.Module):
            raise RecordError(f"models[{name!r}] is a {type(model).__name__}, expected a torch.nn.Module")
        count = sum(1 for _ in model.parameters())
        if count == 0:
            raise RecordError(f"models[{name!r}] has no parameters, so that nothing of it is trained: leave it out; "
                              "its work counts for the network that it is called for")
        if not any(parameter.requires_grad for parameter in model.parameters()):
            progress.note(f"all parameters of {name} are frozen when recording begins: if they stay so, it is no part "
                          "of the updates, and has no gradients to reduce")
    first = next(iter(models.values()))
    for name, model in list(models.items())[1:]:
        if model is first:
            raise RecordError(f"models[{name!r}] is the same module as models[{next(iter(models))!r}]")
    return dict(models)


def _restore_step(optimizer: Any, step: Any) -> None:
    """Sets the method of this object alone; None: it had none."""
    if step is None:
        optimizer.__dict__.pop("step", None)
    else:
        optimizer.step = step


class Hooks:
    """Installs all hooks, and removes them."""

    def __init__(self, torch: Any, models: Dict[str, Any], listener: Listener, progress: Progress) -> None:
        self._torch, self._models, self._listener, self._progress = torch, models, listener, progress
        self._parameters = parameters_of(models)
        self._undo: List[Callable[[], None]] = []
        self._depth = 0  # of calls of recorded networks within one another
        self._backward = 0  # of calls of autograd within one another
        self._update = 0
        self._optimizers: Dict[int, Any] = {}
        self._owners: Dict[int, Tuple[Any, Optional[str]]] = {}
        self._gradients: Dict[int, Any] = {}  # the hook of each parameter
        self._nodes: List[Any] = []
        self.before_update: Callable[[Any], None] = lambda optimizer: None

    def install(self) -> None:
        for network, model in self._models.items():
            self._keep(model.register_forward_pre_hook(self._before_forward(network)))
            self._keep(model.register_forward_hook(self._after_forward(network)))
        self._watch_gradients()
        autograd = self._torch.autograd
        self._patch(autograd, "backward", self._around_backward(autograd.backward, "backward"))
        self._patch(autograd, "grad", self._around_backward(autograd.grad, "gradient"))
        self._watch_optimizers()
        loaders = importlib.import_module("torch.utils.data.dataloader")._BaseDataLoaderIter
        self._patch(loaders, "__next__", self._around_load(loaders.__next__))

    def remove(self) -> None:
        while self._undo:
            self._undo.pop()()

    def _keep(self, handle: Any) -> None:
        self._undo.append(handle.remove)

    def _patch(self, owner: Any, name: str, value: Any) -> None:
        before = getattr(owner, name)
        setattr(owner, name, value)
        self._undo.append(lambda: setattr(owner, name, before))

    # Forward passes.

    def _before_forward(self, network: str) -> Callable[..., None]:
        def hook(module: Any, inputs: Any) -> None:
            self._depth += 1
            # A network inside another one, or recomputed during a backward pass, is a part of that.
            if self._depth == 1 and self._backward == 0:
                self._listener.begin(Part("forward", network))
        return hook

    def _after_forward(self, network: str) -> Callable[..., None]:
        def reached(gradient: Any) -> None:
            if self._backward:
                self._listener.reached(network)

        def hook(module: Any, inputs: Any, out: Any) -> None:
            self._depth = max(0, self._depth - 1)
            if self._depth or self._backward:
                return
            for tensor in tensors_of(out, self._torch):
                if tensor.requires_grad:
                    tensor.register_hook(reached)
        return hook

    # Backward passes.

    def _around_backward(self, call: Callable[..., Any], kind: str) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            if self._backward == 0:
                self._listener.begin(Part(kind, ""))
            self._backward += 1
            try:
                return call(*args, **kwargs)
            finally:
                self._backward = max(0, self._backward - 1)
        return run

    def _watch_gradients(self) -> None:
        for network, parameter in self._parameters.values():
            hook = self._on_gradient(network, parameter)
            if hasattr(parameter, "register_post_accumulate_grad_hook") and parameter.is_leaf:
                wanted = parameter.requires_grad
                parameter.requires_grad_(True)  # a hook may only be added to what is trained
                self._gradients[id(parameter)] = parameter.register_post_accumulate_grad_hook(hook)
                parameter.requires_grad_(wanted)
            elif parameter.requires_grad:  # PyTorch before 2.1: the node that adds gradients has hooks
                node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
                self._nodes.append(node)
                self._gradients[id(parameter)] = node.register_hook(lambda *unused, call=hook: call(None))
        for handle in self._gradients.values():
            self._keep(handle)

    def keep_gradients(self, wanted: Set[int]) -> None:
        """Removes the hooks of all parameters but these: each costs a microsecond or more in every backward pass."""
        for parameter, handle in self._gradients.items():
            if parameter not in wanted:
                handle.remove()

    def _on_gradient(self, network: str, parameter: Any) -> Callable[[Any], None]:
        ready = self._listener.ready

        def hook(unused: Any) -> None:
            ready(network, parameter)
        return hook

    # Updates.

    def _watch_optimizers(self) -> None:
        module = importlib.import_module("torch.optim.optimizer")
        if hasattr(module, "register_optimizer_step_pre_hook"):
            self._keep(module.register_optimizer_step_pre_hook(lambda opt, args, kwargs: self._before_update(opt)))
            self._keep(module.register_optimizer_step_post_hook(lambda opt, args, kwargs: self._after_update(opt)))
        else:
            self.find_optimizers()

    def find_optimizers(self) -> None:
        """Wraps the optimizers that exist, for PyTorch 1.13, which has no hooks for all of them."""
        if hasattr(importlib.import_module("torch.optim.optimizer"), "register_optimizer_step_pre_hook"):
            return
        for opt in [one for one in gc.get_objects() if isinstance(one, self._torch.optim.Optimizer)]:
            if id(opt) in self._optimizers or not hasattr(opt, "param_groups"):
                continue
            self._optimizers[id(opt)] = opt
            call = opt.step

            def run(*args: Any, _opt: Any = opt, _call: Any = call, **kwargs: Any) -> Any:
                self._before_update(_opt)
                try:
                    return _call(*args, **kwargs)
                finally:
                    self._after_update(_opt)
            had = opt.__dict__.get("step")
            opt.step = run
            self._undo.append(functools.partial(_restore_step, opt, had))

    def owner(self, optimizer: Any) -> Optional[str]:
        """The network of most of an optimizer's parameters; None if it updates no recorded one."""
        known = self._owners.get(id(optimizer))
        if known is None:
            known = self._owners[id(optimizer)] = optimizer, self._find_owner(optimizer)
        return known[1]

    def _find_owner(self, optimizer: Any) -> Optional[str]:
        counts: Dict[str, int] = {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                found = self._parameters.get(id(parameter))
                if found:
                    counts[found[0]] = counts.get(found[0], 0) + parameter.numel()
        if len(counts) > 1:
            self._progress.note(f"one optimizer updates {' and '.join(sorted(counts))}: its time counts for "
                                f"{max(counts, key=lambda name: counts[name])}")
        return max(counts, key=lambda name: counts[name]) if counts else None

    def _before_update(self, optimizer: Any) -> None:
        self._update += 1
        self.before_update(optimizer)
        network = self.owner(optimizer) if self._update == 1 else None
        if network is None:
            if self._update == 1:
                self._progress.note(f"a {type(optimizer).__name__} updates no parameter of the recorded networks: its "
                                    "time counts for the part before it")
            return
        self._listener.begin(Part("update", network))

    def _after_update(self, optimizer: Any) -> None:
        self._update = max(0, self._update - 1)
        network = self.owner(optimizer)
        if network is not None and self._update == 0:
            self._listener.updated(network, optimizer)

    # Input.

    def _around_load(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(loader: Any) -> Any:
            self._listener.begin(Part("load", ""))
            try:
                return call(loader)
            finally:
                self._listener.begin(Part("prepare", ""))
        return run


class Named(NamedTuple):
    """A part with the name that the trace gives it."""
    name: str
    network: str
    stream: str


def names_of(parts: List[Part]) -> List[Named]:
    """Names the parts of one step, in their order. What comes before an update of Y belongs to Y's step: a pass through
    another network X is "Y.forward_through_X" if the gradient of Y came back through it, else "X.forward"."""
    owners: List[str] = [""] * len(parts)
    begin = 0
    for i, part in enumerate(parts):
        if part.kind == "update":
            owners[begin:i + 1] = [part.network] * (i + 1 - begin)
            begin = i + 1
    names: List[Named] = []
    used: Dict[str, int] = {}
    for i, part in enumerate(parts):
        owner = owners[i]
        through = {parts[j].network for j in range(len(parts))
                   if owners[j] == owner and parts[j].kind in ("backward", "gradient")} if owner else set()
        name, network = _name(part, owner, through)
        used[name] = used.get(name, 0) + 1
        stream = "host" if part.kind == "load" else "compute"
        names.append(Named(name if used[name] == 1 else f"{name}.{used[name]}", network, stream))
    return names


def _name(part: Part, owner: str, through: Set[str]) -> Tuple[str, str]:
    if part.kind in ("load", "prepare"):
        return part.kind, ""
    network = part.network or owner
    if part.kind == "update" or not owner or network == owner:
        return (f"{network}.{part.kind}" if network else part.kind), network
    if part.kind == "forward" and network not in through:
        return f"{network}.forward", network
    return f"{owner}.{part.kind}_through_{network}", owner
