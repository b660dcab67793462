"""Many jobs of stated durations on one pool, by docs/cluster.md alone: who runs when under two schedulers, and what must
hold of any."""
import math
from typing import Any

from runs import Json, q


class Job:
    def __init__(self, job: Json, number: int) -> None:
        self.name, self.number, self.gpus = job["name"], number, job["gpus"]
        self.arrival, self.left = q(job.get("arrival", "0s")), q(job["duration"])
        self.priority, self.after = job.get("priority", 0), set(job.get("after", []))
        self.restart = self.end = 0.0
        self.ready: float | None = None
        self.begun = self.running = False


def schedule(jobs: list[Job], gpus: int, scheduler: str, pause: float) -> dict[str, float]:
    """When each job ends; `pause` is what a stopped job loses on its next GPUs."""
    now, ended = 0.0, dict[str, float]()
    while len(ended) < len(jobs):
        for job in jobs:
            if job.ready is None and job.arrival <= now + 1e-9 and job.after <= ended.keys():
                job.ready = now
        open_jobs = [job for job in jobs if job.ready is not None and job.name not in ended]
        chosen = (backfill if scheduler == "fifo-backfill" else shortest)(open_jobs, gpus, now)
        for job in open_jobs:
            run = job in chosen
            if job.running and not run:
                job.restart = pause  # the state that was saved is loaded anew, whatever was left of an earlier restart
            job.running, job.begun = run, job.begun or run
        ends = [now + job.restart + job.left for job in chosen]
        after = min(ends + [job.arrival for job in jobs if job.ready is None and job.arrival > now + 1e-9])
        for job in chosen:
            spent = after - now
            restarting = min(spent, job.restart)
            job.restart -= restarting
            job.left -= spent - restarting
        now = after
        for job in chosen:
            if job.left + job.restart < 1e-9:
                ended[job.name] = now
                job.running = False
    return ended


def backfill(jobs: list[Job], gpus: int, now: float) -> list[Job]:
    """EASY (Lifka 1995): in order while they fit; the first that does not gets a time, which later ones must not delay."""
    running = [job for job in jobs if job.running]
    free = gpus - sum(job.gpus for job in running)
    waiting = sorted((job for job in jobs if not job.running), key=lambda job: (-job.priority, job.arrival, job.number))
    start, spare = math.inf, 0
    for job in waiting:
        if start == math.inf and job.gpus > free:
            start, spare = reservation(running, gpus, job.gpus, now)
            continue
        fits = job.gpus <= free
        if start < math.inf and fits and now + job.restart + job.left > start + 1e-9:
            fits = job.gpus <= spare
            spare -= job.gpus if fits else 0
        if fits:
            running.append(job)
            free -= job.gpus
    return running


def reservation(running: list[Job], gpus: int, needed: int, now: float) -> tuple[float, int]:
    free = gpus - sum(job.gpus for job in running)
    for end, job in sorted((now + job.restart + job.left, job.number) for job in running):
        free += next(other.gpus for other in running if other.number == job)
        if free >= needed:
            later = sum(other.gpus for other in running if now + other.restart + other.left <= end + 1e-9)
            free = gpus - sum(other.gpus for other in running) + later
            return end, free - needed
    raise AssertionError("more GPUs than there are")


def shortest(jobs: list[Job], gpus: int, now: float) -> list[Job]:
    """Those with the least left to do alone (Schrage 1968), as far as they fit."""
    del now
    free, chosen = gpus, []
    for job in sorted(jobs, key=lambda job: (job.left, job.arrival, job.number)):
        if job.gpus <= free:
            chosen.append(job)
            free -= job.gpus
    return chosen


def gpus_of(stay: Json) -> list[tuple[int, int]]:
    """ "3:0-3" is GPUs 0 to 3 of node 3."""
    found = []
    for part in stay["on"].split():
        node, which = part.split(":")
        for piece in which.split(","):
            first, _, last = piece.partition("-")
            found += [(int(node), gpu) for gpu in range(int(first), int(last or first) + 1)]
    return found


def overlaps(stays: list[Json]) -> Any:
    """Two stays on one GPU at one time, or None."""
    by_gpu: dict[tuple[int, int], list[Json]] = {}
    for stay in stays:
        for gpu in gpus_of(stay):
            by_gpu.setdefault(gpu, []).append(stay)
    for gpu, here in by_gpu.items():
        here.sort(key=lambda stay: (stay["from_s"], stay["to_s"]))
        for before, after in zip(here, here[1:]):
            if after["from_s"] < before["to_s"] - 1e-6:
                return gpu, before, after
    return None


def nodes_taken(placement: str, free: dict[int, int], gpus: int) -> int:
    """How many nodes a job of so many GPUs gets, of nodes with so many free ones."""
    left = sorted(free.values(), reverse=True)
    if placement == "consolidate":
        count = 0
        while gpus > 0:
            gpus -= left[count]
            count += 1
        return count
    taken = set()
    for _ in range(gpus):
        node = max(free, key=lambda name: free[name])
        free[node] -= 1
        taken.add(node)
    return len(taken)
