"""What "auto" comes to mean: against losses by enumeration and of models trained one by one; and
that it is kept.
"""

import logging
from dataclasses import replace

import numpy as np
import oracle
import pytest
import spacy
from component_oracle import model_of, potentials_of
from small_corpus import (
    FEATURES,
    MODELS,
    decoder_of,
    every_name,
    examples,
    fit,
    found,
    initialize,
    learner_of,
    objective_at_optimum,
    untrained,
)
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import load_model_from_config
from thinc.api import Config

from spacy_hocrf.annotation.annotation import known_segments
from spacy_hocrf.learning import choosing, heldout, shards
from spacy_hocrf.learning.choice import Choice
from spacy_hocrf.learning.heldout import Fold, held_out_sides, sampled_groups
from spacy_hocrf.model.architectures import set_weights, weights_of
from spacy_hocrf.saving import archive as files
from spacy_hocrf.training.lbfgs import LBFGSTrainer

LBFGS = {"@misc": "spacy-hocrf.LBFGS.v1", "threads": 1}
AUTO = {**LBFGS, "sigma": "auto"}
ORDER = {"order": "auto"}
SIGMAS = (0.3, 1.0, 3.0)


def initialized(data=None, **settings):
    nlp = untrained(**{"model": {"order": 1}, **settings})
    given = examples(nlp, every_name()) if data is None else data(nlp)
    nlp.initialize(lambda: given)
    return nlp, nlp.get_pipe("hocrf")


def fold_of(pipe, count=5, order=1):
    """A fold of a component's corpus that holds back some documents."""
    documents = learner_of(pipe).corpus.documents
    return Fold(learner_of(pipe), documents[count:], documents[:count], order=order), documents[
        :count
    ]


@pytest.fixture
def three_sigmas(monkeypatch):
    monkeypatch.setattr(LBFGSTrainer, "candidates", SIGMAS)


# The losses


@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_loss_of_a_fold_is_that_of_enumeration(order):
    _, pipe = initialized(trainer={**LBFGS, "sigma": 1.0})
    fold, held_back = fold_of(pipe, order=order)
    loss = fold.loss(LBFGSTrainer(sigma=2.0, threads=1))
    learner = learner_of(fold)
    structure, scheme = learner.structure, learner.scheme
    assert structure.settings.order == order and np.abs(fold.weights).max() > 0
    expected = 0.0
    for document in held_back:
        tokens = learner.corpus.batch([document])
        potentials = potentials_of(structure, tokens, fold.weights)
        gold = tuple(known_segments(scheme, document.annotation))
        expected += oracle.log_partition(potentials, *model_of(structure))
        expected -= oracle.score(potentials, structure.patterns, gold)
    assert loss == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
def test_the_choice_is_the_best_of_models_that_are_trained_one_by_one(three_sigmas, caplog):
    caplog.set_level(logging.INFO, logger="spacy")
    nlp, pipe = initialized(trainer=AUTO)
    logged = caplog.messages[-1].split("sigma ")[2:]
    data = examples(nlp, every_name())
    groups = np.random.default_rng(0).permutation(len(data))  # the order of the sample
    parts = np.random.default_rng(0).permutation(len(data)) % 5
    losses = []
    for sigma in SIGMAS:
        losses.append(0.0)
        for part in range(5):
            learnt, held_back = (
                [data[groups[i]] for i in range(len(data)) if (parts[i] == part) == side]
                for side in (False, True)
            )
            alone, other = initialized(lambda _, eg=learnt: eg, trainer={**LBFGS, "sigma": sigma})
            fit(alone, learnt)
            potentials = other.model.predict([example.predicted for example in held_back])
            losses[-1] += other.get_loss(held_back, potentials)[0]
    assert pipe.choice.sigma == max(
        sigma for sigma, loss in zip(SIGMAS, losses) if loss <= 1.08 * min(losses)
    )
    assert pipe.choice == Choice(pipe.choice.sigma, None, 24)
    printed = [float(each.split(": ")[1].split(",")[0]) for each in logged]
    assert printed == pytest.approx(losses, rel=0.02)  # they were trained less far


