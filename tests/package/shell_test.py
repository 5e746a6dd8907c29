"""coppice completions, man: the shells complete the command line as it is, and man(1) can format every page."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import pexpect

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 120  # seconds: a shell that has not answered by then does not
coppice = None


def say(*arguments, status=0):
    run = subprocess.run([coppice, *arguments], capture_output=True, text=True)
    if run.returncode != status:
        raise AssertionError(f"coppice {' '.join(arguments)} ended with {run.returncode}: {run.stderr}")
    return run.stdout if status == 0 else run.stderr


def options_in_help(*command):
    """Every spelling of every option that --help of this command shows, with the option's whole line."""
    lines = {}
    for line in say(*command, "--help").splitlines():
        found = re.match(r"  (-[-\w,]+)", line)
        for name in found.group(1).split(",") if found else ():
            lines[name] = line
    return lines


def commands_in_help(*command):
    text = say(*command, "--help")
    below = text.split("\nSubcommands:\n")[1:]
    return re.findall(r"^  ([\w-]+)", below[0], re.MULTILINE) if below else []


def every_command():
    """-> (), ("generate",), ... ("bench", "decode"), ... as --help finds them, but for those of coppice-train."""
    found = [()]
    for command in found:
        below = [(*command, name) for name in commands_in_help(*command)]
        found += [each for each in below if each not in (("train", "draft"), ("train", "head"))]
    return found


