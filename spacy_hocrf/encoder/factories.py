"""The factory `hocrf_encoder`. Every `spacy.blank` imports this file, which imports no other module of this
package before the factory is called.
"""

from typing import TYPE_CHECKING

from spacy.language import Language

if TYPE_CHECKING:
    from spacy_hocrf.encoder.component import EncoderPipe

__all__ = ["make_hocrf_encoder"]

REQUIREMENT = "spacy-hocrf[encoder]"
"""Requirement that `spacy package` adds to a package of the pipeline."""


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
    """Sets `doc.tensor` to an encoder's vector of every token, float32 [T, width].

    folder (str): folder of the encoder: an ONNX model, in it or in its folder "onnx", and tokenizer.json.
    file (Optional[str]): the ONNX file in the folder; null for the only one.
    pool (str): the vector of a token: the "mean" of those of its pieces, or that of the "first".
    window (int): most pieces that the encoder reads at once, including those that its tokenizer adds; a
        longer text is read in windows that overlap by a quarter.
    threads (int): number of threads of the encoder.
    saved (bool): save the encoder with the pipeline; false saves only width and checksum.
    RAISES (ValueError): H498 for invalid settings.
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
            arguments = {
                "name": name,
                "setting": setting,
                "found": repr(value),
                "expected": expected,
            }
            raise ValueError(Errors.H498.format(**arguments))
    requirements = nlp.meta.setdefault("requirements", [])
    if REQUIREMENT not in requirements:
        requirements.append(REQUIREMENT)
    return EncoderPipe(name, folder, file, pool, window, threads, saved)
