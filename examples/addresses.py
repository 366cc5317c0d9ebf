"""Learn the parts of a postal address from a dozen examples, and see how sure the model is of each."""

import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

ADDRESSES = """
12/NUMBER Abbey/STREET Road/STREET London/CITY NW8/CODE
7/NUMBER Elm/STREET Street/STREET Leeds/CITY LS1/CODE
221b/NUMBER Baker/STREET Street/STREET London/CITY NW1/CODE
3/NUMBER Rose/STREET Lane/STREET York/CITY
18/NUMBER Old/STREET Mill/STREET Road/STREET Oxford/CITY OX4/CODE
5/NUMBER Station/STREET Road/STREET New/CITY Barnet/CITY EN5/CODE
40/NUMBER Hill/STREET View/STREET Bath/CITY BA2/CODE
9/NUMBER Church/STREET Lane/STREET Leeds/CITY
""".strip().splitlines()


def read(nlp: spacy.Language, line: str) -> Example:
    """Maximal runs of one label are entities."""
    words, labels = zip(*(pair.rsplit("/", 1) for pair in line.split()))
    doc = Doc(nlp.vocab, words=words)
    starts = [i for i in range(len(words)) if i == 0 or labels[i] != labels[i - 1]]
    doc.ents = [Span(doc, a, b, labels[a]) for a, b in zip(starts, [*starts[1:], len(words)])]
    return Example(Doc(nlp.vocab, words=words), doc)


def main() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config={"model": {"order": 2}})
    examples = [read(nlp, line) for line in ADDRESSES]
    optimizer = nlp.initialize(lambda: examples)
    losses: dict[str, float] = {}
    for _ in range(60):
        losses = {}
        nlp.update(examples, sgd=optimizer, losses=losses)
    print(f"objective: {losses['hocrf']:.3f}")
    for ent in nlp("16 Mill Lane New York").ents:
        print(f"{ent._.hocrf_score:.3f} {ent.label_:8} {ent.text}")


if __name__ == "__main__":
    main()