@pytest.mark.slow
@pytest.mark.parametrize("threads", [2, 4])
def test_threads_change_no_bit(threads, monkeypatch):
    monkeypatch.setattr(shards, "SHARD_TOKENS", 9)
    losses = []
    for workers in (1, threads):
        _, pipe = initialized(trainer={**LBFGS, "sigma": 1.0, "threads": workers})
        fold, _ = fold_of(pipe)
        assert len(fold._view.shards()) > 4
        losses.append([fold.loss(replace(pipe.trainer, sigma=sigma)) for sigma in SIGMAS])
    assert losses[0] == losses[1]


# What is compared


@pytest.mark.slow
def test_a_higher_order_begins_where_the_lower_one_ended():
    _, pipe = initialized(trainer=AUTO)
    below, _ = fold_of(pipe)
    trainer = LBFGSTrainer(sigma=1.0, threads=1)
    below.loss(trainer)
    documents = learner_of(pipe).corpus.documents
    above = Fold(learner_of(pipe), documents[5:], documents[:5], below, order=2)
    assert len(above.weights) > len(below.weights)
    assert np.count_nonzero(above.weights) == np.count_nonzero(below.weights)
    alone, _ = fold_of(pipe, order=2)
    assert above.loss(trainer) == pytest.approx(alone.loss(trainer), rel=1e-3)


def losses_are(table, monkeypatch):
    """Let folds have these losses, by order and sigma; RETURNS (list): what is asked of all five."""
    asked = []

    def loss(fold, trainer):
        asked.append((learner_of(fold).structure.settings.order, trainer.sigmas[0]))
        return table[asked[-1]]

    monkeypatch.setattr(Fold, "loss", loss)
    return asked


BOTH = {"trainer": AUTO, "model": {**ORDER, "features": FEATURES}}


@pytest.mark.parametrize(
    "table, chosen",
    [
        ({(1, 0.3): 3.0, (1, 1.0): 2.0, (1, 3.0): 2.1, (2, 3.0): 2.0}, (3.0, 2)),
        ({(1, 0.3): 3.0, (1, 1.0): 2.0, (1, 3.0): 2.1, (2, 3.0): 2.09}, (3.0, 1)),
        ({(1, 0.3): 3.0, (1, 1.0): 2.0, (1, 3.0): 2.2, (2, 1.0): 2.3}, (1.0, 1)),
        ({(1, 0.3): 2.1, (1, 1.0): 2.3, (2, 0.3): 1.9}, (0.3, 2)),
    ],
)
def test_the_weakest_prior_near_the_lowest_loss_and_a_higher_order_that_gains(
    table, chosen, three_sigmas, monkeypatch
):
    asked = losses_are(table, monkeypatch)
    _, pipe = initialized(**BOTH)
    assert (pipe.choice.sigma, pipe.choice.order, pipe.choice.documents) == (*chosen, 24)
    assert asked[::5] == list(table)  # the path ends above the limit
    assert pipe.structure.settings.order == chosen[1]
    assert max(map(len, pipe.structure.patterns)) == 1 + chosen[1]


def test_a_higher_order_begins_at_the_weights_of_the_chosen_sigma(three_sigmas, monkeypatch):
    begun = []

    def loss(fold, trainer):
        [sigma], order = trainer.sigmas, learner_of(fold).structure.settings.order
        if order == 2:
            begun.append(set(fold.weights.tolist()))
        fold.weights = np.full_like(fold.weights, sigma)
        return {0.3: 3.0, 1.0: 2.0, 3.0: 2.2}[sigma]  # the last one is not the best

    monkeypatch.setattr(Fold, "loss", loss)
    _, pipe = initialized(**BOTH)
    assert pipe.choice.sigma == 1.0
    assert begun == [{0.0, 1.0}] * 5  # 0 where the lower order has no feature


# How wide the window is

WINDOW = {"@misc": "spacy-hocrf.Window.v1"}


