"""The corpora as sentences of words and labels: CoNLL-2000 chunks, Cora references, film
transcripts without their punctuation.

The small setting needs no corpus: 36 of the references that project/references ships stand in for
all three.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated

import srsly
import typer

sys.path.append(str(Path(__file__).parents[2]))
from common.columns import Sentence, read_columns, stream_columns, stream_conllu

REFERENCES = Path(__file__).parents[2] / "references"
SHIPPED = REFERENCES / "assets" / "paper-references.jsonl"
SMALL = 36
DataOption = Annotated[Path, typer.Option(help="Folder with conll2000/ and hosemicrf/")]
SmallOption = Annotated[
    bool, typer.Option("--small", help=f"{SMALL} shipped references instead of the corpora")
]
MARKS = (",", ".", "?", "!")


@dataclass(frozen=True)
class Corpora:
    """Where the corpora are.

    data (Path): folder with conll2000/ and hosemicrf/, as project.yml lays them out.
    small (bool): the shipped references instead.
    """

    data: Path
    small: bool = False

    def chunks(self, part: str = "train") -> list[Sentence]:
        """CoNLL-2000: chunks as B-, I- and O labels; part is "train" or "test"."""
        if self.small:
            return [Sentence(words, to_bio(labels)) for words, labels in read_shipped()]
        return read_columns(self.data / "conll2000" / f"{part}.txt")

    def stream_chunks(self) -> Iterator[Sentence]:
        """The same for training, sentence by sentence, as they are read."""
        return (
            iter(self.chunks())
            if self.small
            else stream_columns(self.data / "conll2000" / "train.txt")
        )

    def stream_tags(self) -> Iterator[Sentence]:
        """English Web Treebank: words with one of 49 part-of-speech tags each, sentence by
        sentence.
        """
        if self.small:
            yield from self.chunks()
            return
        with (self.data / "ewt" / "en_ewt-ud-train.conllu").open(encoding="utf8") as file:
            yield from stream_conllu(file)

    def references(self) -> list[Sentence]:
        """Cora: the 300 references for training, 13 labels, none of them for outside."""
        return (
            list(read_shipped())
            if self.small
            else read_columns(self.data / "hosemicrf" / "ref" / "ref.train")
        )

    def punctuation(self) -> list[Sentence]:
        """Film transcripts: the ten labels of Nguyen et al. (2014, §3.2.2)."""
        if self.small:
            sentences = [without_marks(sentence) for sentence in read_shipped()]
        else:
            sentences = read_columns(self.data / "hosemicrf" / "punc" / "punc.tr")
        return [Sentence(words, mark_first_words(labels)) for words, labels in sentences]


def read_shipped() -> Iterator[Sentence]:
    """References of three papers, from project/references."""
    for record in islice(srsly.read_jsonl(SHIPPED), SMALL):
        tokens = [
            (match.start(), match[0]) for match in re.finditer(r"\w+|[^\w\s]", record["text"])
        ]
        labelled = [
            (word, label)
            for at, word in tokens
            for start, end, label in record["spans"]
            if start <= at < end
        ]  # every token is in one span
        words, labels = zip(*labelled)
        yield Sentence(list(words), list(labels))


def to_bio(labels: list[str]) -> list[str]:
    """Each maximal stretch of a label as one B- and I-s."""
    return [
        "I-" + label if i and labels[i - 1] == label else "B-" + label
        for i, label in enumerate(labels)
    ]


def concatenate(sentences: Iterable[Sentence], tokens: int) -> list[Sentence]:
    """Documents of at least so many tokens; what is left at the end belongs to the last one."""
    documents = [Sentence([], [])]
    for words, labels in sentences:
        if len(documents[-1].words) >= tokens:
            documents.append(Sentence([], []))
        documents[-1].words.extend(words)
        documents[-1].labels.extend(labels)
    if len(documents) > 1 and len(documents[-1].words) < tokens:
        rest = documents.pop()
        documents[-1].words.extend(rest.words)
        documents[-1].labels.extend(rest.labels)
    return documents


def without_marks(sentence: Sentence) -> Sentence:
    """The words in lower case, each labelled with the mark that follows it, "O" for none."""
    following = [*sentence.words[1:], ""]
    kept = [
        (word.lower(), mark if mark in MARKS else "O")
        for word, mark in zip(sentence.words, following)
        if any(letter.isalnum() for letter in word)
    ]
    return Sentence([word for word, _ in kept], [label for _, label in kept])


def mark_first_words(labels: list[str]) -> list[str]:
    """The first word up to a mark learns of it: O O . becomes O-. O ., and a mark of its own .-.
    (the released PuncConverter).
    """
    labels = list(labels)
    for i, mark in enumerate(labels):
        if mark in MARKS:
            first = i
            while first > 0 and labels[first - 1] == "O":
                first -= 1
            labels[first] += "-" + mark
    return labels
