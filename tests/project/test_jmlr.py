"""The models of Nguyen et al. (JMLR 2014): objective, features and label patterns are the released
code's; the tables are right.
"""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import spacy
import srsly
from numpy.testing import assert_allclose
from project_checks import table_rows
from spacy.tokens import Doc, Span

from spacy_hocrf.engine.forward_backward import log_partition

LOADS = ("references", "punctuation", "benchmark")
DATA = Path(os.environ.get("HOCRF_DATA", "")) / "hosemicrf"
CORA, PUNCTUATION = DATA / "ref" / "ref.train", DATA / "punc" / "punc.tr"

needs_cora = pytest.mark.skipif(
    not CORA.is_file(), reason="needs Cora: set HOCRF_DATA to a folder with hosemicrf/ref/ref.train"
)
needs_punctuation = pytest.mark.skipif(
    not PUNCTUATION.is_file(),
    reason="needs the transcripts: set HOCRF_DATA to a folder with hosemicrf/punc/punc.tr",
)

# features by order, |Z|, |P|; then at weights 0.01·((rank mod 7) - 3): log Z of the first five
# references, n·f, and the norms
# |g|_2 and |g|_1 of its gradient
FIGURES = {
    (2, False): (
        [32432, 6388, 167], 267, 101,
        [123.064415522346, 76.965738786888, 74.491135969326, 76.940165833754, 87.182026564381],
        24967.5332481744, 6007.11166410, 175251.002943,
    ),
    (1, True): (
        [37802, 1092], 87, 14,
        [123.503967912238, 77.085660993223, 74.431891192181, 77.069437501845, 87.263773028827],
        24974.2461912565, 5255.39838422, 170109.261150,
    ),
    (2, True): (
        [37802, 1092, 145], 232, 80,
        [123.187255493482, 77.017270391188, 74.386405674668, 77.036993600427, 87.226399528674],
        24795.2266207556, 5233.53252463, 170771.008753,
    ),
    (3, True): (
        [37802, 1092, 145, 167], 399, 183,
        [122.998412822417, 76.938097049927, 74.377330042970, 76.855323788218, 87.302847126874],
        24799.1699928347, 5229.04294514, 171284.801277,
    ),
}  # fmt: skip


@needs_cora
@pytest.mark.parametrize("order, semi", FIGURES)
def test_objective_equals_the_released_code(order, semi, load):
    jmlr, convert = load("jmlr"), load("convert_cora")
    features, n_patterns, n_states, log_zs, objective, norm, norm1 = FIGURES[order, semi]
    nlp = jmlr.make_pipeline(order, semi)
    examples = [jmlr.Example(gold.copy(), gold) for gold in convert.read_docs(CORA, nlp.vocab)]
    for example in examples:
        example.predicted.ents = []
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("hocrf")
    assert np.bincount(pipe.structure.index.feature_order).tolist() == features
    assert len(pipe.structure.patterns) == n_patterns
    assert len(pipe.automaton.states) == n_states
    if semi:
        limits = dict(zip(pipe.structure.scheme.names, pipe.structure.scheme.limits))
        assert (
            limits["author"],
            limits["title"],
            limits["journal"],
            limits["pages"],
            limits["date"],
        ) == (40, 21, 20, 6, 7)
    weights = jmlr.canonical_weights(pipe, nlp.vocab.strings)
    value, gradient = pipe.objective()(weights)
    pipe.model.set_param("W", weights.astype(np.float32))
    potentials = pipe.structure.compile(
        pipe.structure.observe([eg.predicted for eg in examples[:5]]),
        pipe.structure.allowed([eg.predicted for eg in examples[:5]]),
    ).potentials(weights)
    assert_allclose(log_partition(potentials, pipe.automaton), log_zs, rtol=1e-9)
    assert_allclose(
        [value, np.linalg.norm(gradient), np.abs(gradient).sum()],
        [objective, norm, norm1],
        rtol=1e-9,
    )


# features by order and |Z|, then features by template; the templates of order 3 are those of lower
# orders and more
PUNCTUATION_FIGURES = {
    False: (
        [396879, 23348, 6613, 7501],
        544,
        {"2WPB": 363300, "WPB": 33579, "E": 47, "EW": 5520, "EPW": 4786, "ETW": 12995},
    ),
    True: ([403703, 22081, 6048, 5793], 426, {}),
}


