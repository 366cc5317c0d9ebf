"""The component `marks`: from clauses to a mark on the word that each ends with. Pass `--code
scripts/marks.py`.

Its scorer is that of the paper's Table 6: F1 of every mark, and over all marks, by token.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

sys.path.append(str(Path(__file__).parents[2] / "references" / "scripts"))
from jmlr import score
from jmlr_tasks import MICRO, find_marks


@dataclass
class Marks:
    """Tags the last word of each clause with its mark and every other word with `O`."""

    spans_key: str

    def __call__(self, doc: Doc) -> Doc:
        for token in doc:
            token.tag_ = "O"
        for clause in doc.spans[self.spans_key]:
            doc[clause.end - 1].tag_ = clause.label_
        return doc

    def score(self, examples: Iterable[Example], **_: Any) -> dict[str, Any]:
        """RETURNS (dict[str, Any]): marks_p, marks_r and marks_f, micro-averaged, and the same of
        each mark in marks_per_type.
        """
        sides = [
            (find_marks(example.predicted), find_marks(example.reference)) for example in examples
        ]
        scores = score([found for found, _ in sides], [wanted for _, wanted in sides])
        total = scores.pop(MICRO)
        return {**{f"marks_{name}": total[name] for name in "prf"}, "marks_per_type": scores}


@Language.factory(
    "marks",
    default_config={"spans_key": "clauses"},
    requires=["doc.spans"],
    assigns=["token.tag"],
    default_score_weights={"marks_f": 1.0, "marks_p": 0.0, "marks_r": 0.0, "marks_per_type": None},
)
def make_marks(nlp: Language, name: str, spans_key: str) -> Marks:
    """spans_key (str): where the clauses are."""
    return Marks(spans_key)
