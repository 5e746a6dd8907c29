"""The texts of a corpus folder as lines of {"ids": [...], "start": n}, for `coppice corpus --score` of another model:
what a draft wrote, to be judged by its target (docs/training-drafts.md).

    python3 tools/corpus_texts.py rollouts/ > rollouts.jsonl
"""

import json
import pathlib
import struct
import sys


def texts(shard):
    """(ids, start) of every record; docs/file-formats.md has the layout."""
    data = shard.read_bytes()
    magic, version = struct.unpack_from("<8sI", data)
    if magic != b"COPCORP1" or version != 1:
        sys.exit(f"{shard}: is no corpus shard of version 1")
    count, _, table = struct.unpack_from("<IIQ", data, 48)
    for offset in struct.unpack_from(f"<{count}Q", data, table):
        _, tokens, start = struct.unpack_from("<QII", data, offset)
        yield list(struct.unpack_from(f"<{tokens}I", data, offset + 32)), start


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    shards = sorted(pathlib.Path(sys.argv[1]).glob("shard-*.corpus"))
    if not shards:
        sys.exit(f"{sys.argv[1]}: has no shards; name a folder that `coppice corpus` wrote")
    for shard in shards:
        for ids, start in texts(shard):
            print(json.dumps({"ids": ids, "start": start}))


if __name__ == "__main__":
    main()