@needs_punctuation
@pytest.mark.parametrize("semi", PUNCTUATION_FIGURES)
def test_punctuation_has_the_features_and_patterns_of_the_released_code(semi, load):
    jmlr, convert, corpora = load("jmlr"), load("convert"), load("corpora")
    features, n_patterns, by_template = PUNCTUATION_FIGURES[semi]
    nlp = jmlr.make_pipeline(3, semi, features="punctuation.JMLR.v1")
    gold = [convert.make_doc(nlp.vocab, sentence) for sentence in corpora.read_columns(PUNCTUATION)]
    nlp.initialize(
        lambda: [
            jmlr.Example(Doc(nlp.vocab, words=[token.text for token in doc]), doc) for doc in gold
        ]
    )
    structure = nlp.get_pipe("hocrf").structure
    assert np.bincount(structure.index.feature_order).tolist() == features
    assert len(structure.patterns) == n_patterns
    if by_template:
        found = Counter(structure.index.feature_template.tolist())
        counts: Counter = Counter()
        for number, count in found.items():
            if structure.index.templates[number].order <= 1:
                counts[_released_name(structure.index.templates[number])] += count
        assert counts == by_template
    limits = dict(zip(structure.scheme.names, structure.scheme.limits))
    assert [limits[label] for label in ("O", ",-,", "?-?", ".-.", "O-.")] == (
        [6, 6, 3, 2, 1] if semi else [1] * 5
    )


def _released_name(template):
    if template.order == 0:
        return "WPB" if template.width == 1 else "2WPB"
    return {
        "LABELS": "E",
        "start:ORTH[0]": "EW",
        "start:ORTH[-1]": "EPW",
        "start:ORTH[-1]|ORTH[0]": "ETW",
    }[template.name[:-2]]


def test_a_pair_of_words_may_reach_beyond_the_end_and_not_beyond_the_start(load):
    templates = load("jmlr_templates")
    batch = templates.TokenBatch([Doc(spacy.blank("en").vocab, words=["a", "b"])], learn=True)
    pairs = {
        (first, second): templates.PairTemplate(first, second).events(batch).token.tolist()
        for first, second in [(-1, 0), (0, 1), (1, 2), (-2, 1)]
    }
    assert pairs == {(-1, 0): [1], (0, 1): [0, 1], (1, 2): [0], (-2, 1): []}


@pytest.mark.parametrize(
    "losses, stops",
    [
        ([100.0] * 5, False),  # at least six values
        ([100.0] * 6, True),
        ([100.0, 100.0, 100.0, 100.0, 100.0, 99.3], False),  # 0.7 / 6 of 99.3
        ([100.0, 100.0, 100.0, 100.0, 100.0, 99.5], True),
        # the tenth value from the end counts: 1.05 / 11 of 100.95
        ([*[200.0] * 5, 102.0, *[101.0] * 8, 100.95], True),
        ([*[200.0] * 5, 102.2, *[101.0] * 8, 100.95], False),
    ],
)
def test_rule_of_the_released_code_is_the_mean_improvement_of_nine_steps(load, losses, stops):
    assert load("jmlr").released_code_stops(losses) is stops


def test_training_passes_the_early_stop_on_its_way_to_the_optimum(load):
    jmlr = load("jmlr")
    nlp = jmlr.make_pipeline(1, True)
    gold = [
        made_doc(nlp.vocab, "a b c d".split(), spans)
        for spans in ([(0, 2, "X"), (2, 4, "Y")], [(0, 3, "X"), (3, 4, "Y")])
    ]
    fitted = jmlr.fit(
        nlp, [jmlr.Example(Doc(nlp.vocab, words="a b c d".split()), doc) for doc in gold]
    )
    objective = nlp.get_pipe("hocrf").objective()
    for stop in fitted:
        assert_allclose(objective(stop.weights)[0], stop.objective, rtol=1e-12)
    assert fitted.early.objective > fitted.end.objective
    assert 5 <= fitted.early.iterations < fitted.end.iterations <= fitted.end.evaluations
    assert (
        np.linalg.norm(objective(fitted.end.weights)[1])
        < 1e-5
        < np.linalg.norm(objective(fitted.early.weights)[1])
    )


def test_scores_are_those_of_the_counts(load):
    jmlr = load("jmlr")
    wanted = [{(0, 1, "a"), (1, 3, "b")}, {(0, 2, "a")}]
    found = [{(0, 1, "a"), (1, 2, "b")}, {(0, 2, "a"), (2, 3, "c")}]
    scores = jmlr.score(found, wanted)
    assert {label: scores[label]["f"] for label in "abc"} == {"a": 1.0, "b": 0.0, "c": 0.0}
    assert (scores["micro average"]["p"], scores["micro average"]["r"]) == (2 / 4, 2 / 3)
    assert scores["micro average"]["f"] == pytest.approx(4 / 7)


