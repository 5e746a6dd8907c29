"""Proves that the tests can fail: run.py [NAME...]. Each tests/mutations/*.patch breaks one thing that must be right; the
test it names must then turn red. A patch begins with three lines before the diff:

    target: laws_tests                     the ninja target (or targets) to build
    test: laws/SameText.*                  the ctest regular expression; at least one match must fail
    why: one sentence

Works in a copy of the tree (build/mutations), which it brings up to date first, so that your files are not touched and
only what a patch changes is built again. COPPICE_MUTATION_PRESET chooses another preset than dev.
"""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "mutations" / "tree"
PRESET = os.environ.get("COPPICE_MUTATION_PRESET", "dev")
JOBS = os.environ.get("COPPICE_JOBS", str(os.cpu_count()))


def run(command, **options):
    return subprocess.run(command, cwd=COPY, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def bring_up_to_date():
    """Copies files that differ, by content, so that an unchanged file keeps its time and is not built again."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, check=True).stdout.decode().split("\0")
    wanted = {name for name in listed if name and (ROOT / name).is_file()}
    for name in wanted:
        source, target = ROOT / name, COPY / name
        if not target.is_file() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    for path in COPY.rglob("*"):
        name = path.relative_to(COPY)
        if path.is_file() and name.parts[0] not in ("build", ".venv") and str(name) not in wanted:
            path.unlink()
    venv = COPY / ".venv"
    if (ROOT / ".venv").exists() and not venv.exists():
        venv.symlink_to(ROOT / ".venv")


def header(patch):
    fields = {}
    for line in patch.read_text().splitlines():
        if line.startswith(("diff ", "--- ")):
            break
        key, colon, value = line.partition(":")
        if colon:
            fields[key.strip()] = value.strip()
    missing = [key for key in ("target", "test", "why") if not fields.get(key)]
    if missing:
        sys.exit(f"{patch.name}: the line `{missing[0]}: ...` is missing before the diff")
    return fields


def build(targets):
    return run(["cmake", "--build", f"build/{PRESET}", "--parallel", JOBS, "--target", *targets.split()])


def verdict(patch, fields):
    """-> None if the named test turned red, else why this does not count."""
    applied = run(["patch", "-p1", "--no-backup-if-mismatch", "--forward", "-i", str(patch)])
    if applied.returncode:
        return "the patch does not apply any more:\n" + applied.stdout
    built = build(fields["target"])
    if built.returncode:
        return "the patched tree does not build:\n" + built.stdout[-3000:]
    # A mutation may hang a test: then it is red as well.
    tested = run(["ctest", "--test-dir", f"build/{PRESET}", "-R", fields["test"], "--no-tests=error",
                  "--parallel", "2", "--timeout", "600", "--stop-on-failure"])
    if "No tests were found" in tested.stdout:
        return f"no test matches {fields['test']}"
    return "its test stays green" if tested.returncode == 0 else None


def check_green(tests):
    """The named tests pass before any patch. A few at a time: ctest's regular expressions have a size limit."""
    for begin in range(0, len(tests), 8):
        clean = run(["ctest", "--test-dir", f"build/{PRESET}", "-R", "|".join(tests[begin:begin + 8]), "--parallel", "2",
                     "--no-tests=error", "--output-on-failure"])
        if clean.returncode:
            sys.exit("run.py: the named tests are not green before any patch:\n" + clean.stdout[-3000:])


def main():
    folder = ROOT / "tests" / "mutations"
    patches = sorted(folder.glob("*.patch"))
    if sys.argv[1:]:
        patches = [patch for patch in patches if patch.stem in sys.argv[1:]]
    if not patches:
        sys.exit("run.py: there is no such patch in tests/mutations")
    COPY.mkdir(parents=True, exist_ok=True)
    bring_up_to_date()
    if shutil.which("ccache"):
        os.environ.setdefault("COPPICE_LAUNCHER", "ccache")
    configured = run(["cmake", "--preset", PRESET])
    if configured.returncode:
        sys.exit("run.py: cmake could not configure the copy:\n" + configured.stdout[-3000:])
    fields = {patch: header(patch) for patch in patches}
    built = build(" ".join(sorted({field["target"] for field in fields.values()})))
    if built.returncode:
        sys.exit("run.py: the tree does not build before any patch:\n" + built.stdout[-3000:])
    check_green(sorted({field["test"] for field in fields.values()}))
    survived = 0
    for patch in patches:
        problem = verdict(patch, fields[patch])
        print(f"{'red' if problem is None else 'SURVIVED'}: {patch.stem}: {fields[patch]['why']}", flush=True)
        if problem:
            survived += 1
            print(f"  {problem}", flush=True)
        bring_up_to_date()
    print(f"{len(patches) - survived} passed, {survived} failed, 0 skipped")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
