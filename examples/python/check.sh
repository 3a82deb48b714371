#!/usr/bin/env bash
# check.sh KVCTS PYTHON: the numpy kernels pass `verify` on the smoke suite, and with one mistake in
# either kernel they fail.
set -euo pipefail
kvcts=$1 python=$2
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export PYTHONDONTWRITEBYTECODE=1

kernels=mxfp4_k_norm_quant_insert,fused_indexer_q_rope_quant
"$kvcts" vectors generate --kernels $kernels -o suite.h5
"$python" "$here/fill.py" suite.h5 mine.h5
"$kvcts" verify suite.h5 mine.h5
for kernel in ${kernels//,/ }; do
  "$python" "$here/fill.py" suite.h5 wrong.h5 --mistake "$kernel"
  status=0
  "$kvcts" verify suite.h5 wrong.h5 >verdict || status=$?
  tail -n 1 verdict
  if [[ $status != 1 ]] || ! grep -q "^FAILED $kernel/" verdict; then
    echo "the mistake in $kernel was not found (status $status)"
    exit 1
  fi
done
