"""A corpus reader that keeps arrays of tokens: `spacy.Corpus.v1` makes the Docs to predict from the
text alone.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from spacy import registry
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training import Example

sys.path.append(str(Path(__file__).parent))  # `--code` loads this file from anywhere
from letters import register

sys.path.append(str(Path(__file__).parents[2]))
from common.tagging import untagged

register()


@registry.readers("handwriting.Words.v1")
def make_reader(path: Path, folds: Sequence[int]) -> Callable[[Language], Iterator[Example]]:
    """Words of some folds.

    path (Path): the words (.spacy).
    folds (Sequence[int]): numbers of the folds.
    """

    def read(nlp: Language) -> Iterator[Example]:
        for doc in DocBin().from_disk(path).get_docs(nlp.vocab):
            if doc.user_data["fold"] in folds:
                yield Example(untagged(doc), doc)

    return read
