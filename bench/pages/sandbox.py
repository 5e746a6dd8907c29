"""Runs Python source that nobody has read: a process of its own without network, that can write into one temporary folder
alone, with limits on memory, time, processes and files. Linux only; what cannot be had is refused, not skipped.

No network: a network namespace of its own. No writing elsewhere: Landlock. No privileges: a user namespace where it is nobody.
Reading is not forbidden, and the limit on processes does not hold for root: do not run this as root where that matters."""

import ctypes
import os
import resource
import subprocess
import sys
import tempfile

NEW_USER, NEW_NET, NEW_IPC = 0x10000000, 0x40000000, 0x08000000
NO_NEW_PRIVILEGES = 38
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
WRITE_FILE = 1 << 1
WRITES = WRITE_FILE | sum(1 << bit for bit in range(4, 13))  # remove and make anything
MEGABYTE = 1 << 20


class Limits:
    def __init__(self, seconds=10, megabytes=1024, processes=64, file_megabytes=1):
        self.seconds, self.megabytes, self.processes, self.file_megabytes = seconds, megabytes, processes, file_megabytes


class _Rules(ctypes.Structure):
    _fields_ = [("handled", ctypes.c_uint64)]


class _Below(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def _check(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def _only_writes_below(libc, folder):
    rules = _Rules(WRITES)
    handle = _check(libc.syscall(LANDLOCK_CREATE, ctypes.byref(rules), ctypes.sizeof(rules), 0), "Landlock")
    for path, allowed in ((folder, WRITES), ("/dev/null", WRITE_FILE)):
        at = os.open(path, os.O_PATH | os.O_CLOEXEC)
        below = _Below(allowed, at)
        _check(libc.syscall(LANDLOCK_ADD, handle, 1, ctypes.byref(below), 0), "Landlock")
        os.close(at)
    _check(libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no new privileges")
    _check(libc.syscall(LANDLOCK_RESTRICT, handle, 0), "Landlock")
    os.close(handle)


def _enter(folder, limits):
    """In the child, before its program begins."""
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.unshare(NEW_USER | NEW_NET | NEW_IPC), "namespaces of its own")
    _only_writes_below(libc, folder)
    for kind, value in ((resource.RLIMIT_AS, limits.megabytes * MEGABYTE), (resource.RLIMIT_CPU, limits.seconds),
                        (resource.RLIMIT_FSIZE, limits.file_megabytes * MEGABYTE), (resource.RLIMIT_NOFILE, 128),
                        (resource.RLIMIT_NPROC, limits.processes), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(kind, (value, value))


def run(source, limits=None, python=sys.executable, paths=()):
    """-> subprocess.CompletedProcess of `python` over the source, stdout and stderr as text; returncode -9 where it took longer than
    three times its limit. `paths`: for imports. Raises OSError where this machine cannot lock it in."""
    limits = limits or Limits()
    with tempfile.TemporaryDirectory(prefix="coppice-sandbox-") as folder:
        os.chmod(folder, 0o777)
        head = f"import sys; sys.path[:0] = {list(map(str, paths))!r}\n"
        environment = {"PATH": os.defpath, "HOME": folder, "TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
        try:
            child = subprocess.Popen([python, "-I", "-c", head + source], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
                                     preexec_fn=lambda: _enter(folder, limits))
        except subprocess.SubprocessError as error:
            raise OSError("this machine cannot lock a process in: user and network namespaces and Landlock are needed") from error
        try:
            out, err = child.communicate(timeout=3 * limits.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            out, err = child.communicate()
        finally:
            try:
                os.killpg(child.pid, 9)  # whatever it left behind
            except ProcessLookupError:
                pass
        return subprocess.CompletedProcess(child.args, child.returncode, out, err)
