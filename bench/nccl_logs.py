#!/usr/bin/env python3
"""How far `nccl` is off on public nccl-tests logs and on curves of other programs.

  bench/nccl_logs.py [--program build/release/bin/ganymede] [--nothing-fitted] [--log NAME] [--format table|json]
  bench/nccl_logs.py --falls | --two-sizes [--program build/release/bin/ganymede]

Of every log in bench/nccl_logs/curves.csv, `ganymede import nccl-tests` predicts each size from all others; printed is
exp(mean |ln(predicted / measured)|) - 1 over all sizes but the smallest and the largest, in three ranges, beside that of
links whose latency and bandwidth are fitted to these two, and of a straight line through them. With --nothing-fitted
`ganymede allreduce` predicts all sizes from the description of the machine alone. Below the logs stand the geometric mean
of 1 + error, less 1, and the median, from 1 MiB on, without the checks. --log prints all sizes of one.

--falls predicts all-reduces of 1 KiB to 1 GiB, doubling, on every instance of the catalogs with GPUs, 1 to 16 of them,
and prints which curves fall by more than 5 % where a size doubles; it takes some minutes. Of the logs and curves, 5 of 39 do from 64 KiB on, at
most by 1.30.

--two-sizes imports the smallest and the largest size of each log alone, and prints which logs are then further off than a
straight line or than with nothing fitted by more than one percent, over their other sizes from 1 MiB on.

The logs of the group "seen" were looked at while the model was made; none of its constants is fitted to them. Those of
"used" named a mechanism or gave a constant, as the code says where it uses them. Those of "held" were predicted first and
have changed nothing since. Those of "check" are curves of other
programs than nccl-tests; their sizes and settings are fewer.
"""

import argparse
import csv
import json
import math
import os
import statistics
import subprocess
import tempfile

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nccl_logs")
MACHINES = os.path.join(HERE, "machines.json")

