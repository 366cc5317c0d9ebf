"""The component as spaCy uses it: adding, predicting, annotating, saving, copying, resuming."""

import copy
import inspect
import json
import pickle
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import spacy
from component_oracle import potentials_of, span_chances
from small_corpus import (
    MODELS,
    documents,
    entity_scores,
    examples,
    fit,
    found,
    learn_from,
    learner_of,
    objective_at_optimum,
    shared,
    teach,
    trained,
    untrained,
    weakly_trained,
    with_entities,
    words,
)
from spacy.tokens import Span
from spacy.training import Example
from spacy.util import load_model_from_config
from thinc.api import Config, NumpyOps, get_current_ops, set_current_ops

from spacy_hocrf.answers.decoders import Viterbi
from spacy_hocrf.rules.constraints import Constraints

SENTENCE = "Ada Lovelace was born in New York ."
SCORED = [name for name in MODELS if name != "tagger"]  # tags have no probabilities


@pytest.fixture(params=MODELS)
def any_nlp(request):
    return shared(request.param)


@pytest.fixture(params=[name for name, (factory, _) in MODELS.items() if factory == "hocrf"])
def ents_nlp(request):
    return shared(request.param)


@pytest.fixture
def nlp():
    return shared("semi-CRF, outside tokens")


@pytest.fixture
def own_nlp(nlp):
    """The same pipeline for one test alone; without the corpus, as after loading."""
    return untrained().from_bytes(nlp.to_bytes())


def texts():
    return [text for text, _ in documents()]


def run_python(code):
    command = [sys.executable, "-c", textwrap.dedent(code)]
    # In a folder of its own: with -c the current one comes first on the path, and here it has the
    # sources.
    done = subprocess.run(command, capture_output=True, encoding="utf8", cwd=Path(__file__).parent)
    assert done.returncode == 0, done.stderr
    return done.stdout


# Standard component tests


@pytest.mark.slow
def test_is_added_by_its_entry_point_without_importing_the_package():
    code = """
        import sys
        import spacy
        assert "spacy_hocrf" not in sys.modules
        for factory in ("hocrf", "hocrf_spans", "hocrf_tagger"):
            spacy.blank("xx").add_pipe(factory)
        nlp = spacy.blank("xx")
        nlp.add_pipe("hocrf")
        print(nlp.analyze_pipes()["summary"]["hocrf"]["assigns"])
    """
    assert "doc.ents" in run_python(code)


@pytest.mark.slow
def test_a_pipeline_without_it_imports_nothing_but_the_factories():
    """`spacy.blank` loads the entry points of all that is installed."""
    code = """
        import sys
        import spacy
        spacy.blank("xx").add_pipe("sentencizer")
        print(*sorted(name for name in sys.modules if name.startswith("spacy_hocrf.")))
    """
    rooms = ("spacy_hocrf.encoder", "spacy_hocrf.links", "spacy_hocrf.pipeline")
    assert run_python(code).split() == [name for r in rooms for name in (r, f"{r}.factories")]


def test_overfits_saves_loads_and_scores(any_nlp, tmp_path):
    data = examples(any_nlp)
    scores = any_nlp.evaluate(data)
    key = {"hocrf": "ents_f", "hocrf_spans": "spans_sc_f", "hocrf_tagger": "tag_acc"}[
        any_nlp.get_pipe_meta("hocrf").factory
    ]
    assert scores[key] == 1.0
    any_nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert [found(doc) for doc in loaded.pipe(texts())] == [
        found(doc) for doc in any_nlp.pipe(texts())
    ]
    again = loaded.evaluate(examples(loaded))
    assert again[key] == scores[key]


def test_loading_replaces_previous_state(nlp):
    used = untrained()
    rows = [("Nobody eats green apples", [(12, 24, "FOOD")])]
    used.initialize(lambda: examples(used, rows))
    fit(used, examples(used, rows))
    used.get_pipe("hocrf").from_bytes(nlp.get_pipe("hocrf").to_bytes())
    assert used.get_pipe("hocrf").to_bytes() == nlp.get_pipe("hocrf").to_bytes()
    assert used.get_pipe("hocrf").labels == ("PERSON", "PLACE")
    assert used.get_pipe("hocrf").run is None
    assert [found(doc) for doc in used.pipe(texts())] == [found(doc) for doc in nlp.pipe(texts())]


def test_loading_an_untrained_component_replaces_a_trained_one(own_nlp):
    untouched = untrained().get_pipe("hocrf")
    untouched.add_label("FOOD")
    pipe = own_nlp.get_pipe("hocrf").from_bytes(untouched.to_bytes())
    assert pipe.labels == ("FOOD",)
    assert not pipe.structure.ready
    assert pipe.to_bytes() == untouched.to_bytes()


