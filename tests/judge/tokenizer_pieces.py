"""SentencePiece vocabularies: trained here with the `sentencepiece` package, written as GGUF, and read from GGUF back into
the package, so that it can be asked about a real model's."""
import io
import os
import struct

import gguf
import sentencepiece

UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 2, 3, 4, 5, 6
SPACE = "\u2581"

COMMON = {"vocab_size": 2000, "num_threads": 1, "minloglevel": 2, "max_sentence_length": 1 << 20, "character_coverage": 0.98}
# As the families have it: Llama 2 and Mistral; Gemma; one that changes what it reads; one without bytes; T5; and a unigram
# model that gives everything back.
KINDS = {
    "llama": {"model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "identity", "split_digits": True,
              "remove_extra_whitespaces": False, "allow_whitespace_only_pieces": True},
    "gemma": {"model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "identity", "add_dummy_prefix": False,
              "remove_extra_whitespaces": False, "split_digits": True, "allow_whitespace_only_pieces": True,
              "user_defined_symbols": ["\n", "\n\n", "\n\n\n", SPACE * 2, SPACE * 3, SPACE * 4, "\t", "<tool", "<tool call>"]},
    "squeezed": {"model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "nmt_nfkc",
                 "remove_extra_whitespaces": True},
    "no-bytes": {"model_type": "bpe", "normalization_rule_name": "identity", "remove_extra_whitespaces": False},
    "t5": {"model_type": "unigram", "normalization_rule_name": "nmt_nfkc", "remove_extra_whitespaces": True},
    "unigram": {"model_type": "unigram", "byte_fallback": True, "normalization_rule_name": "identity",
                "remove_extra_whitespaces": False},
}


def fields_of(message):
    """The fields of a protocol buffer: (number, value), bytes or int."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = varint() if key & 7 == 2 else {1: 8, 5: 4}[key & 7]
        yield key >> 3, message[at : at + size]
        at += size


def field(number, value):
    """One field: bytes, str, int (a varint) or float."""
    def varint(n):
        out = bytearray()
        while n > 127:
            out.append(n & 127 | 128)
            n >>= 7
        return bytes([*out, n])

    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


class Pieces:
    """A GGUF file's vocabulary and what the package makes of it."""

    def __init__(self, path):
        fields = gguf.GGUFReader(path).fields

        def key(name, otherwise=None):
            return fields["tokenizer.ggml." + name].contents() if "tokenizer.ggml." + name in fields else otherwise

        self.path, self.rule = path, key("model")
        self.tokens, self.kinds = key("tokens"), key("token_type")
        self.controls = [t for t, kind in zip(self.tokens, self.kinds) if kind == CONTROL]
        self.adds_space, self.squeezes = key("add_space_prefix", True), key("remove_extra_whitespaces", False)
        self.map = bytes(key("precompiled_charsmap", []))
        self.bytes = BYTE in self.kinds
        # User-defined pieces are spelled with the space that a text has.
        spelled = [t.replace(" ", SPACE) if kind == USER_DEFINED else t for t, kind in zip(self.tokens, self.kinds)]
        model = b"".join(field(1, field(1, t) + field(2, float(score)) + field(3, kind))
                         for t, score, kind in zip(spelled, key("scores"), self.kinds))
        model += field(2, field(3, 2 if self.rule == "llama" else 1) + field(35, int(self.bytes)) +
                       field(40, key("unknown_token_id")) + field(41, key("bos_token_id")) + field(42, key("eos_token_id")))
        model += field(3, field(1, "identity") + field(2, self.map) + field(3, int(self.adds_space)) +
                       field(4, int(self.squeezes)) + field(5, 1))
        self.reference = sentencepiece.SentencePieceProcessor(model_proto=model)

    def gives_back(self):
        return self.bytes and not self.map and not self.squeezes


def train(folder, name, texts):
    out, options = io.BytesIO(), {**COMMON, **KINDS[name]}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(texts), model_writer=out, **options)
    model = sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())
    user_defined = set(options.get("user_defined_symbols", []))
    ids = range(model.get_piece_size())

    def kind(i):
        if model.is_unknown(i):
            return UNKNOWN
        if model.is_control(i):
            return CONTROL
        if model.is_byte(i):
            return BYTE
        return USER_DEFINED if model.id_to_piece(i) in user_defined else 1

    normalizer = dict(fields_of(dict(fields_of(out.getvalue()))[3]))
    path = os.path.join(folder, f"{name}.gguf")
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("llama" if options["model_type"] == "bpe" else "t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([model.id_to_piece(i) for i in ids])
    writer.add_token_scores([model.get_score(i) for i in ids])
    writer.add_token_types([kind(i) for i in ids])
    writer.add_unk_token_id(model.unk_id())
    writer.add_bos_token_id(model.bos_id())
    writer.add_eos_token_id(model.eos_id())
    writer.add_add_space_prefix(options.get("add_dummy_prefix", True))
    writer.add_remove_extra_whitespaces(options["remove_extra_whitespaces"])
    if normalizer.get(2):
        writer.add_precompiled_charsmap(normalizer[2])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return Pieces(path)
