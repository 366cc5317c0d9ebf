"""Ask a trained model about a text: how probable are other spans, whole readings, labels of tokens?"""

import math

import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

DATES = """
on 3/DAY May/MONTH 1998/YEAR
from 12/DAY June/MONTH to 14/DAY June/MONTH
in May/MONTH 2003/YEAR
since 1987/YEAR
on 7/DAY January/MONTH 2011/YEAR
by 14/NUMBER people in 2003/YEAR
with 7/NUMBER others
at 12/NUMBER places on 21/DAY March/MONTH
some 1500/NUMBER people
about 3/NUMBER miles
""".strip().splitlines()


def read(nlp: spacy.Language, line: str) -> Example:
    """Tokens with a label are entities."""
    pairs = [token.partition("/") for token in line.split()]
    doc = Doc(nlp.vocab, words=[word for word, _, _ in pairs])
    doc.ents = [Span(doc, i, i + 1, label) for i, (_, _, label) in enumerate(pairs) if label]
    return Example(Doc(nlp.vocab, words=[word for word, _, _ in pairs]), doc)


def main() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf")
    examples = [read(nlp, line) for line in DATES]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(60):
        nlp.update(examples, sgd=optimizer)

    doc = nlp.make_doc("in June 14 people came")
    reading = nlp.get_pipe("hocrf").reading(doc)
    print("spans with a probability of at least 0.1:")
    for start, end, label, p in reading.spans(at_least=0.1):
        print(f"  {p:.3f} {label:7} {doc[start:end]}")
    for label in ("DAY", "NUMBER"):
        p = math.exp(reading.log_probability([(1, 2, "MONTH"), (2, 3, label)]))
        print(f"June a MONTH, 14 a {label}, and nothing else: {p:.3f}")
    print("labels of 14:")
    for label, p in zip([*reading.labels, "none"], reading.tokens()[2]):
        print(f"  {p:.3f} {label}")
    print(f"entropy of the whole: {reading.entropy():.3f} nats")
    print(f"expected number of days: {reading.expected_count('DAY'):.3f}")


if __name__ == "__main__":
    main()
