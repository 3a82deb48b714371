#!/usr/bin/env bash
# run.sh [SECONDS [TARGET...]]: builds the libFuzzer targets (clang++) and runs each for SECONDS
# (60), from its seeds in corpus/. What it learns stays in build-fuzz/corpus; an input that breaks
# one is left in build-fuzz. Ends with 1 where there is one. CLANGXX names another compiler.
set -euo pipefail
root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." && pwd)
seconds=${1:-60}
shift || true
targets=("$@")
((${#targets[@]})) || targets=(tree json arguments archive)
build=$root/build-fuzz
cmake -G Ninja -S "$root" -B "$build" -DCMAKE_CXX_COMPILER="${CLANGXX:-clang++}" \
  -DKVCTS_LIBFUZZER=ON -DKVCTS_CUDA=off -DKVCTS_TESTS=OFF >/dev/null
for target in "${targets[@]}"; do ninja -C "$build" "kvcts_fuzz_$target"; done
failed=()
for target in "${targets[@]}"; do
  mkdir -p "$build/corpus/$target"
  "$build/fuzz/parsers/kvcts_fuzz_$target" -max_total_time="$seconds" -timeout=10 \
    -rss_limit_mb=2048 -max_len=4096 -dict="$root/fuzz/parsers/$target.dict" \
    -artifact_prefix="$build/$target-" -print_final_stats=1 \
    "$build/corpus/$target" "$root/fuzz/parsers/corpus/$target" || failed+=("$target")
done
((${#failed[@]} == 0)) || { echo "broken: ${failed[*]}, see $build" >&2; exit 1; }
