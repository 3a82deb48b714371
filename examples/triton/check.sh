#!/usr/bin/env bash
# check.sh KVCTS PYTHON [--numpy]: the kernel passes `verify` on the smoke suite, by way of .npz.
# Status 77: nothing was run, since there is no torch, Triton or GPU.
set -euo pipefail
kvcts=$1 python=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export PYTHONDONTWRITEBYTECODE=1

"$kvcts" vectors generate --kernels mxfp4_q_quant -o suite.h5
"$python" "$here/h5_to_npz.py" suite.h5 cases.npz
"$python" "$here/mxfp4_q_quant.py" cases.npz results.npz "$@"
"$python" "$here/npz_to_h5.py" suite.h5 results.npz mine.h5
"$kvcts" verify suite.h5 mine.h5