def widths_are(table, monkeypatch):
    """Let folds have these losses, by order and whether they are wide; RETURNS (list): what was asked."""
    asked = []

    def loss(fold, trainer):
        settings = learner_of(fold).structure.settings
        asked.append((settings.order, settings.wide))
        names = {template.name for template in learner_of(fold).structure.index.templates}
        assert ("ORTH[0]" in names) == settings.wide
        return table[asked[-1]]

    monkeypatch.setattr(Fold, "loss", loss)
    monkeypatch.setattr(choosing, "MIN_TOKENS_FOR_WIDE", 10)
    return asked


@pytest.mark.slow
@pytest.mark.parametrize(
    "table, chosen",
    [
        ({(1, False): 2.0, (2, False): 1.9, (2, True): 1.88}, (2, True)),
        ({(1, False): 2.0, (2, False): 1.99, (1, True): 1.98}, (1, True)),
        ({(1, False): 2.0, (2, False): 1.9, (2, True): 1.895}, (2, False)),
    ],
)
def test_a_wide_window_is_chosen_with_the_best_order_if_it_has_the_gain(table, chosen, monkeypatch):
    monkeypatch.setattr(LBFGSTrainer, "candidates", (1.0,))
    asked = widths_are(table, monkeypatch)
    _, pipe = initialized(trainer=AUTO, model={**ORDER, "features": WINDOW})
    assert asked[::5] == list(table)
    assert (pipe.choice.order, pipe.choice.wide) == chosen
    observed = {template.name for template in pipe.structure.index.templates}
    assert ("NORM[2]" in observed) == chosen[1]


@pytest.mark.slow
def test_a_window_is_as_it_is_set_and_narrow_where_tokens_are_few(monkeypatch):
    monkeypatch.setattr(LBFGSTrainer, "candidates", (1.0,))
    table = {(1, False): 2.0, (1, True): 1.0}
    for setting, least, tried in (
        ("auto", 10, True),
        ("auto", 10_000, False),
        (False, 10, False),
    ):
        asked = widths_are(table, monkeypatch)
        monkeypatch.setattr(choosing, "MIN_TOKENS_FOR_WIDE", least)
        features = {**WINDOW, "wide": setting}
        _, pipe = initialized(trainer=AUTO, model={"order": 1, "features": features})
        assert pipe.choice.wide == (True if tried else None)
        assert {*asked} == ({*table} if tried else {(1, False)})
    monkeypatch.setattr(choosing, "held_out_sides", None)  # not even looked at
    fixed = {**LBFGS, "sigma": 1.0}
    _, pipe = initialized(trainer=fixed, model={"order": 1, "features": WINDOW})
    assert pipe.choice is None and not pipe.structure.settings.wide


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["segments", "bio"])
def test_a_wide_model_is_saved_loaded_and_is_that_of_a_config_which_says_so(
    encoding, monkeypatch, tmp_path
):
    monkeypatch.setattr(LBFGSTrainer, "candidates", (1.0,))
    monkeypatch.setattr(choosing, "MIN_TOKENS_FOR_WIDE", 10)
    monkeypatch.setattr(choosing, "MIN_GAINS", {"order": 0.02, "wide": -1.0})
    crf = {"encoding": encoding, "order": 1}
    nlp, pipe = initialized(trainer=AUTO, model={**crf, "features": WINDOW})
    data = examples(nlp, every_name())
    fit(nlp, data)
    assert pipe.choice.wide and pipe.structure.settings.wide
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert loaded.get_pipe("hocrf").choice.wide
    named = untrained(trainer=AUTO, model={**crf, "features": {**WINDOW, "wide": True}})
    named.get_pipe("hocrf").from_bytes(pipe.to_bytes())
    for other in (loaded, named):
        assert [found(other(eg.text)) for eg in data] == [found(nlp(eg.text)) for eg in data]
    loaded.initialize(lambda: examples(loaded, every_name(18)))
    assert not loaded.get_pipe("hocrf").structure.settings.wide  # texts are too few
    narrow = untrained(trainer=AUTO, model={**crf, "features": {**WINDOW, "wide": False}})
    with pytest.raises(ValueError, match=r"H054.*ORTH\[0\]"):
        narrow.get_pipe("hocrf").from_bytes(pipe.to_bytes())


