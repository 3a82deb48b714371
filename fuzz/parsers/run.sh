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
ninja -C "$build" "${targets[@]/#/kvcts_fuzz_}"

# One a processor at a time; what each prints comes in one piece.
fuzz() {
  local status=0
  mkdir -p "$build/corpus/$1"
  "$build/fuzz/parsers/kvcts_fuzz_$1" -max_total_time="$seconds" -timeout=10 \
    -rss_limit_mb=2048 -max_len=4096 -dict="$root/fuzz/parsers/$1.dict" \
    -artifact_prefix="$build/$1-" -print_final_stats=1 \
    "$build/corpus/$1" "$root/fuzz/parsers/corpus/$1" >"$build/$1.log" 2>&1 || status=1
  cat "$build/$1.log"
  ((status == 0)) || echo "broken: $1" >&2
  return $status
}
export -f fuzz
export build root seconds
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I '{}' bash -c 'fuzz {}' ||
  { echo "broken targets: see above and $build" >&2; exit 1; }
