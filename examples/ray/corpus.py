"""A model's own answers to many prompts, written by many workers: python corpus.py MODEL.gguf prompts.jsonl FOLDER

prompts.jsonl has a line {"prompt": "..."} for each. What comes out has a line {"prompt", "text", "ids", "start"} for each answer: the
ids of prompt and answer, and where the answer begins. The answer to a prompt depends on the seed and on nothing else, however many
workers there are.
"""

import argparse

import coppice
import ray


class Writer:
    """A worker with a model of its own; a batch of prompts shares its passes."""

    def __init__(self, path, options):
        self.model = coppice.Model(path, n_threads=options["threads"], n_parallel=options["batch"])
        self.sampling = {"max_new_tokens": options["tokens"], "temperature": options["temperature"], "seed": options["seed"]}

    def __call__(self, batch):
        prompts = [self.model.tokenizer.apply_chat_template(prompt, True) for prompt in batch["prompt"].tolist()]
        answers = self.model.generate(prompts, **self.sampling)
        return {"prompt": batch["prompt"], "text": [answer.text for answer in answers],
                "ids": [prompt + answer.tokens for prompt, answer in zip(prompts, answers)], "start": [len(prompt) for prompt in prompts]}


def write(path, prompts, folder, workers=2, **options):
    options = {"threads": 1, "batch": 8, "tokens": 256, "temperature": 1.0, "seed": 0, **options}
    answers = ray.data.read_json(prompts).map_batches(Writer, fn_constructor_args=(path, options), batch_size=options["batch"],
                                                      concurrency=workers, num_cpus=options["threads"])
    answers.write_json(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("prompts")
    parser.add_argument("folder")
    parser.add_argument("--workers", type=int, default=2)
    for name, default in (("threads", 1), ("batch", 8), ("tokens", 256), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--temperature", type=float, default=1.0)
    options = vars(parser.parse_args())
    write(options.pop("model"), options.pop("prompts"), options.pop("folder"), **options)


if __name__ == "__main__":
    main()