def test_released_scorer_forgives_a_last_segment_that_is_too_short_only(load):
    jmlr = load("jmlr")
    gold = made_doc(spacy.blank("en").vocab, list("abcde"), [(0, 2, "X"), (2, 5, "Y")])
    right = {(0, 2, "X"), (2, 5, "Y")}
    assert jmlr.released_items(gold, {(0, 2, "X"), (2, 3, "X"), (3, 5, "Y")}) == {
        *right,
        (2, 3, "X"),
    }
    # one token is wrong
    assert jmlr.released_items(gold, {(0, 1, "X"), (1, 5, "Y")}) == {(0, 1, "X"), (1, 5, "Y")}
    assert jmlr.released_items(gold, {(0, 2, "X"), (2, 5, "X")}) == {(0, 2, "X"), (2, 5, "X")}
    assert jmlr.released_items(gold, right) == right


@pytest.fixture
def measures(load):
    """Made-up measures of two models on references, for tables."""

    def stop(f, objective):
        scores = {
            label: {"f": f, "wanted": 7} for label in load("jmlr_tasks").TASKS["references"].paper
        }
        return {
            "objective": objective,
            "iterations": 40,
            "evaluations": 45,
            "scores": scores,
            "released_scorer_f": f,
        }

    sizes = {"features": 10, "patterns": 5, "states": 3, "cpu": 1.25}
    return {
        name: {
            "order": order,
            "semi": semi,
            **sizes,
            "early": stop(0.5, 400.0),
            "end": {**stop(f, 388.3416), "iterations": 150},
        }
        for name, order, semi, f in [("C1", 1, False, 0.8578), ("SC2", 2, True, 0.8)]
    }


def test_report_has_its_tables_and_draws_a_plot(load, measures, tmp_path, check_plot):
    for name, result in measures.items():
        srsly.write_json(tmp_path / f"{name}.json", result)
    output, plot = tmp_path / "tables.md", tmp_path / "figure.png"
    load("jmlr_report").main("references", tmp_path, output, plot)
    printed = check_plot(plot)
    assert output.read_text(encoding="utf8") in printed
    rows = table_rows(printed)
    assert [row[0] for row in rows][:4] == ["model", "---", "C1", "SC2"]
    assert rows[-1][:3] == ["**micro average**", "7", "85.78 / 85.34"]


def test_random_splits_have_all_texts_and_the_sizes_of_the_files(
    load, tmp_path, monkeypatch, capsys
):
    jmlr, training = load("jmlr"), load("common.training")
    vocab = spacy.blank("en").vocab
    docs = [made_doc(vocab, [str(i), "b"], [(0, 1, "X")]) for i in range(7)]
    files = tmp_path / "train.spacy", tmp_path / "test.spacy"
    for part, path in zip((docs[:4], docs[4:]), files):
        training.write_docs(part, path)
    seen = []

    def measure(task, name, train, gold, sigma):
        """SC2 finds everything, SC1 has found two of three."""
        parts = [[doc[0].text for doc in part] for part in (training.read_docs(train), gold)]
        seen.append((name, parts))
        found = len(gold) if name == "SC2" else 2
        return {}, [made_doc(vocab, ["a", "b"], [(0, 1, "X")] * (i < found)) for i in range(3)]

    monkeypatch.setattr(jmlr, "measure", measure)
    jmlr.main("references", *files, tmp_path, only="SC1,SC2", splits=2)
    assert [(name, *map(len, parts)) for name, parts in seen] == [("SC1", 4, 3), ("SC2", 4, 3)] * 2
    assert all(sorted(a + b) == [doc[0].text for doc in docs] for _, (a, b) in seen)
    assert seen[0][1] == seen[1][1] != seen[2][1] == seen[3][1]
    written = (tmp_path / "splits.md").read_text(encoding="utf8")
    assert written in capsys.readouterr().out
    assert table_rows(written) == [
        ["split", "SC1", "SC2", "SC2 - SC1 (p)"],
        ["---", "---:", "---:", "---:"],
        ["1", "80.00", "100.00", "+20.00 (1.0000)"],
        ["2", "80.00", "100.00", "+20.00 (1.0000)"],
        ["mean, ahead in 2 of 2", "80.00", "100.00", "+20.00 ± 0.00"],
    ]


def made_doc(vocab, words, spans):
    doc = Doc(vocab, words=words)
    doc.set_ents([Span(doc, *span) for span in spans])
    return doc
