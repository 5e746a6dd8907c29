#!/usr/bin/env bash
# Puts a public-domain text, "Alice's Adventures in Wonderland" (1865), into the user's cache folder and prints its
# path. It lies among the test data in the source archive of the PyPI package brotli; line ends become plain ones.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fetch_common.sh"

name=alice.txt
size=148481
sha256=4cbce86540bcef439f901c89de486d295aa3848e8c4cbc911561054479e73960
target=$cache_folder/$name

mkdir -p "$cache_folder" || fail "cannot make the folder $cache_folder; set COPPICE_CACHE to one that can be written"
exec 9>"$cache_folder/.lock"
flock 9
if ! right "$target" $size $sha256; then
  work=$(mktemp -d "$cache_folder/.fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  download "$work" brotli==1.2.1 --no-binary :all:
  tar -xzOf "$work"/brotli-1.2.1.tar.gz --wildcards '*/tests/testdata/alice29.txt' | tr -d '\r' >"$work/$name" ||
    fail "the archive does not contain tests/testdata/alice29.txt"
  right "$work/$name" $size $sha256 || fail "$name from PyPI is not the one expected (SHA-256 $sha256)"
  mv -f "$work/$name" "$target"
fi
echo "$target"
