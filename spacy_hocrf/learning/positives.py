"""Checks that a corpus with positives only (some annotated spans, nothing else known) can be learnt from."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from spacy_hocrf.annotation.documents import Document
from spacy_hocrf.errors import Errors
from spacy_hocrf.training.lbfgs import LBFGSTrainer

__all__ = ["check_positives"]


def check_positives(
    documents: Collection[Document], labels: Sequence[str], trainer: object
) -> None:
    """Check a first corpus of texts with positives only.

    labels (Sequence[str]): labels of the model.
    RAISES (ValueError): H533 if no span is annotated, or none with some label, H534 if more tokens are in
        annotated spans than the trainer's ratio allows.
    """
    span_tokens, tokens = Counter[str](), 0
    annotated = {label for document in documents for label in document.labels}
    for document in documents:
        tokens += document.copies * len(document)
        for start, end, label in document.annotation.spans:
            span_tokens[label] += document.copies * (end - start)
    missing = [label for label in labels if label not in annotated]
    if missing or not span_tokens:
        of = f" of {', '.join(missing)}" if missing else ""
        raise ValueError(Errors.H533.format(found=len(documents), of=of))
    if not isinstance(trainer, LBFGSTrainer):
        return
    ratio = trainer.ratio
    shares = ratio if isinstance(ratio, Mapping) else {"": ratio}  # "" is any label
    for label, share in shares.items():
        actual = (span_tokens[label] if label else span_tokens.total()) / tokens
        if actual > share:
            of = f" for {label}" if label else ""
            raise ValueError(Errors.H534.format(found=f"{actual:.1%}", expected=f"{share:.1%}{of}"))
