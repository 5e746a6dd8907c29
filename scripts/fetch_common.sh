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