class Folder(unittest.TestCase):
    """A folder with a file to complete and the command on the PATH."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        (cls.folder / "a model.gguf").write_text("")
        say("completions", "--out", str(cls.folder / "scripts"))
        cls.environment = {**os.environ, "PATH": f"{pathlib.Path(coppice).parent}:{os.environ['PATH']}", "HOME": str(cls.folder), "TERM": "dumb"}


class Bash(Folder):
    def complete(self, *words):
        """What bash offers for the last of these words."""
        script = 'source scripts/coppice.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _coppice; printf "%s\\n" "${COMPREPLY[@]}"'
        run = subprocess.run(["bash", "-c", script, "bash", "coppice", *words], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return [line for line in run.stdout.splitlines() if line]

    def test_commands_and_their_beginnings(self):
        self.assertEqual(self.complete(""), commands_in_help())
        self.assertEqual(self.complete("gen"), ["generate"])
        self.assertEqual(self.complete("bench", "dec"), ["decode"])
        self.assertEqual(self.complete("bench", ""), commands_in_help("bench"))

    def test_every_option_of_every_command(self):
        for command in every_command():
            with self.subTest(command):
                self.assertEqual(sorted(self.complete(*command, "-")), sorted(options_in_help(*command)))

    def test_words_that_an_option_takes(self):
        self.assertEqual(self.complete("generate", "--cache", ""), ["f32", "f16", "q8_0"])
        self.assertEqual(self.complete("generate", "--cache", "q"), ["q8_0"])
        self.assertEqual(self.complete("generate", "--cache", "=", "q"), ["q8_0"])  # as bash splits --cache=q
        self.assertEqual(self.complete("generate", "--cache", "="), ["f32", "f16", "q8_0"])
        self.assertEqual(self.complete("completions", ""), ["bash", "zsh", "fish"])

    def test_files_where_a_text_is_wanted_and_nothing_where_a_number_is(self):
        self.assertEqual(self.complete("generate", "-m", "a"), ["a model.gguf"])
        self.assertEqual(self.complete("inspect", "a"), ["a model.gguf"])
        self.assertEqual(self.complete("generate", "--threads", ""), [])

    def test_the_value_of_an_option_is_no_command(self):
        self.assertIn("--seed", self.complete("generate", "-p", "bench", "--se"))
        self.assertEqual(self.complete("generate", "--cache", "=", "f16", "--see"), ["--seed"])

    def test_a_person_who_presses_tab(self):
        shell = pexpect.spawn("bash", ["--norc", "--noprofile", "-i"], cwd=str(self.folder), env={**self.environment, "PS1": "ready> "},
                              encoding="utf-8", timeout=PATIENCE)
        self.addCleanup(shell.close, force=True)
        shell.expect("ready> ")
        shell.sendline("source scripts/coppice.bash; bind 'set enable-bracketed-paste off'")
        shell.expect("ready> ")
        shell.send("coppice gener\t--packed-c\t-m a\t")
        shell.expect(re.escape("coppice generate --packed-cache -m a\\ model.gguf"))


class Zsh(Folder):
    def test_a_person_who_presses_tab(self):
        if not shutil.which("zsh"):
            print("zsh is not on this machine: its completion was not tried")
            return
        start = "PS1='ready''> '; fpath=($PWD/scripts $fpath); autoload -Uz compinit; compinit -u -d $PWD/dump; unsetopt zle_bracketed_paste"
        for typed, completed in (("coppice gener\t", "coppice generate "), ("coppice bench dec\t", "coppice bench decode "),
                                 ("coppice generate --packed-c\t", "coppice generate --packed-cache "),
                                 ("coppice generate --cache q\t", "coppice generate --cache q8_0 "),
                                 ("coppice inspect a\t", "coppice inspect a\\ model.gguf ")):
            with self.subTest(typed):  # a shell each: what interrupts a line may come while zsh still completes it
                shell = pexpect.spawn("zsh", ["-f", "-i"], cwd=str(self.folder), env=self.environment, encoding="utf-8", timeout=PATIENCE)
                self.addCleanup(shell.close, force=True)
                shell.sendline(start)
                shell.expect("ready> ")
                shell.send(typed)
                shell.expect(re.escape(completed))

    def test_the_script_is_zsh(self):
        if not shutil.which("zsh"):
            print("zsh is not on this machine: its script was not parsed")
            return
        subprocess.run(["zsh", "-n", "scripts/_coppice"], cwd=self.folder, check=True)


class Fish(Folder):
    def complete(self, line):
        script = f"source scripts/coppice.fish; complete -C '{line}'"
        run = subprocess.run(["fish", "--no-config", "-c", script], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=True)
        return [offered.split("\t")[0] for offered in run.stdout.splitlines()]

    def test_commands_options_words_and_files(self):
        if not shutil.which("fish"):
            print("fish is not on this machine: its completion was not tried")
            return
        self.assertEqual(sorted(self.complete("coppice ")), sorted(commands_in_help()))
        self.assertEqual(self.complete("coppice gener"), ["generate"])
        self.assertEqual(self.complete("coppice bench dec"), ["decode"])
        self.assertEqual(self.complete("coppice generate --packed-c"), ["--packed-cache"])
        self.assertEqual(self.complete("coppice generate --cache q"), ["q8_0"])
        self.assertEqual(self.complete("coppice inspect a"), ["a model.gguf"])
        for command in every_command():
            longs = {name for name in options_in_help(*command) if name.startswith("--")}
            self.assertEqual(longs - set(self.complete(" ".join(("coppice", *command, "--")))), set(), command)


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        say("man", "--out", str(cls.folder))
        cls.pages = {path.name: path.read_text() for path in cls.folder.iterdir()}

    def formatted(self, name):
        run = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-P-c", "-rLL=100n", str(self.folder / name)], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""), name)
        return re.sub(".\b", "", run.stdout)

    def test_there_is_a_page_for_each_command_and_man_prints_the_same(self):
        self.assertEqual(sorted(self.pages), sorted(["coppice.1", *(f"coppice-{name}.1" for name in commands_in_help())]))
        self.assertEqual(say("man"), self.pages["coppice.1"])
        self.assertEqual(say("man", "generate"), self.pages["coppice-generate.1"])
        self.assertIn("no command", say("man", "nothing", status=2))

    def test_every_page_formats_without_a_warning_and_shows_every_option(self):
        if not shutil.which("groff"):
            print("groff is not on this machine: the pages were not formatted")
            return
        for command in commands_in_help():
            text = self.formatted(f"coppice-{command}.1")
            for name in options_in_help(command):
                self.assertRegex(text, rf"(^|\s){re.escape(name)}\b", command)
            for below in commands_in_help(command):
                self.assertIn(f"coppice {command} {below}", text)
        self.assertIn("COPPICE_MODEL", self.formatted("coppice.1"))

    def test_every_variable_that_the_program_reads_is_in_the_manual(self):
        read = set()
        for path in [*(ROOT / "src").rglob("*.cc"), *(ROOT / "apps").rglob("*.cc")]:
            read |= set(re.findall(r'getenv\("([A-Z_]+)"\)', path.read_text()))
        self.assertIn("COPPICE_MODEL", read)
        for name in read:
            self.assertIn(name, self.pages["coppice.1"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--coppice", required=True)
    known, rest = parser.parse_known_args()
    coppice = str(pathlib.Path(known.coppice).resolve())
    unittest.main(argv=[sys.argv[0], *rest])
