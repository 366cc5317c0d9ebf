"""Rules for every text, and a person's corrections: the rest is decided anew around them."""

import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

ADDRESSES = """
12/NUMBER Main/STREET St/STREET Springfield/CITY
7/NUMBER Oak/STREET Avenue/STREET Dayton/CITY
Main/STREET St/STREET and/O Oak/STREET Avenue/STREET Dayton/CITY
230/NUMBER Lake/STREET Road/STREET Salem/CITY
5/NUMBER Park/STREET Lane/STREET Lake/CITY Forest/CITY
Elm/STREET St/STREET and/O 2/STREET Avenue/STREET Salem/CITY
""".strip().splitlines()


def read(nlp: spacy.Language, line: str) -> Example:
    """Neighbouring tokens with the same label are one entity."""
    words, labels = zip(*(token.rsplit("/", 1) for token in line.split()))
    doc = Doc(nlp.vocab, words=list(words))
    begins = [i for i, y in enumerate(labels) if i == 0 or labels[i - 1] != y]
    ends = [*begins[1:], len(labels)]
    doc.ents = [Span(doc, i, j, labels[i]) for i, j in zip(begins, ends) if labels[i] != "O"]
    return Example(Doc(nlp.vocab, words=list(words)), doc)


def told(nlp: spacy.Language) -> Example:
    """A text that nobody has annotated; all that is known is that one word belongs to a street."""
    words = ["9", "Wharf", "Row", "and", "Bay", "Row", "Salem"]
    doc = Doc(nlp.vocab, words=words)
    doc.spans["hocrf_constraints"] = [Span(doc, 1, 2, "STREET", span_id="inside")]
    return Example(Doc(nlp.vocab, words=words), doc)


def trained(constraints: dict[str, object] | None = None, *, more: bool = False) -> spacy.Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config={"constraints": constraints})
    examples = [read(nlp, line) for line in ADDRESSES]
    if more:
        examples.append(told(nlp))
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(60):
        nlp.update(examples, sgd=optimizer)
    return nlp


def show(doc: Doc) -> None:
    print("  ", [(span.text, span.label_, round(span._.hocrf_score, 3)) for span in doc.ents])


def main() -> None:
    text = "12 Oak Avenue and Lake Road Dayton"
    print("without rules:")
    show(trained()(text))
    print("at most one street:")
    once = {"@misc": "spacy-hocrf.Constraints.v1", "at_most": {"STREET": 1}}
    nlp = trained(once)
    doc = nlp(text)
    show(doc)
    print("a person says that the street is Lake Road:")
    show(nlp.get_pipe("hocrf").correct(doc, Span(doc, 4, 6, "STREET")))
    print("without and with a text of which one word is known:")
    for more in (False, True):
        show(trained(more=more)("Wharf Row Dayton"))


if __name__ == "__main__":
    main()
