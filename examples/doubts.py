"""Annotation that is probably wrong, and which text to annotate next."""

import spacy
from spacy.tokens import Doc, Span
from thinc.api import Config

from spacy_hocrf.api import cross_read, next_texts, trained

# In the last line but one, a month is labelled as a year; in the last one, a day is missing.
DATES = """
on 3/DAY May/MONTH 1998/YEAR
until 12/DAY June/MONTH 1871/YEAR
by 12/DAY July/MONTH 2003/YEAR
on 21/DAY March/MONTH 1987/YEAR
since 7/DAY January/MONTH 2011/YEAR
on 14/DAY May/MONTH 2003/YEAR
until 30/DAY July/MONTH 1640/YEAR
since 2/DAY March/MONTH 1998/YEAR
by 9/DAY January/MONTH 1871/YEAR
on 11/DAY June/MONTH 2011/YEAR
since 21/DAY May/YEAR 1987/YEAR
until 3 March/MONTH 2003/YEAR
""".strip().splitlines()
NEW = ("on 7 May 1998", "on 7 May 1640", "Whitsun week , in a year of plague")


def read(vocab: spacy.Vocab, line: str) -> Doc:
    """Tokens with a label are entities."""
    pairs = [token.partition("/") for token in line.split()]
    doc = Doc(vocab, words=[word for word, _, _ in pairs])
    doc.set_ents([Span(doc, i, i + 1, label) for i, (_, _, label) in enumerate(pairs) if label])
    return doc


def main() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf")
    config = Config().from_str(nlp.config.to_str(), interpolate=False)
    config["training"].update(max_steps=40, eval_frequency=40)
    docs = [read(nlp.vocab, line) for line in DATES]

    print("annotation contradicted by a model that has not seen the text:")
    texts = cross_read(config, docs, folds=4)
    doubts = sorted(
        ((doubt.degree, text, doubt) for text in texts for doubt in text.doubts),
        key=lambda row: -row[0],
    )
    for degree, text, doubt in doubts[:2]:
        said, instead = text.spell(doubt.annotated), text.spell(doubt.answer)
        print(f"  {degree:.2f} {''.join(text.words).strip()}: {said}, not {instead}?")

    print("what to annotate next:")
    new = [Doc(nlp.vocab, words=line.split()) for line in NEW]
    for asked in next_texts(trained(config, docs, best=False), new):
        print(f"  {asked.gain:.2f} {''.join(asked.words).strip()}")


if __name__ == "__main__":
    main()
