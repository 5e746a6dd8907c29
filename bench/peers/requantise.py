"""requantise.py IN.gguf OUT.gguf: a Q4_0 file out of one in another format, for measuring speed and nothing else: its
weights were rounded twice, so what it says is worse than what a Q4_0 file made from the original weights would say.

Matrices in a format of 4 to 5 bits become Q4_0; all else (embedding, norms, vocabulary) stays as it is."""

import os
import sys

import gguf

SMALL = {gguf.GGMLQuantizationType[name] for name in ("Q4_1", "Q4_K", "Q5_0", "Q5_1", "Q5_K")}


def requantise(source, target):
    reader = gguf.GGUFReader(source)
    aside = f"{target}.{os.getpid()}.tmp"
    writer = gguf.GGUFWriter(aside, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        kind = field.types[0]
        writer.add_key_value(field.name, field.contents(), kind, field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None)
    changed = 0
    for tensor in reader.tensors:
        data, kind = tensor.data, tensor.tensor_type
        if kind in SMALL:
            kind = gguf.GGMLQuantizationType.Q4_0
            data = gguf.quants.quantize(gguf.quants.dequantize(tensor.data, tensor.tensor_type), kind)
            changed += 1
        writer.add_tensor(tensor.name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(aside, target)
    print(f"{target}: {changed} of {len(reader.tensors)} tensors are Q4_0 now")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    requantise(*sys.argv[1:])