# name: group, ranks, catalog, instance, nodes, scheme, source; all-reduces, except where COLLECTIVES says otherwise
LOGS = {
    "v100_4_pcie_242": ("used", 4, MACHINES, "4xV100 PCIe", 1, "nccl:2.4.2", "rcgsheffield/sheffield_hpc bessemer/software/libs/cuda.rst @f60c6e605e2b"),
    "gtx1080_2_pcie": ("seen", 2, MACHINES, "2xGTX 1080", 1, "nccl:2.5.7", "README of a macOS port of NCCL by llv22"),
    "rtx2080ti_2_pcie": ("seen", 2, MACHINES, "2xRTX 2080 Ti", 1, "nccl", "Anthony-Hoo/Anthony-Hoo.github.io posts/AutoDL_Multi-GPU_Interconnection_Test.md @37e805e8e56f"),
    "v100_8_mesh": ("seen", 8, "aws", "p3.16xlarge", 1, "nccl:2.4.8", "a blog of 2019-09-26 on a server like a DGX-1; NCCL not stated, 2.4.8 was current"),
    "a100_8": ("seen", 8, "aws", "p4d.24xlarge", 1, "nccl", "stas00/ml-engineering network/README.md @744d01e18b79"),
    "p4d_16_efa": ("used", 16, "aws", "p4d.24xlarge", 2, "nccl:2.9.9/ring", "aws-samples/aws-efa-eks README.md @9d6557e1689b, NCCL_ALGO=RING"),
    "eks_2_tcp": ("seen", 2, MACHINES, "tcp", 2, "nccl", "aws-samples/aws-do-eks karpenter README @509da3f1df70, EFA off"),
    "eks_2_efa": ("used", 2, MACHINES, "efa", 2, "nccl:any", "the same, EFA on; its plateau at LL's rate says that the plugin let LL pass"),
    "a100_8_mpi": ("used", 8, "aws", "p4d.24xlarge", 1, "nccl", "a note on nccl-tests, host \"thanos\", 8 x A100-SXM4-80GB, one process a GPU"),
    "g4dn_2_efa": ("used", 2, MACHINES, "g4dn.8xlarge", 2, "nccl:2.12.7", "terraform-aws-eks-blueprints, example with EFA; NCCL_PROTO=simple set by the plugin"),
    "h100_a3mega_16": ("used", 16, "gcp", "a3-megagpu-8g", 2, "nccl", "lessizzmore/create-a3mega-ztan-fork ztan-NCCL-test-result @02dd8f455c43"),
    "p3dn_16_efa": ("used", 16, "aws", "p3dn.24xlarge", 2, "nccl:2.4.8/ring", "AWS, EC2 User Guide, EFA and NCCL, 2 x p3dn.24xlarge, NCCL_TREE_THRESHOLD=0"),
    "v100_4_pcie": ("seen", 4, MACHINES, "4xV100 PCIe", 1, "nccl:2.26.2", "a note on nccl-tests, host \"gdr116\", 4 x V100-SXM2 without NVLink in use"),
    "gh200_8_slingshot": ("used", 8, MACHINES, "4xGH200", 2, "nccl", "user documentation of CSCS, 2 nodes of 4 GH200 over Slingshot 11"),
    "p5_8": ("used", 8, "aws", "p5.48xlarge", 1, "nccl", "awslabs/awsome-distributed-training micro-benchmarks/nccl-tests/aws-batch/README.md @0edaf1526bc4"),
    "h200_8": ("used", 8, "aws", "p5en.48xlarge", 1, "nccl:2.27.7", "stas00/ml-engineering network/README.md @744d01e18b79; a program of PyTorch, whose launches it includes"),
    "p4d_16_efa_283": ("used", 16, "aws", "p4d.24xlarge", 2, "nccl:2.8.3/ring", "aws-samples/aws-efa-eks README.md @7809f1f2799d, NCCL_ALGO=RING"),
    "dgxa100_16_ib": ("used", 16, MACHINES, "DGX A100", 2, "nccl:2.9.9", "NVIDIA/deepops docs/k8s-cluster/nvidia-network-operator.md @3957a42fb9af; NCCL not stated, its columns are of 2021"),
    "a3high_16_tcpx": ("used", 16, "gcp", "a3-highgpu-8g", 2, "nccl:simple", "GoogleCloudPlatform/cluster-toolkit examples/gke-a3-highgpu/multi-node-test-plan.md @1047080375af; GPUDirect-TCPX runs with NCCL_PROTO=Simple"),
    "v100_4_pcie_283": ("seen", 4, MACHINES, "4xV100 PCIe", 1, "nccl:2.8.3", "rcgsheffield/sheffield_hpc bessemer/software/libs/cuda.rst @f60c6e605e2b"),
    "a40_2_no_p2p": ("seen", 2, MACHINES, "2xA40", 1, "nccl:2.16.2", "hardware notes of a blog, NCCL_P2P_DISABLE=1"),
    "v100_2_vtrain": ("check", 2, "aws", "p3.16xlarge", 1, "nccl:2.8.3", "VIA-Research/vTrain @f8dda8473a48, trace (MIT)"),
    "v100_3_vtrain": ("check", 3, "aws", "p3.16xlarge", 1, "nccl:2.8.3", "VIA-Research/vTrain @f8dda8473a48, trace (MIT)"),
    "v100_4_vtrain": ("check", 4, "aws", "p3.16xlarge", 1, "nccl:2.8.3", "VIA-Research/vTrain @f8dda8473a48, trace (MIT)"),
    "v100_5_vtrain": ("check", 5, "aws", "p3.16xlarge", 1, "nccl:2.8.3", "VIA-Research/vTrain @f8dda8473a48, trace (MIT)"),
    "v100_6_vtrain": ("check", 6, "aws", "p3.16xlarge", 1, "nccl:2.8.3", "VIA-Research/vTrain @f8dda8473a48, trace (MIT)"),
    "v100_7_vtrain": ("check", 7, "aws", "p3.16xlarge", 1, "nccl:2.8.3", "VIA-Research/vTrain @f8dda8473a48, trace (MIT)"),
    "v100_8_vtrain": ("check", 8, "aws", "p3.16xlarge", 1, "nccl:2.8.3", "VIA-Research/vTrain @f8dda8473a48, trace (MIT)"),
    "a100_2_vidur": ("check", 2, "aws", "p4d.24xlarge", 1, "nccl", "microsoft/vidur @7d4751336344, data/profiling/network (MIT), medians, 16-bit"),
    "a100_4_vidur": ("check", 4, "aws", "p4d.24xlarge", 1, "nccl", "microsoft/vidur @7d4751336344, data/profiling/network (MIT), medians, 16-bit"),
    "a100_8_vidur": ("check", 8, "aws", "p4d.24xlarge", 1, "nccl", "microsoft/vidur @7d4751336344, data/profiling/network (MIT), medians, 16-bit"),
    "a100_2_pair_vidur": ("check", 2, MACHINES, "2xA100 pair", 1, "nccl", "microsoft/vidur @7d4751336344, data/profiling/network (MIT), medians, 16-bit"),
    "gtx1080ti_2_deepbench": ("check", 2, MACHINES, "8xGTX 1080 Ti", 1, "nccl:2.3/ring", "baidu-research/DeepBench @da81ba782073, results/train/DeepBench_NV_*.xlsx (Apache-2.0); NCCL 2.0"),
    "gtx1080ti_4_deepbench": ("check", 4, MACHINES, "8xGTX 1080 Ti", 1, "nccl:2.3/ring", "baidu-research/DeepBench @da81ba782073, results/train/DeepBench_NV_*.xlsx (Apache-2.0); NCCL 2.0"),
    "gtx1080ti_8_deepbench": ("check", 8, MACHINES, "8xGTX 1080 Ti", 1, "nccl:2.3/ring", "baidu-research/DeepBench @da81ba782073, results/train/DeepBench_NV_*.xlsx (Apache-2.0); NCCL 2.0"),
    "p100_2_deepbench": ("check", 2, MACHINES, "8xP100", 1, "nccl:2.3/ring", "baidu-research/DeepBench @da81ba782073, results/train/DeepBench_NV_*.xlsx (Apache-2.0); NCCL 2.0"),
    "p100_4_deepbench": ("check", 4, MACHINES, "8xP100", 1, "nccl:2.3/ring", "baidu-research/DeepBench @da81ba782073, results/train/DeepBench_NV_*.xlsx (Apache-2.0); NCCL 2.0"),
    "p100_8_deepbench": ("check", 8, MACHINES, "8xP100", 1, "nccl:2.3/ring", "baidu-research/DeepBench @da81ba782073, results/train/DeepBench_NV_*.xlsx (Apache-2.0); NCCL 2.0"),
    "p4de_16_efa": ("used", 16, "aws", "p4de.24xlarge", 2, "nccl", "awslabs/awsome-distributed-training micro-benchmarks/nccl-tests/README.md @0edaf1526bc4"),
    "p5_16_efa": ("used", 16, "aws", "p5.48xlarge", 2, "nccl", "awslabs/awsome-distributed-training micro-benchmarks/nccl-tests/README.md @0edaf1526bc4"),
    "p5_16_efa_eks": ("used", 16, "aws", "p5.48xlarge", 2, "nccl", "aws-samples/aws-do-eks wd/conf/terraform/eks-gpu-efa/README.md @f721602f7389"),
    "a3mega_16_gather": ("used", 16, "gcp", "a3-megagpu-8g", 2, "nccl", "GoogleCloudPlatform/cluster-toolkit examples/gke-a3-megagpu/README.md @1047080375af"),
    "a3mega_16_gather_dstack": ("used", 16, "gcp", "a3-megagpu-8g", 2, "nccl", "dstackai/dstack mkdocs/docs/examples/clusters/gcp.md @511c318c8a76"),
    "a3high_16_tcpx_dstack": ("used", 16, "gcp", "a3-highgpu-8g", 2, "nccl:simple", "dstackai/dstack mkdocs/docs/examples/clusters/gcp.md @511c318c8a76"),
    "a4_16_roce": ("used", 16, MACHINES, "a4-highgpu-8g", 2, "nccl", "dstackai/dstack mkdocs/docs/examples/clusters/gcp.md @511c318c8a76"),
    "a100_4_mesh": ("used", 4, MACHINES, "4xA100 SXM", 1, "nccl", "rcgsheffield/sheffield_hpc stanage/software/libs/cuda.rst @f60c6e605e2b"),
    "a100_4_mesh_polaris": ("used", 4, MACHINES, "4xA100 SXM", 1, "nccl", "makani/Polaris report"),
    "a100_16_slingshot": ("seen", 16, MACHINES, "4xA100 SXM", 4, "nccl:simple", "makani/Polaris report"),
    "a100_8_ib": ("seen", 8, MACHINES, "4xA100 ib", 2, "nccl:ring", "NVIDIA/nccl-tests issue 252 (comment 2024-09-24)"),
    "nd_a100_16_aks": ("used", 16, "azure", "Standard_ND96asr_v4", 2, "nccl", "Azure/aks-rdma-infiniband tests/expected-output.md @700dabb4fe04"),
    "nd_a100_16_ipoib": ("used", 16, MACHINES, "ND tcp", 2, "nccl", "Azure/aks-rdma-infiniband tests/expected-output.md @700dabb4fe04"),
    "nd_a100_8": ("seen", 8, "azure", "Standard_ND96asr_v4", 1, "nccl", "AML_NCCL_Test README, JingchaoZhang"),
    "nd_a100_16": ("used", 16, "azure", "Standard_ND96asr_v4", 2, "nccl", "AML_NCCL_Test README, JingchaoZhang"),
    "dgx1_16_ib": ("used", 16, MACHINES, "DGX-1", 2, "nccl:2.4.8", "NVIDIA/deepops docs (2019 version),"),
    "k80_2_tcp": ("seen", 2, MACHINES, "1xK80", 2, "nccl", "GoogleCloudPlatform/PerfKitBenchmarker tests/data/nccl_output.txt @946ea317692c"),
    "h100_8_issue290": ("seen", 8, "azure", "Standard_ND96isr_H100_v5", 1, "nccl", "NVIDIA/nccl-tests issue 290,"),
    "h100_2_ndr": ("seen", 2, MACHINES, "1xH100", 2, "nccl:tree", "NVIDIA/nccl-tests issue 232 (also nccl issue 1357)"),
    "rtx4090_2_pix": ("used", 2, "local", "RTX4090x2", 1, "nccl:2.19.4", "kalavai-net/kalavai-client scripts/README.md @52af06bc8fea"),
    "rtx4090_2_sys": ("used", 2, "local", "RTX4090x2", 1, "nccl:2.19.4", "kalavai-net/kalavai-client scripts/README.md @52af06bc8fea"),
    "rtx4090_4": ("used", 4, "local", "RTX4090x4", 1, "nccl:2.19.4", "kalavai-net/kalavai-client scripts/README.md @52af06bc8fea"),
    "rtx2080ti_2_nvlink": ("seen", 2, MACHINES, "2x2080Ti NVLink", 1, "nccl:2.6.4", "NVIDIA/nccl-tests issue 44 (also nccl issue 340)"),
    "nebius_h100_16": ("used", 16, "azure", "Standard_ND96isr_H100_v5", 2, "nccl", "skypilot-org/skypilot examples/nebius_high_performance_network README,"),
    "oci_a100_16": ("seen", 16, MACHINES, "BM.GPU.B4.8", 2, "nccl:2.28", "oracle-quickstart/oci-hpc-oke docs/running-nccl-rccl-tests-from-slurm-operator.md @61d210acc37f"),
    "oci_gb200_8": ("used", 8, MACHINES, "GB200 rack of 8", 1, "nccl", "oracle-quickstart/oci-hpc-oke README (older version),"),
    "oci_h100_16": ("used", 16, MACHINES, "BM.GPU.H100.8", 2, "nccl:2.23.4", "oracle-quickstart/oci-hpc documentation/Troubleshooting.md @b5285a68fa0a"),
    "v100_2_tcp": ("seen", 2, MACHINES, "1xV100 32G", 2, "nccl:2.4.7", "gist cswinter 3bc2cbcc7c947e4a2736188dd6e74240"),
    "v100_32_tcp": ("used", 32, MACHINES, "8xV100 tcp100", 4, "nccl:2.8.3", "NVIDIA/nccl issue 450"),
    "crusoe_a100_16": ("held", 16, "azure", "Standard_ND96amsr_A100_v4", 2, "nccl", "dstackai/dstack documentation of Crusoe, 2 x 8 A100 with eight 200 Gbit/s adapters each, as Azure's"),
    "oke_a100_16": ("held", 16, MACHINES, "BM.GPU.B4.8", 2, "nccl", "a guide to NCCL tests on OKE, 2 x BM.GPU4.8 (A100-SXM4-40GB)"),
    "nd_a100_8_superbench": ("held", 8, "azure", "Standard_ND96asr_v4", 1, "nccl", "microsoft/superbenchmark, a test of its nccl benchmark, host sb-validation-scus-000001; one process"),
    "dgx_h100_16": ("held", 16, "azure", "Standard_ND96isr_H100_v5", 2, "nccl", "nccl-bench notes, dgx-06 and dgx-07; one process a node"),
    "dgx_h100_4_of_16": ("used", 4, "azure", "Standard_ND96isr_H100_v5", 2, "nccl", "the same, two GPUs a node"),
    "rtx4090_8": ("used", 8, MACHINES, "8xRTX 4090", 1, "nccl", "blog.chlc.cc/p/rtx4090-gpudirect-p2p-unlocked (2025-02-07), before peers were unlocked; 2 EPYC 7542"),
    "rtx5090_4": ("used", 4, "local", "RTX5090x4", 1, "nccl:2.26.2", "NVIDIA/nccl-tests issue 287"),
    "k80_4_azure": ("used", 4, "azure", "Standard_NC24_Promo", 1, "nccl:2.10.3", "an example job of Azure ML for nccl-tests; NCCL not stated, its columns are of 2022"),
    "a100_4_no_p2p": ("used", 4, MACHINES, "4xA100 no peers", 1, "nccl:2.16.2", "a page on multi-GPU topologies, four A100 of a DGX, NCCL_P2P_DISABLE=1"),
    "pair_no_nvlink": ("used", 2, MACHINES, "4xA40", 1, "nccl:2.16.2", "the same, two GPUs without their NVLink, NCCL_P2P_DISABLE=1; the GPU is not stated"),
    "pairs_no_nvlink_4": ("used", 4, MACHINES, "4xA40", 1, "nccl:2.16.2", "the same, four GPUs across sockets"),
    "a100_2_vtrain": ("check", 2, "aws", "p4d.24xlarge", 1, "nccl", "VIA-Research/vTrain @f8dda8473a48, trace (MIT)"),
    "a100_4_vtrain": ("check", 4, "aws", "p4d.24xlarge", 1, "nccl", "VIA-Research/vTrain @f8dda8473a48, trace (MIT)"),
    "a100_8_vtrain": ("check", 8, "aws", "p4d.24xlarge", 1, "nccl", "VIA-Research/vTrain @f8dda8473a48, trace (MIT)"),
    "h100_2_vidur": ("check", 2, "aws", "p5.48xlarge", 1, "nccl", "microsoft/vidur @7d4751336344, data/profiling/network (MIT), medians, 16-bit"),
    "h100_8_vidur": ("check", 8, "aws", "p5.48xlarge", 1, "nccl", "microsoft/vidur @7d4751336344, data/profiling/network (MIT), medians, 16-bit"),
    "nd_a100_8_guide": ("check", 8, "azure", "Standard_ND96amsr_A100_v4", 1, "nccl:2.18.5", "Azure/AI-benchmarking-guide Azure_Results @8fd0c6e1bd0f, times derived from bus bandwidth"),
    "nd_h200_8_guide": ("check", 8, "azure", "Standard_ND96isr_H200_v5", 1, "nccl:2.20.5", "Azure/AI-benchmarking-guide Azure_Results @8fd0c6e1bd0f, times derived from bus bandwidth"),
}
COLLECTIVES = {"a3high_16_tcpx": "all_gather", "a3mega_16_gather": "all_gather", "a3mega_16_gather_dstack": "all_gather", "a3high_16_tcpx_dstack": "all_gather", "rtx2080ti_2_nvlink": "all_gather"}


