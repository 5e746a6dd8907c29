"""The package and the llm plugin as pip installs them, around an extension that is built already: pack.py EXTENSION FOLDER"""

import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main(extension, folder):
    shutil.rmtree(folder, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-build-isolation",
           "--target", folder]
    settings = {"build-dir": f"{folder}-build", "cmake.define.COPPICE_EXTENSION": extension}
    subprocess.run([*pip, *(f"--config-settings={name}={value}" for name, value in settings.items()), ROOT], check=True)
    subprocess.run([*pip, ROOT / "python/llm-coppice"], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