def test_copies_predict_the_same(nlp):
    expected = [found(doc) for doc in nlp.pipe(texts())]
    for other in (copy.deepcopy(nlp), pickle.loads(pickle.dumps(nlp))):
        assert [found(doc) for doc in other.pipe(texts())] == expected
        assert other.get_pipe("hocrf").to_bytes() == nlp.get_pipe("hocrf").to_bytes()
    assert copy.deepcopy(nlp.get_pipe("hocrf")).labels == nlp.get_pipe("hocrf").labels


def test_a_copy_keeps_every_setting_that_it_learns_by():
    settings = {"positives_only": True, "teachers": ["llm"], "group_by": "hocrf_group"}
    pipe = spacy.blank("xx").add_pipe("hocrf", config=settings)
    copied = copy.deepcopy(pipe)
    assert (copied.gold, copied.group_by) == (pipe.gold, "hocrf_group")
    known = inspect.signature(type(pipe)).parameters.keys() - {"vocab", "model", "name", "cfg"}
    assert known <= pipe._settings().keys()


def test_an_untrained_component_is_pickled_with_its_labels():
    nlp = untrained()
    nlp.get_pipe("hocrf").add_label("FOOD")
    assert pickle.loads(pickle.dumps(nlp)).get_pipe("hocrf").labels == ("FOOD",)


def test_pickle_is_without_the_corpus(nlp):
    loaded = untrained().from_bytes(nlp.to_bytes())
    parts = [n.get_pipe("hocrf").__reduce__()[1] for n in (nlp, loaded)]
    sizes = {len(pickle.dumps((made.args[2:], state))) for made, state in parts}  # but the vocab
    assert len(sizes) == 1


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_several_processes_find_the_same(nlp, tmp_path, method):
    if method == "fork" and sys.platform == "win32":
        pytest.skip("Windows has no fork")
    nlp.to_disk(tmp_path / "model")
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(f"""
        import json, multiprocessing, sys
        import spacy

        if __name__ == "__main__":
            multiprocessing.set_start_method({method!r})
            nlp = spacy.load({str(tmp_path / "model")!r})
            docs = nlp.pipe({texts()!r}, n_process=2, batch_size=2)
            found = [[(e.start, e.end, e.label_, e._.hocrf_score) for e in doc.ents] for doc in docs]
            print(json.dumps(found))
        """),
        encoding="utf8",
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, encoding="utf8", timeout=120
    )
    assert done.returncode == 0, done.stderr
    expected = [
        [[e.start, e.end, e.label_, e._.hocrf_score] for e in doc.ents] for doc in nlp.pipe(texts())
    ]
    assert [[e[:3] for e in doc] for doc in json.loads(done.stdout)] == [
        [e[:3] for e in doc] for doc in expected
    ]
    np.testing.assert_allclose(  # documents are batched otherwise, which may move the last bits
        [e[3] for doc in json.loads(done.stdout) for e in doc],
        [e[3] for doc in expected for e in doc],
        rtol=1e-6,
    )


class OtherOps(NumpyOps):
    name = "other"


def test_the_model_stays_on_the_cpu(nlp):
    before = get_current_ops()
    set_current_ops(OtherOps())  # as --gpu-id does
    try:
        other = untrained()
        other.from_bytes(nlp.to_bytes())
        assert type(other.get_pipe("hocrf").model.ops) is NumpyOps
        assert type(other.get_pipe("hocrf").model.get_param("W")) is np.ndarray
        assert found(other(SENTENCE)) == found(nlp(SENTENCE))
    finally:
        set_current_ops(before)


def test_the_thinc_model_predicts_for_debug_model(nlp):
    potentials = nlp.get_pipe("hocrf").model.predict([nlp.make_doc(SENTENCE)])
    assert potentials.token.shape == (8, 3)


def test_predictions_follow_the_weights_however_they_are_changed():
    nlp = trained(rows=documents(4))
    model, pipe = nlp.get_pipe("hocrf").model, nlp.get_pipe("hocrf")
    weights = model.get_param("W")
    before = found(nlp(SENTENCE))
    placed = learner_of(pipe).snapshot().placed
    assert before and learner_of(pipe).snapshot().placed is placed
    model.set_param("W", np.zeros_like(weights))
    assert found(nlp(SENTENCE)) != before
    model.set_param("W", weights.copy())
    assert found(nlp(SENTENCE)) == before
    with pytest.raises(ValueError, match="read-only"):  # nobody would notice
        model.get_param("W")[:] = 0


# What Docs may look like


