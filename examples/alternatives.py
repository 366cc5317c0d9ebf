"""Other readings of a text: the best ones with their probabilities, and what they agree on."""

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
    nlp.add_pipe("hocrf", config={"n_best": 3})
    examples = [read(nlp, line) for line in DATES]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(60):
        nlp.update(examples, sgd=optimizer)

    doc = nlp("in June 14 people came")
    print("the three best readings:")
    for rank in (1, 2, 3):
        group = doc.spans[f"hocrf_{rank}"]
        spans = ", ".join(f"{span.text} {span.label_}" for span in group)
        print(f"  {group.attrs['probability']:.3f} {spans or 'no span'}")

    reading = nlp.get_pipe("hocrf").reading(nlp.make_doc(doc.text))
    seen, p = 0, 0.0
    for alternative in reading.alternatives():
        seen, p = seen + 1, p + alternative.probability
        if p >= 0.99:
            break
    print(f"readings that have 99 % of the probability: {seen}")

    drawn = reading.sample(1000, seed=0)
    june = [spans for spans in drawn if (1, 2, "MONTH") in spans]
    both = [spans for spans in june if (2, 3, "NUMBER") in spans]
    print(
        f"if June is a MONTH, is 14 a NUMBER? {len(both) / len(june):.2f}, of 1,000 drawn readings"
    )


if __name__ == "__main__":
    main()
