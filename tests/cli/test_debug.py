"""`python -m spacy hocrf debug`: each thing that it finds, in a corpus that has just that."""

from types import SimpleNamespace

import commands
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.util import registry
from thinc.api import Config

from spacy_hocrf.annotation.gold import Gold
from spacy_hocrf.annotation.targets import EntsTarget, TagsTarget
from spacy_hocrf.cli.checking import Seen, facts_of, repeats_of, seen_in
from spacy_hocrf.cli.config import starting_config
from spacy_hocrf.cli.debug import SAMPLE, _corpus_notes, _kind_notes, _print, check
from spacy_hocrf.training.base import BaseTrainer

NLP, TARGET = spacy.blank("en"), EntsTarget(None, False)
TEXT = "Ada Lovelace met Max in Paris"


def annotated(text=TEXT, spans=((0, 12, "PERSON"), (17, 20, "PERSON"), (24, 29, "PLACE"))):
    doc = NLP.make_doc(text)
    doc.ents = [doc.char_span(*span) for span in spans]
    return doc


def several(n=6):
    return [annotated(f"{TEXT} {number}") for number in range(n)]


def config_of(tmp_path, train, dev, key=None):
    """A config with these texts."""
    config = starting_config("en", None, key)
    for part, docs in (("train", train), ("dev", dev)):
        DocBin(docs=list(docs)).to_disk(tmp_path / f"{part}.spacy")
        config["paths"][part] = str(tmp_path / f"{part}.spacy")
    return config


def found(tmp_path, train, dev=(), key=None, **settings):
    """What `debug` finds with a corpus; settings are of the component."""
    config = config_of(tmp_path, train, dev or several(1), key)
    config["corpora"]["train"].update(settings.pop("corpus", {}))
    name = "hocrf" if key is None else "hocrf_spans"
    model = {**config["components"][name]["model"], **settings.pop("model", {})}
    config["components"][name].update({**settings, "model": model})
    return check(config)


def only(result):
    (note,) = result.notes
    return note


def test_equal_texts_that_are_annotated_differently(tmp_path):
    docs = [*several(), *several(2), annotated(f"{TEXT} 3", [(0, 12, "PLACE")])]
    docs[6].set_ents([], default="missing")
    result = found(tmp_path, docs)
    assert (result.train.copies, result.train.contradicted) == (3, 1)
    assert any("1 of 9 training texts have the words" in note for note in result.notes)


def test_counts_of_a_corpus_in_which_nothing_is_wrong(tmp_path):
    result = found(tmp_path, several(), [annotated(), annotated("Max", [(0, 3, "PERSON")])])
    assert result.notes == () and result.shared == 0 and result.name == "hocrf"
    train, dev = result.train, result.dev
    assert (train.texts, train.tokens, train.annotated, train.copies) == (6, 42, 18, 0)
    person = train.labels["PERSON"]
    assert (person.annotated, person.learnt, person.texts, person.longest) == (12, 12, 6, 2)
    assert dev.labels["PERSON"].annotated == 3 and dev.texts == 2


def test_a_development_corpus_without_texts_is_told_of(tmp_path):
    DocBin().to_disk(tmp_path / "none.spacy")
    config = starting_config("en", None)
    DocBin(docs=several()).to_disk(tmp_path / "train.spacy")
    config["paths"]["train"] = str(tmp_path / "train.spacy")
    assert check(config).notes == ()  # without a path there is nothing to tell
    config["paths"]["dev"] = str(tmp_path / "none.spacy")
    assert only(check(config)).startswith("The development corpus has no texts")


def test_spans_that_fit_no_tokens_are_named(tmp_path):
    wrong = Doc(NLP.vocab, words=["Ada", "sbook"], spaces=[False, False])
    wrong.ents = [Span(wrong, 0, 1, label="PERSON")]
    result = found(tmp_path, [*several(), wrong])
    note = result.notes[0]
    assert "1 of 19 training spans (5.3 %) fit no tokens, such as 'Ada' (PERSON)" in note
    assert "the tokens are Adasbook." in note and "gold_preproc = true" in note
    assert "lang in [nlp], en?" in note
    assert result.train.labels["PERSON"].annotated == 13
    assert result.train.labels["PERSON"].learnt == 12
    assert [(each.text, each.words) for each in result.train.lost] == [("Ada", ("Adasbook",))]