@pytest.mark.parametrize(
    "docs",
    [[""], ["", ""], ["Emmy"], [" "], [" \n\t "], ["", "Emmy slept .", " ", ""], []],
    ids=["empty", "all empty", "one token", "one space", "white space", "mixture", "no Doc at all"],
)
def test_unusual_documents(any_nlp, docs):
    found_here = [found(doc) for doc in any_nlp.pipe(docs)]
    assert len(found_here) == len(docs)
    pipe = any_nlp.get_pipe("hocrf")
    pipe.set_annotations(
        [any_nlp.make_doc(text) for text in docs],
        pipe.predict([any_nlp.make_doc(text) for text in docs]),
    )


def test_an_empty_document_has_its_span_group():
    nlp = trained(spans=True)
    assert list(nlp("").spans["hocrf"]) == []


@pytest.mark.parametrize(
    "text", ["  Ada  Lovelace  was born in New \n York  .  ", "\nEmmy \n\n slept\n"]
)
def test_no_span_begins_or_ends_with_white_space(any_nlp, text):
    doc = any_nlp(text)
    groups = [doc.ents, *doc.spans.values()]
    for span in (span for group in groups for span in group):
        assert span.text == span.text.strip() != ""


def test_every_token_gets_a_tag_also_white_space():
    rows = [("Emmy \n sleeps", []), ("Emmy sleeps", [])]
    nlp = untrained("hocrf_tagger")
    tags = [["NAME", "_SP", "WORD"], ["NAME", "WORD"]]
    data = [
        Example.from_dict(nlp.make_doc(text), {"tags": tags[i]}) for i, (text, _) in enumerate(rows)
    ]
    learn_from(nlp, data)
    assert found(nlp("Emmy \n sleeps")) == ["NAME", "_SP", "WORD"]


def test_prediction_changes_nothing(any_nlp):
    pipe = any_nlp.get_pipe("hocrf")
    docs = [any_nlp.make_doc(text) for text in (SENTENCE, "Unheard of Words", "")]
    strings, before, arrays = (
        len(any_nlp.vocab.strings),
        pipe.to_bytes(),
        [doc.to_bytes() for doc in docs],
    )
    pipe.predict(docs)  # what is made of the weights is kept from now on
    state = {**vars(learner_of(pipe))}
    pipe.predict(docs)
    assert len(any_nlp.vocab.strings) == strings
    assert pipe.to_bytes() == before
    assert [doc.to_bytes() for doc in docs] == arrays
    assert all(vars(learner_of(pipe))[key] is value for key, value in state.items())


@pytest.mark.slow
@pytest.mark.parametrize("outside", ["token", "run"])
def test_a_document_of_100_000_tokens(outside):
    code = f"""
        import json, resource, sys
        sys.path[:0] = {sys.path!r}
        from small_corpus import documents, trained
        model = {{"outside": {outside!r}}}
        nlp = trained(model=model)
        nlp.max_length = 10**9
        text = " ".join(text for text, _ in documents(40))
        unit = len(nlp.make_doc(text))
        doc = nlp.make_doc(" ".join([text] * (100_000 // unit + 1)))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        doc = nlp.get_pipe("hocrf")(doc)
        entities, compared = doc.ents, 0
        def count(frame, event, argument):
            global compared
            compared += event == "c_call"
        sys.setprofile(count)
        scores = [entity._.hocrf_score for entity in entities]
        sys.setprofile(None)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) / 1024
        print(json.dumps([len(doc), len(doc.ents), compared, grown, min(scores)]))
    """
    pytest.importorskip("resource")
    tokens, entities, compared, megabytes, lowest = json.loads(run_python(code))
    print(f"outside={outside}: {tokens} tokens, {entities} entities, {megabytes:.0f} MB")
    assert tokens >= 100_000
    assert entities > 10_000
    assert 0 < lowest <= 1
    assert compared < 200 * entities  # a search by halves; all entities would be 10,000 and more
    assert megabytes < 2_000


# Probabilities


@pytest.mark.parametrize("name", SCORED)
@pytest.mark.parametrize(
    "tokens", [("Emmy", "likes", "New", "York"), ("Ada", "Lovelace", "Paris"), ("Emmy",)], ids=len
)
def test_the_probability_of_a_span_equals_enumeration(name, tokens):
    pipe = weakly_trained(name).get_pipe("hocrf")
    doc = words(pipe, *tokens)
    weights = pipe.model.get_param("W").astype(float)
    expected = span_chances(pipe.structure, [doc], weights)
    structure = pipe.structure
    potentials = potentials_of(structure, [doc], weights)
    spans = structure.scheme.numbered([sorted(expected)])
    scores = Viterbi().scores(potentials, pipe.automaton, structure.scheme, spans)
    assert scores == pytest.approx([expected[span] for span in sorted(expected)], rel=1e-9)
    [prediction] = pipe.predict([doc])
    assert prediction.scores == pytest.approx(
        [expected[span] for span in prediction.spans], rel=1e-9
    )


