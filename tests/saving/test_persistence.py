"""What can go wrong: each mistake is an error with a code, and leaves the component as it was."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
import spacy
import srsly
from small_corpus import (
    FEATURES,
    documents,
    examples,
    fit,
    found,
    initialize,
    learner_of,
    trained,
    untrained,
    with_entities,
)
from spacy.training import Example
from thinc.api import Linear

from spacy_hocrf.engine.objective import Objective
from spacy_hocrf.saving import archive as files

SEMI = {"features": FEATURES}


def block(name, **settings):
    """A block of features."""
    return {"@misc": f"spacy-hocrf.{name}.v1", **settings}


TOKEN = block("Token", attrs=["ORTH"])


@pytest.fixture(scope="module")
def nlp():
    """Shared: tests leave its component as it is."""
    return trained(rows=documents(5))


@pytest.fixture
def pipe(nlp):
    """A loaded component for one test alone."""
    return untrained().from_bytes(nlp.to_bytes()).get_pipe("hocrf")


@pytest.fixture(scope="module")
def other():
    """Another model of the same settings."""
    return trained(rows=[("Nobody eats green apples", [(12, 24, "FOOD")])]).get_pipe("hocrf")


@pytest.fixture
def saved(other, tmp_path):
    other.to_disk(tmp_path)
    return tmp_path


def archive(folder):
    [path] = folder.glob("arrays-*.bin")
    return path


def write_header(folder, change):
    """Save a header that is valid for what it says: as another version of this package might."""
    outer = json.loads((folder / "cfg").read_text(encoding="utf8"))
    model = json.loads(outer["model"])
    change(model)
    text = json.dumps(model)
    arrays = archive(folder).read_bytes()
    checksum = files._checksum(text, arrays)
    archive(folder).rename(folder / files._archive(checksum))
    (folder / "cfg").write_text(json.dumps({"checksum": checksum, "model": text}), encoding="utf8")


def changed_header(change):
    return lambda folder: write_header(folder, change)


def changed_arrays(**changes):
    """Save a model with other arrays, each of which is made of the one that was there."""

    def damage(folder):
        payload = files.read_files(folder)
        for name, change in changes.items():
            payload.arrays[name] = change(payload.arrays[name])
        files.write_files(payload, folder)

    return damage


def changed_bytes(path_of, change):
    """Write other bytes to a file of the folder."""
    return lambda folder: path_of(folder).write_bytes(change(path_of(folder).read_bytes()))


def cfg(folder):
    return folder / "cfg"


def one_bit_altered(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def with_another_label(data):
    assert b"FOOD" in data
    return data.replace(b"FOOD", b"FUUD")


DAMAGE = {
    "file cut short": ("H052", changed_bytes(archive, lambda data: data[:-100])),
    "byte altered": ("H052", changed_bytes(archive, one_bit_altered)),
    "header altered": ("H052", changed_bytes(cfg, with_another_label)),
    "header cut short": ("H052", changed_bytes(cfg, lambda data: data[:50])),
    "header emptied": ("H052", changed_bytes(cfg, lambda data: b"")),
    "header no text": ("H052", changed_bytes(cfg, lambda data: b"\xff\xfe\x00")),
    "half a character": ("H052", changed_header(lambda model: model.update({LONE: 1}))),
    "no header": ("H052", lambda folder: cfg(folder).unlink()),
    "no arrays": ("H052", lambda folder: archive(folder).unlink()),
    "older format": ("H053", changed_header(lambda model: model.update(format=2))),
    "newer format": ("H053", changed_header(lambda model: model.update(format=files.FORMAT + 1))),
    "other order": ("H054", changed_header(lambda model: model["settings"].update(order=7))),
    "other templates": (
        "H054",
        changed_header(lambda model: model["settings"]["templates"].pop("LABELS")),
    ),
    "weights missing": (
        "H039",
        changed_arrays(weights=lambda _: np.zeros(1, dtype=np.float32)),
    ),
    "weight not a number": (
        "H039",
        changed_arrays(weights=lambda weights: np.full_like(weights, np.nan)),
    ),
    "features missing": ("H039", changed_arrays(feature_offsets=lambda offsets: offsets[:-1])),
    "unknown pattern": ("H039", changed_arrays(feature_pattern=lambda patterns: patterns + 99)),
    "row twice": (
        "H021",
        changed_arrays(observations=lambda rows: rows[[0, 0, *range(2, len(rows))]]),
    ),
    "a section that nobody keeps": (
        "H135",
        changed_header(
            lambda model: model["extra"].update(other={"setting": "[other]", "header": {}})
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("code, damage", [*DAMAGE.values()], ids=[*DAMAGE])
def test_damaged_files_are_refused_and_change_nothing(pipe, saved, code, damage):
    before = pipe.to_bytes()
    damage(saved)
    with pytest.raises(ValueError, match=rf"^\[{code}\]"):
        pipe.from_disk(saved)
    assert pipe.to_bytes() == before
    assert pipe.labels == ("PERSON", "PLACE")


@pytest.mark.parametrize(
    "place, change",
    [
        (r"learnt\.documents: .*>= 0", lambda model: model["learnt"].update(documents=-1)),
        (r"labels\[1\]: .*`str`", lambda model: model.update(labels=["PERSON", 2])),
        ("the header: .*`other`", lambda model: model.update(other=1)),
    ],
)
def test_a_header_of_another_shape_is_refused_with_the_place(pipe, saved, place, change):
    write_header(saved, change)
    with pytest.raises(ValueError, match=rf"^\[H134\].* at {place}"):
        pipe.from_disk(saved)


@pytest.mark.parametrize(
    "data", [b"", b"nonsense", srsly.msgpack_dumps({"cfg": b"{}"}), srsly.msgpack_dumps([1, 2])]
)
def test_damaged_bytes_are_refused_and_change_nothing(pipe, data):
    before = pipe.to_bytes()
    for damaged in (data, before[:-10]):
        with pytest.raises(ValueError, match=r"^\[H052\]"):
            pipe.from_bytes(damaged)
    assert pipe.to_bytes() == before


def test_every_altered_byte_is_noticed(pipe, other):
    before, data = pipe.to_bytes(), other.to_bytes()
    for place in np.random.default_rng(0).integers(0, len(data), size=100):
        damaged = bytearray(data)
        damaged[place] ^= 4
        try:
            pipe.from_bytes(bytes(damaged))
        except ValueError as error:
            assert str(error)[:6] in ("[H052]", "[H053]")
            assert pipe.to_bytes() == before
        # white space or an upper-case letter of JSON's \\u00e9 may be harmless, the model must then
        # be the same
        else:
            assert pipe.to_bytes() == data
            pipe.from_bytes(before)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed, told",
    [
        ({"order": 2}, "order was 1 and is 2"),
        ({"outside": "run"}, "outside was token and is run"),
        ({"repeats": True}, "repeats was None and is True"),
        ({"features": block("Window", window=1)}, "template SHAPE[-2] is missing"),
        ({"features": block("Window", suffix=[5])}, "template NORM:suffix5 is new"),
        ({"features": block("Window", flags=[1])}, "template FLAG[1] is new"),
    ],
)
def test_other_settings_are_refused_with_the_difference(nlp, changed, told):
    with pytest.raises(ValueError, match=r"^\[H054\]") as caught:
        untrained(model={**SEMI, **changed}).from_bytes(nlp.to_bytes(), exclude=["meta"])
    assert told in str(caught.value)


@pytest.mark.slow
def test_every_setting_of_the_window_is_learnt_saved_and_loaded(tmp_path):
    features = {
        "@misc": "spacy-hocrf.Window.v1",
        "attrs": ["NORM", "SHAPE", "ORTH"],
        "window": {"NORM": 2, "SHAPE": 1},
        "bigrams": ["NORM", "SHAPE"],
        "flags": [-1, 0],
        "boundaries": ["attrs", "flags"],
    }
    nlp = trained(model={**SEMI, "features": features}, rows=documents(5))
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    text = documents(5)[0][0]
    assert found(loaded(text)) == found(nlp(text)) != []
    index = loaded.get_pipe("hocrf").structure.index
    strings = loaded.vocab.strings
    observed = {index.describe(i, strings, ["O", "PERSON", "PLACE"])[0] for i in range(len(index))}
    assert {"FLAG[0]=IS_TITLE", "end:FLAG[-1]=IS_TITLE", "NORM[-1]|NORM[0]=london|,"} <= observed


def test_a_template_of_the_same_name_with_other_arguments_is_refused():
    features = {"@misc": "spacy-hocrf.Segment.v1", "what": ["LENGTH", "FIRST"], "bins": [1, 2, 3]}
    data = (
        trained(model={**SEMI, "features": features}, rows=documents(5))
        .get_pipe("hocrf")
        .to_bytes()
    )
    changed = untrained(model={**SEMI, "features": {**features, "bins": [1, 3]}}).get_pipe("hocrf")
    with pytest.raises(ValueError, match=r"^\[H054\].*template LENGTH was"):
        changed.from_bytes(data)


# Interruptions


class Interrupted(BaseException):
    """Ctrl-C, without ending the tests if it escapes."""


@pytest.mark.slow
@pytest.mark.parametrize("when", [1, 2, 3])
def test_interrupted_saving_leaves_a_loadable_model(pipe, saved, nlp, other, monkeypatch, when):
    """At the first or second file, or at the deletion of the older one."""
    steps = iter(range(1, 9))

    def interrupted(real):
        def step(*args, **kwargs):
            if next(steps) == when:
                raise Interrupted
            return real(*args, **kwargs)

        return step

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted(os.replace))
        patch.setattr(type(saved), "unlink", interrupted(type(saved).unlink))
        with pytest.raises(Interrupted):
            pipe.to_disk(saved)
    expected = pipe if when == 3 else other
    assert untrained().get_pipe("hocrf").from_disk(saved).to_bytes() == expected.to_bytes()
    pipe.to_disk(saved)
    assert sorted(path.name for path in saved.iterdir()) == sorted(["cfg", archive(saved).name])


def failing(real, when):
    """A call of the system that fails for once, the `when`-th time, as on a full disk."""
    calls = iter(range(1, 99))

    def step(*args, **kwargs):
        if next(calls) == when:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*args, **kwargs)

    return step


@pytest.mark.slow
@pytest.mark.parametrize(
    "where, name, when, expected",
    [
        *((os, name, when, "the previous") for name in ("replace",) for when in (1, 2)),
        *((os, "fsync", when, "the previous") for when in (1, 2, 3)),
        (os, "fsync", 4, "the new"),
        *((Path, "open", when, "the previous") for when in (1, 2)),
    ],
)
def test_a_failed_save_leaves_the_previous_model_and_no_rubbish(
    pipe, saved, other, monkeypatch, where, name, when, expected
):
    """At the first or second file, when it is opened, synced or renamed, or its folder is synced."""
    with monkeypatch.context() as patch:
        patch.setattr(where, name, failing(getattr(where, name), when))
        with pytest.raises(OSError, match="No space left"):
            pipe.to_disk(saved)
    found = untrained().get_pipe("hocrf").from_disk(saved).to_bytes()
    assert found == (other if expected == "the previous" else pipe).to_bytes()
    archives = 1 if expected == "the previous" else 2
    assert len([*saved.iterdir()]) == len([*saved.glob("arrays-*.bin")]) + 1 == archives + 1


def test_a_file_is_on_disk_before_it_is_renamed_and_its_name_before_the_old_one_goes(
    pipe, saved, monkeypatch
):
    steps = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *args, real=real, name=name: (steps.append(name), real(*args))[1]
        )
    real_unlink = Path.unlink
    monkeypatch.setattr(
        Path, "unlink", lambda *args, **kw: (steps.append("unlink"), real_unlink(*args, **kw))[1]
    )
    pipe.to_disk(saved)
    assert steps == ["fsync", "replace", "fsync"] * 2 + ["unlink"]


def test_arrays_are_written_from_where_they_are():
    arrays = {"one": np.arange(6.0).reshape(2, 3), "none": np.zeros((0, 2), dtype=np.int32)}
    _, parts = files._encode(files.Payload({}, arrays))
    assert np.shares_memory(np.asarray(parts[0]), arrays["one"])
    assert b"".join(parts) == arrays["one"].tobytes()


def test_numbers_are_saved_to_the_last_bit():
    numbers = [0.7, 0.3, 1 / 3, 2 / 3, 1e-300, 5e-324, 1e300, 123456789.12345678, -0.1]
    header = {"format": files.FORMAT, "ready": False, "numbers": numbers}
    loaded = files.read_bytes(files.write_bytes(files.Payload(header, {})))
    assert loaded.header == header


def test_what_an_earlier_save_was_killed_in_the_middle_of_goes_with_the_next(pipe, saved):
    for name in ("arrays-0123456789abcdef.bin.writing", "cfg.writing", "arrays-00.bin"):
        (saved / name).write_bytes(b"half")
    pipe.to_disk(saved)
    assert sorted(path.name for path in saved.iterdir()) == sorted(["cfg", archive(saved).name])


@pytest.mark.slow
@pytest.mark.parametrize("evaluation", [1, 2, 5])
def test_interrupted_training_leaves_the_last_accepted_weights(monkeypatch, tmp_path, evaluation):
    nlp = untrained()
    data = initialize(nlp)
    pipe = nlp.get_pipe("hocrf")
    for _ in range(3):
        nlp.update(data, sgd=nlp.create_optimizer())
    nlp.to_disk(tmp_path)
    run, accepted, weights = pipe.run, pipe.run.loss, pipe.model.get_param("W").copy()
    real, count = Objective.__call__, iter(range(1, 99))

    def interrupted(self, weights):
        if next(count) == evaluation:
            raise Interrupted
        return real(self, weights)

    with monkeypatch.context() as patch:
        patch.setattr(Objective, "__call__", interrupted)
        with pytest.raises(Interrupted):
            for _ in range(9):
                nlp.update(data, sgd=nlp.create_optimizer())
    assert pipe.run is not run, "an optimiser that was interrupted goes on"
    now = pipe.objective()(pipe.model.get_param("W").astype(np.float64))[0]
    assert now <= accepted * (1 + 1e-6)
    if evaluation == 1:
        assert np.array_equal(pipe.model.get_param("W"), weights)
    assert spacy.load(tmp_path).get_pipe("hocrf").model.get_param("W").tolist() == weights.tolist()
    fit(nlp, data)
    assert nlp.evaluate(data)["ents_f"] == 1.0


# Bad input


def test_no_examples():
    with pytest.raises(ValueError, match=r"^\[H049\]"):
        untrained().get_pipe("hocrf").initialize(list)


@pytest.mark.parametrize(
    "factory, place",
    [("hocrf", "doc.ents"), ("hocrf_spans", "doc.spans"), ("hocrf_tagger", "token.tag")],
)
def test_no_labels(factory, place):
    nlp = untrained(factory)
    with pytest.raises(ValueError, match=rf"^\[H050\].*{place}"):
        nlp.initialize(lambda: [Example.from_dict(nlp.make_doc("It rains"), {"entities": []})])


@pytest.mark.filterwarnings("ignore:.*W030")
def test_no_labels_since_no_span_fits_the_tokens():
    nlp = untrained()
    example = Example.from_dict(nlp.make_doc("王小明住在北京"), {"entities": [(0, 3, "PER")]})
    with pytest.raises(ValueError, match=r"^\[H050\].* fits its tokens.* language"):
        nlp.initialize(lambda: [example])


@pytest.mark.parametrize(
    "action", [lambda nlp: nlp("Emmy"), lambda nlp: nlp.get_pipe("hocrf").update(examples(nlp))]
)
def test_nothing_works_before_initialize(action):
    with pytest.raises(ValueError, match=r"^\[H042\]"):
        action(untrained())


UNKNOWN = [("Emmy eats apples", [(0, 4, "PERSON"), (10, 16, "FOOD")])]


@pytest.mark.parametrize("trainer", ["LBFGS", "SGD"])
def test_an_unknown_label_in_update(nlp, trainer):
    own = untrained(trainer={"@misc": f"spacy-hocrf.{trainer}.v1"}).from_bytes(nlp.to_bytes())
    data = examples(own)
    before = own.get_pipe("hocrf").to_bytes()
    with pytest.raises(ValueError, match=r"^\[H040\].*'FOOD'.*PERSON, PLACE"):
        own.update([*data, *examples(own, UNKNOWN)], sgd=None)
    assert own.get_pipe("hocrf").to_bytes() == before
    assert len(learner_of(own.get_pipe("hocrf")).corpus) == 0
    own.update(data, sgd=own.create_optimizer())


def test_an_unknown_label_beside_given_ones():
    nlp = untrained()
    with pytest.raises(ValueError, match=r"^\[H040\].*'FOOD'"):
        nlp.get_pipe("hocrf").initialize(lambda: examples(nlp, UNKNOWN), labels=["PERSON"])
    assert nlp.get_pipe("hocrf").labels == ()


LONE = "lone \ud800"
"""No Unicode text: a surrogate without its other half."""


@pytest.mark.parametrize("label, code", [("", "H057"), (None, "H057"), (3, "H057"), (LONE, "H132")])
def test_a_label_that_is_none(label, code):
    nlp = untrained()
    pipe = nlp.get_pipe("hocrf")
    with pytest.raises(ValueError, match=rf"^\[{code}\]"):
        pipe.add_label(label)
    with pytest.raises(ValueError, match=rf"^\[{code}\]"):
        pipe.initialize(lambda: examples(nlp), labels=["PERSON", "PLACE", label])
    assert pipe.labels == ()
    pipe.initialize(lambda: examples(nlp))
    with pytest.raises(ValueError, match=rf"^\[{code}\]"):
        pipe.add_label(label)
    assert pipe.labels == ("PERSON", "PLACE")


COVERED = [
    ("Emmy Paris", [(0, 4, "PERSON"), (5, 10, "PLACE")]),
    ("Paris Emmy", [(0, 5, "PLACE"), (6, 10, "PERSON")]),
]


@pytest.mark.parametrize("annotation", [{"entities": []}, {"entities": ["O", "-"]}])
def test_unlabelled_text_where_there_was_none(annotation):
    nlp = trained(rows=COVERED)
    pipe = nlp.get_pipe("hocrf")
    before = pipe.to_bytes()
    with pytest.raises(ValueError, match=r"^\[H041\]"):
        nlp.update(
            [*examples(nlp, COVERED), Example.from_dict(nlp.make_doc("It rains"), annotation)],
            sgd=None,
        )
    assert pipe.to_bytes() == before
    nlp.update(examples(nlp, COVERED), sgd=nlp.create_optimizer())


def test_a_document_that_no_allowed_segmentation_covers():
    nlp = trained(
        model={**SEMI, "repeats": False, "max_length": 1}, rows=[("Emmy", [(0, 4, "PERSON")])]
    )
    pipe = nlp.get_pipe("hocrf")
    before = pipe.to_bytes()
    assert found(nlp("Emmy")) == [(0, 1, "PERSON")]
    with pytest.raises(ValueError, match=r"^\[H007\].*'Emmy Emmy'.*max_length"):
        nlp("Emmy Emmy")
    nothing = Example.from_dict(nlp.make_doc("Emmy Emmy"), {})
    with pytest.raises(ValueError, match=r"^\[H007\].*'Emmy Emmy'"):
        pipe.get_loss([nothing], pipe.model.predict([nothing.predicted]))
    assert pipe.to_bytes() == before
    with pytest.raises(ValueError, match=r"^\[H007\].*'Emmy x Emmy'"):
        nlp.update(
            [
                Example.from_dict(
                    nlp.make_doc("Emmy x Emmy"), {"entities": ["U-PERSON", "-", "U-PERSON"]}
                )
            ],
            sgd=None,
        )
    assert found(nlp("Emmy")) == [(0, 1, "PERSON")]
    # The document that could not be covered has not stayed in the corpus: the next update does not
    # meet it again.
    assert nlp.update(
        [Example.from_dict(nlp.make_doc("Emmy"), {"entities": [(0, 4, "PERSON")]})]
    ).keys() == {"hocrf"}


def test_entities_set_before_do_not_excuse_it():
    nlp = trained(
        model={**SEMI, "repeats": False, "max_length": 1}, rows=[("Emmy", [(0, 4, "PERSON")])]
    )
    doc = with_entities(nlp.make_doc("Emmy Emmy Emmy"), (0, 1, "UNKNOWN"))
    with pytest.raises(ValueError, match=r"^\[H007\]"):
        nlp.get_pipe("hocrf")(doc)
    assert found(doc) == [(0, 1, "UNKNOWN")]


READS_ANSWER = {
    "token": (TOKEN | {"attrs": ["ORTH", "ENT_TYPE"]}, "ENT_TYPE"),
    "window": (block("Window", attrs=["NORM", "ENT_IOB"]), "ENT_IOB"),
    "first of window": (block("Window", attrs=["ENT_KB_ID"]), "ENT_KB_ID"),
    "letters": (block("CharNgrams", attr="ENT_TYPE", prefix=[1]), "ENT_TYPE"),
    "conjunction": (block("Conjunction", terms=["ORTH", "ENT_ID[-1]"]), "ENT_ID"),
    "transition": (block("Transition", order=1, terms=["FIRST.ENT_TYPE"]), "ENT_TYPE"),
    "segment": (block("Segment", what=["TEXT"], attrs=["ENT_TYPE"]), "ENT_TYPE"),
    "own scores": (block("Spans", source="spans.hocrf"), "spans:hocrf"),
    "spans": (block("Spans", source="spans.sc"), "spans:sc"),
    "tags": (block("Window", attrs=["NORM", "TAG"]), "TAG"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", READS_ANSWER)
def test_a_template_on_the_answer(name):
    features, attribute = READS_ANSWER[name]
    factory = {"spans": "hocrf_spans", "tags": "hocrf_tagger"}.get(name, "hocrf")
    nlp = untrained(factory, model={"features": features})
    with pytest.raises(ValueError, match=rf"^\[H051\].* {attribute},.*features"):
        nlp.initialize(lambda: examples(nlp))
    assert not nlp.get_pipe("hocrf").structure.ready


def test_what_another_component_predicts_is_no_answer():
    nlp = untrained(
        model={
            **SEMI,
            "features": {
                "@misc": "spacy-hocrf.Features.v1",
                "*": {"words": TOKEN | {"attrs": ["ORTH", "TAG", "POS"]}},
            },
        }
    )
    data = examples(nlp)
    for word in data[0].predicted:
        word.tag_, word.pos_ = "NN", "NOUN"
    nlp.initialize(lambda: data)


def test_failing_initialize_leaves_a_trained_component_as_it_is(pipe):
    before = pipe.to_bytes()
    with pytest.raises(ValueError, match=r"^\[H049\]"):
        pipe.initialize(list)
    with pytest.raises(ValueError, match=r"^\[H040\]"):
        pipe.initialize(lambda: examples(pipe.vocab and untrained(), UNKNOWN), labels=["PERSON"])
    assert pipe.to_bytes() == before


@pytest.mark.parametrize("threshold", [-0.1, 1.5])
def test_a_threshold_that_is_no_probability(threshold):
    with pytest.raises(ValueError, match=r"^\[H055\]"):
        untrained(threshold=threshold)


def test_a_model_of_another_kind():
    factory = type(untrained().get_pipe("hocrf"))
    mine = untrained().get_pipe("hocrf")
    with pytest.raises(ValueError, match=r"^\[H056\].*'linear'"):
        factory(mine.vocab, Linear(), "hocrf", target=mine.target, trainer=mine.trainer)


def test_a_trainer_of_another_kind():
    with pytest.raises(ValueError, match=r"^\[H058\].*'list'.*trainer"):
        untrained(trainer={"@misc": "spacy-hocrf.Transition.v1"})


@pytest.mark.slow
def test_a_label_pattern_is_the_same_whether_it_was_asked_for_by_its_order_or_not():
    window = {"@misc": "spacy-hocrf.Window.v1"}
    own = {"@misc": "spacy-hocrf.Transition.v1", "order": 1}
    blocks = {"@misc": "spacy-hocrf.Features.v1", "*": {"window": window, "own": own}}
    plain = trained(model={**SEMI, "features": window})
    saved = plain.get_pipe("hocrf").to_bytes()
    loaded = untrained(model={**SEMI, "features": blocks}).get_pipe("hocrf").from_bytes(saved)
    assert loaded.to_bytes() == saved
