#!/usr/bin/env bash
# Checks and times the instruction sets that the machine at hand lacks, on another x86 machine.
#   tests/on_device.sh pack FOLDER   here: builds the tests and the command, puts them with their libraries into FOLDER
#   FOLDER/on_device.sh run          there: every table against the scalar one, the laws, then what passes cost
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

pack() {
  local root folder=$1
  root=$(cd "$here/.." && pwd)
  cmake -S "$root" -B "$root/build/device" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O3 \
    -DCMAKE_EXE_LINKER_FLAGS=-s -DCMAKE_CXX_COMPILER_LAUNCHER="${COPPICE_LAUNCHER:-}" >/dev/null
  cmake --build "$root/build/device" --target kernels_tests laws_tests coppice_command
  mkdir -p "$folder"
  cp "$root"/build/device/{kernels_tests,tests/laws_tests,apps/coppice} "$0" "$folder/"
  for program in "$folder"/{kernels_tests,laws_tests,coppice}; do
    ldd "$program" | awk '/=>/ {print $3} /ld-linux/ {print $1}'
  done | sort -u | xargs -I{} cp -L {} "$folder/"
}

# With the libraries that came along, whatever this machine has.
try() { "$here/ld-linux-x86-64.so.2" --library-path "$here" "$here/$@"; }

run() {
  local model=${TMPDIR:-/tmp}/on_device
  grep -m1 "model name" /proc/cpuinfo
  try coppice info
  try kernels_tests --gtest_brief=1
  try laws_tests --gtest_brief=1 --gtest_filter='SameBits.Every*'
  local small=(--hidden 576 --layers 30 --heads 9 --kv-heads 3 --feed-forward 1536)
  local large=(--hidden 1536 --layers 24 --heads 16 --kv-heads 8 --feed-forward 4096)
  for shape in small large; do
    local -n options=$shape
    try coppice random-model -o "$model-$shape.gguf" "${options[@]}" --vocab 49152 --formats Q4_0
    for isa in avx512vnni amx avxvnni avx2 avx512vnni amx; do
      echo "== $shape, $isa"
      COPPICE_CACHE=${TMPDIR:-/tmp} try coppice bench cost -m "$model-$shape.gguf" -t 2 --isa "$isa" \
        --rows 1 2 3 4 5 6 8 12 16 32 64 --contexts 128 --prefill 512 --repeats 5 || true
    done
  done
}

case "${1:-}" in
  pack) pack "${2:?the folder to fill}" ;;
  run) run ;;
  *) sed -n 2,4p "$0" ; exit 2 ;;
esac