def test_overlapping_spans_are_counted(tmp_path):
    docs = several()
    for doc in docs:
        doc.spans["parts"] = [*doc.ents, Span(doc, 0, 1, label="FIRST")]
    result = found(tmp_path, docs, [docs[0]], key="parts")
    assert "6 training spans overlap longer ones" in result.notes[0]
    assert result.train.overlapping == 6 and not result.train.lost
    assert result.train.labels["FIRST"].learnt == 0
    assert result.shared == 1


def test_annotated_phrases_that_stand_elsewhere_without_annotation(tmp_path):
    names = ["Ada", "Max", "Emmy", "Grace", "Alan"]

    def notes(docs, **settings):
        result = found(tmp_path, docs, **settings)
        return [note for note in result.notes if "annotated phrases" in note]

    marked = [annotated(f"{name} met {name}", [(0, len(name), "PERSON")]) for name in names]
    [note] = notes(marked)
    assert note.startswith(
        "5 of 5 annotated phrases, such as 'Ada', 'Max', 'Emmy', also stand where"
    )
    assert "less than 6%" in note and "positives_only" in note
    trainer = {"@misc": "spacy-hocrf.LBFGS.v1", "ratio": 0.5}
    assert notes(marked, positives_only=True, trainer=trainer) == []  # it has been set
    for doc in marked:  # what is unknown is not known to be no span
        doc.set_ents(list(doc.ents), default="missing")
    assert notes(marked) == []
    pairs = [annotated(f"{name} met Ada", [(0, len(name), "PERSON")]) for name in names]
    assert notes(pairs) == []  # one phrase is too few to tell
    repeats = repeats_of(TARGET, [Example(NLP.make_doc(doc.text), doc) for doc in pairs])
    assert repeats.phrases == 5 and repeats.unmarked == ("Ada",)


def test_touching_spans_and_copies_are_counted(tmp_path):
    touching = annotated("Ada Max met", [(0, 3, "PERSON"), (4, 7, "PERSON")])
    result = found(tmp_path, [*several(), touching, touching])
    assert (result.train.touching, result.train.copies) == (2, 1)


def test_white_space_at_the_ends_of_spans(tmp_path):
    doc = NLP.make_doc("Ada  met")
    doc.ents = [Span(doc, 0, 2, label="PERSON")]
    assert "1 training spans begin or end with white space" in only(
        found(tmp_path, [*several(), doc])
    )


def test_texts_without_spaces_and_without_annotation(tmp_path):
    joined = Doc(NLP.vocab, words=["Ada", "met"], ents=["B-PERSON", "O"])
    result = found(tmp_path, [*several(), joined, NLP.make_doc("nothing is known")])
    assert joined.has_unknown_spaces
    assert "1 of 8 training texts have no annotation" in result.notes[0]
    assert "1 of 8 training texts do not tell where spaces are" in result.notes[1]
    assert "W004" in result.notes[2]


def test_partial_annotation_is_named(tmp_path):
    doc = NLP.make_doc("Ada met")
    doc.set_ents([Span(doc, 0, 1, label="PERSON")], default="missing")
    assert "1 of 7 training texts are annotated in part" in only(found(tmp_path, [*several(), doc]))


def test_texts_of_which_constraints_tell_something_are_annotated_in_part(tmp_path):
    doc = NLP.make_doc("Ada met")
    doc.spans["hocrf_constraints"] = [Span(doc, 0, 1, label="PERSON", span_id="inside")]
    assert "1 of 7 training texts are annotated in part" in only(found(tmp_path, [*several(), doc]))
    ignored = {"@misc": "spacy-hocrf.Constraints.v1", "training": "none"}
    notes = found(tmp_path, [*several(), doc], constraints=ignored).notes
    assert "1 of 7 training texts have no annotation" in notes[0]


