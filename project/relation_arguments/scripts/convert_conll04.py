"""Make spaCy's format of CoNLL04: entity mentions as `doc.ents`, the arguments of each relation as
`doc.spans[relation]`.

A mention is Arg1 if it is the first argument of some relation of the name, Arg2 if it is the second
of one, and Arg1Arg2 if it is both (Nguyen et al., JMLR 15, 2014, §3.2.1).
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab
from wasabi import msg

sys.path.append(str(Path(__file__).parents[2]))
from common.conll04 import Token, read_sentences
from common.training import write_docs

RELATIONS = ("Live_In", "Located_In", "Work_For", "OrgBased_In", "Kill")
NONE = "N"


def main(
    train_path: Annotated[Path, typer.Argument(help="train.txt", exists=True)],
    dev_path: Annotated[Path, typer.Argument(help="dev.txt", exists=True)],
    test_path: Annotated[Path, typer.Argument(help="test.txt", exists=True)],
    output_dir: Annotated[Path, typer.Argument(help="Where train.spacy and test.spacy go")],
) -> None:
    """Write train.spacy, which is train.txt and dev.txt, and test.spacy."""
    vocab = Vocab()
    parts = {"train": (train_path, dev_path), "test": (test_path,)}
    for part, paths in parts.items():
        docs = [make_doc(vocab, sentence) for path in paths for sentence in read_sentences(path)]
        write_docs(docs, output_dir / f"{part}.spacy")
        numbers = ", ".join(f"{name} {count}" for name, count in count_sentences(docs).items())
        mentions = sum(len(doc.ents) for doc in docs)
        msg.good(f"{part}: {len(docs)} sentences, {mentions} mentions; with {numbers}")


def make_doc(vocab: Vocab, sentence: Sequence[Token]) -> Doc:
    """A Doc of exactly these tokens, with its mentions and arguments."""
    doc = Doc(
        vocab, words=[token.text for token in sentence], ents=[token.tag for token in sentence]
    )
    mentions = {ent.end - 1: ent for ent in doc.ents}
    roles: defaultdict[str, defaultdict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for first, token in enumerate(sentence):
        for relation, second in zip(token.relations, token.heads, strict=True):
            if relation != NONE:
                roles[relation][mentions[first].end - 1].add("Arg1")
                roles[relation][mentions[second].end - 1].add("Arg2")
    for relation in RELATIONS:
        arguments = roles[relation]
        doc.spans[relation] = [
            Span(doc, mentions[last].start, mentions[last].end, "".join(sorted(arguments[last])))
            for last in sorted(arguments)
        ]
    return doc


def count_sentences(docs: Iterable[Doc]) -> Counter[str]:
    """How many sentences have a relation of each name."""
    return Counter(relation for doc in docs for relation in RELATIONS if len(doc.spans[relation]))


if __name__ == "__main__":
    typer.run(main)
