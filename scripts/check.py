"""What ./dev check runs: every check on the tree that is not a test. Exit code 1 if one found something."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import time

import check_files
import check_layers
import check_style
import check_symbols
import make_models_doc

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "dev"
# Configured and never built: each file by itself and without precompiled headers, so that clang-tidy sees a missing include.
LINT = ROOT / "build" / "lint"


def tracked():
    """Files of the tree as git sees it, new ones included, without what git ignores."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, check=True).stdout.decode().split("\0")
    return sorted(name for name in set(listed) if name and (ROOT / name).is_file())


def configure(build_kernels):
    if shutil.which("ccache"):
        os.environ.setdefault("COPPICE_LAUNCHER", "ccache")
    commands = [["cmake", "--preset", "dev"],
                ["cmake", "--preset", "dev", "-B", str(LINT), "-DCOPPICE_PRECOMPILE=OFF", "-DCOPPICE_UNITY=OFF"]]
    if build_kernels:
        jobs = os.environ.get("COPPICE_JOBS", str(os.cpu_count() or 2))
        commands.append(["cmake", "--build", "build/dev", "--parallel", jobs, "--target", "coppice_kernels"])
    for command in commands:
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"check: `{' '.join(command)}` failed:\n{(run.stdout + run.stderr)[-3000:]}")


def main():
    parser = argparse.ArgumentParser(prog="./dev check", description=__doc__)
    parser.add_argument("--no-tidy", action="store_true", help="all but clang-tidy, which takes minutes")
    parser.add_argument("--fix", action="store_true", help="format the files in place first")
    options = parser.parse_args()
    files = tracked()
    configure(build_kernels=any(path.startswith("src/kernels/") and path.endswith(".cc") for path in files))
    if options.fix:
        list(check_style.formatting(ROOT, files, fix=True))
    checks = [
        ("room layers", lambda: check_layers.check(ROOT, files)),
        ("file sizes", lambda: check_files.sizes(ROOT, files)),
        ("links in documents", lambda: check_files.links(ROOT, files)),
        ("a README in each room", lambda: check_files.readmes(ROOT, files)),
        ("a judge for each row of docs/models.md", lambda: make_models_doc.check(ROOT, files)),
        ("no paths of one machine", lambda: check_files.machine_paths(ROOT, files)),
        ("no weak symbols in ISA objects", lambda: check_symbols.check(ROOT, BUILD)),
        ("format", lambda: check_style.formatting(ROOT, files)),
    ]
    if not options.no_tidy:
        checks.append(("lint", lambda: check_style.tidy(ROOT, files, LINT)))
    failed = 0
    for name, run in checks:
        start = time.monotonic()
        found = list(run())
        print(f"{'FAILED' if found else 'ok'}: {name} ({time.monotonic() - start:.1f} s)", flush=True)
        for line in found:
            print(f"  {line}")
        failed += bool(found)
    print(f"check: {len(checks) - failed} of {len(checks)} in order")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
