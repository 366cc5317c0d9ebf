"""`python -m spacy hocrf tune`: the folds against training from scratch, the choice, the written
config.
"""

from statistics import mean, stdev

import numpy as np
import pytest
import spacy
from joint_config import joint
from pytest import approx
from small_corpus import CONFIG, FEATURES, documents, examples, fit, objective_at_optimum, trained
from spacy.cli._util import app
from spacy.tokens import DocBin
from spacy.training import Example
from spacy.util import load_model_from_config
from thinc.api import Config
from typer.testing import CliRunner

import spacy_hocrf.cli  # noqa: F401 - adds the commands
from spacy_hocrf.cli import tune as module
from spacy_hocrf.cli.tune import TunedCandidate, choose, tune
from spacy_hocrf.learning import choosing

TRAINING = """
[corpora]

[corpora.train]
@readers = "spacy.Corpus.v1"
path = ${paths.train}

[corpora.dev]
@readers = "spacy.Corpus.v1"
path = ${paths.dev}

[paths]
train = "TRAIN"
dev = "there_is_none.spacy"

[training]
train_corpus = "corpora.train"
dev_corpus = "corpora.dev"
max_steps = 200
"""
SIGMAS = (0.05, 0.5, 5.0)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Twenty documents with few of their names in more than one, so that no model gets everything
    right.
    """
    path = tmp_path_factory.mktemp("tune") / "train.spacy"
    DocBin(
        docs=[example.reference for example in examples(spacy.blank("en"), documents(20))]
    ).to_disk(path)
    return path


def config(corpus, factory="hocrf", model=None, **training):
    text = (
        (CONFIG + TRAINING)
        .replace("FACTORY", factory)
        .replace("TRAIN", corpus.as_posix())
        .replace('"en"', '"xx"')
    )
    made = Config().from_str(text, interpolate=False)
    made["training"].update(training)
    made["components"]["hocrf"]["trainer"]["threads"] = 1
    if model:
        made["components"]["hocrf"]["model"] = {"features": FEATURES, **model}
    return made


def run(path, *arguments, code=0):
    done = CliRunner().invoke(
        app,
        ["hocrf", "tune", str(path), *map(str, arguments)],
        catch_exceptions=False,
        terminal_width=200,
    )
    assert done.exit_code == code, done.output
    return done.output


def from_scratch(made, sigma, order, held_back):
    """Score and objective of a component that was trained on the other documents, and of nothing
    else.
    """
    made = made.copy()
    made["components"]["hocrf"]["trainer"]["sigma"] = sigma
    made["components"]["hocrf"].setdefault("model", {})["order"] = order
    nlp = load_model_from_config(made, auto_fill=True)
    gold = list(DocBin().from_disk(made.interpolate()["paths"]["train"]).get_docs(nlp.vocab))
    pairs = [Example(nlp.make_doc(doc.text), doc) for doc in gold]
    learnt = [pair for i, pair in enumerate(pairs) if i not in held_back]
    nlp.initialize(lambda: learnt)
    fit(nlp, learnt, steps=200)
    return nlp.evaluate([pairs[i] for i in held_back])["ents_f"], objective_at_optimum(nlp)


@pytest.fixture
def trained_on(monkeypatch):
    """A list that gets each component that `tune` trains, and where it has come to."""
    found, train_on = [], module.train_on

    def record(pipe, *rest):
        steps = train_on(pipe, *rest)
        found.append((pipe, pipe.run.loss))
        return steps

    monkeypatch.setattr(module, "train_on", record)
    return found


def test_warm_starts_end_where_cold_ones_do(corpus, trained_on):
    made = config(corpus)
    decoder = {
        "@misc": "spacy-hocrf.ExpectedF.v1",
        "cost": 0.25,
    }  # a learnt one depends on the last digits
    made["components"]["hocrf"]["decoder"] = decoder
    result = tune(made, SIGMAS, folds=2)
    parts = np.random.default_rng(0).permutation(20) % 2
    for i, sigma in enumerate(SIGMAS):
        score, objective = from_scratch(made, sigma, 1, np.flatnonzero(parts == 0).tolist())
        assert result.trials[i].scores[0] == score and result.trials[i].steps > 1
        # both have converged to a tolerance
        assert trained_on[i][1] == approx(objective, rel=1e-5)


def test_scores_are_those_of_models_that_have_not_seen_the_part(corpus):
    made = config(corpus)
    result = tune(made, SIGMAS, orders=[0, 1], folds=3, seed=3)
    parts = np.random.default_rng(3).permutation(20) % 3
    assert [(trial.order, trial.sigma) for trial in result.trials] == [
        (order, sigma) for order in (0, 1) for sigma in SIGMAS
    ]
    for trial in result.trials[1::2]:
        expected = [
            from_scratch(made, trial.sigma, trial.order, np.flatnonzero(parts == k).tolist())[0]
            for k in range(3)
        ]
        assert trial.scores == approx(expected)
    assert result.documents == 20 and result.component == "hocrf" and result.metric == "ents_f"
    assert result.chosen == choose(result.trials)
    assert len({trial.mean for trial in result.trials}) > 1


def test_equal_texts_are_held_back_together(corpus, tmp_path):
    docs = list(DocBin().from_disk(corpus).get_docs(spacy.blank("xx").vocab))
    DocBin(docs=[*docs[:4], *docs[:4]]).to_disk(tmp_path / "twice.spacy")
    made = config(tmp_path / "twice.spacy")
    assert tune(made, [1.0], folds=4).documents == 8
    with pytest.raises(ValueError, match="H077"):
        tune(made, [1.0], folds=5)


def test_the_seed_divides_the_documents(corpus):
    first, again, other = (
        tune(config(corpus), [0.05], folds=3, seed=seed).trials[0].scores for seed in (0, 0, 1)
    )
    assert first == again != other


def test_mean_and_standard_error():
    scores = (0.5, 0.75, 0.7)
    trial = TunedCandidate(1, 1.0, scores, 10)
    assert trial.mean == approx(mean(scores))
    assert trial.error == approx(stdev(scores) / 3**0.5)


def test_the_best_is_chosen_and_the_simplest_of_equals():
    trials = [
        TunedCandidate(1, sigma, (score - 0.02, score + 0.02), 1)
        for sigma, score in ((0.1, 0.8), (1, 0.885), (3, 0.9), (10, 0.9))
    ]
    assert trials[2].error == approx(0.02)
    assert choose(trials).sigma == 3
    assert choose(trials, one_standard_error=True).sigma == 1


def test_what_is_auto_is_chosen_by_the_score_instead(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(choosing, "held_back", None)  # the component chooses nothing meanwhile
    made = config(corpus, model={"order": "auto"})
    made["components"]["hocrf"]["trainer"]["sigma"] = "auto"
    made.to_disk(tmp_path / "config.cfg")
    output = tmp_path / "tuned.cfg"
    run(tmp_path / "config.cfg", "--sigmas", "0.5,5", "--folds", 2, "--output", output)
    component = Config().from_disk(output, interpolate=False)["components"]["hocrf"]
    assert component["model"]["order"] in (1, 2)
    assert component["trainer"]["sigma"] in (0.5, 5.0)


def test_an_order_without_end_stays_without_end(corpus, tmp_path, trained_on):
    made = config(corpus, model={"order": None})
    tuning = tune(made, [1.0], folds=2)
    assert [trial.order for trial in tuning.trials] == [None]
    orders = [pipe.structure.settings.order for pipe, _ in trained_on]
    assert len(orders) == 2 and min(orders) > 1
    made.to_disk(tmp_path / "config.cfg")
    printed = run(tmp_path / "config.cfg", "--sigmas", "1", "--folds", "2")
    assert " null " in printed


def test_the_chosen_settings_are_written(corpus, tmp_path):
    path = tmp_path / "config.cfg"
    config(corpus).to_disk(path)
    output = tmp_path / "new" / "tuned.cfg"
    printed = run(
        path, "--sigmas", "5,0.05,0.5", "--orders", "1,0", "--folds", 3, "--output", output
    )
    rows = [line.split() for line in printed.splitlines()]
    rows = {(row[0], row[1]): row for row in rows if row and row[0] in "01"}
    assert list(rows) == [(order, sigma) for order in "01" for sigma in ("0.05", "0.5", "5")]
    [(order, sigma)] = [key for key, row in rows.items() if row[-1] == "chosen"]
    assert float(rows[order, sigma][2]) == max(float(row[2]) for row in rows.values())
    assert f"[components.hocrf.trainer]\nsigma = {float(sigma)}\n" in printed
    assert f"[components.hocrf.model]\norder = {order}\n" in printed
    before, after = (Config().from_disk(file, interpolate=False) for file in (path, output))
    assert after["components"]["hocrf"]["model"] == {
        "@architectures": "spacy-hocrf.HighOrderCRF.v1",
        "order": int(order),
    }
    assert after["components"]["hocrf"]["trainer"] == {
        "@misc": "spacy-hocrf.LBFGS.v1",
        "sigma": float(sigma),
        "threads": 1,
    }
    assert after["corpora"] == before["corpora"] and after["training"] == before["training"]
    nlp = load_model_from_config(after, auto_fill=True)
    assert nlp.get_pipe("hocrf").trainer.sigma == (float(sigma),)


def test_overrides_are_used_and_not_written(corpus, tmp_path):
    path, output = tmp_path / "config.cfg", tmp_path / "tuned.cfg"
    made = config(corpus)
    made["paths"]["train"] = "elsewhere.spacy"
    made.to_disk(path)
    printed = run(
        path, "--paths.train", corpus, "-s", "0.5", "-k", 2, "--one-standard-error", "-o", output
    )
    assert "chosen" in printed
    assert Config().from_disk(output, interpolate=False)["paths"]["train"] == "elsewhere.spacy"


@pytest.mark.parametrize(
    "factory, metric",
    [("hocrf", "ents_f"), ("hocrf_spans", "spans_sc_f"), ("hocrf_tagger", "tag_acc")],
)
def test_every_factory_has_its_score(corpus, factory, metric):
    result = tune(config(corpus, factory), [1.0], folds=2)
    assert result.metric == metric and result.chosen.mean > 0


def test_training_stops_after_max_steps(corpus):
    assert tune(config(corpus, max_steps=2), [0.5, 5.0], folds=2).trials[0].steps == 4


def test_features_see_what_earlier_components_write(corpus, trained_on):
    model = {
        "features": {
            "@misc": "spacy-hocrf.Features.v1",
            "*": {"g": {"@misc": "spacy-hocrf.Gazetteer.v1", "spans_key": "ruler"}},
        }
    }
    made = config(corpus, model=model, annotating_components=["span_ruler"])
    made["nlp"]["pipeline"] = ["span_ruler", "hocrf"]
    made["components"]["span_ruler"] = {"factory": "span_ruler"}
    made["initialize"] = {
        "components": {"span_ruler": {"patterns": [{"label": "CITY", "pattern": "Paris"}]}}
    }
    tune(made, [1.0], folds=2)
    assert "CITY" in str(observations(trained_on[0][0]))


@pytest.mark.parametrize(
    "options, code",
    [
        (["--sigmas", "1,x"], "H074"),
        (["--sigmas", "0"], "H074"),
        (["--orders", "1,-1"], "H074"),
        (["--component", "ner"], "H204"),
        (["--folds", "21"], "H077"),
        (["--metric", "tag_acc", "--folds", "2"], "H079"),
    ],
)
def test_wrong_use_is_explained(corpus, tmp_path, options, code):
    config(corpus).to_disk(tmp_path / "config.cfg")
    assert f"[{code}]" in run(tmp_path / "config.cfg", *options, code=1)


def test_a_wrong_setting_is_shown_as_spacy_shows_it(corpus, tmp_path):
    config(corpus).to_disk(tmp_path / "config.cfg")
    printed = run(tmp_path / "config.cfg", "--components.hocrf.trainer.sigmas", "1", code=1)
    assert "hocrf.trainer -> sigmas" in printed and "Traceback" not in printed


def test_a_trainer_without_an_optimum_cannot_be_tuned(corpus):
    made = config(corpus)
    made["components"]["hocrf"]["trainer"] = {"@misc": "spacy-hocrf.SGD.v1"}
    with pytest.raises(ValueError, match=r"H076.*SGDTrainer.*optimum"):
        tune(made, [1.0])


def test_an_untrained_component_must_not_annotate(corpus):
    made = config(corpus, annotating_components=["tagger"])
    made["nlp"]["pipeline"] = ["tagger", "hocrf"]
    made["components"]["tagger"] = {"factory": "tagger"}
    with pytest.raises(ValueError, match=r"H078.*'tagger'"):
        tune(made, [1.0])
    made["training"]["annotating_components"] = []
    assert tune(made, [1.0], folds=2).component == "hocrf"  # beside it, it is left alone


def test_a_sourced_component_annotates_as_it_is(corpus, tmp_path, trained_on):
    trained("hocrf_tagger", rows=documents(20)).to_disk(tmp_path / "tagger")
    model = {
        "features": {
            "@misc": "spacy-hocrf.Features.v1",
            "*": {"tag": {"@misc": "spacy-hocrf.Token.v1", "attrs": ["TAG"]}},
        }
    }
    made = config(corpus, model=model, annotating_components=["tagger"])
    made["nlp"]["pipeline"] = ["tagger", "hocrf"]
    made["nlp"]["lang"] = "en"
    made["components"]["tagger"] = {
        "source": (tmp_path / "tagger").as_posix(),
        "component": "hocrf",
    }
    assert tune(made, [1.0], folds=2, component="hocrf").chosen.mean > 0
    assert "NAME" in str(observations(trained_on[0][0]))


def observations(pipe):
    """What the features of a component observe."""
    structure = pipe.structure
    return {
        structure.index.describe(f, pipe.vocab.strings, structure.scheme.names)[0]
        for f in range(len(structure.index))
    }


def test_two_components_need_a_name(corpus):
    made = config(corpus)
    made["nlp"]["pipeline"] = ["hocrf", "second"]
    made["components"]["second"] = {"factory": "hocrf_spans"}
    with pytest.raises(ValueError, match=r"H204.*hocrf, second"):
        tune(made, [1.0])
    assert tune(made, [1.0], folds=2, component="second").metric == "spans_sc_f"


def test_texts_that_are_decoded_together_are_in_one_fold(corpus, monkeypatch):
    asked = []

    def stop(docs, folds, seed, attribute):
        asked.append(attribute)
        raise ValueError("enough")

    monkeypatch.setattr(module, "folds_of", stop)
    together = joint(group_by="hocrf_group", learn=False)
    for settings in ({}, {"group_by": "hocrf_group"}, {"joint": together}):
        made = config(corpus)
        made["components"]["hocrf"].update(settings)
        with pytest.raises(ValueError, match="enough"):
            tune(made, sigmas=[1.0], folds=2)
    assert asked == [None, "hocrf_group", "hocrf_group"]
