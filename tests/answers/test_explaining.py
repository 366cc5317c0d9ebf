"""Reasons for spans: the best readings with and without them by enumeration, and every contribution by
taking its weight away.
"""

from dataclasses import replace
from itertools import combinations

import numpy as np
import oracle
import pytest
from random_readings import KINDS, PROBLEMS, Enumerated, random_problem
from small_corpus import MODELS, documents, teach, untrained, with_entities
from spacy.tokens import Doc, Span

from spacy_hocrf.answers import contrast
from spacy_hocrf.answers.contrast import Contrast
from spacy_hocrf.engine.pool import BufferPool
from spacy_hocrf.features.tokens import TokenBatch


class Text(Enumerated):
    """A random problem, what explains it, and the score of each of its segmentations."""

    def __init__(self, kind, seed):
        super().__init__(kind, seed)
        _, patterns, potentials, _ = random_problem(kind, seed)
        self.text = Contrast(self.reading.doc, self.part, BufferPool())
        self.spans_of = self.shown()
        self.scores = [oracle.score(potentials, patterns, each) for each in self.every]

    def spans(self):
        """Every span that some segmentation has, as it is shown."""
        return sorted({span for spans in self.spans_of for span in spans})

    def best(self, which):
        """Score of the best segmentation of which these spans are shown."""
        scores = [score for spans, score in zip(self.spans_of, self.scores) if which(spans)]
        return max(scores, default=-np.inf)


@pytest.fixture(scope="module", params=KINDS)
def problems(request):
    found = [Text(request.param, seed) for seed in range(PROBLEMS)]
    found = [problem for problem in found if problem.every]
    assert len(found) > PROBLEMS / 2
    return found


def close(found):
    return pytest.approx(found, abs=1e-9)


def test_a_span_is_compared_with_the_best_reading_without_it(problems):
    compared = alone = 0
    for problem in problems:
        for span in problem.spans():
            without = problem.best(lambda spans, span=span: span not in spans)
            if without == -np.inf:
                alone += 1
                with pytest.raises(ValueError, match="H225"):
                    problem.text.compare(span, None)
                continue
            chosen, other = problem.text.compare(span, None)
            assert chosen.score == close(problem.best(lambda spans, span=span: span in spans))
            assert other.score == close(without)
            assert span in problem.text.shown(chosen.segments)
            assert span not in problem.text.shown(other.segments)
            for best in (chosen, other):
                score = problem.scores[problem.every.index(segments_of(best))]
                assert best.score == close(score)
            compared += 1
    assert compared > 2 * PROBLEMS and alone < compared


def segments_of(best):
    return list(zip(*(column.tolist() for column in best.segments[1:])))


@pytest.mark.slow
def test_the_cases_are_all_readings_without_a_span_and_no_other_ones(problems):
    for problem in problems:
        text = problem.text
        for span in problem.spans():
            cases = [
                replace(text.part.potentials, allowed=bits)
                for bits in text._without(span, text.part.potentials.allowed)
            ]
            limits, forbidden = text.part.scheme.limits, frozenset(text.part.scheme.forbidden)
            found = {s for case in cases for s in oracle.segmentations(case, limits, forbidden)}
            shown = zip(problem.every, problem.spans_of)
            assert found == {tuple(segments) for segments, spans in shown if span not in spans}
            assert len(cases) <= problem.length + 2