UNLABELLED_NOWHERE = [
    ("Ada \n Lovelace Paris", [(0, 14, "PERSON"), (15, 20, "PLACE")]),
    ("Paris Emmy \n\n Noether", [(0, 5, "PLACE"), (6, 21, "PERSON")]),
    ("Emmy Paris", [(0, 4, "PERSON"), (5, 10, "PLACE")]),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        {},
        {"repeats": True, "max_length": 0},
        *({"encoding": encoding} for encoding in ("io", "bio", "bieso")),
    ],
    ids=["semi-CRF", "semi-CRF without limits", "io", "bio", "bieso"],
)
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_the_score_beside_white_space_is_that_of_what_is_shown(model):
    weak = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 0.3}
    nlp = trained(model=model, trainer=weak, rows=UNLABELLED_NOWHERE)
    pipe = nlp.get_pipe("hocrf")
    assert pipe.structure.scheme.outside < 0
    compared = 0
    for text in ("Emmy \n Paris", " \n Ada Lovelace \n\n ", "Paris Ada \n"):
        doc = nlp.make_doc(text)
        shown: Counter = Counter()
        for (start, end, label), mass in span_chances(
            pipe.structure, [doc], pipe.model.get_param("W")
        ).items():
            solid = [i for i in range(start, end) if not doc[i].is_space]
            if solid:
                shown[solid[0], solid[-1] + 1, label] += mass
        [prediction] = pipe.predict([doc])
        compared += len(prediction.spans)
        assert prediction.scores == pytest.approx([shown[span] for span in prediction.spans])
    assert compared > 3


def test_span_extension_reads_the_score(nlp):
    doc = nlp(SENTENCE)
    assert len(entity_scores(doc)) == len(doc.ents) > 0 and not doc.spans
    assert doc[0:1]._.hocrf_score is None
    assert Span(doc, 0, 2, label="PLACE")._.hocrf_score is None
    assert nlp.make_doc("Emmy")[:]._.hocrf_score is None
    expected = entity_scores(doc)[0]
    doc.spans["others"] = doc.ents
    doc.spans["others"].attrs["scores"] = [0.5] * len(doc.ents)
    assert doc.ents[0]._.hocrf_score == expected != 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    "factory, switch", [("hocrf", {"scores_key": None}), ("hocrf_spans", {"scores": False})]
)
def test_scores_can_be_switched_off(factory, switch):
    doc = trained(factory, rows=documents(4), **switch)(SENTENCE)
    assert "hocrf" not in doc.spans
    assert all("scores" not in group.attrs for group in doc.spans.values())
    assert found(doc)


def test_threshold_drops_improbable_spans(nlp):
    text = "Grace Turing met Ada in San Paris"
    scores = entity_scores(nlp(text))
    assert scores.min() < scores.max()
    # the scores that are shown are rounded to float32
    strict = untrained(threshold=float(scores.max()) - 1e-6).from_bytes(nlp.to_bytes())
    kept = strict(text)
    assert len(kept.ents) == (scores >= scores.max()).sum()
    none = untrained(scores_key=None, threshold=1.0).from_bytes(
        nlp.to_bytes(exclude=["hocrf"]), exclude=["hocrf"]
    )
    none.get_pipe("hocrf").from_bytes(nlp.get_pipe("hocrf").to_bytes())
    assert len(none(text).ents) < len(scores)


def test_threshold_follows_a_cfg_that_is_replaced(own_nlp):
    pipe = own_nlp.get_pipe("hocrf")
    pipe.cfg = {"threshold": 1.0}  # as spacy find-threshold does
    assert own_nlp("Grace Turing met Ada in San Paris").ents == ()
    pipe.cfg = {"threshold": 0.0}
    assert own_nlp("Grace Turing met Ada in San Paris").ents


def test_a_threshold_that_was_set_is_saved(own_nlp, tmp_path):
    own_nlp.get_pipe("hocrf").threshold = 0.75
    for nlp in (own_nlp, copy.deepcopy(own_nlp), untrained().from_bytes(own_nlp.to_bytes())):
        nlp.to_disk(tmp_path)
        loaded = spacy.load(tmp_path)
        assert loaded.get_pipe("hocrf").threshold == 0.75
    overridden = spacy.load(tmp_path, config={"components.hocrf.threshold": 0.5})
    assert overridden.get_pipe("hocrf").threshold == 0.5
    loaded.get_pipe("hocrf").threshold = None
    loaded.to_disk(tmp_path)
    assert spacy.load(tmp_path).get_pipe("hocrf").threshold is None


