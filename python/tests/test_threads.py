"""Many threads, one engine; and Ctrl-C."""

import concurrent.futures
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

from conftest import PROMPT

LONG = {"max_new_tokens": 32, "ignore_eos": True, "temperature": 0.8}


def test_calls_from_many_threads_give_what_each_gives_alone(load, plain):
    expected = [plain.generate(PROMPT, seed=seed, **LONG).tokens for seed in range(16)]

    def call(model, seed):
        if seed % 2:
            return model.generate(PROMPT, seed=seed, **LONG).tokens
        return [token for piece in model.stream(PROMPT, seed=seed, **LONG) for token in piece.tokens]

    with load(n_parallel=4) as model, concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda seed: call(model, seed), range(16))) == expected


def test_python_runs_while_the_engine_works(model):
    ticks = 0
    working = threading.Event()
    done = threading.Event()

    def tick():
        nonlocal ticks
        working.wait()
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)

    ticker = threading.Thread(target=tick)
    ticker.start()
    working.set()
    model.generate(["x" * 300] * 4, max_new_tokens=150, ignore_eos=True)
    done.set()
    ticker.join()
    assert ticks > 3


def test_control_c_ends_an_answer_and_the_model_goes_on(model_file):
    program = textwrap.dedent("""
        import signal, sys, coppice
        signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
        model = coppice.Model(sys.argv[1], n_threads=1, policy="fixed", n_ctx=2048)
        print("ready", flush=True)
        try:
            while True:
                model.generate("hello", max_new_tokens=2000, ignore_eos=True)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        print(len(model.generate("hello", max_new_tokens=5, ignore_eos=True).tokens), flush=True)
    """)
    with subprocess.Popen([sys.executable, "-c", program, model_file], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            time.sleep(0.3)
            os.kill(child.pid, signal.SIGINT)
            out, _ = child.communicate(timeout=60)
        finally:
            child.kill()
    assert out == "interrupted\n5\n" and child.returncode == 0