def test_tokens_that_a_text_does_not_have_are_told(tmp_path):
    chinese = Doc(NLP.vocab, words=[*"王明在上海"], spaces=[False] * 5)
    chinese.ents = [Span(chinese, 0, 2, label="PERSON"), Span(chinese, 3, 5, label="PLACE")]
    note = only(found(tmp_path, [*several(), chinese], corpus={"gold_preproc": True}))
    assert "gold_preproc = true in [corpora.train]" in note and "2 of 20 spans" in note
    assert "'王明' (PERSON) where they are 王明在上海." in note and "lang in [nlp], en," in note
    notes = found(tmp_path, several(), corpus={"gold_preproc": True}).notes
    assert not notes


@pytest.mark.parametrize("key", [None, "parts"])
def test_docs_that_gold_preproc_cuts(tmp_path, key):
    docs = several()
    for doc in docs:
        for token in doc:
            token.is_sent_start = token.i in (0, 4)
        doc.spans["parts"] = list(doc.ents)
    corpus = {"gold_preproc": True}
    if key is None:
        result = found(tmp_path, docs, corpus=corpus)
        assert "[corpora.train] cuts 6 of 6 Docs at their sentences" in only(result)
        assert result.train.texts == 12
    else:  # `Span.as_doc` leaves span groups out
        with pytest.raises(ValueError, match=r"H050.*gold_preproc.*span groups are lost"):
            found(tmp_path, docs, key=key, corpus=corpus)


def test_an_encoder_that_is_shared_and_a_config_that_is_not_filled(tmp_path):
    DocBin(docs=several()).to_disk(tmp_path / "train.spacy")
    shared = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96}
    model = {"features": None, "tok2vec": shared}
    trainer = {"@misc": "spacy-hocrf.SGD.v1", "sigma": 1.0}
    encoded = {"factory": "hocrf", "model": model, "trainer": trainer}
    paths = dict.fromkeys(("train", "dev"), str(tmp_path / "train.spacy"))
    for components in (
        {"hocrf": {"factory": "hocrf"}},
        {"tok2vec": {"factory": "tok2vec"}, "hocrf": encoded},
    ):
        nlp = {"lang": "en", "pipeline": [*components]}
        result = check(Config({"paths": paths, "nlp": nlp, "components": components}))
        assert (result.cost.seconds is None) == ("tok2vec" in components)
        assert result.cost.features > 0 and result.shared == 6


def test_one_of_several_components(tmp_path):
    docs = several()
    for doc in docs:
        for token in doc:
            token.is_sent_start = token.i in (0, 4)
    config = config_of(tmp_path, docs, docs)
    config["components"]["second"] = dict(config["components"]["hocrf"], scores_key="second")
    config["nlp"]["pipeline"].append("second")
    for part in ("train", "dev"):
        config["corpora"][part]["gold_preproc"] = True
    with pytest.raises(ValueError, match="H204"):
        check(config)
    result = check(config, "second")
    assert result.name == "second" and sum("cuts 6 of 6 Docs" in each for each in result.notes) == 2


def test_rare_labels_labels_without_training_and_odd_lengths(tmp_path):
    odd = annotated("x " * 40, [(0, 79, "PLACE")])
    docs = [*several(150), odd, annotated("Bo", [(0, 2, "RARE")])]
    result = found(tmp_path, docs, [annotated("Zoe", [(0, 3, " PLACE")])])
    assert [note.split(":")[0] for note in result.notes[:2]] == [
        "Labels in fewer than 5 training texts",
        "Labels of the development corpus that will never be found",
    ]
    assert "RARE" in result.notes[0] and "' PLACE'" in result.notes[1]
    assert "The longest 'PLACE' has 40 tokens, 99 % have 1 at most" in result.notes[2]


def test_settings_without_effect_are_those_that_training_warns_of(tmp_path):
    features = {
        "@misc": "spacy-hocrf.Features.v1",
        "*": {
            "tags": {"@misc": "spacy-hocrf.Token.v1", "attrs": ["TAG"]},
            "words": {"@misc": "spacy-hocrf.Token.v1", "attrs": ["NORM"]},
            "high": {"@misc": "spacy-hocrf.Transition.v1", "order": 3},
        },
    }
    result = found(tmp_path, several(), model={"order": 1, "features": features})
    codes = [note[1:5] for note in result.notes]
    assert "W011" in codes and "W013" in codes


