"""The factory `hocrf_encoder`. Every `spacy.blank` imports this file, which imports nothing of ours before
the factory is called.
"""

from typing import TYPE_CHECKING

from spacy.language import Language

if TYPE_CHECKING:
    from spacy_hocrf.encoder.component import EncoderPipe

__all__ = ["make_hocrf_encoder"]

REQUIREMENT = "spacy-hocrf[encoder]"
"""Of a package that `spacy package` makes of the pipeline."""


@Language.factory(
    "hocrf_encoder",
    assigns=["doc.tensor"],
    default_config={
        "folder": "",
        "file": None,
        "pool": "mean",
        "window": 256,
        "threads": 1,
        "saved": True,
    },
)
def make_hocrf_encoder(
    nlp: Language,
    name: str,
    folder: str,
    file: str | None,
    pool: str,
    window: int,
    threads: int,
    saved: bool,
) -> "EncoderPipe":
    """What an encoder says of every token, as `doc.tensor`, float32 [T, width].

    folder (str): the encoder: an ONNX model, in this folder or in its folder "onnx", and tokenizer.json.
    file (Optional[str]): the ONNX file in the folder; null for the only one.
    pool (str): the row of a token: "mean" of those of its pieces, or that of the "first".
    window (int): pieces that the encoder reads at once, with those that its tokenizer adds; a longer text is
        read in windows that overlap by a quarter.
    threads (int): of the encoder.
    saved (bool): save the encoder with the pipeline; false saves where it is, and a checksum.
    RAISES (ValueError): H498 for other settings.
    """
    from spacy_hocrf.encoder.component import EncoderPipe
    from spacy_hocrf.errors import Errors

    for setting, value, right, expected in (
        ("folder", folder, folder != "", "the folder of an encoder"),
        ("pool", pool, pool in ("mean", "first"), "'mean' or 'first'"),
        ("window", window, type(window) is int and window >= 8, "a number of pieces, 8 or more"),
        ("threads", threads, type(threads) is int and threads >= 1, "1 or more"),
    ):
        if not right:
            found = {"name": name, "setting": setting, "found": repr(value), "expected": expected}
            raise ValueError(Errors.H498.format(**found))
    requirements = nlp.meta.setdefault("requirements", [])
    if REQUIREMENT not in requirements:
        requirements.append(REQUIREMENT)
    return EncoderPipe(name, folder, file, pool, window, threads, saved)