@pytest.mark.parametrize("sigma, first", [(3.0, 3.0), ([0.5, 2.0], 0.5)])
def test_an_order_is_chosen_with_the_sigma_that_there_is(sigma, first, monkeypatch):
    asked = losses_are({(1, first): 2.0, (2, first): 1.0}, monkeypatch)
    _, pipe = initialized(**{**BOTH, "trainer": {**LBFGS, "sigma": sigma}})
    assert pipe.choice == Choice(None, 2, 24)
    assert asked[::5] == [(1, first), (2, first)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_settings_of_every_kind_of_model_are_chosen(kind):
    factory, model = MODELS[kind]
    _, pipe = initialized(factory=factory, trainer=AUTO, model={**model, "order": "auto"})
    assert pipe.choice.documents == 24 and pipe.choice.sigma in LBFGSTrainer.candidates
    assert pipe.structure.settings.order == pipe.choice.order


@pytest.mark.slow
def test_an_order_without_a_template_is_no_candidate():
    features = {"@misc": "spacy-hocrf.Window.v1", "order": 1}
    _, pipe = initialized(trainer=AUTO, model={**ORDER, "features": features})
    assert pipe.choice.order == 1


def test_large_corpora_are_chosen_by_a_part_of_them(monkeypatch):
    monkeypatch.setattr(heldout, "MAX_DOCUMENTS", 20)
    monkeypatch.setattr(choosing, "HELD_OUT_TO_CHOOSE", 7)
    known = []

    def loss(fold, trainer):
        known.append(len(fold._learner.corpus))
        return 1.0

    monkeypatch.setattr(Fold, "loss", loss)
    _, pipe = initialized(trainer=AUTO)
    assert pipe.choice.documents == 20
    # two folds, each of which holds back four, and five sigmas
    assert known == [16] * 10


def lengths_of(monkeypatch, texts, tokens):
    """What folds of so many texts of so many tokens learn and hold back, in tokens, by evaluation."""
    asked = []

    def loss(fold, trainer):
        learnt, held_back = fold.documents
        asked.append((sum(map(len, learnt)), sum(map(len, held_back))))
        return 1.0

    monkeypatch.setattr(Fold, "loss", loss)
    made = [
        (" ".join(["Ada met", str(i), *["Max"] * (tokens - 3)]), [(0, 3, "A")])
        for i in range(texts)
    ]
    initialized(lambda nlp: examples(nlp, made), trainer=AUTO)
    return asked


@pytest.mark.slow
def test_long_texts_take_no_more_tokens_than_short_ones(monkeypatch, three_sigmas):
    """29 texts of 1,000 tokens, and the same tokens in texts of 25."""
    short, long = lengths_of(monkeypatch, 1_160, 25), lengths_of(monkeypatch, 29, 1_000)
    assert len(short) == len(long) == 3  # one fold
    assert sum(learnt + held for learnt, held in long) <= sum(a + b for a, b in short)
    assert all(held >= choosing.HELD_OUT_TO_CHOOSE * heldout.TOKENS_AS_DOCUMENT for _, held in long)


@pytest.mark.slow
@pytest.mark.parametrize("texts, tokens, taken", [(60, 2_000, 25), (24, 8_000, 10)])
def test_what_decides_is_bounded_in_tokens(monkeypatch, three_sigmas, texts, tokens, taken):
    assert set(map(sum, lengths_of(monkeypatch, texts, tokens))) == {taken * tokens}


@pytest.mark.slow
@pytest.mark.parametrize("logger, said", [("spacy-hocrf", True), ("spacy", False)])
def test_who_watches_the_table_sees_what_is_chosen_and_how_far_it_is(capfd, logger, said):
    nlp = untrained(**BOTH)
    nlp.config["training"]["logger"] = {"@loggers": f"{logger}.ConsoleLogger.v1"}
    initialize(nlp, every_name())
    out, printed = capfd.readouterr()
    assert not out
    assert ("hocrf: choosing sigma and order by 24 texts" in printed) == said
    assert ("0/30" in printed) == ("chosen by 24 texts" in printed) == said


BY_GROUP = {"group_by": "hocrf_group"}
SAME = {"same": {"@misc": "spacy-hocrf.IdenticalPhrases.v1"}}
TOGETHER = {"joint": {"@misc": "spacy-hocrf.Joint.v1", "features": SAME, **BY_GROUP}}


@pytest.mark.slow
@pytest.mark.parametrize("settings", [BY_GROUP, TOGETHER], ids=["folds", "joint"])
@pytest.mark.parametrize("kind", [str, list])
def test_groups_are_not_divided(settings, kind):
    nlp = untrained(trainer=AUTO, **settings)
    data = examples(nlp, every_name(72))
    for i, example in enumerate(data):  # whose neighbours are of other groups
        example.reference._.hocrf_group = kind(f"group {i % 24}")
    nlp.initialize(lambda: data)
    corpus = learner_of(nlp.get_pipe("hocrf")).corpus
    groups = sampled_groups(corpus, heldout.MAX_DOCUMENTS)
    assert len(groups) == 24 and all(len({d.group for d in group}) == 1 for group in groups)
    for learnt, held in held_out_sides(corpus, choosing.HELD_OUT_TO_CHOOSE):
        assert not {d.group for d in learnt} & {d.group for d in held}
        assert len(learnt) + len(held) == 72


def habits(nlp, authors=24, texts=3, labels=10, tokens=10):
    """Texts of authors, each with a random succession of labels that is the same in all of his."""
    rng = np.random.default_rng(0)
    for author in range(authors):
        found = [f"L{y}" for y in rng.integers(0, labels, tokens)]
        for number in range(texts):
            doc = Doc(nlp.vocab, words=[f"text{number}", *["x"] * (tokens - 1)])
            gold = doc.copy()
            gold.ents = [Span(gold, i, i + 1, label=label) for i, label in enumerate(found)]
            gold._.writer = author
            yield Example(doc, gold)


@pytest.fixture
def writer():
    Doc.set_extension("writer", default=None)
    yield "writer"
    Doc.remove_extension("writer")


@pytest.mark.slow
def test_an_order_that_knows_the_authors_by_heart_is_not_chosen_where_authors_are_held_back(writer):
    """A model of order 2 knows the next label of a writer of whom it has seen a text, and of no other."""
    orders = {}
    for group_by in (None, writer):
        nlp = untrained(trainer={**LBFGS, "sigma": 1.0}, model=ORDER, group_by=group_by)
        data = sorted(habits(nlp), key=lambda example: example.predicted[0].text)
        nlp.initialize(lambda data=data: data)
        orders[group_by] = nlp.get_pipe("hocrf").choice.order
    assert orders == {None: 2, writer: 1}


@pytest.mark.slow
def test_what_stays_together_is_in_the_config_and_saved_with_the_model(writer, tmp_path):
    nlp = untrained(trainer={**LBFGS, "sigma": 1.0}, model=ORDER, group_by=writer)
    nlp.config.to_disk(tmp_path / "config.cfg")
    made = load_model_from_config(Config().from_disk(tmp_path / "config.cfg"), auto_fill=True)
    made.initialize(lambda: list(habits(made)))
    made.to_disk(tmp_path / "model")
    loaded = spacy.load(tmp_path / "model")
    assert loaded.get_pipe("hocrf").group_by == writer
    assert loaded.get_pipe("hocrf").choice == made.get_pipe("hocrf").choice
    assert loaded.get_pipe("hocrf").choice.order == 1
    corpus = learner_of(made.get_pipe("hocrf")).corpus
    assert {d.group for d in corpus.documents} == {*range(24)}
    again = loaded.initialize(lambda: list(habits(loaded)))
    assert again is not None and loaded.get_pipe("hocrf").choice.order == 1


@pytest.mark.slow
def test_the_order_of_a_trainer_without_a_run_is_chosen_by_likelihood():
    settings = {"@misc": "spacy-hocrf.SGD.v1"}
    _, pipe = initialized(trainer=settings, model={**ORDER, "features": FEATURES})
    likelihood = initialized(
        trainer={**LBFGS, "sigma": 1.0}, model={**ORDER, "features": FEATURES}
    )[1]
    assert pipe.choice == likelihood.choice and pipe.choice.sigma is None


# Where there is nothing to choose by


@pytest.mark.parametrize(
    "data",
    [
        lambda nlp: examples(nlp, every_name(18)),
        lambda nlp: [
            *examples(nlp, every_name()[:10]),
            *(
                Example.from_dict(nlp.make_doc(text), {"entities": ["U-PERSON", "-", "O"]})
                for text, _ in every_name()[10:]
            ),
        ],
    ],
    ids=["few texts", "incomplete annotation"],
)
def test_with_too_little_annotation_the_defaults_stand(data, caplog):
    caplog.set_level(logging.INFO, logger="spacy")
    _, pipe = initialized(data, **BOTH)
    assert pipe.choice == Choice(2.0, 1, 0)
    assert "sigma = 2 and order = 1, chosen by default" in caplog.messages[-1]


def test_nothing_is_chosen_where_nothing_is_auto(monkeypatch):
    monkeypatch.setattr(choosing, "held_out_sides", None)  # not even looked at
    _, pipe = initialized(trainer={**LBFGS, "sigma": 1.0})
    assert pipe.choice is None


# What becomes of the choice


@pytest.mark.slow
def test_training_uses_what_was_chosen(three_sigmas):
    nlp, pipe = initialized(trainer=AUTO)
    data = examples(nlp, every_name())
    fixed, other = initialized(trainer={**LBFGS, "sigma": pipe.choice.sigma})
    set_weights(other.model, weights_of(pipe.model))  # what training begins at
    fit(nlp, data)
    fit(fixed, data)
    assert objective_at_optimum(nlp) == objective_at_optimum(fixed)
    assert pipe.trainer.sigma == "auto"


@pytest.fixture
def trained(three_sigmas, monkeypatch):
    """A pipeline with order 2 and sigma 3 chosen, which are not the defaults."""
    table = {(1, 0.3): 3.0, (1, 1.0): 2.0, (1, 3.0): 2.0, (2, 3.0): 1.0}
    losses_are(table, monkeypatch)
    nlp, pipe = initialized(**BOTH)
    fit(nlp, examples(nlp, every_name()))
    assert pipe.choice == Choice(3.0, 2, 24, cost=decoder_of(pipe).cost)
    return nlp


@pytest.mark.slow
def test_models_of_parts_of_the_corpus_have_the_same_settings(trained):
    learner = learner_of(trained.get_pipe("hocrf"))
    part = learner.without(learner.corpus.documents[:3])
    assert part.trainer == learner.trainer and part.trainer.sigma == (3.0,)
    assert part.structure.settings == learner.structure.settings


@pytest.mark.slow
def test_the_choice_is_saved_and_training_goes_on_with_it(trained, tmp_path):
    trained.to_disk(tmp_path)
    pipe = trained.get_pipe("hocrf")
    zero = {"components": {"hocrf": {"trainer": {"prior": "zero"}}}}
    loaded = spacy.load(tmp_path, config=zero)
    again = loaded.get_pipe("hocrf")
    assert again.choice == pipe.choice and again.structure.settings.order == 2
    assert loaded.config["components"]["hocrf"]["trainer"]["sigma"] == "auto"
    for text, _ in every_name():
        assert found(loaded(text)) == found(trained(text))
    data = examples(loaded, every_name())
    first = loaded.update(data, sgd=loaded.resume_training())["hocrf"]
    assert first == pytest.approx(objective_at_optimum(trained), rel=1e-4)


@pytest.mark.slow
def test_a_model_may_be_loaded_with_the_choice_as_settings(trained):
    model = {**ORDER, "order": 2, "features": FEATURES}
    fixed = untrained(trainer={**LBFGS, "sigma": 3.0}, model=model).from_bytes(trained.to_bytes())
    assert fixed.get_pipe("hocrf").structure.settings.order == 2
    with pytest.raises(ValueError, match=r"H054.*order was 2 and is 1"):
        untrained(trainer=AUTO, model={**model, "order": 1}).from_bytes(trained.to_bytes())


@pytest.mark.slow
def test_a_model_without_a_choice_goes_on_with_the_default_sigma():
    nlp, _ = initialized(trainer={**LBFGS, "sigma": 3.0})
    loaded = untrained(trainer={**AUTO, "prior": "zero"}, model={"order": 1})
    other = loaded.from_bytes(nlp.to_bytes()).get_pipe("hocrf")
    assert other.choice is None and other.structure.settings.order == 1
    assert learner_of(other).trainer.precision(learner_of(other))[0] == 0.25


@pytest.mark.slow
def test_adapting_has_its_own_sigma(trained):
    trainer = {**AUTO, "prior": "loaded", "adapt_sigma": 0.5}
    other = untrained(trainer=trainer, model={**ORDER, "features": FEATURES})
    learner = learner_of(other.from_bytes(trained.to_bytes()).get_pipe("hocrf"))
    assert set(learner.trainer.precision(learner)) == {4.0}


@pytest.mark.slow
def test_initializing_again_chooses_again(trained):
    pipe = trained.get_pipe("hocrf")
    initialize(trained, every_name(18))
    assert pipe.choice == Choice(2.0, 1, 0) and pipe.structure.settings.order == 1


@pytest.mark.slow
def test_another_trainer_that_is_auto_keeps_the_choice(trained):
    pipe = trained.get_pipe("hocrf")
    pipe.set_trainer(LBFGSTrainer(sigma="auto", iterations=2, threads=1))
    assert learner_of(pipe).trainer == LBFGSTrainer(sigma=3.0, iterations=2, threads=1)
    pipe.set_trainer(LBFGSTrainer(sigma=0.5, threads=1))
    assert learner_of(pipe).trainer.sigma == (0.5,) and pipe.choice.sigma == 3.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "header, code",
    [
        ({"sigma": -1.0, "order": 2, "documents": 24}, r"H134.*extra\.choice.*sigma"),
        ({"sigma": "3", "order": 2, "documents": 24}, r"H134.*extra\.choice.*sigma"),
        ({"sigma": 3.0, "order": 1.5, "documents": 24}, r"H134.*extra\.choice.*order"),
        ({"sigma": 3.0, "order": 2}, r"H134.*extra\.choice"),
        ([], r"H134.*extra\.choice"),
    ],
)
def test_a_saved_choice_that_is_none_is_refused(trained, tmp_path, header, code):
    trained.get_pipe("hocrf").to_disk(tmp_path)
    payload = files.read_files(tmp_path)
    payload.header["extra"]["choice"]["header"] = header
    files.write_files(payload, tmp_path)
    other = untrained(**BOTH).get_pipe("hocrf")
    with pytest.raises(ValueError, match=code):
        other.from_disk(tmp_path)
    assert other.choice is None


@pytest.mark.parametrize(
    "settings, code",
    [
        ({"trainer": {"@misc": "spacy-hocrf.SGD.v1", "sigma": "auto"}}, "H145"),
        ({"trainer": {**LBFGS, "sigma": "best"}}, "H146"),
        ({"trainer": {"@misc": "spacy-hocrf.SGD.v1", "sigma": "best"}}, "H146"),
        ({"model": {**ORDER, "order": "best"}}, "H241.*'auto'"),
        ({"group_by": "nobody"}, r"H101.*nobody.*\[components.hocrf\]"),
        ({**TOGETHER, "group_by": "writer"}, "H481.*writer.*hocrf_group"),
    ],
)
def test_settings_that_cannot_be_are_named(writer, settings, code):
    with pytest.raises(ValueError, match=code):
        untrained(**settings)
