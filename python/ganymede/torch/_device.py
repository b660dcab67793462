"""What a step runs on: this CPU or this GPU with measured limits, or a GPU of the program's data sheets."""
from __future__ import annotations

import json
import os
import re
import subprocess
import time
from typing import Any, Callable, Dict, List

from .._program import find_program
from ._import import RecordError

UNITS = {"T": 1e12, "G": 1e9, "M": 1e6}


def cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    import platform
    return platform.processor() or platform.machine() or "CPU"


def gpu_name(name: str) -> str:
    """The name that catalogs use: "NVIDIA A100-SXM4-80GB" is "A100-80GB", "Tesla V100-SXM2-16GB" is "V100"."""
    name = re.sub(r"\b(NVIDIA|Tesla|Quadro|GeForce|Generation)\b", "", name).strip()
    pcie = "PCI" in name.upper()
    base = re.match(r"(RTX|GTX|TITAN)?\s*([A-Z]*\d+\w*(\s+Ti)?|\S+)", name)
    if not base:
        return name
    model = (base.group(1) or "") + base.group(2).split("-")[0].replace(" ", "")
    memory = re.search(r"(\d+)\s*GB", name)
    if model == "A100" and memory:
        return f"A100-{memory.group(1)}GB" + ("-PCIE" if pcie else "")
    return f"{model}-PCIE" if model in ("V100", "H100") and pcie else model


def _best(call: Callable[[], None], wait: Callable[[], None], times: int = 5) -> float:
    """The shortest of some runs, in seconds."""
    best = float("inf")
    for _ in range(times):
        wait()
        begin = time.perf_counter()
        call()
        wait()
        best = min(best, time.perf_counter() - begin)
    return best


_measured: Dict[Any, Dict[str, Any]] = {}


def measured(torch: Any, kind: str) -> Dict[str, Any]:
    """The device with its rate of matrix products and its memory bandwidth, measured once in some tenths of a second."""
    key = kind, torch.get_num_threads()
    if key not in _measured:
        _measured[key] = _measure(torch, kind)
    return dict(_measured[key])


def _measure(torch: Any, kind: str) -> Dict[str, Any]:
    where = torch.device(kind)
    gpu = kind == "cuda"
    wait: Callable[[], None] = torch.cuda.synchronize if gpu else (lambda: None)
    side, count = (4096, 1 << 28) if gpu else (1024, 1 << 24)
    with torch.no_grad():
        a = torch.ones(side, side, device=where)
        source = torch.ones(count, dtype=torch.float32, device=where)
        target = torch.empty_like(source)
        product = _best(lambda: torch.mm(a, a), wait)
        copy = _best(lambda: target.copy_(source), wait)
    device: Dict[str, Any] = {"name": "", "kind": "gpu" if gpu else "cpu", "threads": torch.get_num_threads(),
                              "fp32": f"{2.0 * side**3 / product!r}flop/s",
                              "memory_bandwidth": f"{8.0 * count / copy!r}B/s"}
    if gpu:
        device["name"] = gpu_name(torch.cuda.get_device_name())
        device["memory"] = f"{torch.cuda.get_device_properties(where).total_memory}B"
    else:
        threads = torch.get_num_threads()
        device["name"] = f"{cpu_name()}, {threads} thread{'s' if threads > 1 else ''}, PyTorch"
        if hasattr(os, "sysconf"):
            device["memory"] = f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')}B"
    return device


def ask(*arguments: str) -> Any:
    """What the program prints as JSON. Raises RecordError with its message if it fails."""
    command: List[str] = [str(find_program()), *arguments, "--format", "json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise RecordError(f"{command[0]} does not run: {error.strerror}") from error
    if done.returncode != 0:
        raise RecordError(done.stderr.strip() or f"{command[0]} ended with {done.returncode}")
    return json.loads(done.stdout)


def from_sheet(gpu: str) -> Dict[str, Any]:
    """A GPU of the program's data sheets: by its name, or by the beginning of one ("A100" is "A100-40GB")."""
    known = {one["name"]: one["summary"] for one in ask("list", "gpus")}
    name = next((one for one in known if one.lower() == gpu.lower()),
                next((one for one in known if one.lower().startswith(gpu.lower() + "-")), None))
    if name is None:
        raise RecordError(f"device={gpu!r}: no such GPU, expected one of {', '.join(known)}")
    rate = re.search(r"([\d.]+) ([TGM])FLOP/s fp32", known[name])
    bandwidth = re.search(r"([\d.]+) ([TGM])B/s", known[name])
    if rate is None or bandwidth is None:
        raise RecordError(f"the program describes {name} as {known[name]!r}, which this package does not understand")
    return {"name": name, "kind": "gpu", "fp32": f"{float(rate[1]) * UNITS[rate[2]]!r}flop/s",
            "memory_bandwidth": f"{float(bandwidth[1]) * UNITS[bandwidth[2]]!r}B/s"}
