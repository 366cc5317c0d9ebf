"""Constraints of single texts as annotation in part: losses and gradients against enumeration, what is read
from references, and through the component.
"""

from dataclasses import replace

import numpy as np
import oracle
import pytest
import spacy
from component_oracle import scored
from derivatives import assert_gradient
from numpy.testing import assert_allclose
from random_constraints import KEY, Constrained, keeps_text, random_texts
from random_readings import KINDS
from small_corpus import MODELS, examples, learner_of, untrained, words
from spacy.cli.train import train
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_hocrf.annotation.annotation import Annotation, TextConstraint
from spacy_hocrf.annotation.gold import Gold, _with_constraints
from spacy_hocrf.annotation.scoring import count_whole
from spacy_hocrf.annotation.targets import EntsTarget, SpansTarget, TagsTarget
from spacy_hocrf.cli.config import starting_config
from spacy_hocrf.engine.objective import Objective
from spacy_hocrf.learning.likelihood import negative_log_likelihood

NLP = spacy.blank("xx")
TEXTS = 45


class Told(Constrained):
    """A random problem with rules for all texts, and a text that is annotated and constrained in part."""

    def __init__(self, kind, seed, which):
        super().__init__(kind, seed, which, texts=False)
        rng = np.random.default_rng([seed, 31])
        self.texts = random_texts(rng, self.scheme, self.length)
        spans, unknown = self.random_annotation(rng)
        told = tuple(TextConstraint(*row) for row in self.texts)
        self.annotation = _with_constraints(Annotation(spans, unknown), told)
        self.agreeing = [
            each
            for each in self.kept
            if self.agrees(oracle.decoded(self.scheme, each), spans, unknown)
        ]

    def random_annotation(self, rng):
        """Some spans of a segmentation, and which tokens nobody looked at: mostly all of them."""
        unknown = np.ones(self.length, dtype=bool)
        if not self.every or rng.random() < 0.5:
            return (), unknown
        spans = sorted(oracle.decoded(self.scheme, self.every[rng.integers(len(self.every))]))
        known = tuple(span for span in spans if rng.random() < 0.4)
        for start, end, _ in known:
            unknown[start:end] = False
        return known, unknown

    def agrees(self, spans, known, unknown):
        told = (keeps_text(spans, *row, self.texts) for row in self.texts)
        return set(spans) >= set(known) and all(told)


@pytest.mark.slow
@pytest.mark.parametrize("which", ["texts", "all"])
@pytest.mark.parametrize("kind", KINDS)
def test_losses_and_counts_are_those_of_the_segmentations_that_agree(kind, which):
    compared = narrower = 0
    for problem in (Told(kind, seed, which) for seed in range(TEXTS)):
        tokens, potentials = problem.batch(), problem.structure.potentials
        free, annotation = potentials.allowed, [problem.annotation]
        observed = problem.training.observed(tokens, free, annotation)
        automaton = problem.training.automaton
        (known,) = observed.log_partition(potentials, automaton)
        if not problem.agreeing:
            assert known == -np.inf
            continue
        log_z, counts = problem.sums(problem.agreeing)
        assert known == pytest.approx(log_z, rel=1e-7, abs=1e-7)
        found = observed.expectations(potentials, automaton)
        for part, count in counts.items():
            if getattr(found, part) is not None:
                assert_allclose(getattr(found, part), count, atol=1e-7)
        kept = replace(potentials, allowed=problem.training.constrained(tokens, free))
        (loss,), gradient = negative_log_likelihood(kept, observed, automaton)
        total, every = problem.sums(problem.kept)
        assert loss == pytest.approx(total - log_z, rel=1e-7, abs=1e-7)
        for part, count in every.items():
            if getattr(gradient, part) is not None:
                assert_allclose(getattr(gradient, part), count - counts[part], atol=1e-7)
        compared += 1
        narrower += len(problem.agreeing) < len(problem.kept)
    assert compared > TEXTS / 3
    assert narrower > TEXTS / 5