def test_a_threshold_of_an_untrained_component_is_copied():
    nlp = untrained()
    nlp.get_pipe("hocrf").threshold = 0.75
    assert copy.deepcopy(nlp).get_pipe("hocrf").threshold == 0.75


def test_saving_constraints_that_were_set_warns(own_nlp, tmp_path):
    own_nlp.get_pipe("hocrf").constraints = Constraints(at_most={"CITY": 0})
    for nlp in (own_nlp, copy.deepcopy(own_nlp)):  # a copy keeps them
        with pytest.warns(UserWarning, match="W054"):
            nlp.to_disk(tmp_path)
        with pytest.warns(UserWarning, match="W054"):
            nlp.to_bytes()


def test_a_threshold_cannot_be_taken_from_a_component_that_shows_all_spans():
    pipe = spacy.blank("xx").add_pipe("hocrf_spans", config={"select": "all", "threshold": 0.1})
    with pytest.raises(ValueError, match="H203"):
        pipe.threshold = None


# Entities that are there already


def test_entities_set_before_are_kept_and_decoded_around(ents_nlp):
    plain = found(ents_nlp(SENTENCE))
    assert plain == [(0, 2, "PERSON"), (5, 7, "PLACE")]
    doc = with_entities(ents_nlp.make_doc(SENTENCE), (5, 8, "PERSON"))
    ents_nlp.get_pipe("hocrf")(doc)
    assert found(doc) == [(0, 2, "PERSON"), (5, 8, "PERSON")]
    assert [ent._.hocrf_score is not None for ent in doc.ents] == [True, False]


@pytest.mark.parametrize(
    "preset",
    [
        (0, 1, "PLACE"),
        (4, 7, "UNKNOWN"),
        (2, 8, "PERSON"),
        (0, 8, "PERSON"),
        (0, 8, "UNKNOWN"),
        (6, 7, "UNKNOWN"),
    ],
    ids=["label", "unknown label", "too long", "whole text", "whole text, unknown label", "inside"],
)
def test_whatever_was_set_before_stays(ents_nlp, preset):
    doc = ents_nlp.get_pipe("hocrf")(with_entities(ents_nlp.make_doc(SENTENCE), preset))
    assert preset in found(doc)
    scores = entity_scores(doc)
    assert len(doc.ents) == len(scores) + 1
    assert ((scores > 0) & (scores <= 1)).all()


def test_an_entity_of_white_space_stays(nlp):
    doc = nlp.get_pipe("hocrf")(with_entities(nlp.make_doc("Emmy \n slept"), (1, 2, "PERSON")))
    assert (1, 2, "PERSON") in found(doc)


def test_identifiers_of_entities_set_before_stay(nlp):
    doc = nlp.make_doc(SENTENCE)
    doc.ents = [Span(doc, 5, 7, label="PLACE", kb_id="Q60", span_id="city")]
    nlp.get_pipe("hocrf")(doc)
    assert [(ent.label_, ent.kb_id_, ent.id_) for ent in doc.ents] == [
        ("PERSON", "", ""),
        ("PLACE", "Q60", "city"),
    ]


def test_blocked_tokens_stay_outside(nlp):
    doc = with_entities(nlp.make_doc(SENTENCE), blocked=[(5, 7)])
    nlp.get_pipe("hocrf")(doc)
    assert found(doc) == [(0, 2, "PERSON")]
    assert [doc[i].ent_iob_ + str(doc[i].ent_type) for i in (5, 6)] == ["B0", "B0"]
    assert doc[7].ent_iob_ == "O"


def test_overwrite_ignores_what_was_set_before(nlp):
    other = untrained(overwrite=True).from_bytes(nlp.to_bytes())
    doc = with_entities(other.make_doc(SENTENCE), (2, 3, "PLACE"), blocked=[(5, 7)])
    assert found(other.get_pipe("hocrf")(doc)) == [(0, 2, "PERSON"), (5, 7, "PLACE")]


def test_neighbours_set_before_that_the_model_cannot_have_stay():
    nlp = trained(model={"repeats": False})
    doc = with_entities(nlp.make_doc(SENTENCE), (5, 6, "PLACE"), (6, 7, "PLACE"))
    assert found(nlp.get_pipe("hocrf")(doc)) == [(0, 2, "PERSON"), (5, 6, "PLACE"), (6, 7, "PLACE")]


