#!/bin/sh
# gpu_resources_test.sh CMAKE_FOLDER CTEST: tests get the GPUs of an nvidia-smi that is played here,
# one each at a time.
set -eu
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
printf '#!/bin/sh\necho No devices found\n' >"$dir/nvidia-smi"
if NVIDIA_SMI=$dir/nvidia-smi "$scripts/gpu_resources" >/dev/null 2>&1; then
  fail "no GPU is no error"
fi
echo passed
