"""cpack: the packages hold what they should, know what they need, and what they bring runs."""

import http.server
import json
import pathlib
import re
import shutil
import subprocess
import threading
import unittest

import installed


class Packages(installed.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cpack = pathlib.Path(installed.cmake).with_name("cpack")
        installed.call(cpack if cpack.is_file() else "cpack", "--config", installed.build / "CPackConfig.cmake", "-B", cls.folder / "out",
                       cwd=cls.folder)
        cls.files = {path.name: path for path in (cls.folder / "out").iterdir() if path.is_file()}

    def only(self, pattern):
        (name,) = [name for name in self.files if re.fullmatch(pattern, name)]
        return self.files[name]

    def field(self, package, name):
        return installed.call("dpkg-deb", "--field", package, name).strip()

    def unpack(self, package, name):
        root = self.folder / name
        installed.call("dpkg", "-x", package, root)
        return root / "usr"

    def test_the_package_of_the_command_runs_and_has_its_files(self):
        usr = self.unpack(self.only(r"coppice_[\d.]+_\w+\.deb"), "command")
        self.check_command(usr)
        self.assertEqual(sorted(path.name for path in usr.iterdir()), ["bin", "share"])

    def test_the_package_of_the_command_names_the_libraries_it_was_linked_with(self):
        package = self.only(r"coppice_[\d.]+_\w+\.deb")
        depends = self.field(package, "Depends")
        for library in ("libc6", "libstdc++6", "libfmt"):
            self.assertIn(library, depends)
        self.assertNotIn("torch", depends)
        self.assertEqual(self.field(package, "Package"), "coppice")

    def test_the_package_for_development_has_headers_archive_and_what_finds_them(self):
        package = self.only(r"libcoppice-dev_[\d.]+_\w+\.deb")
        usr = self.unpack(package, "development")
        for name in ("include/coppice/coppice.h", "lib/libcoppice.a", "lib/cmake/coppice/coppice-config.cmake", "lib/pkgconfig/coppice.pc"):
            self.assertTrue((usr / name).is_file(), name)
        self.assertFalse((usr / "bin").exists())
        self.assertIn("libexpected-dev", self.field(package, "Depends"))

    def test_the_archive_has_both_and_runs_where_it_is_unpacked(self):
        root = self.folder / "archive"
        shutil.unpack_archive(self.only(r"coppice-[\d.]+-\w+\.tar\.gz"), root)
        (prefix,) = root.iterdir()
        self.check_command(prefix)
        self.assertTrue((prefix / "lib" / "libcoppice.a").is_file())

    def test_each_package_has_its_checksum(self):
        for name, path in self.files.items():
            if not name.endswith(".sha256"):
                installed.call("sha256sum", "--check", f"{name}.sha256", cwd=path.parent)


class Image(unittest.TestCase):
    """What of the Dockerfile can be tried without Docker."""

    text = (installed.ROOT / "Dockerfile").read_text()

    def healthy(self, status):
        """What the image's health check says of a server that answers so; None: nobody listens."""
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(status if self.path == "/health" else 404)
                self.end_headers()

            def log_message(self, *arguments):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        if status is None:
            server.server_close()
        else:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        command = json.loads(re.search(r"HEALTHCHECK[^\n]*\\\n\s*CMD (\[.*\])", self.text).group(1))
        command = [word.replace("/8080", f"/{server.server_port}") for word in command]
        run = subprocess.run(command, capture_output=True, timeout=20)
        if status is not None:
            server.shutdown()
            server.server_close()
        return run.returncode == 0

    def test_the_health_check_tells_a_server_that_is_ready_from_one_that_is_not(self):
        self.assertTrue(self.healthy(200))
        self.assertFalse(self.healthy(503))
        self.assertFalse(self.healthy(None))

    def test_what_it_calls_and_copies_is_there(self):
        (command,) = re.findall(r"^RUN \./dev (\w+)$", self.text, re.MULTILINE)
        self.assertRegex(installed.call(installed.ROOT / "dev", "help"), rf"(?m)^  {command} ")
        self.assertIn("build/release/packages/coppice_*.deb", self.text)
        self.assertIn("/packages)", (installed.ROOT / "cmake" / "CoppicePackages.cmake").read_text())


if __name__ == "__main__":
    installed.main()