def test_the_cost_is_that_of_the_sample_and_grows_with_the_tokens(tmp_path, monkeypatch):
    result = found(tmp_path, several(40))
    cost = result.cost
    assert (cost.texts, cost.tokens, cost.order) == (40, 280, 2)
    assert cost.features > 50 and cost.patterns >= 4 and cost.states >= 3
    assert cost.seconds > 0 and cost.kept > 4 * cost.features and cost.passing >= 0
    assert cost.seconds_for(560) == pytest.approx(2 * cost.seconds)
    assert cost.bytes_for(560) == pytest.approx(2 * cost.kept + cost.passing)
    monkeypatch.setattr("spacy_hocrf.cli.debug.SAMPLE", 10)
    assert SAMPLE > 10 and found(tmp_path, several(40)).cost.texts == 10
    for tokens, texts in ((35, 5), (36, 5), (1, 1)):
        monkeypatch.setattr("spacy_hocrf.cli.debug.SAMPLED_TOKENS", tokens)
        assert found(tmp_path, several(40)).cost.texts == texts


@pytest.mark.parametrize("seconds, times", [(0.9, [1, 3]), (1.1, [1])])
def test_a_long_evaluation_is_measured_once(tmp_path, monkeypatch, seconds, times):
    measured = []
    monkeypatch.setattr(
        "spacy_hocrf.cli.debug._seconds", lambda _, times: measured.append(times) or seconds
    )
    assert found(tmp_path, several()).cost.seconds == seconds and measured == times


def test_texts_that_spacy_keeps_are_measured_and_streamed_ones_are_none(tmp_path):
    kept, more = (found(tmp_path, several(n)).examples for n in (200, 400))
    assert 200 * 7 * 200 < kept < 200 * 7 * 2000 and 1.5 * kept < more < 2.5 * kept
    config = starting_config("en", None)
    config["paths"]["train"] = str(tmp_path / "train.spacy")
    config["training"]["max_epochs"] = -1
    assert check(config).examples == 0


def test_a_tagger_and_a_trainer_without_an_objective(tmp_path):
    tagger = spacy.blank("en")
    trainer = {"@misc": "spacy-hocrf.SGD.v1", "sigma": 1.0}
    tagger.add_pipe("hocrf_tagger", config={"trainer": trainer})
    docs = [
        Doc(NLP.vocab, words=["a", "b"], spaces=[True, False], tags=["X", "Y"]) for _ in range(6)
    ]
    config = config_of(tmp_path, docs, docs)
    config["nlp"]["pipeline"] = ["hocrf_tagger"]
    config["components"] = tagger.config["components"]
    result = check(config)
    assert result.train.labels["X"].annotated == 6 and result.train.touching == 0
    assert result.cost.seconds is None and result.cost.features > 0
    assert result.shared == 6 and result.cost.kept > 0


def test_a_trainer_of_ones_own_without_an_objective(tmp_path):
    class OwnTrainer(BaseTrainer):
        def begin(self, model):
            run = dict.fromkeys(("loss", "running", "status", "evaluations", "step"), 0)
            return SimpleNamespace(weights=model.weights, **run)

    registry.misc("test.OwnTrainer.v1", func=OwnTrainer)
    cost = found(tmp_path, several(), trainer={"@misc": "test.OwnTrainer.v1"}).cost
    assert cost.seconds is None and cost.features > 0


def test_the_command_prints_it(tmp_path):
    train = tmp_path / "train.spacy"
    DocBin(docs=several()).to_disk(train)
    config = tmp_path / "config.cfg"
    starting_config("en", None).to_disk(config)
    options = ["debug", config, "--paths.train", train]
    printed = commands.run(*options, "--paths.dev", train)
    for text in (
        "training",
        "PERSON",
        "6 of 6 development texts",
        "An evaluation of the objective",
        "Memory for the texts, which spaCy keeps",
    ):
        assert text in printed
    streamed = commands.run(*options, "--training.max_epochs", "-1")
    assert "Memory for the texts: none, they are streamed." in streamed
    assert "development texts" not in commands.run(*options)  # without a development corpus


