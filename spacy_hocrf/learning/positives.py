"""Is there enough to learn from in texts of which some spans are known, and no more?"""

from collections import Counter
from collections.abc import Collection, Mapping

from spacy_hocrf.annotation.documents import Document
from spacy_hocrf.errors import Errors
from spacy_hocrf.training.lbfgs import LBFGSTrainer

__all__ = ["check_positives"]


def check_positives(documents: Collection[Document], trainer: object) -> None:
    """Look at a first corpus of texts with positives only.

    RAISES (ValueError): H533 if there is none, H534 if more tokens are marked than the trainer's ratio has
        room for.
    """
    marked, tokens, all_labels = Counter[str](), 0, ""
    for document in documents:
        tokens += document.copies * len(document)
        for start, end, label in document.annotation.spans:
            marked[label] += document.copies * (end - start)
    if not marked:
        raise ValueError(Errors.H533.format(found=len(documents)))
    if not isinstance(trainer, LBFGSTrainer):
        return
    shares = trainer.ratio if isinstance(trainer.ratio, Mapping) else {all_labels: trainer.ratio}
    for label, share in shares.items():
        found = (marked[label] if label else marked.total()) / tokens
        if found > share:
            of = f" for {label}" if label else ""
            raise ValueError(Errors.H534.format(found=f"{found:.1%}", expected=f"{share:.1%}{of}"))
