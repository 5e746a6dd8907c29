"""The formats there are, as src/quant/format_rows.inc lists them, and what the gguf package says of them."""
import pathlib
import re

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize, quantize

ROWS = pathlib.Path(__file__).parents[2] / "src/quant/format_rows.inc"
FLOATS = ("F32", "F16", "BF16")


def names():
    """Every format of weights, in the table's order."""
    return re.findall(r"^COPPICE_FORMAT\(\s*\d+,\s*(\w+),", ROWS.read_text(), re.MULTILINE)


def block(name):
    """-> values and bytes of a block."""
    return GGML_QUANT_SIZES[GGMLQuantizationType[name]]


def written_by_package(name):
    """Whether the package has a quantiser too; where it has none, ours searches (src/quant/quantise.h)."""
    if name == "MXFP4":
        return False  # it has, and rounds by the largest value alone
    try:
        quantize(np.zeros((1, block(name)[0]), np.float32), GGMLQuantizationType[name])
    except NotImplementedError:
        return False
    return True


def scale_places(name):
    """Where in a block the f16 scales and mins lie: an infinite one there makes infinite values."""
    size, places = block(name)[1], []
    for at in range(size - 1):
        probe = np.full((1, size), 0x77, np.uint8)
        probe[0, at:at + 2] = 0x00, 0x7C
        if not np.isfinite(dequantize(probe, GGMLQuantizationType[name])).all():
            places.append(at)
    return places
