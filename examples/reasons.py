"""Why does a trained model take this for a volume? What every feature contributes, down to the last digit."""

import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

REFERENCES = """
Neural/JOURNAL Computation/JOURNAL vol. 3/VOLUME pp. 79/PAGES -/PAGES 87/PAGES 1991/YEAR
Machine/JOURNAL Learning/JOURNAL vol. 8/VOLUME 1992/YEAR
Nature/JOURNAL 323/VOLUME pp. 533/PAGES -/PAGES 536/PAGES 1986/YEAR
Artificial/JOURNAL Intelligence/JOURNAL vol. 46/VOLUME pp. 77/PAGES 1990/YEAR
Science/JOURNAL 220/VOLUME pp. 671/PAGES -/PAGES 680/PAGES
in Machine/JOURNAL Learning/JOURNAL pp. 9/PAGES -/PAGES 44/PAGES 1988/YEAR
""".strip().splitlines()


FEATURES = {
    "@misc": "spacy-hocrf.Features.v1",
    "basics": False,
    "*": {
        "words": {
            "@misc": "spacy-hocrf.Token.v1",
            "attrs": ["NORM", "SHAPE"],
            "window": [-1, 0, 1],
            "parts": ["tokens"],
        },
        "order": {"@misc": "spacy-hocrf.Transition.v1", "order": 1},
    },
}


def read(nlp: spacy.Language, line: str) -> Example:
    """Neighbouring tokens with the same label are one span."""
    pairs = [token.partition("/") for token in line.split()]
    words, labels = [word for word, _, _ in pairs], [label for _, _, label in pairs]
    doc = Doc(nlp.vocab, words=words)
    starts = [i for i, label in enumerate(labels) if labels[i - 1 : i] != [label]]
    ends = [*starts[1:], len(labels)]
    doc.ents = [Span(doc, i, j, labels[i]) for i, j in zip(starts, ends) if labels[i]]
    return Example(Doc(nlp.vocab, words=words), doc)


def main() -> None:
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("hocrf", config={"model": {"features": FEATURES}})
    examples = [read(nlp, line) for line in REFERENCES]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(60):
        nlp.update(examples, sgd=optimizer)

    doc = Doc(nlp.vocab, words="Neural Networks vol. 2 pp. 359 1989".split())
    print(" ".join(f"{doc[i:j]}/{label}" for i, j, label, _ in pipe.reading(doc).spans()))
    for instead in (None, [(0, 2, "JOURNAL"), (5, 6, "VOLUME"), (6, 7, "YEAR")]):
        found = pipe.explain(doc, (3, 4, "VOLUME"), instead)
        other = [f"{doc[i:j]}/{label}" for i, j, label in found.instead]
        print(f"\nWhy is 2 a VOLUME, rather than {' '.join(other)}")
        for feature, nats in found.observations(top=6):
            print(f"  {nats:+.3f}  {feature}")
        rest = found.log_odds - sum(nats for _, nats in found.observations(top=6))
        print(f"  {rest:+.3f}  everything else\n  {found.log_odds:+.3f}  log-odds")


if __name__ == "__main__":
    main()
