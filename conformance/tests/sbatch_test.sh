#!/usr/bin/env bash
# The sbatch scripts, task by task without Slurm: every command that has shards, and what merges.
# $1: kvcts, $2: the folder of the sbatch files.
set -euo pipefail
kvcts=$1 scripts=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() {
  echo "FAILED: $*"
  exit 1
}
export KVCTS=$kvcts SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=3 SLURM_ARRAY_TASK_COUNT=3
unset GTEST_TOTAL_SHARDS GTEST_SHARD_INDEX KVCTS_OUT KVCTS_SHARDS

# $1: job; the rest goes to the array's tasks.
array() {
  local job=$1 i
  shift
  for i in 3 1 2; do
    SLURM_ARRAY_JOB_ID=$job SLURM_ARRAY_TASK_ID=$i bash "$scripts/kvcts-array.sbatch" "$@" \
      >"$job-$i.log" 2>&1 || fail "task $i of $*: $(tail -n 3 "$job-$i.log")"
  done
  bash "$scripts/kvcts-merge.sbatch" "$job" >"$job.log" 2>&1 || fail "merge of $*: $(cat "$job.log")"
}
without_times() { sed -E 's/"(seconds|time)": [^,]*/"\1": 0/' "$1"; }
same() { cmp <(without_times "$1") <(without_times "$2") || fail "$1 and $2 differ"; }

array 1 --level smoke --kernels mxfp4_q_quant
"$kvcts" run --level smoke --kernels mxfp4_q_quant --report whole-1 >/dev/null
same kvcts-1/merged/report.json whole-1/report.json
array 2 exhaustive --sweeps 'shape.mxfp4_q_quant,format.*.decode'
"$kvcts" exhaustive --sweeps 'shape.mxfp4_q_quant,format.*.decode' --report whole-2 >/dev/null
same kvcts-2/merged/report.json whole-2/report.json
array 3 fuzz --kernels 'mxfp4_q_quant,c*' --cases 40
"$kvcts" fuzz --kernels 'mxfp4_q_quant,c*' --cases 40 --json whole-3.json >/dev/null
same kvcts-3/merged/fuzz.json whole-3.json
array 4 adequacy --kernels mxfp4_q_quant
"$kvcts" adequacy --kernels mxfp4_q_quant --json whole-4.json >/dev/null
same kvcts-4/merged/adequacy.json whole-4.json

if SLURM_ARRAY_JOB_ID=5 SLURM_ARRAY_TASK_ID=1 bash "$scripts/kvcts-array.sbatch" bench >5.log 2>&1; then
  fail "bench has no shards"
fi
grep -q "'bench' has no shards" 5.log || fail "$(cat 5.log)"
echo passed