NOBODY = "-"
WORDS = ("Emmy", "Ada", "likes", "Paris", ".")


def told(nlp, *constraints, words_=WORDS, entities=None, **annotation):
    """An example that is annotated in part, whose reference has constraints: start, end, label, kind."""
    example = Example.from_dict(
        words(nlp, *words_), {"entities": entities or [NOBODY] * len(words_), **annotation}
    )
    doc = example.reference
    doc.spans[KEY] = [Span(doc, a, b, label, span_id=kind) for a, b, label, kind in constraints]
    return example


def read(*constraints, target=None, **annotation):
    return Gold(target or EntsTarget(None, False), KEY).annotation(
        told(NLP, *constraints, **annotation)
    )


def test_spans_and_tokens_outside_are_annotation():
    rows = [(0, 2, "PERSON", ""), (2, 3, "", "outside"), (3, 4, "PLACE", "inside")]
    found = read(*rows)
    assert found.spans == ((0, 2, "PERSON"),)
    assert found.unknown.tolist() == [False, False, False, True, True]
    assert found.constraints == ((3, 4, "PLACE", "inside"),)
    assert found.labels == ("PERSON", "PLACE")
    assert found.parts == ((0, 2, "PERSON"), (3, 4, "PLACE"))
    assert read((0, 2, "PERSON", "span"), entities=["B-PERSON", "L-PERSON", "O", "O", "O"]).complete
    covered = read((0, 2, "PERSON", "span"), (2, 5, "", "outside"))
    assert covered.complete and not covered.constraints


def test_every_target_reads_them():
    rows = [(0, 1, "A", "not"), (2, 4, "B", "only")]
    for target in (EntsTarget(None, False), SpansTarget("sc"), TagsTarget(True)):
        found = read(*rows, target=target)
        assert found.unknown.all() and not found.empty and found.constraints == tuple(rows)
    known = replace(Gold(SpansTarget("sc"), None))
    assert known.annotation(told(NLP, *rows)).empty


def test_other_tokens_and_white_space():
    doc = NLP.make_doc("Emmy  likes New York City. ")
    assert [token.text for token in doc][:3] == ["Emmy", " ", "likes"]
    reference = Doc(
        NLP.vocab, words=["Emmy", " ", "likes", "New York", "City", "."], spaces=[1, 0, 1, 1, 0, 1]
    )
    rows = [(0, 1, "A", "not"), (3, 4, "B", "span"), (2, 6, "C", "only"), (0, 2, "A", "inside")]
    reference.spans[KEY] = [Span(reference, a, b, y, span_id=k) for a, b, y, k in rows]
    found = Gold(EntsTarget(None, False), KEY).annotation(Example(doc, reference))
    assert found.spans == ((3, 5, "B"),)
    assert found.constraints == (
        (0, 1, "A", "not"), (0, 2, "A", "not"), (2, 7, "C", "only"), (0, 1, "A", "inside")
    )  # fmt: skip


def test_what_fits_no_tokens_says_nothing():
    reference = Doc(NLP.vocab, words=["E", "mmy", "likes", "Paris"], spaces=[0, 1, 1, 0])
    rows = [(0, 1, "A", "not"), (1, 2, "A", "span"), (1, 4, "", "outside"), (1, 2, "A", "inside")]
    reference.spans[KEY] = [Span(reference, a, b, y, span_id=k) for a, b, y, k in rows]
    found = Gold(EntsTarget(None, False), KEY).annotation(
        Example(NLP.make_doc("Emmy likes Paris"), reference)
    )
    assert not found.constraints and not found.spans
    assert found.unknown.tolist() == [True, False, False]


@pytest.mark.parametrize(
    "row, words_", [((0, 1, "A", "near"), "near.*one of span"), ((0, 1, "", "inside"), "no label")]
)
def test_what_is_no_constraint(row, words_):
    with pytest.raises(ValueError, match=f"H217.*tokens 0 to 1 of 'Emmy Ada.*{words_}"):
        read(row)