def test_without_an_outside_label_entities_set_before_stay():
    rows = [
        ("Ada Lovelace London", [(0, 12, "PERSON"), (13, 19, "PLACE")]),
        ("Emmy Paris", [(0, 4, "PERSON"), (5, 10, "PLACE")]),
    ]
    nlp = trained(rows=rows)
    assert nlp.get_pipe("hocrf").structure.scheme.outside < 0
    doc = with_entities(nlp.make_doc("Emmy Paris Ada"), (1, 2, "UNKNOWN"))
    assert (1, 2, "UNKNOWN") in found(nlp.get_pipe("hocrf")(doc))


@pytest.mark.parametrize("overwrite", [False, True])
def test_tags_set_before(overwrite):
    nlp = trained("hocrf_tagger", overwrite=overwrite)
    doc = nlp.make_doc("Emmy slept .")
    doc[1].tag_ = "NAME"
    assert found(nlp.get_pipe("hocrf")(doc)) == ["NAME", "WORD" if overwrite else "NAME", "PUNCT"]


# Labels


def test_labels_added_before_training_come_first():
    nlp = untrained()
    pipe = nlp.get_pipe("hocrf")
    assert pipe.add_label("FOOD") == 1
    assert pipe.add_label("FOOD") == 0
    nlp.initialize(lambda: examples(nlp))
    assert pipe.labels == ("FOOD", "PERSON", "PLACE")
    assert pipe.label_data == ["FOOD", "PERSON", "PLACE"]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_weights_keep_their_meaning_when_a_label_is_added(name):
    factory, model = MODELS[name]
    nlp = trained(factory, model)
    pipe = nlp.get_pipe("hocrf")
    before = [found(doc) for doc in nlp.pipe(texts())]

    def named(pipe):
        names, weights = pipe.structure.scheme.names, pipe.model.get_param("W")
        described = (
            pipe.structure.index.describe(f, nlp.vocab.strings, names) for f in range(len(weights))
        )
        return dict(zip(described, weights.tolist()))

    weights = named(pipe)
    assert pipe.add_label("FOOD") == 1
    assert named(pipe) == weights
    if name != "tagger":  # whose new label is as probable as no feature makes it
        assert [found(doc) for doc in nlp.pipe(texts())] == before
    old = documents() if factory != "hocrf_tagger" else []
    rows = [*old, ("Emmy eats green apples", [(0, 4, "PERSON"), (10, 22, "FOOD")])]
    data = examples(nlp, rows)
    if factory == "hocrf_tagger":
        data = [Example.from_dict(nlp.make_doc("Emmy apples"), {"tags": ["NAME", "FOOD"]})]
    fit(nlp, data)
    assert "FOOD" in str(found(nlp(data[-1].text)))


def test_labels_can_be_given_to_initialize():
    nlp = untrained()
    nlp.get_pipe("hocrf").initialize(
        lambda: examples(nlp), nlp=nlp, labels=["PLACE", "FOOD", "PERSON"]
    )
    assert nlp.get_pipe("hocrf").labels == ("PLACE", "FOOD", "PERSON")


@pytest.mark.slow
def test_initialize_without_examples_then_a_plain_loop_reaches_the_same_objective():
    usual = untrained()
    data = teach(usual)
    late = untrained()
    for label in ("PERSON", "PLACE"):
        late.get_pipe("hocrf").add_label(label)
    optimizer = late.initialize()
    assert not late.get_pipe("hocrf").structure.index.feature_pattern.size
    data = examples(late)
    for _ in range(100):
        for i in range(0, len(data), 3):
            late.update(data[i : i + 3], sgd=optimizer)
    expected = objective_at_optimum(usual)
    assert objective_at_optimum(late) == pytest.approx(expected, rel=1e-6)
    assert len(late.get_pipe("hocrf").structure.index) == len(
        usual.get_pipe("hocrf").structure.index
    )


def test_updates_before_any_annotation_do_nothing():
    nlp = untrained()
    nlp.get_pipe("hocrf").add_label("PERSON")
    optimizer = nlp.initialize()
    unknown = Example.from_dict(nlp.make_doc("What is this"), {})
    assert nlp.update([unknown], sgd=optimizer) == {"hocrf": 0.0}
    nlp("Emmy slept")
    fit(nlp, examples(nlp, [("Emmy slept", [(0, 4, "PERSON")])]))
    assert found(nlp("Emmy slept")) == [(0, 1, "PERSON")]


# In a pipeline with others


def test_another_spans_key():
    nlp = untrained("hocrf_spans", spans_key="fields")
    groups = [{"fields": spans, "other": [(0, len(text), "X")]} for text, spans in documents()]
    data = [
        Example.from_dict(nlp.make_doc(text), {"spans": group})
        for (text, _), group in zip(documents(), groups)
    ]
    learn_from(nlp, data)
    scores = nlp.evaluate(data)
    assert scores["spans_fields_f"] == 1.0
    doc = nlp(SENTENCE)
    assert [span.label_ for span in doc.spans["fields"]] == ["PERSON", "PLACE"]


