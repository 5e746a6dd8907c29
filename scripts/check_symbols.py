"""No weak symbols in the objects of one instruction set.

A template or inline function that is compiled into several objects is kept once, whichever the linker meets first. If
that copy comes from an AVX-512 object, the program dies on a machine without it. So the files of one instruction set
(*_avx2.cc, ...) may define only their own table and internal functions; nm must find nothing weak in them.
"""

import pathlib
import subprocess
import sys

ISAS = ("_avx2", "_avxvnni", "_avx512", "_avx512vnni", "_amx", "_neon", "_neondot")


def objects(build):
    found = []
    for isa in ISAS:
        found += sorted(build.glob(f"**/*{isa}.cc.o"))
    return found


def weak(listing):
    """The weak definitions in nm's output: types W and V (undefined weak ones, w and v, are somebody else's)."""
    for line in listing.splitlines():
        parts = line.split()
        if len(parts) >= 3 and parts[-2] in ("W", "V", "u"):
            yield parts[-1]


def check(root, build):
    for path in objects(build):
        listing = subprocess.run(["nm", "--defined-only", str(path)], capture_output=True, text=True)
        if listing.returncode:
            yield f"{path.relative_to(root)}: nm cannot read it: {listing.stderr.strip()}"
            continue
        names = list(weak(listing.stdout))
        if names:
            nice = subprocess.run(["c++filt", *names[:3]], capture_output=True, text=True).stdout.split("\n")
            yield (f"{path.relative_to(root)} defines {len(names)} weak symbols, among them {nice[0]}; make it static, put "
                   "it into an unnamed namespace, or move it out of the file of one instruction set")


def main():
    """check_symbols.py BUILD: the same for a build folder of another architecture, as a test."""
    build = pathlib.Path(sys.argv[1]).resolve()
    found = list(check(build, build))
    print("\n".join(found) if objects(build) else f"no objects of one instruction set under {build}")
    return 1 if found or not objects(build) else 0


if __name__ == "__main__":
    sys.exit(main())
