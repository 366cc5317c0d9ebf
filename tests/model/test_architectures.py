"""The registered architectures: a thinc Model from Docs to log potentials, its backprop, and
refused settings.
"""

import numpy as np
import pytest
import spacy
from numpy.testing import assert_allclose
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import NumpyOps

from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.engine.forward_backward import expectations, log_partition
from spacy_hocrf.features.config import make_segment, make_token, make_transition
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.model.architectures import weights_of
from spacy_hocrf.types import CONST, TOKEN, Segment

TEMPLATES = [
    *make_token(["ORTH"]),
    *make_segment(["LENGTH"]),
    *make_transition(0),
    *make_transition(1),
]
PATTERNS = ((0,), (1,), (0, 1), (1, 0))
NAMES = ["segments", "bio", "tags"]


def build(encoding, features=TEMPLATES, **settings):
    build_one = registry.architectures.get("spacy-hocrf.HighOrderCRF.v1")
    return build_one(features, **{"encoding": encoding, **settings})


def learnt(model, docs):
    """The model with the features of alternating labels, and random weights."""
    structure = model.attrs["structure"]
    tags = structure.settings.encoding == "tags"
    structure.set_labels(["A", "B"] if tags else ["A"], {"A": 2}, outside=not tags, repeats=True)
    structure.learn(
        PATTERNS,
        iter(
            [
                (
                    TokenBatch(docs, learn=True),
                    [[Segment(i, i + 1, i % 2) for i in range(len(doc))] for doc in docs],
                )
            ]
        ),
    )
    weights = np.random.default_rng(0).normal(size=len(structure.index)).astype(np.float32)
    model.set_param("W", weights)
    return structure


@pytest.fixture
def docs():
    vocab = spacy.blank("xx").vocab
    return [Doc(vocab, words=list(text)) for text in ("xyzx", "", "zy")]