def test_two_components_do_not_meet(nlp):
    spans = untrained("hocrf_spans")
    spans.get_pipe("hocrf").from_bytes(shared("spans").get_pipe("hocrf").to_bytes())
    spans.rename_pipe("hocrf", "groups")
    both = untrained().from_bytes(nlp.to_bytes())
    both.add_pipe("groups", source=spans)
    doc = both(SENTENCE)
    assert found(doc) == [(span.start, span.end, span.label_) for span in doc.spans["sc"]]
    assert doc.ents[0]._.hocrf_score == pytest.approx(nlp(SENTENCE).ents[0]._.hocrf_score)


def test_strings_of_a_memory_zone_are_not_kept(nlp):
    expected = found(nlp(SENTENCE))
    with nlp.memory_zone():
        assert found(nlp(f"{SENTENCE} unheardofly"))[:2] == expected
    assert "unheardofly" not in nlp.vocab.strings
    assert found(nlp(SENTENCE)) == expected


def test_texts_of_another_vocabulary_are_learnt_and_read(nlp):
    own, other = untrained(), spacy.blank("xx")
    ivana = "Ivana likes Bogota ."
    data = [*examples(own, documents()), *examples(other, [(ivana, [(0, 5, "PERSON")])])]
    optimizer = own.initialize(lambda: data)
    own.update(data, sgd=optimizer)
    late = examples(spacy.blank("xx"), [("Oskar was in Quito .", [(0, 5, "PERSON")])])
    own.update(late, sgd=optimizer)
    own.update(examples(own, [("Berit likes Malmo .", [(0, 5, "PERSON")])]), sgd=optimizer)
    docs = [other.make_doc(f"Irmgard {ivana}"), nlp.make_doc("Zlatko was in Rijeka .")]
    pipe = nlp.get_pipe("hocrf")
    predicted = [each.spans for each in pipe.predict(docs)]
    assert predicted == [pipe.predict([doc])[0].spans for doc in docs]


def test_is_sourced_from_another_pipeline_and_trained_on(own_nlp):
    expected = [found(doc) for doc in own_nlp.pipe(texts())]
    other = spacy.blank("xx")
    other.add_pipe("hocrf", source=own_nlp)
    assert [found(doc) for doc in other.pipe(texts())] == expected
    data = examples(
        other, [*documents(), ("Emmy likes San Jose .", [(0, 4, "PERSON"), (11, 19, "PLACE")])]
    )
    optimizer = other.resume_training()
    losses = [other.update(data, sgd=optimizer)["hocrf"] for _ in range(30)]
    assert losses[-1] < losses[0]
    assert other.evaluate(data)["ents_f"] == 1.0


def test_resuming_on_the_whole_corpus_starts_where_it_ended_and_reaches_the_same_objective(nlp):
    """With the prior where it was."""
    trainer = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 10.0, "prior": "zero"}
    resumed = untrained(trainer=trainer).from_bytes(nlp.to_bytes())
    data = examples(resumed)
    first = resumed.update(data, sgd=resumed.resume_training())["hocrf"]
    best = objective_at_optimum(nlp)
    assert first == pytest.approx(best, rel=1e-4)  # the weights were stored as float32
    assert learner_of(resumed.get_pipe("hocrf")).loaded is None
    fit(resumed, data)
    assert objective_at_optimum(resumed) == pytest.approx(best, rel=1e-6)


NEW = [("Emmy likes green apples", [(0, 4, "PLACE")])]


