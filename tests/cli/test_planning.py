"""`python -m spacy hocrf plan`: its formulas, what it measures, and what it prints."""

from dataclasses import replace

import numpy as np
import pytest
import spacy
from spacy.cli._util import app
from spacy.tokens import DocBin
from typer.testing import CliRunner

import spacy_hocrf.cli  # noqa: F401 - adds the commands
from spacy_hocrf.cli.plan.advice import advice_on, rows_of
from spacy_hocrf.cli.plan.command import plan
from spacy_hocrf.cli.plan.costs import Cluster, Growth, Rates, Scale, evaluation, parts_of
from spacy_hocrf.cli.plan.memory import KINDS, memory_of
from spacy_hocrf.cli.plan.sampling import Point, Sample
from spacy_hocrf.cli.plan.sizes import size_of
from spacy_hocrf.cli.plan.words import gigabytes, number, seconds
from spacy_hocrf.cli.starting import starting_config
from spacy_hocrf.engine.teams import Parts

NLP = spacy.blank("en")
RATES = Rates(1e-6, 1e-9, 2e-9, 3e-9, 4e-9, 50e-9, 0.0)
SCALE = Scale(1e9, 2e7, 3e7)


def power(exponents, start=1000, features=500.0):
    """Samples that double, with features that grow so."""
    points = []
    for i, exponent in enumerate((None, *exponents)):
        features *= 1.0 if exponent is None else 2**exponent
        counts = {count: features / count for count in (1, 2, 3, 5, 10)}
        tokens = start << i
        points.append(Point(tokens // 20, tokens, counts, 1.5 * features, 1e-5 * tokens, 1e-6))
    return tuple(points)


def sample(exponents=(0.6, 0.6, 0.6), **changed):
    made = Sample(power(exponents), RATES, 1, 10, 900.0, 40.0, 30.0, 100.0, 40.0, (1e6, 100.0), ())
    return replace(made, **changed)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_a_power_is_extrapolated_as_it_is(exponent):
    found = sample((exponent,) * 3)
    growth = found.features()
    assert growth.exponent == pytest.approx(exponent) and growth.falling == pytest.approx(0)
    expected = found.last.features[1] * 1000**exponent
    assert growth.most(1000) == pytest.approx(expected)
    assert growth.least(1000) == pytest.approx(expected)
    scale = found.scale(1000 * found.last.tokens)
    assert scale.features == pytest.approx(expected)
    assert scale.extent == pytest.approx(1.5 * expected)


def test_an_exponent_that_falls_is_bounded_from_both_sides():
    growth = sample((0.7, 0.65, 0.6)).features()
    assert growth.falling == pytest.approx(0.05)
    assert growth.most(2) == pytest.approx(growth.value * 2**0.6)
    assert growth.least(2) == pytest.approx(growth.value * 2**0.575)
    assert growth.least(2**12) == pytest.approx(growth.least(2**40))  # the exponent is 0
    assert growth.least(2**12) < growth.most(2**12)
    values = [growth.least(2**i) for i in range(15)]
    assert values[:12] == sorted(values[:12])


def test_growth_of_less_than_there_is():
    growth = Growth(100.0, 0.5, 0.1)
    assert growth.least(0.25) == growth.most(0.25) == pytest.approx(50.0)


def test_one_worker_takes_the_sum_of_everything():
    """Every part's leaf and sum; nothing is sent."""
    found = evaluation(RATES, SCALE, Cluster(1, 64, 16, 1e9))
    n, f, e = SCALE.tokens, SCALE.features, SCALE.extent
    expected = 3e-9 * f + 1e-6 * n + 64 * 1e-9 * e + 63 * 2e-9 * e + 4 * 4e-9 * f + 50e-9 * f
    assert found.seconds == pytest.approx(expected) and found.traffic == 0


def test_machines_send_weights_and_sums():
    """Eight machines: weights in three rounds, eight sums to four, and these to the driver."""
    found = evaluation(RATES, SCALE, Cluster(128, 128, 16, 1e9))
    sent = 8 * SCALE.extent
    assert found.traffic == (7 + 4 + 4) * sent
    assert found.weights == pytest.approx(3e-9 * SCALE.features + 3 * sent / 1e9)
    assert found.sums == pytest.approx(5 * 2e-9 * SCALE.extent + sent / 1e9)
    assert found.leaves == pytest.approx(1e-6 * SCALE.tokens / 128 + 1e-9 * SCALE.extent)


def test_more_workers_than_parts_change_nothing():
    few, many = (evaluation(RATES, SCALE, Cluster(w, 64, 16, 1e9)) for w in (64, 1000))
    assert few == many


@pytest.mark.parametrize("tokens, shards", [(100, 1), (4_000, 1), (4_001, 4), (40_000, 12)])
def test_parts_are_those_of_training(tokens, shards):
    expected = len(Parts.of([None] * shards, 1000))
    assert parts_of(Scale(tokens, 900, 1000), None) == expected
    assert parts_of(Scale(1e9, 2e7, 3e7), 4096) == 4096


def test_memory_is_where_the_work_is():
    cluster = Cluster(2, 64, 2, 1e9)
    threads, processes, actors = (memory_of(sample(), SCALE, cluster, kind) for kind in KINDS)
    assert threads.shards == 100 * SCALE.tokens and threads.worker == threads.files == 0
    assert processes.shards == 0 and processes.files > 100 * SCALE.tokens
    assert processes.files > actors.files > 100 * SCALE.tokens
    assert actors.worker > 6 * 8 * SCALE.extent > processes.worker
    assert threads.documents == 40 * SCALE.tokens
    assert processes.documents == actors.documents == 10 * SCALE.tokens
    assert threads.examples == 900 * SCALE.tokens
    streamed = memory_of(sample(), SCALE, cluster, KINDS[0], True)
    assert threads.driver - streamed.driver == threads.examples
    assert processes.machine(2) == processes.driver + 2 * processes.worker


def advice(room, workers=(1, 2, 1000), parts=None, streamed=False, scale=SCALE, **changed):
    made = sample(**changed)
    rows = rows_of(made, scale, workers, 16, parts, 1.25e9, streamed)
    return " ".join(advice_on(made, scale, rows, room, 1))


def test_what_does_not_fit_names_the_setting():
    found = advice(16e9)
    assert "1 thread, 1 process, 2 threads" in found and "max_epochs = -1" in found
    assert "900 GB" in found
    assert "max_epochs" not in advice(16e9, streamed=True)
    few = advice(16e9, streamed=True, scale=Scale(1e7, 2e8, 3e8))
    assert "min_count = 2" in few and "memory = 5" in few
    fits = advice(250e9, streamed=True, workers=(1, 2))
    assert '@misc = "spacy-hocrf.Processes.v1"' not in fits and "More than" not in fits
    assert '"spacy-hocrf.Processes.v1"' in advice(80e9, streamed=True, workers=(1, 2))


def test_parts_and_links_that_hold_workers_back():
    found = advice(1e15)
    assert "936 of them have nothing to do" in found and "parts = 4096" in found
    assert "Ten times the bandwidth" in advice(1e15, parts=4096)
    assert advice(1e15, workers=(1, 2)) == ""


def test_sizes_of_objects_count_everything_once():
    array = np.zeros(1000)
    one = size_of([array])
    assert 8000 < one < 8500
    assert size_of([array, array, array[5:]]) < one + 500
    assert size_of({"a": array}, [array]) < 500
    assert size_of(NLP) == 0


@pytest.mark.parametrize(
    "value, text",
    [
        (999, "999"),
        (1234, "1,234"),
        (2.5e6, "2.5 million"),
        (3e9, "3 billion"),
        (4e12, "4 trillion"),
    ],
)
def test_numbers_as_people_read_them(value, text):
    assert number(value) == text


def test_bytes_and_times_as_people_read_them():
    assert [gigabytes(size) for size in (2e5, 5e6, 1.25e10, 3e12)] == [
        "0.2 MB",
        "5 MB",
        "12.5 GB",
        "3 TB",
    ]
    assert [seconds(time) for time in (0.25, 119, 240, 7200, 864000)] == [
        "0.25 s",
        "119 s",
        "4 min",
        "2 h",
        "10 days",
    ]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "train.spacy"
    docs = []
    for i in range(80):
        doc = NLP.make_doc(f"Ada{i} Lovelace{i % 7} met Max in Paris{i % 5} on day {i * i}")
        doc.ents = [doc.char_span(0, len(f"Ada{i} Lovelace{i % 7}"), "PERSON")]
        docs.append(doc)
    DocBin(docs=docs).to_disk(path)
    return path


def configured(**settings):
    config = starting_config("en", None, None)
    config["components"]["hocrf"].update(settings)
    return config


def test_a_sample_is_measured(corpus):
    found = plan(configured(), corpus, 100, [1, 2], cores=2, room=1e6)
    assert found.texts == 8000 and found.scale.tokens == 80 * 9 * 100
    assert [point.texts for point in found.sample.points] == [10, 20, 40, 80]
    features = [point.features[1] for point in found.sample.points]
    assert features == sorted(set(features))
    for point in found.sample.points:
        assert point.features[1] >= point.features[2] >= point.features[10]
    rates = found.sample.rates
    assert min(rates.clear, rates.add, rates.place, rates.collect, rates.step) > 0
    assert found.least.features <= found.scale.features
    assert [row.kind for row in found.rows] == [*KINDS[:2], *KINDS[:2]]
    assert found.sample.documents > 10 and found.sample.shards > 10 and found.sample.index > 5
    assert found.sample.examples > 100
    assert 10 < found.sample.records < found.sample.documents


def test_workers_of_the_config_change_no_measured_size(corpus, tmp_path):
    workers = {"@misc": "spacy-hocrf.Processes.v1", "number": 2, "folder": str(tmp_path)}
    trainer = {"@misc": "spacy-hocrf.LBFGS.v1", "workers": workers}
    one, other = (plan(configured(**given), corpus, 1, [1]) for given in ({}, {"trainer": trainer}))
    assert one.sample.documents == pytest.approx(other.sample.documents, rel=0.1)
    assert one.sample.records == pytest.approx(other.sample.records, rel=0.1)


def test_what_it_prints(corpus, tmp_path):
    configured().to_disk(tmp_path / "config.cfg")
    command = ["hocrf", "plan", str(tmp_path / "config.cfg"), str(corpus), "--times", "100000"]
    options = ["--workers", "1,64", "--cores", "2", "--memory", "0.5", "--sample", "64"]
    training = ["--training.max_epochs", "-1"]
    result = CliRunner().invoke(app, [*command, *options, *training])
    assert result.exit_code == 0, result.output
    for text in ("8 million texts", "min_count", "64 actors of Ray", "1 thread ", "extrapolated"):
        assert text in result.output
    assert "max_epochs" not in result.output
    for wrong in ("0", "two", "1,,2"):
        failed = CliRunner().invoke(app, [*command, "--workers", wrong])
        assert failed.exit_code == 1 and "H074" in failed.output


def test_too_few_texts_and_trainers_without_a_corpus(corpus, tmp_path):
    docs = list(DocBin().from_disk(corpus).get_docs(NLP.vocab))[:5]
    DocBin(docs=docs).to_disk(tmp_path / "few.spacy")
    with pytest.raises(ValueError, match="H337"):
        plan(configured(), tmp_path / "few.spacy", 10, [1])
    online = {"@misc": "spacy-hocrf.AveragedPerceptron.v1"}
    with pytest.raises(ValueError, match=r"H338.*AveragedPerceptron"):
        plan(configured(trainer=online), corpus, 10, [1])
