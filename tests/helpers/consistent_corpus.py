"""Documents that name people and firms clearly once, and elsewhere so that nobody can tell: for the
tests of global weights.
"""

import random

from spacy.tokens import Doc, Span
from spacy.training import Example

CLEAR = {
    "PERSON": ["Mr. {} spoke", "Mrs. {} agreed"],
    "FIRM": ["shares of {} fell", "{} Inc. grew"],
}
VAGUE = ["we like {}", "about {} nothing is known", "then {} came"]


def texts(seed, count, *, names_per_text=2):
    """Words, and the name's place and label, of sentences; the sentences of a text are in random
    order.
    """
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        sentences = []
        for _ in range(names_per_text):
            name = "".join(
                rng.choice("bdfgklmnprst") + rng.choice("aeiou") for _ in range(3)
            ).capitalize()
            label = rng.choice(["PERSON", "FIRM"])
            patterns = [rng.choice(CLEAR[label]), *rng.sample(VAGUE, 2)]
            sentences += [
                (pattern.replace("{}", name).split(), name, label) for pattern in patterns
            ]
        rng.shuffle(sentences)
        found.append(sentences)
    return found


def example(vocab, sentences, group=None):
    """One document of some sentences."""
    words = [word for sentence, _, _ in sentences for word in [*sentence, "."]]
    reference = Doc(vocab, words=words)
    spans, at = [], 0
    for sentence, name, label in sentences:
        place = at + sentence.index(name)
        spans.append(Span(reference, place, place + 1, label=label))
        at += len(sentence) + 1
    reference.set_ents(spans)
    predicted = Doc(vocab, words=words)
    if group is not None:
        predicted._.hocrf_group = group
    return Example(predicted, reference)


def whole(nlp, seed, count):
    """Every text is a document."""
    return [example(nlp.vocab, sentences) for sentences in texts(seed, count)]


def in_sentences(nlp, seed, count):
    """Every sentence is a document, and every text a group."""
    return [
        example(nlp.vocab, [sentence], group=f"{seed}.{i}")
        for i, text in enumerate(texts(seed, count))
        for sentence in text
    ]