@pytest.mark.slow
@pytest.mark.parametrize("prior, remembers", [("loaded", True), ("zero", False)])
def test_a_small_corpus_adapts_a_loaded_model_without_forgetting(nlp, prior, remembers):
    adapted = untrained(
        trainer={"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 10.0, "prior": prior}
    ).from_bytes(nlp.to_bytes())
    pipe = adapted.get_pipe("hocrf")
    before = np.linalg.norm(pipe.model.get_param("W"))
    fit(adapted, examples(adapted, NEW))
    after = np.linalg.norm(pipe.model.get_param("W"))
    assert (abs(after - before) < 0.1 * before) == remembers
    assert (adapted.evaluate(examples(adapted))["ents_f"] > 0.9) == remembers


def test_adapting_twice_does_not_forget_either(nlp):
    once = untrained().from_bytes(nlp.to_bytes())
    fit(once, examples(once, NEW))
    twice = untrained().from_bytes(once.to_bytes())
    fit(twice, examples(twice, NEW))
    norms = [np.linalg.norm(n.get_pipe("hocrf").model.get_param("W")) for n in (nlp, twice)]
    assert norms[1] == pytest.approx(norms[0], rel=0.1)


def test_a_config_of_the_pipeline_holds_every_setting():
    component = untrained().config["components"]["hocrf"]
    assert component["joint"] is None
    again = load_model_from_config(Config().from_str(untrained().config.to_str()))
    # tuples are lists by now
    assert Config(again.config["components"]).to_str() == Config({"hocrf": component}).to_str()


def test_entities_can_be_merged_behind_it(nlp):
    both = spacy.blank("xx")
    both.add_pipe("hocrf", source=nlp)
    both.add_pipe("merge_entities")
    expected = [(ent.text, ent.label_, ent._.hocrf_score) for ent in nlp(SENTENCE).ents]
    for doc in both.pipe([SENTENCE] * 2, n_process=2):
        assert [(ent.text, ent.label_, ent._.hocrf_score) for ent in doc.ents] == expected
        assert all(len(ent) == 1 for ent in doc.ents)


def answers(doc):
    tags = [token.tag_ for token in doc]
    groups = {key: [(s.start, s.end, s.label_) for s in group] for key, group in doc.spans.items()}
    return tags, [(e.start, e.end, e.label_) for e in doc.ents], groups, doc._.hocrf_scores


def test_docs_that_are_read_again_get_the_same_annotation(any_nlp):
    """`pipe` knows that nobody had the Docs between prediction and annotation."""
    (_, pipe), *_ = any_nlp.pipeline
    piped = list(pipe.pipe(map(any_nlp.make_doc, texts()), batch_size=3))
    single = [pipe(any_nlp.make_doc(text)) for text in texts()]
    read_again = [any_nlp.make_doc(text) for text in texts()]
    predictions = pipe.predict(read_again)
    pipe.set_annotations(read_again, predictions)
    plain = [any_nlp.make_doc(text) for text in texts()]
    pipe.set_annotations(plain, list(predictions))
    expected = [answers(doc) for doc in read_again]
    assert any(found for _, *found in expected)
    for docs in (piped, plain):
        assert [answers(doc) for doc in docs] == expected
    for doc, (tags, ents, groups, _) in zip(single, expected):
        assert answers(doc)[:3] == (tags, ents, groups)


def test_what_is_set_between_prediction_and_annotation_stays(nlp):
    (_, pipe), *_ = nlp.pipeline
    doc = nlp.make_doc(SENTENCE)
    predictions = pipe.predict([doc])
    assert predictions[0].spans[0][0] == 0
    doc.ents = [Span(doc, 3, 5, label="SET")]
    pipe.set_annotations([doc], predictions)
    assert "SET" in {ent.label_ for ent in doc.ents}
    doc = nlp.make_doc(SENTENCE)
    predictions = pipe.predict([doc])
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[5:7])
    pipe.set_annotations([doc], predictions[:1])
    assert doc.ents[0].start_char == 0


def test_errors_go_to_the_error_handler(own_nlp, monkeypatch):
    (_, pipe), *_ = own_nlp.pipeline
    failed = []
    pipe.set_error_handler(lambda *args: failed.append(args))
    monkeypatch.setattr(type(pipe.target), "annotate", lambda *_: [][0])
    docs = [own_nlp.make_doc(text) for text in texts()[:3]]
    assert pipe(docs[0]) is None
    assert list(pipe.pipe(docs, batch_size=2)) == []
    assert [(name, given) for name, _, given, _ in failed] == [
        ("hocrf", docs[:1]),
        *(("hocrf", [doc]) for doc in docs),  # one by one, so that the others are not lost with one
    ]
    assert {type(error) for *_, error in failed} == {IndexError}


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"encoding": "bio"}, {"outside": "run", "order": 2}])
def test_a_list_of_names_teaches_to_read_longer_ones(settings, tmp_path):
    """One label, and all of every text: no other segment can stand beside one that is at its limit."""
    rows = [(text, [(0, len(text), "NAME")]) for text in ("ACME Corp", "Big Blue", "Foo Bar Ltd")]
    nlp = trained(model=settings, rows=rows)
    long = "The Very Big Company of San Jose"
    nlp.to_disk(tmp_path)
    for each in (nlp, spacy.load(tmp_path)):
        assert found(each(long)) == [(0, 7, "NAME")]
    nlp.get_pipe("hocrf").add_label("PLACE")
    lengths = [end - start for start, end, _ in found(nlp(long))]
    assert sum(lengths) == 7 and (
        "encoding" in settings or max(lengths) <= 3
    )  # as in training again
