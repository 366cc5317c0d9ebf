"""A tiny encoder as ONNX with a tokenizer of known words: a piece's row is that of its id in a table, and of
what stands around it."""

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"Ada Rome Bonn went from to the in".split()]
PIECES = [*WORDS, *"abcdefgh", *(f"##{letter}" for letter in "abcdefgh")]


def tokenizer():
    """Words, letters and their continuations; [CLS] and [SEP] around a text, cut and padded as in files."""
    made = Tokenizer(WordPiece({piece: i for i, piece in enumerate(PIECES)}, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    made.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    made.enable_padding(length=16)
    made.enable_truncation(16)
    return made


def table(width, seed=0):
    """float32 [pieces, width]."""
    return np.random.default_rng(seed).normal(size=(len(PIECES), width)).astype(np.float32)


def model(
    width=6,
    *,
    mean=True,
    quantised=False,
    inputs=("input_ids", "attention_mask"),
    rank=3,
    size=None,
):
    """An ONNX model: row of the piece, plus the mean of all rows of the text, times a matrix.

    mean (bool): without it the pieces around count for nothing, and no sum has another order.
    quantised (bool): the product is one of 8-bit integers, with one scale for all that is read together.
    inputs (Sequence[str]): those that it asks for, of which the first is used.
    rank (int): 2 for the mean alone, a row for each text.
    size (Optional[int]): pieces of each text, if that is fixed.
    """
    weights = np.random.default_rng(1).normal(size=(width, width)).astype(np.float32)
    steps = [("Gather", ["table", inputs[0]], ["rows"])]
    if quantised:
        largest = np.abs(weights).max() / 127
        weights = np.rint(weights / largest).astype(np.int8)
        steps += [
            ("DynamicQuantizeLinear", ["rows"], ["small", "scale", "zero"]),
            ("MatMulInteger", ["small", "weights", "zero"], ["whole"]),
            ("Cast", ["whole"], ["float"]),
            ("Mul", ["float", "scale"], ["scaled"]),
            ("Mul", ["scaled", "largest"], ["turned"]),
        ]
    else:
        largest = 1.0
        steps += [("MatMul", ["rows", "weights"], ["turned"])]
    if mean:
        steps += [("ReduceMean", ["turned"], ["mean"]), ("Add", ["turned", "mean"], ["hidden"])]
    nodes = [
        helper.make_node(
            *step,
            **({"to": TensorProto.FLOAT} if step[0] == "Cast" else {}),
            **({"axes": [1], "keepdims": int(rank == 3)} if step[0] == "ReduceMean" else {}),
        )
        for step in steps[: None if rank == 3 else -1]
    ]
    constants = {"table": table(width), "weights": weights, "largest": np.float32(largest)}
    graph = helper.make_graph(
        nodes,
        "encoder",
        [helper.make_tensor_value_info(n, TensorProto.INT64, ["n", size or "p"]) for n in inputs],
        [
            helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, shape)
            for shape in [["n", "p", width] if rank == 3 else ["n", width]]
        ],
        [numpy_helper.from_array(np.asarray(x), name) for name, x in constants.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    checker.check_model(made)
    return made.SerializeToString()


def write(folder, data=None, name="model.onnx"):
    """A folder with the encoder."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(model() if data is None else data)
    tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def rows_of(words, width=6, *, first=False):
    """What the encoder says of each word of a short text, by its definition, float64 [T, width]."""
    weights = np.random.default_rng(1).normal(size=(width, width))
    cut = [[PIECES.index(piece) for piece in pieces_of(word)] for word in words]
    ids = [2, *(piece for pieces in cut for piece in pieces), 3]
    turned = table(width)[ids].astype(np.float64) @ weights.astype(np.float32)
    hidden, found, at = turned + turned.mean(axis=0), [], 1
    for pieces in cut:
        rows = hidden[at : at + len(pieces)][: 1 if first else None]
        found.append(rows.mean(axis=0) if len(rows) else np.zeros(width))
        at += len(pieces)
    return np.array(found).reshape(-1, width)


def pieces_of(word):
    """A known word, or letters."""
    if word in PIECES or not word.strip():
        return [word] if word.strip() else []
    return [word[0], *(f"##{letter}" for letter in word[1:])]