def test_near_copies_are_counted():
    """The same but for names and numbers; equal texts are copies, and no near ones."""
    nlp = spacy.blank("en")
    texts = ["Ada lives in Paris", "Max lives in Rome", "Max lives in Rome", "Ada works here now"]
    examples = [
        Example.from_dict(nlp.make_doc(text), {"entities": [(0, 3, "PERSON")]}) for text in texts
    ]
    facts = facts_of(Gold(EntsTarget(None, False)), examples)
    assert (facts.copies, facts.near_copies) == (1, 1)
    notes = list(_corpus_notes(facts, "training", "en"))
    assert any("1 of 4 training texts are near copies" in note for note in notes)


def words_with_a_name(*rows):
    """Examples of words, the last of which is a span."""
    docs = [
        annotated(f"{text} {name}", [(len(text) + 1, len(text) + 1 + len(name), label)])
        for text, name, label in rows
    ]
    return [Example(NLP.make_doc(doc.text), doc) for doc in docs]


def test_what_of_a_corpus_was_seen_in_another_or_in_other_texts_of_it():
    train = words_with_a_name(
        ("we saw Paris and", "Rome", "PLACE"),
        ("We like", "Rome", "PLACE"),
        ("we like", "Ada", "PERSON"),
    )
    dev = words_with_a_name(
        ("WE saw", "Rome", "PLACE"), ("met", "Rome", "PERSON"), ("met", "Max", "PERSON")
    )
    # of 7 words WE, saw, Rome, Rome; of 3 spans Rome as a place, and Rome twice
    assert seen_in(TARGET, train, dev) == Seen(4 / 7, 1 / 3, 2 / 3, 3)
    # of 11 words: we, Rome; We, like, Rome; we, like
    assert seen_in(TARGET, train) == Seen(7 / 11, 2 / 3, 2 / 3, 3)
    assert seen_in(TARGET, train, []) == Seen(0, 0, 0, 0)
    tags = Doc(NLP.vocab, words=["We", "saw"], tags=["A", "B"])
    twice = [Example(NLP.make_doc("we saw"), tags)] * 2
    assert seen_in(TagsTarget(overwrite=True), twice).n_spans == 4


def of_a_kind(n, name, verb="saw", words="again"):
    """Texts with a person and a place, which a number tells apart."""
    before = f"I {verb} "
    rows = [(f"{before}{name} {words} number{i}", len(before)) for i in range(n)]
    return [annotated(t, [(0, 1, "PERSON"), (a, a + len(name), "PLACE")]) for t, a in rows]


def unlike(train, dev):
    here, there = [[Example(NLP.make_doc(doc.text), doc) for doc in docs] for docs in (train, dev)]
    return [*_kind_notes(seen_in(TARGET, here, there), seen_in(TARGET, here))]


def test_texts_of_another_kind_are_told_by_their_words_or_spans():
    train = of_a_kind(24, "Rome")
    assert not unlike(train, of_a_kind(24, "Rome"))
    (note,) = unlike(train, of_a_kind(24, "Oslo"))
    assert "50.0 % of their spans are new (of a training text's, to the others: 0.0 %)" in note
    assert "words" not in note  # a place is, and a number was: one of five
    assert not unlike(train, of_a_kind(9, "Oslo"))  # 18 spans
    (note,) = unlike(train, of_a_kind(24, "Rome", "met", "before"))
    assert "40.0 % of their words are new (of a training text's, to the others: 20.0 %)" in note
    assert "spans" not in note


def test_what_was_seen_is_printed(tmp_path, capsys):
    result = found(tmp_path, of_a_kind(24, "Rome"), of_a_kind(20, "Oslo", "met"))
    assert any("unlike the training texts" in note for note in result.notes)
    _print(result)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["words", "60.0", "%", "80.0", "%"] in lines
    assert ["spans", "with", "their", "label", "50.0", "%", "100.0", "%"] in lines
    few = found(tmp_path, of_a_kind(24, "Rome"), of_a_kind(19, "Oslo", "met"))
    assert not any("unlike" in note for note in few.notes)
