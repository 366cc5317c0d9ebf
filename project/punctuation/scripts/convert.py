"""Make spaCy's format of the film transcripts as HOSemiCRF has them: `word mark` a line, a blank
line after each utterance.

Each Doc has the same answer three times. Tags are the marks: `,`, `.` or `?` on the word that it
follows, else `O`. Entities are the paper's labels: the first word up to a mark learns of it (`O-. O
.`), and a maximal run of one label is one segment. `doc.spans` has the clauses: the words up to a
mark as one span with the mark as its label; words without a mark at the end are in none.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab
from wasabi import msg

sys.path.append(str(Path(__file__).parents[2]))
from common.columns import Sentence, read_columns, runs
from common.training import write_docs

sys.path.append(str(Path(__file__).parents[2] / "benchmark" / "scripts"))
from corpora import mark_first_words

CLAUSES = "clauses"


def main(
    train_path: Annotated[Path, typer.Argument(help="punc.tr", exists=True)],
    test_path: Annotated[Path, typer.Argument(help="punc.ts", exists=True)],
    output_dir: Annotated[Path, typer.Argument(help="Where train.spacy and test.spacy go")],
) -> None:
    """Write train.spacy and test.spacy."""
    vocab = Vocab()
    for part, path in (("train", train_path), ("test", test_path)):
        docs = [make_doc(vocab, sentence) for sentence in read_columns(path)]
        write_docs(docs, output_dir / f"{part}.spacy")
        words, marks = sum(map(len, docs)), sum(len(doc.spans[CLAUSES]) for doc in docs)
        msg.good(f"{part}: {len(docs)} utterances, {words} words, {marks} marks")


def make_doc(vocab: Vocab, sentence: Sentence) -> Doc:
    """A Doc of exactly these words, with marks, labels and clauses."""
    words, marks = sentence
    doc = Doc(vocab, words=words, tags=marks)
    doc.set_ents([Span(doc, *span) for span in runs(mark_first_words(marks))])
    ends = [i + 1 for i, mark in enumerate(marks) if mark != "O"]
    doc.spans[CLAUSES] = [
        Span(doc, start, end, marks[end - 1]) for start, end in zip([0, *ends], ends)
    ]
    return doc


if __name__ == "__main__":
    typer.run(main)
