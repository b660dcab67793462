#!/usr/bin/env bash
# Simulates a study in shards as people start them, and compares what merge writes with the bytes of one process.
#
#   tests/cli/on_schedulers.sh PROGRAM parallel|mpirun|slurm
#
# `slurm` starts a cluster of its own on this machine, of munged, slurmctld and two slurmd on 127.0.0.1, and ends it; it
# needs root. Exit code 77 and the reason: the scheduler is not there or cannot start.
set -euo pipefail

program=$1 scheduler=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
chmod 755 "$work"
cd "$work"
export CUDA_VISIBLE_DEVICES=
# Open MPI removes its session folder when it ends, also what another mpirun of the same user has just made in it.
mkdir sessions
export OMPI_MCA_orte_tmpdir_base=$work/sessions

skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*" >&2; exit 1; }

finish() {
  for file in slurmd-node1 slurmd-node2 slurmctld munged; do
    [[ ! -s $work/$file.pid ]] || kill "$(cat "$work/$file.pid")" 2>/dev/null || true
  done
  sleep 0.2
  rm -rf "$work"
}
trap finish EXIT

# 24 runs of some milliseconds: two policies and twelve seeds.
cat >study.json <<JSON
{ "schema": "ganymede.study/1", "name": "Small study",
  "workload": { "trace": "$here/../../traces/recorded/progressive-gan-cpu.json", "batch_per_gpu": 16,
    "dataset": { "name": "faces", "images": 200000, "bytes_per_image": 12288 }, "images": 150000000 },
  "platforms": [ { "catalog": "aws", "region": "us-east-1", "instance": "p3.8xlarge", "market": "spot", "max_nodes": 2,
    "lifetimes": { "mean": "4h", "back_after": "2h" } } ],
  "gpus": [4], "schemes": ["ring"], "storage": { "dataset": "s3", "checkpoint": "s3" },
  "checkpoint": { "every": "10min" }, "policies": ["fixed", "spot-first"], "seeds": { "first": 1, "count": 12 } }
JSON
"$program" --quiet sweep study.json --format json -o whole.json

# Merges a folder and says how many files of rows it has.
same_bytes() {
  "$program" merge "$1" -o merged.json || fail "merge $1 ended with exit code $?"
  cmp whole.json merged.json || fail "$1 merges to other bytes"
  echo "$1: $(find "$1" -name '*.rows' | wc -l) shards merge to the bytes of one process"
}

on_parallel() {
  command -v parallel >/dev/null || skip "GNU parallel is not installed"
  parallel --will-cite --jobs 2 "$program" --quiet sweep study.json --shard {}/4 --jobs 1 -o parallel ::: 1 2 3 4
  same_bytes parallel
}

on_mpirun() {
  command -v mpirun >/dev/null || skip "mpirun is not installed"
  mpirun --allow-run-as-root --oversubscribe -n 3 "$program" --quiet sweep study.json --shard auto --jobs 1 -o mpirun
  same_bytes mpirun
}

start_slurm() {
  local daemon port
  [[ $(id -u) -eq 0 ]] || skip "Slurm's daemons start as root only"
  for daemon in munged slurmctld slurmd sbatch srun; do
    command -v "$daemon" >/dev/null || skip "$daemon is not installed"
  done
  port=$((20000 + RANDOM % 20000))
  (umask 077; head -c 128 /dev/urandom >munge.key)
  munged --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munged.pid" --log-file="$work/munged.log" \
    --seed-file="$work/munge.seed" --force >munged.out 2>&1 || skip "munged does not start: $(tail -n 1 munged.out)"
  mkdir state
  cat >slurm.conf <<CONF
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
StateSaveLocation=$work/state
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmdSpoolDir=$work/spool-%n
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd-%n.log
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=node1 NodeHostname=localhost NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=2
NodeName=node2 NodeHostname=localhost NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=2
PartitionName=all Nodes=node1,node2 Default=YES MaxTime=INFINITE State=UP
CONF
  export SLURM_CONF=$work/slurm.conf
  slurmctld >slurmctld.out 2>&1 || skip "slurmctld does not start: $(tail -n 1 slurmctld.out)"
  slurmd -N node1 >slurmd.out 2>&1 && slurmd -N node2 >slurmd.out 2>&1 || skip "slurmd does not start: $(tail -n 1 slurmd.out)"
  for _ in $(seq 100); do
    [[ $(sinfo --noheader --format=%T 2>/dev/null) == idle ]] && return
    sleep 0.2
  done
  skip "Slurm's nodes do not come up: $(tail -n 1 slurmctld.log)"
}

on_slurm() {
  start_slurm
  sinfo
  # Tasks of one job on two nodes.
  srun --nodes=2 --ntasks=4 "$program" --quiet sweep study.json --shard auto --jobs 1 -o srun
  same_bytes srun
  # An array of jobs, by the script that the program writes. One of its shards is lost and run again alone.
  export GANYMEDE=$program
  "$program" --quiet export slurm study.json --shards 5 --time 0:10:00 -o sweep.sbatch
  sbatch --wait sweep.sbatch || fail "the array failed: $(cat small-study-*.log)"
  same_bytes small-study-shards
  rm small-study-shards/shard-3-of-5.rows
  "$program" merge small-study-shards -o merged.json && fail "a lost shard went unnoticed" || [[ $? -eq 3 ]] || fail "expected exit code 3"
  sbatch --wait --array=3 sweep.sbatch
  same_bytes small-study-shards
  # Processes of mpirun inside the jobs of an array: 2 x 2 shards.
  if command -v mpirun >/dev/null; then
    sbatch --wait --array=1-2 --ntasks=2 --wrap \
      "mpirun --allow-run-as-root '$program' --quiet sweep study.json --shard auto --jobs 1 -o nested" || fail "mpirun in an array failed: $(cat slurm-*.out)"
    same_bytes nested
  fi
}

case $scheduler in
  parallel | mpirun | slurm) "on_$scheduler" ;;
  *) echo "unknown scheduler '$scheduler', expected parallel, mpirun or slurm" >&2; exit 2 ;;
esac
