"""Every format of src/quant against the gguf package, bit for bit: dequantize (directly, and through the packed
layout) and quantize. Run by ctest with the path of quant_tool."""

import subprocess
import sys

import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize

import formats

TOOL = sys.argv[1]


def tool(data, *arguments):
    done = subprocess.run([TOOL, *arguments], input=data.tobytes(), stdout=subprocess.PIPE, check=True)
    return np.frombuffer(done.stdout, np.uint8)


def fail(name, what, at):
    sys.exit(f"{name}: {what} differs from the gguf package first at value or byte {at}")


def require_equal_floats(name, what, ours, theirs):
    """Equal bits, -0 and +0 told apart; a NaN need only be a NaN."""
    same = (ours.view(np.uint32) == theirs.view(np.uint32)) | (np.isnan(ours) & np.isnan(theirs))
    if ours.size != theirs.size or not same.all():
        fail(name, what, int(np.argmin(same)))


def halves():
    """All f16 (or bf16) bit patterns."""
    return np.arange(65536, dtype=np.uint16)


def blocks_to_unpack(name, random):
    """Whole rows of 64 values, or a block, as bytes: random codes under every finite scale; every pattern for the
    halves."""
    if name == "F32":
        return random.integers(0, 256, 4 * 65536, dtype=np.uint8)
    if name in ("F16", "BF16"):
        return halves().view(np.uint8)
    size = formats.block(name)[1]
    finite = halves()[np.isfinite(halves().view(np.float16))]
    blocks = random.integers(0, 256, (finite.size, size), dtype=np.uint8)
    if name == "MXFP4":
        blocks[:, 0] = np.arange(finite.size) % 253  # above, twelve times the scale is infinite
        return blocks.reshape(-1)
    for i, at in enumerate(formats.scale_places(name)):
        scales = finite if i == 0 else random.permutation(finite)
        blocks[:, at:at + 2] = scales.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(-1)


def values_to_quantize(name, random):
    """[n, 32] f32: several spreads, ties between codes, constants, zeros, and what overflows f16."""
    spreads = [(random.standard_normal((2000, 32)) * scale).astype(np.float32) for scale in (1e-6, 0.02, 1.0, 3e4)]
    grid = random.integers(-16, 17, (2000, 32)).astype(np.float32) / 2  # many exact halves
    special = np.zeros((6, 32), np.float32)
    special[1] = 0.25
    special[2] = -7.5
    special[3, 5] = 1.0
    special[4, ::2] = 6e4
    special[5, 1::2] = -6e4
    values = np.concatenate([*spreads, grid, special])
    if name in formats.FLOATS:
        patterns = random.integers(0, 2**32, (20000, 32), dtype=np.uint32).view(np.float32)
        ties = (np.arange(65536, dtype=np.uint32) << 16 | 0x8000).view(np.float32).reshape(-1, 32)
        values = np.concatenate([values, patterns, ties])
    return values


def check(name):
    random = np.random.default_rng(20)
    kind = GGMLQuantizationType[name]
    blocks = blocks_to_unpack(name, random)
    theirs = dequantize(blocks, kind).reshape(-1)
    require_equal_floats(name, "unpack", tool(blocks, "unpack", name).view(np.float32), theirs)
    width = max(64, formats.block(name)[0])
    require_equal_floats(name, "unpack_row", tool(blocks, "repack", name, str(width)).view(np.float32), theirs)
    if not formats.written_by_package(name):
        print(f"{name}: {theirs.size} values unpacked, all equal")
        return

    values = values_to_quantize(name, random)
    values = values.reshape(-1)[:values.size // width * width].reshape(-1, width)
    ours = tool(values, "quantize", name)
    expected = quantize(values, kind).reshape(-1).view(np.uint8)
    if name in formats.FLOATS:
        require_equal_floats(name, "quantize", dequantize(ours, kind).reshape(-1), dequantize(expected, kind).reshape(-1))
    elif ours.size != expected.size or (ours != expected).any():
        fail(name, "quantize", int(np.argmax(ours != expected)))
    print(f"{name}: {theirs.size} values unpacked and {values.size} quantised, all equal")


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        for each in formats.names():
            check(each)
