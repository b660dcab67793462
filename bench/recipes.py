#!/usr/bin/env python3
"""Steps of recipes against the steps that they state as measured: as the program answers, with all steps of that GPU and
source left out (it then knows those on other GPUs, and those of recipes that are alike), and by the model of kernel times
alone.

  bench/recipes.py [--program build/release/bin/ganymede] [recipe...]

Each row is simulated on an instance with its GPUs: V100s of p3, A100s of p4d. Seconds are for 1,000 images.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INSTANCES = {"V100": {1: "p3.2xlarge", 4: "p3.8xlarge", 2: "p3.8xlarge", 8: "p3.16xlarge"},
             "A100-40GB": {n: "p4d.24xlarge" for n in (1, 2, 4, 8)}}
SCENARIO = {"schema": "ganymede.scenario/1", "workload": {"images": 200000},
            "platform": {"catalog": "aws", "region": "us-east-1", "nodes": 1, "market": "on-demand"},
            "synchronization": {"mode": "all-reduce", "scheme": "nccl"}, "seed": 1}


def simulated(program, recipe, gpu, gpus):
    """Seconds for 1,000 images with their interval, and where the step comes from."""
    scenario = json.loads(json.dumps(SCENARIO))
    scenario["workload"]["recipe"] = recipe
    scenario["platform"].update(instance=INSTANCES[gpu][gpus], gpus_per_node=gpus)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(scenario, file)
        file.flush()
        run = subprocess.run([program, "simulate", file.name, "--format", "json"], capture_output=True, text=True)
    if run.returncode:  # the list of layers does not fit the GPU
        return None
    result = json.loads(run.stdout)
    time = result["time"]
    scale = time["step_mean_s"] * time["steps"] / time["total_s"] / 200
    return time["step_mean_s"] * time["steps"] / 200, [end * scale for end in time["interval_s"]], result["provenance"]["inputs"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/ganymede"))
    parser.add_argument("recipes", nargs="*", default=["stylegan2-ada", "stylegan2", "stylegan3-t"])
    options = parser.parse_args()
    totals = {}
    print("| recipe | GPU | image | GPUs | pass | published | as it is | source left out | kernels alone |\n|---|---|---|---|---|---|---|---|---|")
    for name in options.recipes:
        content = json.load(open(os.path.join(ROOT, "traces/recipes", name + ".json")))
        for measurement in content["measured"]:
            others = [one for one in content["measured"] if one["source"] != measurement["source"] or one["gpu"] != measurement["gpu"]]
            with tempfile.TemporaryDirectory() as folder:
                files = {}
                for what, kept in (("left out", others), ("kernels", [])):
                    files[what] = os.path.join(folder, what.replace(" ", "-") + ".json")
                    json.dump({**content, "measured": kept}, open(files[what], "w"))
                for config, image, gpus, batch, images, published in measurement["rows"]:
                    if "/" in config:  # of a recipe that is alike
                        continue
                    cells = []
                    for what, recipe in (("as it is", name), *files.items()):
                        asked = f"{recipe}{'/' + config if config else ''}?image={image}&batch={batch}&batch_per_gpu={images}"
                        answer = simulated(options.program, asked, measurement["gpu"], gpus)
                        if answer is None:
                            cells.append("-")
                            continue
                        seconds, (low, high), _ = answer
                        cells.append(f"{seconds:.1f} ({100 * (seconds / published - 1):+.0f} %)")
                        totals.setdefault((name, measurement["gpu"], what), []).append((seconds / published - 1, low <= published <= high, high / low))
                    print(f"| {name} | {measurement['gpu']} | {image} | {gpus} | {images} | {published:.1f} | {' | '.join(cells)} |", flush=True)
    print()
    for (name, gpu, what), rows in totals.items():
        print(f"{name}, {gpu}, {what}: mean error {100 * statistics.mean(abs(error) for error, _, _ in rows):.1f} % of {len(rows)}, "
              f"held {sum(held for _, held, _ in rows)}, upper over lower end {statistics.median(width for _, _, width in rows):.2f}")


if __name__ == "__main__":
    main()