@pytest.mark.parametrize("name", ["segments", "tags"])
def test_forward_gives_the_potentials_and_backprop_the_gradient(docs, name):
    model = build(name)
    structure = learnt(model, docs)
    automaton = compile_automaton(
        PATTERNS, structure.scheme.limits, carried=structure.index.carried
    )
    potentials, backprop = model.begin_update(docs)
    batch = structure.compile(structure.observe(docs), structure.allowed(docs))
    assert_allclose(potentials.token, batch.potentials(weights_of(model)).token)
    assert backprop(expectations(potentials, automaton)) == []
    gradient = np.array(model.get_grad("W"), dtype=np.float64)
    weights = weights_of(model)
    for f in range(len(weights)):
        step = np.zeros(len(weights))
        step[f] = 1e-5
        ends = [
            log_partition(batch.potentials(weights + sign * step), automaton).sum()
            for sign in (1, -1)
        ]
        # the gradient is float32
        assert_allclose(gradient[f], (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-6)
    backprop(expectations(potentials, automaton))
    assert_allclose(model.get_grad("W"), 2 * gradient, rtol=1e-6)


def test_predicting_does_not_need_the_gradient(docs):
    model = build("segments")
    learnt(model, docs)
    assert_allclose(model.predict(docs).token, model.begin_update(docs)[0].token)
    assert model.predict([]).offsets.tolist() == [0]


def test_a_model_before_training_says_so(docs):
    with pytest.raises(ValueError, match=r"H042"):
        build("bio").predict(docs)


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_float32_and_on_the_cpu(name):
    model = build(name)
    assert model.get_param("W").dtype == np.float32
    assert weights_of(model).dtype == np.float64
    assert isinstance(model.ops, NumpyOps)


@pytest.mark.parametrize(
    "name, given, expected",
    [
        (
            "segments",
            {"outside": "run", "max_length": {"A": 3}},
            {"encoding": "segments", "outside": "run"},
        ),
        ("segments", {"max_length": 0, "repeats": False}, {"max_length": 0, "repeats": False}),
        ("bieso", {"order": 3}, {"encoding": "bieso", "order": 3}),
        (
            "tags",
            {"min_count": 2, "unseen": True},
            {"encoding": "tags", "min_count": 2, "unseen": True},
        ),
        *((name, {"unseen_transitions": True}, {"unseen_transitions": True}) for name in NAMES),
        *(
            (name, {"min_pattern_count": 5, "order": 0}, {"min_pattern_counts": (5,), "order": 0})
            for name in NAMES
        ),
        *((name, {"min_pattern_count": [1, 3]}, {"min_pattern_counts": (1, 3)}) for name in NAMES),
        *(
            (name, {"order": order}, {"endless": order is None, "auto_order": order == "auto"})
            for name in NAMES
            for order in (None, "auto", 2)
        ),
        *(
            (
                name,
                {"patterns": [["A", "B", "A"]], "order": order},
                {"patterns": (("A", "B", "A"),), "order": 2, "auto_order": False, "endless": False},
            )
            for name in NAMES
            for order in (None, "auto", 2)
        ),
        *((name, {"patterns": []}, {"patterns": (), "order": 0}) for name in NAMES),
    ],
)
def test_settings_reach_the_structure(name, given, expected):
    settings = build(name, **given).attrs["structure"].settings
    assert settings.templates == tuple(
        t for t in TEMPLATES if name == "segments" or t.part in (TOKEN, CONST)
    )
    assert {key: getattr(settings, key) for key in expected} == expected


@pytest.mark.parametrize(
    "name, given, parts",
    [
        *((name, {"order": -1}, ["H241", "order = -1 in [components.*.model]"]) for name in NAMES),
        *((name, {"order": 10**9}, ["H241", "order = 1000000000", "0 to 1,000"]) for name in NAMES),
        ("segments", {"outside": "runs"}, ["H043", "'runs'", "'token' or 'run'"]),
        *((name, {"min_count": 0}, ["H044", "min_count is 0", "at least 1"]) for name in NAMES),
        *((name, {"min_pattern_count": 0}, ["H044", "min_pattern_count is 0"]) for name in NAMES),
        ("segments", {"max_length": -1}, ["H044", "max_length is -1", "at least 0"]),
        (
            "segments",
            {"max_length": {"A": 2, "B": -3}},
            ["H044", "max_length is", "-3", "at least 0"],
        ),
        *(
            ("segments", {"max_length": bad}, ["H044", "max_length", repr(bad), "whole"])
            for value in (2**31, 10**400, -(2**70), "3", 2.7, 3.0, True, [3], None)
            for bad in (value, {"A": 2, "B": value})
            if bad is not None
        ),
        *(
            (name, {key: bad}, [code, repr(bad)])
            for name in NAMES
            for code, key, more in (
                ("H044", "min_count", (None, [3])),
                ("H044", "min_pattern_count", (None,)),
                ("H241", "order", ([3],)),
            )
            for bad in ("3", 2.7, True, -(2**70), *more)
        ),
        *(
            (name, {key: 2**31}, ["H044", str(2**31)])
            for name in NAMES
            for key in ("min_count", "min_pattern_count")
        ),
        *(
            (name, {"min_pattern_count": bad}, ["H044", "min_pattern_count", repr(bad)])
            for name in NAMES
            for bad in ([0], [1, 2.5], ["1"], [], [1, [2]])
        ),
        *(
            (name, {"patterns": bad}, ["H321", repr(bad), "or a list of patterns"])
            for name in NAMES
            for bad in ("greed", None, 3, [["A"]], ["AB"], [["A", 1]], [["A", "B"], []], {"A": "B"})
        ),
        *(
            (
                name,
                {"patterns": [["A", "B"], ["A", "B", "A"]], "order": 1},
                ["H322", "['A', 'B', 'A']", "order 2", "order = 1"],
            )
            for name in NAMES
        ),
        *(
            (name, {setting: found}, ["H462", f"{setting} = {found!r}", f"'{name}'"])
            for name in ("io", "bio", "bieso", "tags")
            for setting, found in (
                ("outside", "run"),
                ("repeats", False),
                ("max_length", 3),
                ("parts", ["start"]),
            )
        ),
        ("bilou", {}, ["H045", "'bilou'", "segments, io, bio, bieso, tags"]),
    ],
)
def test_a_bad_setting_is_named_with_the_choices(name, given, parts):
    with pytest.raises(ValueError) as caught:
        build(name, **given)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("name", ["bio", "tags"])
def test_what_says_the_same_twice_of_a_single_token_is_left_out(name):
    parts = ("tokens", "start", "end", "inner")
    templates = make_token(["ORTH"], parts=parts) + make_token(["NORM"], parts=["end"])
    settings = build(name, templates).attrs["structure"].settings
    assert [template.name for template in settings.templates] == ["ORTH[0]", "end:NORM[0]"]


@pytest.mark.parametrize("longest", [2**31 - 1, {"A": 2**31 - 1, "B": 0}])
def test_the_largest_limit_is_kept(longest):
    settings = build("segments", max_length=longest).attrs["structure"].settings
    assert settings.limit("A", 5) == 2**31 - 1


def test_a_member_of_a_template_is_checked_when_the_model_is_made():
    template = make_token(["NORM"])[0]
    object.__setattr__(template, "order", "1")
    with pytest.raises(ValueError, match=r"H131.*order = 1"):
        registry.architectures.get("spacy-hocrf.HighOrderCRF.v1")(features=[template])


def test_features_that_are_no_templates():
    """spaCy resolves no blocks in a list, and takes any list for one of templates."""
    given = [{"@misc": "spacy-hocrf.Window.v1"}]
    with pytest.raises(ValueError, match="H570") as error:
        spacy.blank("xx").add_pipe("hocrf", config={"model": {"features": given}})
    assert "Window.v1" in str(error.value) and "spacy-hocrf.Features.v1" in str(error.value)