@pytest.mark.slow
def test_a_span_is_compared_with_another_one_or_with_a_whole_reading(problems):
    rng, spans_compared = np.random.default_rng(0), 0
    for problem in problems:
        shown = problem.spans_of
        pairs = list(combinations(problem.spans(), 2))
        for span, other in pairs[:: max(1, len(pairs) // 20)]:
            expected = problem.best(lambda s, a=span, b=other: b in s and a not in s)
            if expected > -np.inf:
                assert problem.text.compare(span, other)[1].score == close(expected)
                spans_compared += 1
        for span in problem.spans():
            spans = shown[rng.integers(len(shown))]
            if span not in spans:
                found = problem.text.compare(span, sorted(spans))[1]
                assert found.score == close(problem.best(lambda s, spans=spans: s == spans))
    assert spans_compared > 20


# Through the component

EVERYTHING = {
    "@misc": "spacy-hocrf.Features.v1",
    "*": {
        "window": {"@misc": "spacy-hocrf.Window.v1"},
        "order": {"@misc": "spacy-hocrf.Transition.v1", "order": 1, "terms": ["BEFORE.NORM"]},
        "text": {"@misc": "spacy-hocrf.Segment.v1", "what": ["TEXT"]},
        "vectors": {
            "@misc": "spacy-hocrf.Vectors.v1",
            "parts": ["start", "tokens"],
            "window": [-1, 0],
        },
        "real": {"@misc": "spacy-hocrf.Real.v1", "source": "vector", "order": 1},
        "pieces": {"@misc": "spacy-hocrf.Pieces.v1", "attrs": ["LOWER"], "window": [1]},
        "item": {
            "@misc": "spacy-hocrf.Item.v1",
            "toolkit": "crf++",
            "template": "U:%x[-1,0]%x[2,0]",
            "columns": ["LOWER"],
        },
    },
}


def learnt(kind, features=None):
    """A pipeline that has learnt a little, and Docs without annotation."""
    factory, model = MODELS[kind]
    nlp = untrained(factory, {**model, **({} if features is None else {"features": features})})
    words = sorted({token.text for text, _ in documents() for token in nlp.make_doc(text)})
    vectors = np.random.default_rng(0).normal(size=(len(words), 4)).astype("f")
    for word, vector in zip(words[::2], vectors):
        nlp.vocab.set_vector(word, vector)
    teach(nlp, steps=6)
    return nlp, [nlp.make_doc(text) for text in ["", *(text for text, _ in documents(4))]]


@pytest.fixture(scope="module", params=MODELS)
def pipe_and_docs(request):
    features = EVERYTHING if "semi-CRF" in request.param else None
    nlp, docs = learnt(request.param, features)
    return nlp.get_pipe("hocrf"), docs


@pytest.mark.slow
def test_contributions_add_up_to_the_log_odds(pipe_and_docs):
    pipe, docs = pipe_and_docs
    before, asked = [doc.to_bytes() for doc in docs], 0
    for reading in pipe.readings(docs):
        for start, end, label, p in reading.spans(0.02):
            found = reading.explain((start, end, label))
            assert sum(reason.contribution for reason in found.reasons) == close(found.log_odds)
            assert sum(found.templates.values()) == close(found.log_odds)
            assert sum(value for _, value in found.observations()) == close(found.log_odds)
            assert len(found.observations(3)) <= 3
            chosen, other = map(reading.log_probability, (found.chosen, found.instead))
            assert chosen - other == pytest.approx(found.log_odds, abs=1e-7)
            if found.log_odds < 0:
                assert p <= 0.5
            asked += 1
            again = pipe.explain(docs[before.index(reading.doc.to_bytes())], (start, end, label))
            assert again.log_odds == close(found.log_odds)
    assert asked > 5
    assert [doc.to_bytes() for doc in docs] == before


@pytest.mark.slow
def test_every_contribution_is_what_is_lost_without_its_weight(pipe_and_docs):
    pipe, docs = pipe_and_docs
    batch, structure, rules = TokenBatch(docs[2:3]), pipe.structure, pipe.rules
    reading = pipe.reading(docs[2])
    span = min(reading.spans(0.02), key=lambda span: abs(span.probability - 0.6))[:3]
    found = reading.explain(span)
    compiled = structure.compile(structure.observe(batch), structure.allowed(batch))
    weights = np.asarray(pipe.model.get_param("W")).astype(float)

    def score(spans, weights):
        potentials = compiled.potentials(weights)
        segments = pipe.rules.scheme.encode(sorted(spans), len(docs[2]))
        return oracle.score(potentials, rules.automaton.patterns, segments)

    def log_odds(weights):
        return score(found.chosen, weights) - score(found.instead, weights)

    assert log_odds(weights) == close(found.log_odds)
    strings, names = docs[2].vocab.strings, pipe.rules.scheme.names
    of = {
        (structure.index.describe(feature, strings, names)): feature
        for feature in range(len(structure.index))
    }
    dense = {name for name, _ in structure.settings.dense}
    for reason in found.reasons[:: max(1, len(found.reasons) // 25)]:
        if reason.template not in dense:
            without = weights.copy()
            without[of[reason.feature, reason.labels]] = 0.0
            assert found.log_odds - log_odds(without) == close(reason.contribution)
    without = weights.copy()
    without[len(structure.index) :] = 0.0
    lost = found.log_odds - log_odds(without)
    shares = [value for name, value in found.templates.items() if name in dense]
    assert sum(shares) == close(lost)
    assert bool(dense) == any(shares)


@pytest.mark.slow
def test_words_have_the_contributions_of_what_is_seen_of_them(pipe_and_docs):
    pipe, docs = pipe_and_docs
    structure, doc = pipe.structure, docs[2]
    reading = pipe.reading(doc)
    span = min(reading.spans(0.02), key=lambda span: abs(span.probability - 0.6))[:3]
    found = reading.explain(span)
    expected = np.zeros(len(doc))
    for spans, sign in ((found.chosen, 1), (found.instead, -1)):
        segments = pipe.rules.scheme.encode(sorted(spans), len(doc))
        expected += sign * shares(pipe, structure, TokenBatch([doc]), segments)
    assert found.words == pytest.approx(expected, abs=1e-9)
    assert np.abs(expected).max() > 0.01


def shares(pipe, structure, batch, segments):
    """Contributions to a segmentation by word, feature by feature."""
    index, weights = structure.index, np.asarray(pipe.model.get_param("W")).astype(float)
    words, labels = np.zeros(len(batch)), [segment.label for segment in segments]
    of = {number: observer for observer in index.observers for number in observer.templates}
    for number, template in enumerate(index.templates):
        if template.part > 3:
            continue
        terms, commands = getattr(template, "terms", ()), getattr(template, "commands", ())
        offsets = {offset for _, offset in terms} | {command.offset for command in commands}
        offsets = offsets or {getattr(template, "offset", 0)}
        events = template.events(batch)
        ids = index.table.lookup(of[number].number, events.values)
        values = np.ones(len(ids)) if events.weight is None else events.weight
        for token, observation, value in zip(events.token, ids, values):
            place = next(i for i, s in enumerate(segments) if s.start <= token < s.end)
            start, end, _ = segments[place]
            fires = (token == start, token == end - 1, True, token != start)[template.part]
            pattern = tuple(labels[max(0, place - template.order) : place + 1])
            for feature in range(*index.feature_offsets[observation : observation + 2]):
                same = index.patterns[index.feature_pattern[feature]] == pattern
                if fires and same and index.feature_template[feature] == number:
                    for t in {token + offset for offset in offsets} & {*range(len(batch))}:
                        words[t] += weights[feature] * value / len(offsets)
    first, potentials = len(index), np.zeros((len(batch), len(structure.scheme.names)))
    for _, score in structure.settings.dense:
        block = weights[first : first + score.width * potentials.shape[1]]
        first += len(block)
        found = score.scores(score.inputs(batch), block.reshape(score.width, -1))
        for start, end, label in segments:
            for t in [start] if score.part == "start" else range(start, end):
                if 0 <= t + score.offset < len(batch):
                    words[t + score.offset] += found[t, label]
    return words


@pytest.fixture(scope="module")
def trained():
    nlp, _ = learnt("semi-CRF, outside tokens")
    return nlp


TEXT = "Nobody but Ada Lovelace likes London"


def test_any_span_can_be_asked_about_and_compared(trained):
    pipe, doc = trained.get_pipe("hocrf"), trained.make_doc(TEXT)
    ada = pipe.explain(doc, Span(doc, 2, 4, label="PERSON"))
    assert ada.log_odds > 0 and (2, 4, "PERSON") in ada.chosen
    assert (2, 4, "PERSON") not in ada.instead
    assert "Lovelace" in str(ada) or "lovelace" in str(ada)
    place = pipe.explain(doc, (2, 4, "PERSON"), instead=(2, 4, "PLACE"))
    assert (2, 4, "PLACE") in place.instead and place.log_odds >= ada.log_odds
    span = pipe.explain(doc, (2, 4, "PERSON"), instead=Span(doc, 2, 4, label="PLACE"))
    assert span.log_odds == place.log_odds
    nothing = pipe.explain(doc, (2, 4, "PERSON"), instead=[])
    assert nothing.instead == ()
    spaced = trained.make_doc(TEXT.replace("Lovelace", "Lovelace\n"))
    longer = pipe.explain(spaced, (2, 5, "PERSON"), instead=(6, 7, "PERSON"))
    assert (2, 4, "PERSON") in longer.chosen and longer.log_odds > 0
    wrong = pipe.explain(doc, (0, 1, "PERSON"))
    assert wrong.log_odds < 0
    assert {reason.labels.split()[-1] for reason in wrong.reasons} <= {"PERSON", "PLACE", "O"}


@pytest.mark.parametrize(
    "span, instead, code",
    [
        ((0, 9, "PERSON"), None, "H224.*tokens 0 to 9.*6 tokens"),
        ((2, 2, "PERSON"), None, "H224"),
        ((0, 1, "NOBODY"), None, "H224.*NOBODY.*PERSON, PLACE"),
        ((0, 5, "PLACE"), None, "H224"),  # longer than any in training
        ((2, 4, "PERSON"), (0, 9, "PERSON"), "H224"),
        ((2, 4, "PERSON"), [(0, 5, "PLACE")], "H226.*exactly PLACE at tokens 0 to 5"),
        ((2, 4, "PERSON"), (2, 4, "PERSON"), "H227.*PERSON at tokens 2 to 4"),
        ((2, 4, "PERSON"), [(2, 4, "PERSON")], "H227"),
    ],
)
def test_questions_without_an_answer_are_errors(trained, span, instead, code):
    with pytest.raises(ValueError, match=code):
        trained.get_pipe("hocrf").explain(trained.make_doc(TEXT), span, instead)


def test_white_space_alone_is_no_span_to_ask_about(trained):
    with pytest.raises(ValueError, match=r"H224.*tokens 1 to 2"):
        trained.get_pipe("hocrf").explain(trained.make_doc("Ada\n\nLovelace"), (1, 2, "PERSON"))


def test_what_was_set_before_is_certain(trained):
    doc = with_entities(trained.make_doc(TEXT), (2, 4, "PERSON"))
    pipe = trained.get_pipe("hocrf")
    with pytest.raises(ValueError, match=r"H225.*make_doc"):
        pipe.explain(doc, (2, 4, "PERSON"))
    with pytest.raises(ValueError, match="H224"):
        pipe.explain(doc, (2, 3, "PERSON"))
    assert (2, 4, "PERSON") in pipe.explain(doc, (5, 6, "PLACE")).instead


def test_a_tag_is_explained():
    nlp, docs = learnt("tagger")
    doc = docs[1]
    reading = nlp.get_pipe("hocrf").reading(doc)
    tags = [reading.labels[y] for y in reading.tokens()[:, :-1].argmax(axis=1)]
    found = nlp.get_pipe("hocrf").explain(doc, (0, 1, tags[0]))
    assert found.instead[0][2] != tags[0] and len(found.instead) == len(doc)


def test_texts_of_one_batch_are_explained_in_any_order(trained):
    pipe = trained.get_pipe("hocrf")
    docs = [trained.make_doc(text) for text in (TEXT, "In Paris , Alan Turing slept .")]
    first, second = pipe.readings(docs)
    spans = [reading.spans(0.5)[0][:3] for reading in (first, second)]
    for reading, doc, span in (*zip((first, second), docs, spans), (first, docs[0], spans[0])):
        found, alone = reading.explain(span), pipe.explain(doc, span)
        assert found.reasons == alone.reasons and found.span == span
        assert found.words == pytest.approx(alone.words) and len(found.words) == len(doc)


def test_long_texts_are_explained_part_by_part(monkeypatch, trained):
    pipe = trained.get_pipe("hocrf")
    doc = Doc(trained.vocab, words=TEXT.split() * 30)
    span = pipe.reading(doc).spans(0.5)[7][:3]
    expected = pipe.explain(doc, span)
    monkeypatch.setattr(contrast, "MAX_TOKENS", 1)
    assert pipe.explain(doc, span).log_odds == close(expected.log_odds)
