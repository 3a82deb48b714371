#!/bin/sh
# gpu_resources_test.sh CMAKE_FOLDER CTEST: tests get the GPUs of an nvidia-smi that is played here,
# one each at a time.
set -eu
unset CUDA_VISIBLE_DEVICES
scripts=$1 ctest=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() {
  echo "$*"
  cat "$dir"/*.log "$dir/spec.json" 2>/dev/null || true
  exit 1
}

cat >"$dir/nvidia-smi" <<'SMI'
#!/bin/sh
for i in 0 1 2; do echo "GPU $i: NVIDIA H200 (UUID: GPU-0000000$i-0000-0000-0000-000000000000)"; done
SMI
# Notes its GPU, holds it, and fails where another test holds it.
cat >"$dir/test" <<TEST
#!/bin/sh
mkdir "$dir/held-\${CUDA_VISIBLE_DEVICES:-none}" || exit 1
echo "\${CUDA_VISIBLE_DEVICES:-none}" >>"$dir/gpus.log"
sleep 0.3
rmdir "$dir/held-\${CUDA_VISIBLE_DEVICES:-none}"
TEST
chmod +x "$dir/nvidia-smi" "$dir/test"
NVIDIA_SMI=$dir/nvidia-smi "$scripts/gpu_resources" >"$dir/spec.json"
for i in 1 2 3 4 5 6; do
  echo "add_test(gpu_$i \"$scripts/on_gpu\" \"$dir/test\")"
  echo "set_tests_properties(gpu_$i PROPERTIES RESOURCE_GROUPS gpus:1)"
done >"$dir/CTestTestfile.cmake"

"$ctest" --test-dir "$dir" -j 6 --resource-spec-file "$dir/spec.json" >"$dir/run.log" 2>&1 ||
  fail "a test fails, or two have the same GPU"
[ "$(sort -u "$dir/gpus.log" | tr '\n' ' ')" = "0 1 2 " ] || fail "not every GPU was used"
[ "$(wc -l <"$dir/gpus.log")" = 6 ] || fail "not every test ran"
# Without a spec, CTest sets none aside.
"$ctest" --test-dir "$dir" -j 1 -R gpu_1 >"$dir/run.log" 2>&1 || fail "fails without a spec"
[ "$(tail -n 1 "$dir/gpus.log")" = none ] || fail "has a GPU without a spec"

# A scheduler's choice, by number and by UUID.
ids() { sed -n 's/.*\[{"gpus": \[\(.*\)\]}\].*/\1/p' "$dir/spec.json" | grep -o '"id": "[0-9]*"' | tr -dc '0-9\n' | tr '\n' ' '; }
for choice in '1,2' 'GPU-00000001-0000-0000-0000-000000000000,2'; do
  CUDA_VISIBLE_DEVICES=$choice NVIDIA_SMI=$dir/nvidia-smi "$scripts/gpu_resources" >"$dir/spec.json"
  [ "$(ids)" = "1 2 " ] || fail "CUDA_VISIBLE_DEVICES=$choice gives $(ids)"
done
if CUDA_VISIBLE_DEVICES=7 NVIDIA_SMI=$dir/nvidia-smi "$scripts/gpu_resources" >/dev/null 2>&1; then
  fail "a GPU that is not there is no error"
fi

# Programs that were carried here: each of their tests is one of CTest's, with a GPU of its own.
cat >"$dir/carried" <<'CARRIED'
#!/bin/sh
case $1 in
  --gtest_list_tests) printf 'Running main() from somewhere\nplain.\n  a\n  b\nall/with.\n  c/0  # GetParam() = "x.y"\n' ;;
  --gtest_filter=plain.a | --gtest_filter=plain.b | --gtest_filter=all/with.c/0) ;;
  *) exit 1 ;;
esac
CARRIED
chmod +x "$dir/carried"
mkdir "$dir/of_carried"
(cd "$dir" && "$scripts/carried_tests" ./carried) >"$dir/of_carried/CTestTestfile.cmake"
NVIDIA_SMI=$dir/nvidia-smi "$scripts/gpu_resources" >"$dir/spec.json"
KVCTS_GPU_LOG=$dir/used.log "$ctest" --test-dir "$dir/of_carried" -j 3 -L cuda \
  --resource-spec-file "$dir/spec.json" >"$dir/run.log" 2>&1 || fail "carried tests fail"
[ "$(cut -d' ' -f3 "$dir/used.log" | sort | tr '\n' ' ')" = \
  "--gtest_filter=all/with.c/0 --gtest_filter=plain.a --gtest_filter=plain.b " ] || fail "other tests ran"
[ "$(cut -d' ' -f1 "$dir/used.log" | grep -c '^[012]$')" = 3 ] || fail "tests without a GPU"

printf '#!/bin/sh\necho No devices found\n' >"$dir/nvidia-smi"
if NVIDIA_SMI=$dir/nvidia-smi "$scripts/gpu_resources" >/dev/null 2>&1; then
  fail "no GPU is no error"
fi
echo passed
