#!/usr/bin/env bash
# Makes the Python that peers.py runs in, under the cache folder, with llama.cpp built for this very machine, and prints
# its path. Does nothing the second time. COPPICE_JOBS: compilers at once (default 1; it takes 5 to 20 minutes).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=${COPPICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/coppice}/peers
python=$folder/venv/bin/python
stamp=$folder/installed-$(sha256sum <"$here/requirements.txt" | cut -c1-16)
if [[ ! -f $stamp ]]; then
  mkdir -p "$folder"
  [[ -x $python ]] || python3 -m venv "$folder/venv"
  echo "building llama-cpp-python in $folder/venv; the log is $folder/build.log" >&2
  export CMAKE_BUILD_PARALLEL_LEVEL=${COPPICE_JOBS:-1}
  export CMAKE_ARGS="-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF
    -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_SERVER=OFF"
  CMAKE_ARGS=$(echo $CMAKE_ARGS) nice "$python" -m pip install --verbose --disable-pip-version-check \
    --no-binary llama-cpp-python -r "$here/requirements.txt" >"$folder/build.log" 2>&1 ||
    { tail -20 "$folder/build.log" >&2; echo "setup.sh: the build failed" >&2; exit 1; }
  touch "$stamp"
fi
echo "$python"
