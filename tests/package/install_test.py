"""cmake --install: a tree that can be moved, and programs of others that build against it."""

import os

import installed

EXAMPLE = installed.ROOT / "examples" / "cmake"


class Install(installed.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        installed.call(installed.cmake, "--install", installed.build, "--prefix", cls.folder / "first")
        cls.prefix = cls.folder / "moved"
        (cls.folder / "first").rename(cls.prefix)
        (cls.pkgconfig,) = cls.prefix.glob("lib*/**/pkgconfig")

    def check_answer(self, program):
        said = installed.call(program, self.model, installed.PROMPT, COPPICE_CACHE=str(self.folder / "cache"))
        self.assertEqual(said.strip(), self.answer(self.prefix / "bin" / "coppice").strip())

    def test_the_command_runs_and_has_its_files(self):
        self.check_command(self.prefix)

    def test_nothing_names_the_folder_of_the_build(self):
        for path in self.prefix.rglob("*"):
            if path.suffix in (".cmake", ".pc", ".1", ".fish"):
                self.assertNotIn(str(installed.build), path.read_text(), path)

    def test_headers_include_nothing_that_is_not_installed(self):
        for header in (self.prefix / "include" / "coppice").iterdir():
            for line in header.read_text().splitlines():
                if line.startswith("#include <coppice/"):
                    self.assertTrue((self.prefix / "include" / line.split("<")[1].rstrip(">")).is_file(), f"{header.name}: {line}")

    def test_a_cmake_project_finds_the_package_and_its_program_answers_as_the_command(self):
        work = self.folder / "with_cmake"
        installed.call(installed.cmake, "-S", EXAMPLE, "-B", work, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        installed.call(installed.cmake, "--build", work)
        self.check_answer(work / "answer")

    def test_a_version_that_is_not_there_is_not_found(self):
        project = self.folder / "later"
        project.mkdir()
        (project / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.22)\nproject(later LANGUAGES CXX)\nfind_package(coppice 99 REQUIRED)\n")
        with self.assertRaisesRegex(AssertionError, "99"):
            installed.call(installed.cmake, "-S", project, "-B", project / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}")

    def test_pkg_config_is_enough_and_the_program_answers_as_the_command(self):
        program = self.folder / "with_pkg_config"
        flags = installed.call("pkg-config", "--cflags", "--libs", "coppice", PKG_CONFIG_PATH=str(self.pkgconfig)).split()
        installed.call(os.environ.get("CXX", "g++"), "-std=c++20", EXAMPLE / "answer.cc", *flags, "-o", program)
        self.check_answer(program)


if __name__ == "__main__":
    installed.main()
