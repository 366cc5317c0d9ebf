"""Training as the experiments do it: on the corpus's own tokens, until the trainer stops."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_hocrf.api import Run


def annotated(vocab: Vocab, words: Sequence[str], spans: Iterable[tuple[int, int, str]]) -> Doc:
    """A Doc of exactly these words, with entities."""
    doc = Doc(vocab, words=list(words))
    doc.set_ents([Span(doc, *span) for span in spans])
    return doc


def read_docs(path: Path, vocab: Vocab | None = None) -> list[Doc]:
    """The Docs of a .spacy file."""
    return list(DocBin(store_user_data=True).from_disk(path).get_docs(vocab or Vocab()))


def write_docs(docs: Iterable[Doc], path: Path) -> None:
    """Write a .spacy file, and its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    DocBin(docs=docs).to_disk(path)


def read_examples(nlp: Language, path: Path) -> list[Example]:
    """Examples that keep the corpus's own tokens."""
    return [
        Example(Doc(nlp.vocab, words=[token.text for token in doc]), doc)
        for doc in read_docs(path, nlp.vocab)
    ]


def fresh(example: Example) -> Doc:
    """The example's tokens without annotation."""
    return Doc(example.reference.vocab, words=[token.text for token in example.reference])


def learn(nlp: Language, examples: list[Example], steps: int = 0) -> Run:
    """Train the first component; as `iterate`. RETURNS (Run): its training, at the end."""
    *_, run = iterate(nlp, examples, steps)
    return run


def iterate(nlp: Language, examples: list[Example], steps: int = 0) -> Iterator[Run]:
    """Train the first component until its training stops, step by step; the others are not
    trainable.

    steps (int): at most so many; 0 for as many as it takes.
    YIELDS (Run): its training, at the start and after each step.
    """
    optimizer = nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe(nlp.pipe_names[0])
    yield pipe.run
    taken = 0
    while pipe.run.running and not 0 < steps <= taken:
        nlp.update(examples[:1], sgd=optimizer)
        taken += 1
        yield pipe.run


def count_spans(nlp: Language, examples: Sequence[Example]) -> tuple[int, int, int]:
    """How many entities the pipeline predicts rightly, how many it predicts, and how many are
    annotated.
    """
    right = found = wanted = 0
    for doc, example in zip(nlp.pipe(map(fresh, examples)), examples):
        predicted, gold = spans(doc), spans(example.reference)
        right += len(predicted & gold)
        found += len(predicted)
        wanted += len(gold)
    return right, found, wanted


def spans(doc: Doc) -> set[tuple[int, int, str]]:
    """Start, end and label of the entities."""
    return {(ent.start, ent.end, ent.label_) for ent in doc.ents}