def samples(name):
    """The rows of a log as (bytes, out of place, in place or ""), times in microseconds as they were printed."""
    with open(os.path.join(HERE, "curves.csv")) as file:
        return [(int(row["bytes"]), row["out_of_place_us"], row["in_place_us"])
                for row in csv.DictReader(file) if row["log"] == name]


def write_log(name, ranks, path, rows=None):
    """The rows, by default all of the log, in the columns of nccl-tests; algbw and busbw follow from size and time."""
    collective = COLLECTIVES.get(name, "all_reduce")
    factor = (2 if collective == "all_reduce" else 1) * (ranks - 1) / ranks
    with open(path, "w") as log:
        log.write(f"# Collective test starting: {collective}_perf\n")
        for size, out_of_place, in_place in rows or samples(name):
            text = ""
            for time in filter(None, (out_of_place, in_place)):
                algbw = size / float(time) / 1e3
                text += f" {time} {algbw:.4f} {algbw * factor:.4f} 0"
            log.write(f"{size} {size // 4} float sum -1{text}\n")


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return done


def fitted(options, name, folder):
    """The errors by range after a fit to two sizes, as the program states them."""
    _, ranks, catalog, instance, nodes, scheme, _ = LOGS[name]
    log = os.path.join(folder, name + ".log")
    write_log(name, ranks, log)
    done = run([options.program, "import", "nccl-tests", log, "--catalog", catalog, "--instance", instance, "--nodes",
                str(nodes), "--gpus-per-node", str(ranks // nodes), "--scheme", scheme])
    if options.log:
        print(done.stderr)
    fit = json.loads(done.stdout)["fit"]
    return fit["errors"], fit["notes"]


def from_catalog(options, name, rows, more=()):
    """The errors by range of times that the description of the machine alone predicts, or with `more` options."""
    _, ranks, catalog, instance, nodes, scheme, _ = LOGS[name]
    done = run([options.program, "allreduce", "--catalog", catalog, "--instance", instance, "--nodes", str(nodes),
                "--gpus-per-node", str(ranks // nodes), "--scheme", scheme, "--collective",
                COLLECTIVES.get(name, "all_reduce").replace("_", "-"), "--bytes", ",".join(str(r[0]) for r in rows),
                "--format", "csv", *more])
    times = {int(row["bytes"]): row for row in csv.DictReader(done.stdout.splitlines())}
    off = []
    for size, out_of_place, _ in rows:
        ratio = float(times[size]["time_s"]) * 1e6 / float(out_of_place)
        off.append((size, abs(math.log(ratio))))
        if options.log:
            print(f"{size:12} {out_of_place:>10} us {float(times[size]['time_s']) * 1e6:12.1f} us {100 * ratio - 100:+8.1f} %  "
                  f"{times[size]['choice']}")
    errors = []
    for low, high in ((0, 65536), (65536, 1 << 20), (1 << 20, 1 << 62)):
        chosen = [e for size, e in off if low <= size < high]
        errors.append({"sizes": len(chosen), "error": math.expm1(sum(chosen) / len(chosen)) if chosen else 0, "line": 0})
    return errors, []


def print_falls(options):
    curves, worst = set(), []
    for provider in [line.split()[0] for line in run([options.program, "list", "providers"]).stdout.splitlines()]:
        done = subprocess.run([options.program, "catalog", "--provider", provider, "--format", "csv"], capture_output=True, text=True)
        names = sorted({row["instance"] for row in csv.DictReader(done.stdout.splitlines())} if done.returncode == 0 else {})
        for name, nodes in ((name, nodes) for name in names for nodes in (1, 2, 3, 4, 5, 8, 16)):
            done = subprocess.run([options.program, "allreduce", "--catalog", provider, "--instance", name, "--nodes", str(nodes),
                                   "--scheme", "nccl", "--bytes", ",".join(str(1 << k) for k in range(10, 31)), "--format",
                                   "csv"], capture_output=True, text=True)
            rows = list(csv.DictReader(done.stdout.splitlines())) if done.returncode == 0 else []
            times = tuple(float(row["time_s"]) for row in rows)
            # NCCL does not run on TPUs, and equal curves count once.
            if not times or int(rows[0]["ranks"]) < 2 or name.startswith("tpu") or times in curves:
                continue
            curves.add(times)
            fall, at = max((a / b, i) for i, (a, b) in enumerate(zip(times, times[1:])))
            if fall > 1.05:
                worst.append((fall, f"{provider} {name} x{nodes}", f"{rows[at]['bytes']}: {rows[at]['choice']} -> {rows[at + 1]['choice']}"))
    for fall, name, change in sorted(worst, reverse=True):
        print(f"{fall:5.2f}  {name:45} {change}")
    print(f"{len(worst)} of {len(curves)} curves fall by more than 5 %, at most {max(worst)[0]:.2f} times")


def print_two_sizes(options, folder):
    found, worse = [], {"line": [], "nothing fitted": []}
    for name, (_, ranks, catalog, instance, nodes, scheme, _) in LOGS.items():
        low, *rows, high = samples(name)
        rows = [row for row in rows if row[0] >= 1 << 20]
        if not rows:
            continue
        log, overlay = (os.path.join(folder, name + end) for end in (".log", ".json"))
        write_log(name, ranks, log, [low, high])
        run([options.program, "import", "nccl-tests", log, "--catalog", catalog, "--instance", instance, "--nodes", str(nodes),
             "--gpus-per-node", str(ranks // nodes), "--scheme", scheme, "--output", overlay])
        error, nothing = (from_catalog(options, name, rows, more)[0][2]["error"] for more in (("--overlay", overlay), ()))
        (x, y), (x1, y1) = ((row[0], float(row[1])) for row in (low, high))
        line = math.expm1(statistics.mean(abs(math.log((y + (row[0] - x) / (x1 - x) * (y1 - y)) / float(row[1]))) for row in rows))
        found.append((error, line, nothing))
        for what, other in (("line", line), ("nothing fitted", nothing)):
            if error > other + 0.01:
                worse[what].append(f"{name} {100 * error:.1f} % ({100 * other:.1f} %)")
    means = (f"{100 * math.expm1(statistics.mean(map(math.log1p, column))):.1f} %" for column in zip(*found))
    print(f"{len(found)} logs, geometric means of two sizes, line and nothing fitted: {', '.join(means)}")
    for what, logs in worse.items():
        print(f"{len(logs)} worse than {what}: {', '.join(logs)}")


def print_table(rows, with_line):
    wide = 26 if with_line else 8
    print(f"{'':20} {'':5}  {'below 64 KiB':>{wide}}  {'to 1 MiB':>{wide}}  {'from 1 MiB':>{wide}}")
    columns = ("others", "links", "line") if with_line else ("model",)
    print(f"{'log':20} {'':5}  " + "  ".join(" ".join(f"{column:>8}" for column in columns) for _ in range(3)))
    for row in rows:
        keys = ("error", "links", "line") if with_line else ("error",)
        text = "  ".join(" ".join(f"{100 * e[key]:7.1f}%" if e["sizes"] else f"{'-':>8}" for key in keys)
                         for e in row["errors"])
        print(f"{row['log']:20} {row['group']:5}  {text}")
    large = sorted(row["errors"][2]["error"] for row in rows if row["group"] != "check" and row["errors"][2]["sizes"])
    if large:
        mean = math.expm1(sum(map(math.log1p, large)) / len(large))
        print(f"from 1 MiB, {len(large)} logs: geometric mean {100 * mean:.1f}%, median {100 * statistics.median(large):.1f}%")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/ganymede")
    parser.add_argument("--nothing-fitted", action="store_true")
    parser.add_argument("--log", choices=sorted(LOGS))
    parser.add_argument("--falls", action="store_true")
    parser.add_argument("--two-sizes", action="store_true")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    options = parser.parse_args()
    if options.falls:
        print_falls(options)
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        if options.two_sizes:
            print_two_sizes(options, folder)
            return
        for name, (group, _, _, _, _, scheme, source) in LOGS.items():
            if options.log not in (None, name):
                continue
            errors, notes = from_catalog(options, name, samples(name)) if options.nothing_fitted else fitted(options, name, folder)
            rows.append({"log": name, "group": group, "scheme": scheme, "source": source, "errors": errors, "notes": notes})
    if options.format == "json":
        print(json.dumps(rows, indent=2))
        return
    print_table(rows, not options.nothing_fitted)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # the reader, head perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
