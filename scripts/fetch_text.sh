#!/usr/bin/env bash
# Puts a public-domain text, "Alice's Adventures in Wonderland" (1865), into the user's cache folder and prints its
# path. It lies among the test data in the source archive of the PyPI package brotli; line ends become plain ones.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fetch_common.sh"

name=alice.txt
from_pypi() {  # from_pypi FOLDER
  download "$1" brotli==1.2.1 --no-binary :all:
  tar -xzOf "$1"/brotli-1.2.1.tar.gz --wildcards '*/tests/testdata/alice29.txt' | tr -d '\r' >"$1/$name" ||
    fail "the archive does not contain tests/testdata/alice29.txt"
}
fetch_once "$name" 148481 4cbce86540bcef439f901c89de486d295aa3848e8c4cbc911561054479e73960 from_pypi
