"""Small Docs of messages whose links are known: who tells something replies to who asked for it."""

import random

import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_hocrf.links.items import SpanItems, Thread

for _name in ("author", "named", "minute"):
    for _class in (Doc, Span):
        if not _class.has_extension(_name):
            _class.set_extension(_name, default=None)
if not Doc.has_extension("hocrf_links"):
    Doc.set_extension("hocrf_links", default=None)

NLP = spacy.blank("xx")
VALUES = {
    "distance": {"@misc": "spacy-hocrf.LinkDistance.v1"},
    "word": {"@misc": "spacy-hocrf.LinkAttribute.v1", "attr": "LOWER[0]"},
    "author": {"@misc": "spacy-hocrf.LinkSame.v1", "attr": "_.author"},
    "thing": {"@misc": "spacy-hocrf.LinkSame.v1", "attr": "LOWER[-1]"},
}
FEATURES = {
    "@misc": "spacy-hocrf.LinkFeatures.v1",
    "values": VALUES,
    "templates": ["word(source) + word(target) + thing + itself", "distance", "thing + author"],
}


def conversation(seed, *, n=5, itself=False):
    """Messages "ask thing" and "tell thing" of some authors, and their links."""
    draw = random.Random(seed)
    messages, links, asked = [], [], {}
    for i in range(n):
        thing, says = draw.choice("abc"), draw.choice(("ask", "tell"))
        if says == "tell" and thing in asked:
            links.append([i, asked[thing]])
        elif itself:
            links.append([i, i])
        if says == "ask":
            asked[thing] = i
        messages.append((f"{says} {thing}", draw.choice(["ada", "max"]), draw.randrange(100)))
    return messages, links


def document(messages, links=None, vocab=NLP.vocab):
    """A Doc whose spans are messages."""
    words = [text.split() for text, *_ in messages]
    doc = Doc(vocab, words=[word for each in words for word in each])
    spans, first = [], 0
    for each, (_, author, minute) in zip(words, messages):
        span = Span(doc, first, first + len(each), label="MESSAGE")
        span._.author, span._.minute = author, minute
        span._.named = ["max"] if author == "ada" else []
        spans.append(span)
        first += len(each)
    doc.spans["sc"] = spans
    doc._.hocrf_links = links
    return doc


def example(seed, **settings):
    """A conversation to learn from."""
    messages, links = conversation(seed, **settings)
    return Example(document(messages), document(messages, links))


def examples(n, first=0, **settings):
    """Several, with other seeds."""
    return [example(seed, **settings) for seed in range(first, first + n)]


def settings_of(*, itself=False, one_each=False, window=20, features=FEATURES, **settings):
    """A config of the component."""
    pairs = {"itself": itself, "one_each": one_each, "window": window}
    pairs["@misc"] = "spacy-hocrf.LinkPairs.v1"
    return {"features": features, "pairs": pairs, **settings}


def untrained(name="hocrf_links", **settings):
    """A pipeline of this component alone."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("hocrf_links", name=name, config=settings_of(**settings))
    return nlp


def trained(n=40, steps=20, **settings):
    """The same, trained on some conversations."""
    nlp = untrained(**settings)
    itself = settings.get("itself", False)
    corpus = examples(n, itself=itself)
    nlp.initialize(lambda: corpus)
    for _ in range(steps):
        nlp.update(corpus)
    return nlp


def thread(seed=0, n=5):
    """A thread of one Doc."""
    return Thread([document(conversation(seed, n=n)[0])], SpanItems())
