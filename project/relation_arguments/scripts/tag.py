"""Give the sentences parts of speech, which the paper's features read and this edition of CoNLL04
lacks.

The tagger is a `hocrf_tagger` of order 1, trained on the first sentences of CoNLL-2000, which is
news text, too.
"""

import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from wasabi import msg

sys.path.append(str(Path(__file__).parents[2]))
from common.columns import Sentence, sentences_of
from common.training import learn, read_docs

FEATURES = {"window": 2, "bigrams": ["NORM"], "flags": []}
MODEL = {"order": 1, "features": {"@misc": "spacy-hocrf.Window.v1", **FEATURES}}
TRAINER = {
    "@misc": "spacy-hocrf.LBFGS.v1",
    "sigma": 1.0,
    "improvement_tolerance": 1e-4,
    "threads": 1,
}
"""Training ends when ten iterations gain less than this share of the objective: the tags are
features, not results.
"""


def main(
    tagged_path: Annotated[Path, typer.Argument(help="CoNLL-2000, train.txt", exists=True)],
    held_back_path: Annotated[Path, typer.Argument(help="CoNLL-2000, test.txt", exists=True)],
    corpus_dir: Annotated[
        Path, typer.Argument(help="Folder with train.spacy and test.spacy", exists=True)
    ],
    output_dir: Annotated[Path, typer.Argument(help="Where the same files with tags go")],
    sentences: Annotated[int, typer.Option(help="Train on so many sentences; 0 for all")] = 0,
) -> None:
    """Train a tagger and write train.spacy and test.spacy with its tags."""
    nlp = train_tagger(list(islice(read_tagged(tagged_path), sentences or None)))
    accuracy = nlp.evaluate(
        [make_example(nlp, sentence) for sentence in read_tagged(held_back_path)]
    )["tag_acc"]
    msg.good(f"Accuracy on CoNLL-2000's test part: {100 * accuracy:.2f} %")
    output_dir.mkdir(parents=True, exist_ok=True)
    for part in ("train", "test"):
        docs = read_docs(corpus_dir / f"{part}.spacy", nlp.vocab)
        DocBin(docs=list(nlp.pipe(docs)), attrs=["ORTH", "TAG", "ENT_IOB", "ENT_TYPE"]).to_disk(
            output_dir / f"{part}.spacy"
        )


def read_tagged(path: Path) -> list[Sentence]:
    """Words and parts of speech: the second of three columns."""
    lines = path.read_text(encoding="utf8").splitlines()
    return list(sentences_of(line.rpartition(" ")[0] for line in lines))


def make_example(nlp: Language, sentence: Sentence) -> Example:
    """The corpus's own tokens, with tags."""
    words, tags = sentence
    return Example(Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words, tags=tags))


def train_tagger(sentences: Sequence[Sentence], iterations: int = 100) -> Language:
    """A tagger of order 1."""
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf_tagger", config={"model": MODEL, "trainer": TRAINER})
    examples = [make_example(nlp, sentence) for sentence in sentences]
    learn(nlp, examples, iterations)
    return nlp


if __name__ == "__main__":
    typer.run(main)
