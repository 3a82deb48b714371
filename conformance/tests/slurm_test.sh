#!/usr/bin/env bash
# An array of 4 shards in a Slurm of its own: one shard's program is killed, another is requeued.
# Nothing may be lost, nothing counted twice: merged, it is the report of a single run.
# $1: kvcts, $2: the folder of the sbatch files. 77: Slurm cannot start here.
set -uo pipefail
kvcts=$1 scripts=$2
level=(--level smoke --threads 1 --repeat 25)
unset GTEST_TOTAL_SHARDS GTEST_SHARD_INDEX "${!SLURM_@}"
PATH=$PATH:/usr/sbin:/sbin

skip() {
  echo "SKIPPED: $*"
  exit 77
}
fail() {
  echo "FAILED: $*"
  for file in "$dir"/jobs/*.log; do echo "== $file" && tail -n 15 "$file"; done
  exit 1
}
[[ $(id -u) == 0 ]] || skip "needs root"
for tool in munged slurmctld slurmd sbatch; do
  command -v $tool >/dev/null || skip "$tool is not installed (munge, slurmctld, slurmd, slurm-client)"
done

dir=$(mktemp -d /tmp/kvcts-slurm.XXXXXX)
daemons=()
clean_up() {
  [[ -z ${SLURM_CONF:-} ]] || timeout 10 scancel --user=root 2>/dev/null
  ((${#daemons[@]} == 0)) || kill "${daemons[@]}" 2>/dev/null
  wait
  rm -rf "$dir"
}
trap clean_up EXIT
chmod 755 "$dir"  # munged looks at it
mkdir "$dir"/{state,spool,jobs}
host=$(hostname -s) port=$((20000 + $$ % 20000))
(umask 077 && head -c 1024 /dev/urandom >"$dir/munge.key")
# The cgroup plugin is loaded by slurmd and not used: no other plugin asks it for anything.
cat >"$dir/cgroup.conf" <<END
CgroupPlugin=cgroup/v1
CgroupMountpoint=$dir/cgroup
CgroupAutomount=no
END
# cred_expire: a requeued task waits for as long.
cat >"$dir/slurm.conf" <<END
ClusterName=kvcts
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$dir/munge.sock,cred_expire=5
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/jobs/slurmctld.log
SlurmdLogFile=$dir/jobs/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
NodeName=node NodeHostname=$host NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=node Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF=$dir/slurm.conf

start() {
  "$@" >"$dir/jobs/$1.out.log" 2>&1 &
  daemons+=($!)
}
# Waits for a condition, $2...: a command, at most $1 seconds.
within() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < until)) || return 1
    sleep 0.05
  done
}
start munged --foreground --force --key-file="$dir/munge.key" --socket="$dir/munge.sock" \
  --pid-file="$dir/munge.pid" --log-file="$dir/munge.log" --seed-file="$dir/munge.seed"
within 10 test -S "$dir/munge.sock" || skip "munged does not start"
start slurmctld -D
start slurmd -D -N node
is_idle() { [[ $(sinfo --noheader --format=%T 2>/dev/null) == idle ]]; }
within 30 is_idle || skip "Slurm does not start: $(tail -n 3 "$dir/jobs/slurmd.out.log")"

cd "$dir/jobs" || exit 1
export KVCTS=$kvcts
job=$(sbatch --parsable --array=1-4 "$scripts/kvcts-array.sbatch" "${level[@]}") || fail "sbatch"
merge=$(sbatch --parsable --dependency="afterany:$job" "$scripts/kvcts-merge.sbatch" "$job")
out=kvcts-$job

# The process of a shard, stopped between two cases with some of them done.
process_of() { pgrep -f "^$kvcts run --shard $1/4 .*" | head -n 1; }
lines_of() { wc -l 2>/dev/null <"$out/shard-$1.checkpoint" || echo 0; }
has_begun() { (($(lines_of "$1") > 6)); }
for shard in 2 3; do
  within 30 has_begun $shard || fail "shard $shard does not begin"
  process=$(process_of $shard)
  [[ -n $process ]] || fail "shard $shard ended before it could be killed"
  if ((shard == 2)); then
    kill -KILL "$process"
  else
    scontrol requeue "${job}_$shard" || fail "scontrol requeue"
  fi
done
is_over() { [[ -z $(squeue --noheader 2>/dev/null) ]]; }
within 90 is_over || fail "the jobs do not end: $(squeue)"

for shard in 2 3; do
  grep -q ' cases are in .* already' "kvcts-${job}_$shard.log" || fail "shard $shard did not resume"
done
[[ -e $out/merged/report.json ]] || fail "no merged report: $(cat kvcts-merge-"$merge".log)"
"$kvcts" run "${level[@]}" --report whole >/dev/null || fail "the single run"
without_times() { sed -E 's/"(seconds|time)": [^,]*/"\1": 0/' "$1"; }
cmp <(without_times whole/report.json) <(without_times "$out/merged/report.json") ||
  fail "the merged report differs from that of a single run"
echo "4 shards, 2 of them interrupted: $(grep -c '"outcome"' "$out/merged/report.json") cases, as in a single run"