COMPONENTS = {
    name: (factory, model) for name, (factory, model) in MODELS.items() if factory != "hocrf_tagger"
}
PARTLY = [
    (0, 1, "PERSON", "inside"),
    (0, 1, "PERSON", "not"),
    (0, 2, "PLACE", "not"),
    (2, 3, "", "outside"),
    (3, 5, "PLACE", "only"),
]


def initialized(*more, factory="hocrf", model=None, **settings):
    nlp = untrained(factory, model, **settings)
    data = [*examples(nlp), *(told(nlp, *rows) for rows in more)]
    nlp.initialize(lambda: data)
    return nlp, data


def scored_readings(pipe, doc, weights):
    """Spans and score of every segmentation of a text."""
    every = scored(pipe.structure, [doc], weights)
    return [(oracle.decoded(pipe.structure.scheme, s), score) for s, score in every.items()]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPONENTS)
def test_the_objective_is_that_of_the_segmentations_that_agree(name):
    nlp, data = initialized(
        PARTLY,
        [(0, 2, "PERSON", "not")],
        *COMPONENTS[name][:0],
        factory=COMPONENTS[name][0],
        model=COMPONENTS[name][1],
    )
    pipe = nlp.get_pipe("hocrf")
    weights = np.random.default_rng(3).normal(size=pipe.structure.size) * 0.5
    every = scored_readings(pipe, data[-1].predicted, weights)
    total, expected = np.logaddexp.reduce([score for _, score in every]), 0.0
    for rows in (PARTLY, [(0, 2, "PERSON", "not")]):
        right = [s for spans, s in every if all(keeps_text(spans, *row, rows) for row in rows)]
        assert 1 < len(right) < len(every)
        expected += total - np.logaddexp.reduce(right)
    [shard] = [s.compiled for s in learner_of(pipe).shards() if s.compiled.observed]
    known = learner_of(pipe).layout, learner_of(pipe).automaton, *[np.zeros(len(weights))] * 2
    assert Objective([shard], *known)(weights)[0] == pytest.approx(expected, rel=1e-9)
    assert_gradient(pipe.objective(), weights, 3)


@pytest.mark.slow
def test_a_tagger_learns_from_them():
    nlp = untrained("hocrf_tagger")
    rows = [(0, 1, "NAME", "not"), (1, 4, "WORD", "only"), (1, 4, "NAME", "only")]
    example = told(nlp, *rows)
    nlp.initialize(lambda: [*examples(nlp), example])
    pipe = nlp.get_pipe("hocrf")
    [shard] = [s.compiled for s in learner_of(pipe).shards() if s.compiled.observed]
    labels = learner_of(pipe).scheme.labels
    allowed = [{labels[y] for y in np.flatnonzero(row)} for row in shard.observed.allowed]
    assert allowed == [{"WORD", "PUNCT"}, *[{"WORD", "NAME"}] * 3, {"NAME", "WORD", "PUNCT"}]


