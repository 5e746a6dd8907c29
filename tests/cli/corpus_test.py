"""coppice corpus: texts from a model, killed, stopped, gone on with; what is wrong is said in one sentence."""

import json
import os
import resource
import signal
import struct
import time

import program


def records(folder):
    """-> {job: (ids, start, temperature, flags)} of a corpus, read by the format's description alone."""
    found = {}
    for path in sorted(folder.glob("shard-*.corpus")):
        data = path.read_bytes()
        magic, version, order, size, _, _, k, features, hidden, texts, zero, table = struct.unpack("<8sIIQQ6IQ", data[:64])
        assert (magic, version, order, size, zero) == (b"COPCORP1", 1, 0x01020304, len(data), 0), path
        offsets = struct.unpack(f"<{texts + 1}Q", data[table:])
        for at, end in zip(offsets, offsets[1:]):
            job, n, start, temperature, _, flags, _ = struct.unpack("<QIIfIII", data[at:at + 32])
            ids = struct.unpack(f"<{n}I", data[at + 32:at + 32 + 4 * n])
            parts = [4 * n, (n - start) * k * 6, n * features * hidden * 2]
            assert end - at == 32 + sum((part + 7) // 8 * 8 for part in parts), path
            assert job not in found, job
            found[job] = (ids, start, temperature, flags)
    return found


class Corpus(program.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        lines = [{"user": f"say {i}"} if i % 2 else {"prompt": f"it was the {i}", "kind": "raw"} for i in range(60)]
        (cls.work / "prompts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def command(case, folder, **changed):
        options = {"prompts": "prompts.jsonl", "self": 20, "max-tokens": 60, "context": 200, "top-k": 4, "slots": 4, "shard-tokens": 200,
                   "seed": 3, "out": folder}
        options.update({name.replace("_", "-"): value for name, value in changed.items()})
        return ["corpus", "-m", case.model, "-t", 1, *[word for name, value in options.items() for word in (f"--{name}", value)]]

    def corpus(self, folder, **changed):
        return self.run_well(*self.command(folder, **changed))

    def test_a_text_is_what_generate_says_with_the_seed_that_show_prints(self):
        self.corpus("plain")
        made = records(self.work / "plain")
        self.assertEqual(len(made), 80)
        shown, _ = self.run_well("corpus", "-m", self.model, "--show", "plain", "--samples", 80)
        seeds = {int(line.split("job ")[1].split(",")[0]): int(line.split("seed ")[1].split(")")[0])
                 for line in shown.splitlines() if line.startswith("---- text")}
        self.assertEqual(seeds.keys(), made.keys())
        for job in [1 << 32, (1 << 32) + 1, (1 << 32) + 6]:
            ids, start, temperature, _ = made[job]
            number = job - (1 << 32)
            prompt = ["--chat", "-p", f"say {number}"] if number % 2 else ["-p", f"it was the {number}"]
            answer = self.generate(*prompt, "--temp", temperature, "--top-k", 50 if temperature > 0 else 0, "--seed", seeds[job], "-c", 200,
                                   prompt=None, tokens=60)
            self.assertEqual(tuple(answer["prompt_ids"]), ids[:start])
            self.assertEqual(tuple(answer["ids"])[:len(ids) - start], ids[start:])

    def test_show_counts_what_is_there(self):
        self.corpus("shown")
        made = records(self.work / "shown")
        summary = json.loads(self.run_well("corpus", "--show", "shown", "--json")[0])
        self.assertEqual(summary["texts"], 80)
        self.assertEqual(summary["tokens"], sum(len(ids) - start for ids, start, _, _ in made.values()))
        self.assertEqual({name: count["texts"] for name, count in summary["by_kind"].items()}, {"raw": 30, "prompts": 30, "magpie": 20})
        self.assertIn("80 texts", self.run_well("corpus", "--show", "shown")[0])

    def test_a_run_that_was_killed_goes_on(self):
        self.corpus("whole")
        for attempt in range(200):
            run = self.start(*self.command("killed"))
            time.sleep(0.02 + 0.02 * (attempt % 9))
            run.kill()
            run.communicate()
            if list((self.work / "killed").glob("shard-*.corpus")):
                break
        self.corpus("killed")
        self.assertEqual(records(self.work / "killed"), records(self.work / "whole"))
        self.assertEqual([path.name for path in (self.work / "killed").glob("*.tmp")], [])

    def test_an_interrupt_and_a_termination_close_the_shard(self):
        for kind in (signal.SIGINT, signal.SIGTERM):
            folder = f"stopped{kind}"
            run = self.start(*self.command(folder, self=100000, shard_tokens=100000000))
            for _ in range(600):
                if (self.work / folder / "corpus.json").exists():
                    break
                time.sleep(0.05)
            time.sleep(2)
            run.send_signal(kind)
            out, said = run.communicate(timeout=60)
            self.assertEqual(run.returncode, 130, said)
            self.assertIn(b"the same command goes on", said)
            self.assertTrue(records(self.work / folder))

    def test_ngram_build_counts_the_generated_tokens_of_a_corpus(self):
        self.corpus("counted")
        tokens = sum(len(ids) - start for ids, start, _, _ in records(self.work / "counted").values())
        out, _ = self.run_well("ngram", "build", "-m", self.model, "-o", "corpus.ngram", "counted/")
        self.assertIn(f"{tokens} tokens of 80 texts", out)

    def test_what_is_wrong_is_said_in_one_sentence(self):
        self.assertIn("--out FOLDER", self.refused("corpus", "-m", self.model))
        common = ["corpus", "-m", self.model, "--out", "bad"]
        self.assertIn("say what the texts begin with", self.refused(*common))
        self.assertIn("nowhere.jsonl", self.refused(*common, "--prompts", "nowhere.jsonl"))
        (self.work / "bad.jsonl").write_text('{"prompt": "a"}\n{"prompt" "b"}\n')
        self.assertIn("bad.jsonl, line 2", self.refused(*common, "--prompts", "bad.jsonl"))
        self.assertIn("--temperatures 0:x", self.refused(*common, "--self", 1, "--temperatures", "0:x"))
        self.assertIn("feature layer 99", self.refused(*common, "--self", 1, "--features", "1,99"))
        (self.work / "file").write_text("")
        self.assertIn("cannot make the folder", self.refused("corpus", "-m", self.model, "--out", "file/x", "--self", 1))
        self.corpus("other")
        self.assertIn("seed 3 and this asks for 4", self.refused(*self.command("other", seed=4)))
        self.assertIn("cannot open", self.refused("corpus", "--show", "nowhere"))

    def test_a_damaged_shard_is_named(self):
        self.corpus("damaged")
        shard = sorted((self.work / "damaged").glob("shard-*"))[0]
        shard.write_bytes(shard.read_bytes()[:-8])
        for command in (self.command("damaged"), ["corpus", "--show", "damaged"]):
            self.assertIn("shard-00000.corpus: ", self.refused(*command))

    def test_a_disk_that_is_full_leaves_whole_shards(self):
        said = self.refused(*self.command("full", shard_tokens=100000), limits=[(resource.RLIMIT_FSIZE, 4096)])
        self.assertIn("cannot write", said)
        self.assertEqual([path.name for path in (self.work / "full").glob("shard-*")], [])
        self.corpus("full")
        self.assertEqual(len(records(self.work / "full")), 80)

    def test_a_folder_that_cannot_be_written_is_said_before_work_begins(self):
        (self.work / "locked").mkdir()
        os.chmod(self.work / "locked", 0o555)
        if os.access(self.work / "locked", os.W_OK):
            self.skipTest("this user may write anywhere")
        self.assertIn("locked", self.refused(*self.command("locked")))


if __name__ == "__main__":
    program.main()
