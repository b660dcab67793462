#!/usr/bin/env python3
"""Simulated latency of a service beside that of `ganymede serve --generator` on this machine.

  bench/serving.py [--program build/release/bin/ganymede] [--model dcgan-32] [--load 0.3,0.6] [--seconds 30]

Trains a few steps, serves the generator, measures how long batches of 1, 2, 4 and 8 take when the next is always waiting,
and what a request takes beside that (HTTP, JSON) when nothing waits. From these alone it simulates a Poisson load of a share of what batches of
8 could answer, and sends the same load by a client of its own. Prints the mean, p50 and p95 of both and their ratio. The
client and the server share this machine's cores: above a load of a half or so the client's own work shows. With --apart
the server has half of the cores and the client the others. Other load on the machine, of any priority, makes it useless.
"""
import argparse
import concurrent.futures
import http.client
import json
import os
import random
import re
import subprocess
import tempfile
import threading
import time

BATCHES = (1, 2, 4, 8)


class Server:
    cores = None  # not the client's

    def __init__(self, program, folder, *options):
        pin = (lambda: os.sched_setaffinity(0, Server.cores)) if Server.cores else None
        self.process = subprocess.Popen([program, "serve", "--generator", folder, "--listen", "127.0.0.1:0", *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, preexec_fn=pin)
        self.host = self.process.stdout.readline().strip().removeprefix("http://")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def request(self, method, path):
        connection = http.client.HTTPConnection(self.host, timeout=60)
        connection.request(method, path)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body

    def counts(self):
        text = self.request("GET", "/metrics")[1].decode()
        return {name: float(value) for name, value in re.findall(r"^ganymede_generator_(\w+) (\S+)$", text, re.M)}


def median(values):
    return sorted(values)[len(values) // 2]


def batch_seconds(program, folder, batch, seconds=3):
    """The time of a batch of so many where requests never cease: on a CPU, reading and answering them takes the cores that
    draw. Twice as many callers as a batch holds send the next request as soon as they are answered."""
    def call(_):
        while time.perf_counter() < end:
            server.request("POST", "/generate")

    with Server(program, folder, "--batch", str(batch)) as server:
        end = time.perf_counter() + 1 + seconds
        with concurrent.futures.ThreadPoolExecutor(2 * batch) as pool:
            callers = [pool.submit(call, i) for i in range(2 * batch)]
            time.sleep(1)
            before, begin = server.counts(), time.perf_counter()
            time.sleep(seconds - 0.2)
            after, took = server.counts(), time.perf_counter() - begin
            concurrent.futures.wait(callers)
    return batch * took / (after["images_total"] - before["images_total"])


def beside_seconds(program, folder):
    """What one request takes beside the drawing, where nothing else waits."""
    beside = []
    with Server(program, folder, "--batch", "1") as server:
        for _ in range(12):
            before, begin = server.counts(), time.perf_counter()
            server.request("POST", "/generate")
            took = time.perf_counter() - begin
            beside.append(took - server.counts()["busy_seconds_total"] + before["busy_seconds_total"])
    return median(beside)


def send(server, rate, seconds):
    """Latencies of a Poisson load, counted from the moment at which each request was due."""
    random.seed(1)
    latencies, lock = [], threading.Lock()

    def one(due):
        status, _ = server.request("POST", "/generate")
        with lock:
            if status == 200:
                latencies.append(time.perf_counter() - due)

    with concurrent.futures.ThreadPoolExecutor(128) as pool:
        due = begin = time.perf_counter()
        while due < begin + seconds:
            due += random.expovariate(rate)
            time.sleep(max(0, due - time.perf_counter()))
            pool.submit(one, due)
    return sorted(latencies)


def simulate(program, times, overhead, rate, seconds):
    service = {"schema": "ganymede.service/1",
               "generator": {"measured": {str(batch): f"{took:.9f}s" for batch, took in times.items()}},
               "platform": {"catalog": "aws", "region": "us-east-1", "instance": "p3.2xlarge"},  # only its one GPU counts
               "arrivals": {"per_second": rate}, "batching": {"largest": max(times)}, "queue": 200,
               "overhead": f"{overhead:.9f}s", "duration": f"{max(seconds, 600)}s"}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(service, file)
        file.flush()
        out = subprocess.run([program, "simulate", file.name, "--format", "json"], check=True, capture_output=True)
    return json.loads(out.stdout)["latency"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/release/bin/ganymede")
    parser.add_argument("--model", default="dcgan-64")
    parser.add_argument("--load", default="0.2,0.4,0.6")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--apart", action="store_true", help="server and client on cores of their own")
    args = parser.parse_args()
    if args.apart:
        cores = sorted(os.sched_getaffinity(0))
        Server.cores, rest = cores[:(len(cores) + 1) // 2], cores[(len(cores) + 1) // 2:]
        os.sched_setaffinity(0, rest or cores)
    program = os.path.abspath(args.program)
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(scratch, "run")
        subprocess.run([program, "train", "--model", args.model, "--steps", "2", "--batch", "8", "--checkpoint", folder],
                       check=True, capture_output=True)
        measured = {batch: batch_seconds(program, folder, batch) for batch in BATCHES}
        times, slowest = {}, 0
        for batch in BATCHES:  # a larger batch that seems faster is noise
            slowest = times[batch] = max(slowest, measured[batch])
        overhead = beside_seconds(program, folder)
        print(f"{args.model}: " + ", ".join(f"{b}: {1000 * t:.2f} ms" for b, t in times.items()) +
              f"; beside it {1000 * overhead:.2f} ms")
        for load in map(float, args.load.split(",")):
            rate = load * BATCHES[-1] / times[BATCHES[-1]]
            with Server(program, folder, "--batch", str(BATCHES[-1])) as server:
                real = send(server, rate, args.seconds)
            said = simulate(program, times, overhead, rate, args.seconds)
            mean, p50, p95 = sum(real) / len(real), real[len(real) // 2], real[int(0.95 * len(real))]
            print(f"load {load:.2f}, {rate:.1f}/s, {len(real)} requests: " + "; ".join(
                f"{name} {1000 * said[key]:.2f} ms said, {1000 * real_s:.2f} measured, {said[key] / real_s - 1:+.0%}"
                for name, key, real_s in (("mean", "mean_s", mean), ("p50", "p50_s", p50), ("p95", "p95_s", p95))))


if __name__ == "__main__":
    main()