def losses(rows, weights, **settings):
    """The objective with one text that is known by these constraints alone."""
    nlp, _ = initialized(rows, **settings)
    pipe = nlp.get_pipe("hocrf")
    return pipe.objective()(weights[: pipe.structure.size])[0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*W004")
def test_training_asks_for_them_unless_it_is_told_otherwise():
    weights = np.random.default_rng(0).normal(size=10_000)
    rows = [(0, 2, "PERSON", "not"), (3, 4, "PLACE", "only")]
    without = losses([], weights)
    assert losses(rows, weights) > without + 0.01
    settings = {"@misc": "spacy-hocrf.Constraints.v1"}
    assert losses(rows, weights, constraints=settings) == losses(rows, weights)
    assert losses(rows, weights, constraints={**settings, "spans_key": "other"}) == without
    assert losses(rows, weights, constraints={**settings, "training": "none"}) == without


def test_documents_are_known_by_their_constraints_too():
    rows = [(0, 2, "PERSON", "not")]
    nlp, data = initialized(rows, rows, [(0, 2, "PLACE", "not")])
    documents_ = learner_of(nlp.get_pipe("hocrf")).corpus.documents
    assert [document.copies for document in documents_[-2:]] == [2, 1]
    assert documents_[-1].constraints == ((0, 2, "PLACE", "not"),)
    more = told(nlp, (0, 2, "PERSON", "inside"))
    nlp.update([*data, more], sgd=False)
    assert len(learner_of(nlp.get_pipe("hocrf")).corpus.documents) == len(documents_) + 1


GOLD = ["B-PERSON", "L-PERSON", "O", "U-PLACE", "O"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "rows, entities, which",
    [
        ([(0, 2, "PERSON", "not"), (3, 4, "PLACE", "inside")], GOLD, "not PERSON on tokens 0 to 2"),
        ([(2, 3, "PERSON", "span")], GOLD, "span PERSON on tokens 2 to 3"),
        ([(3, 5, "", "outside")], GOLD, "outside  on tokens 3 to 5"),
        ([(0, 3, "PERSON", "inside")], GOLD, "inside PERSON on tokens 0 to 3"),
        (
            [(0, 3, "PERSON", "inside"), (2, 4, "PLACE", "inside")],
            None,
            "inside PERSON on tokens 0 to 3, inside PLACE on tokens 2 to 4",
        ),
    ],
)
@pytest.mark.parametrize("name", ["semi-CRF, outside tokens", "CRF, bio"])
def test_what_contradicts_itself_names_the_text_and_the_tokens(name, rows, entities, which):
    factory, model = MODELS[name]
    nlp = untrained(factory, model)
    bad = told(nlp, *rows, entities=entities)
    with pytest.raises(ValueError, match=f"H243.*'Emmy Ada likes Paris .*{which}.*{KEY}"):
        nlp.initialize(lambda: [*examples(nlp), bad])
    nlp, data = initialized(factory=factory, model=model)
    bad = told(nlp, *rows, entities=entities)
    pipe = nlp.get_pipe("hocrf")
    with pytest.raises(ValueError, match=f"H243.*{which}"):
        nlp.update([bad], sgd=False)  # before there is a run
    assert len(learner_of(pipe).corpus) == len(data)
    nlp.update(data, sgd=False)
    with pytest.raises(ValueError, match=f"H243.*{which}"):
        for batch in ([bad], [], data):
            nlp.update(batch, sgd=False)
    assert len(learner_of(pipe).corpus) == len(data)
    assert nlp.update(data, sgd=False)["hocrf"] > 0


def test_an_unknown_label_of_an_update():
    nlp, _ = initialized()
    with pytest.raises(ValueError, match=r"H040.*'PLAICE'"):
        nlp.update([told(nlp, (0, 1, "PLAICE", "inside"))], sgd=False)


def test_labels_and_lengths_come_from_constraints_too():
    rows = [(0, 3, "THING", "inside")]
    nlp, _ = initialized(rows)
    pipe = nlp.get_pipe("hocrf")
    assert pipe.labels == ("PERSON", "PLACE", "THING")
    known = dict(zip(pipe.structure.scheme.names, pipe.structure.scheme.limits))
    assert known["THING"] == 3
    other, _ = initialized([(0, 3, "THING", "only")])
    assert pipe.structure.size > other.get_pipe("hocrf").structure.size  # features of these words


def test_longer_stretches_of_an_update_are_no_error_before_there_is_a_run():
    nlp, _ = initialized()
    more = told(nlp, (0, 4, "PLACE", "inside"))
    assert nlp.update([more], sgd=False)["hocrf"] > 0


def test_batches_learn_from_them():
    nlp, data = initialized(PARTLY, trainer={"@misc": "spacy-hocrf.SGD.v1"})
    pipe, example = nlp.get_pipe("hocrf"), data[-1]
    rng = np.random.default_rng(6)
    weights = rng.normal(size=pipe.structure.size).astype(np.float32)
    pipe.model.set_param("W", weights)
    every = scored_readings(pipe, example.predicted, weights.astype(np.float64))
    right = [s for spans, s in every if all(keeps_text(spans, *row, PARTLY) for row in PARTLY)]
    expected = np.logaddexp.reduce([score for _, score in every]) - np.logaddexp.reduce(right)
    scores, _ = pipe.model.begin_update([example.predicted])
    assert pipe.get_loss([example], scores)[0] == pytest.approx(expected, rel=1e-5)
    assert nlp.update([example], sgd=False)["hocrf"] > 0
    bad = told(nlp, (0, 2, "PERSON", "not"), entities=GOLD)
    with pytest.raises(ValueError, match="H243"):
        nlp.update([bad], sgd=False)


def test_an_update_that_contradicts_itself_changes_nothing():
    nlp, data = initialized()
    with pytest.raises(ValueError, match=r"H243.*not PERSON on tokens 0 to 2"):
        nlp.update([told(nlp, (0, 2, "PERSON", "not"), entities=GOLD)], sgd=False)
    assert len(learner_of(nlp.get_pipe("hocrf")).corpus) == len(data)


KNOWN = [(0, ("Zoe", "was", "in", "London", ".")), (2, ("In", "Paris", "Zoe", "slept", "."))]


@pytest.mark.slow
def test_names_are_learnt_from_files_by_a_config_and_loaded(tmp_path):
    """Nothing but constraints tells what Zoe is."""
    nlp = spacy.blank("xx")
    more = [told(nlp, (i, i + 1, "PERSON", "inside"), words_=words_) for i, words_ in KNOWN]
    docs = [example.reference for example in (*examples(nlp), *more)]
    DocBin(docs=docs).to_disk(tmp_path / "train.spacy")
    config = starting_config("en", None, None)
    config["paths"] |= dict.fromkeys(("train", "dev"), str(tmp_path / "train.spacy"))
    config.to_disk(tmp_path / "config.cfg")
    train(tmp_path / "config.cfg", tmp_path / "output")
    loaded = spacy.load(tmp_path / "output" / "model-last")
    for text in ("Zoe slept .", "Paris , Zoe slept ."):
        assert ("Zoe", "PERSON") in [(ent.text, ent.label_) for ent in loaded(text).ents]


def marked(doc, place):
    """A Doc with a span of a label that nobody else has named."""
    span = Span(doc, 0, 1, label="NAME OF A SHIP")
    if place == "ents":
        doc.set_ents([span])
    else:
        doc.set_ents([], default="missing")
        doc.spans[place] = [span]
    return doc


@pytest.mark.parametrize(
    "place, gold",
    [
        ("ents", Gold(EntsTarget(None, False))),
        ("sc", Gold(SpansTarget("sc"))),
        ("llm", Gold(EntsTarget(None, False), teachers=["llm"])),
        (KEY, Gold(EntsTarget(None, False), KEY)),
    ],
)
@pytest.mark.parametrize("text", ["Beagle sailed", "Beagle \n sailed"])
def test_references_may_be_of_a_vocabulary_that_knows_other_labels(text, place, gold):
    """As those of a file are, which commands read without a pipeline's."""
    nlp = spacy.blank("xx")
    reference = marked(Doc(Vocab(), words=[token.text for token in nlp.make_doc(text)]), place)
    found = gold.annotation(Example(nlp.make_doc(text), reference))
    assert found.spans == ((0, 1, "NAME OF A SHIP"),)
    shown = marked(nlp.make_doc(text), place)
    if place in ("ents", "sc"):
        other = marked(Doc(Vocab(), words=[token.text for token in shown]), place)
        assert count_whole([Example(shown, other)], gold.target) == (1, 1)
