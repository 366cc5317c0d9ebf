"""Settings with dollar signs: refused before they are learnt with, or saved and loaded as they are."""

import re
import warnings

import pytest
import spacy
from spacy.tokens import Token
from spacy.training import Example
from thinc.api import Config

TEXTS = [
    ("pay 5 $ now", [(4, 7, "US$")]),
    ("Ada owes 7 $ to Max", [(0, 3, "P"), (9, 12, "US$"), (16, 19, "P")]),
    ("Max pays 9 $", [(0, 3, "P"), (9, 12, "US$")]),
]


@pytest.fixture(autouse=True)
def extension():
    Token.set_extension("says", getter=lambda token: f"a${token.lower_}", force=True)
    yield
    Token.remove_extension("says")


def features(name, **settings):
    block = {"@misc": f"spacy-hocrf.{name}.v1", **settings}
    return {"model": {"features": {"@misc": "spacy-hocrf.Features.v1", "*": {"x": block}}}}


def constraints(**settings):
    return {"constraints": {"@misc": "spacy-hocrf.Constraints.v1", **settings}}


def rules(kind, **settings):
    return constraints(rules={"own": {"@misc": f"spacy-hocrf.{kind}.v1", **settings}})


def places(*pattern):
    found = {"@misc": "spacy-hocrf.MatchedPlaces.v1", "pattern": [*pattern]}
    block = {"@misc": "spacy-hocrf.Pattern.v1", "states": [r"US\x24", "P"], "places": found}
    return {"joint": {"@misc": "spacy-hocrf.Joint.v1", "features": {"x": block}}}


def trained(config, factory="hocrf"):
    nlp = spacy.blank("xx")
    nlp.add_pipe(factory, config=config)
    examples = [Example.from_dict(nlp.make_doc(t), {"entities": spans}) for t, spans in TEXTS]
    key = config.get("spans_key")
    for example in examples if key is not None else []:
        example.reference.spans[key] = [*example.reference.ents]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        optimizer = nlp.initialize(lambda: examples)
    for _ in range(10):
        nlp.update(examples, sgd=optimizer)
    return nlp


def said(nlp):
    doc = nlp(TEXTS[1][0])
    groups = {key: [(span.text, span.label_) for span in group] for key, group in doc.spans.items()}
    return [(ent.text, ent.label_) for ent in doc.ents], groups


@pytest.mark.slow
@pytest.mark.parametrize(
    "config, setting, instead",
    [
        (features("Pieces", attrs=["_.says"], separator="$"), "separator", r"\\\\x24"),
        (features("Pieces", attrs=["_.says"], separator="$$"), "separator", r"\\\\x24\\\\x24"),
        (features("Spans", source="spans.$x"), "source", "name without"),
        ({"model": {"order": 1, "patterns": [["P", "US$"]]}}, "patterns", r"US\\\\x24"),
        (constraints(forbidden=[["US$", "P"]]), "forbidden", r"US\\\\x24"),
        (constraints(spans_key="$"), "spans_key", "name without"),
        (rules("AtMost", labels=["US$"]), "labels", r"US\\\\x24"),
        (rules("Precedes", pairs=[["US$", "P"]]), "pairs", r"US\\\\x24"),
        ({"scores_key": "$"}, "scores_key", "name without"),
    ],
)
def test_a_dollar_sign_that_would_be_doubled_is_refused(config, setting, instead):
    with pytest.raises(ValueError, match=f"H267.*{setting} = .*{instead}"):
        trained(config)


@pytest.mark.slow
@pytest.mark.parametrize(
    "config",
    [
        features("Pieces", attrs=["_.says"], separator=r"\x24"),
        {"model": {"order": 1, "patterns": [["P", r"US\x24"]]}},
        {"model": {"max_length": {"US$": 3}}},
        constraints(forbidden=[[r"US\x24", "P"]], required=[["P", "O"]], at_most={"US$": 2}),
        rules("AtMost", labels=[r"US\x24"]),
        rules("Precedes", pairs=[["P", r"US\x24"]]),
        places({"TEXT": r"\x24", "PLACE": 1}, {"TEXT": {"REGEX": r"\x24|t"}, "PLACE": 2}),
    ],
)
def test_a_dollar_sign_as_it_may_be_written_survives_two_savings(config, tmp_path):
    nlp = trained(config)
    expected = said(nlp)
    assert ("7 $", "US$") in expected[0]
    for path in (tmp_path / "1", tmp_path / "2"):
        nlp.to_disk(path)
        nlp = spacy.load(path)
        assert said(nlp) == expected
    again = spacy.blank("xx").from_config(Config().from_bytes(nlp.config.to_bytes()))
    assert said(again.from_bytes(nlp.to_bytes())) == expected


@pytest.mark.slow
@pytest.mark.parametrize("label", ["nmod:poss", "a=b", "#a", ";a", "[a]", " a", "a "])
def test_names_that_a_file_does_not_give_back_are_refused(label):
    nlp = spacy.blank("xx")
    nlp.add_pipe("hocrf", config={"model": {"max_length": {label: 3}}})
    example = Example.from_dict(nlp.make_doc("Ada pays"), {"entities": [(0, 3, label)]})
    with pytest.raises(ValueError, match=rf"H267.*{re.escape(label)}.*model.max_length\]"):
        nlp.initialize(lambda: [example])


@pytest.mark.parametrize("key", ["a:b", "a=b", "a\nb"])
def test_a_span_group_whose_scores_a_file_does_not_give_back_is_refused(key):
    with pytest.raises(ValueError, match=r"H267.*spans_key.*names of its scores"):
        trained({"spans_key": key}, "hocrf_spans")


@pytest.mark.parametrize("key", ["a.b", "[#", " ", ""])
def test_scores_of_other_span_groups_are_given_back(key, tmp_path):
    nlp = trained({"spans_key": key}, "hocrf_spans")
    nlp.to_disk(tmp_path)
    weights = spacy.load(tmp_path).config["training"]["score_weights"]
    assert weights == nlp.config["training"]["score_weights"]
    assert f"spans_{key}_f" in weights


@pytest.mark.slow
@pytest.mark.parametrize("label", ["a.b", "A b", "a-b", "ä", "a#b", "100%"])
def test_other_names_are_given_back(label, tmp_path):
    nlp = spacy.blank("xx")
    nlp.add_pipe("hocrf", config={"model": {"max_length": {label: 3}}})
    example = Example.from_dict(nlp.make_doc("Ada pays"), {"entities": [(0, 3, label)]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nlp.initialize(lambda: [example])
    nlp.to_disk(tmp_path)
    settings = spacy.load(tmp_path).get_pipe("hocrf").structure.settings
    assert settings.max_length == {label: 3}


def test_pieces_are_cut_at_the_dollar_sign():
    nlp = trained(features("Pieces", attrs=["_.says"], separator=r"\x24"))
    settings = nlp.get_pipe("hocrf").structure.settings
    assert {getattr(template, "separator", "$") for template in settings.templates} == {"$"}


def test_variables_are_no_dollar_signs_and_what_they_stand_for_may_have_some():
    text = spacy.blank("xx").config.to_str() + "\n\n[vars]\nsep = {sep}\nfew = 3\n"
    block = """
[components]

[components.hocrf]
factory = "hocrf"

[components.hocrf.model]
@architectures = "spacy-hocrf.HighOrderCRF.v1"
order = 1
max_length = ${vars.few}

[components.hocrf.model.features]
@misc = "spacy-hocrf.Features.v1"

[components.hocrf.model.features.*.x]
@misc = "spacy-hocrf.Pieces.v1"
attrs = ["_.says"]
separator = ${vars.sep}
"""
    for written, code in [('"a"', None), ('"$"', "H267"), (r'"\u0024"', "H267")]:
        both = text.replace("{sep}", written).replace("\n[components]\n", block)
        both = both.replace("pipeline = []", 'pipeline = ["hocrf"]')
        nlp = spacy.util.load_model_from_config(
            Config().from_str(both, interpolate=False), auto_fill=True
        )
        examples = [Example.from_dict(nlp.make_doc(t), {"entities": s}) for t, s in TEXTS]
        if code is None:
            nlp.initialize(lambda examples=examples: examples)
            continue
        with pytest.raises(ValueError, match=code):
            nlp.initialize(lambda examples=examples: examples)


def test_a_backslash_that_is_no_json_is_named():
    # spaCy takes what is no JSON as it stands, with its quotation marks
    text = '[a]\nseparator = "\\x24"\n'
    separator = Config().from_str(text)["a"]["separator"]
    with pytest.raises(ValueError, match=r"H268.*separator.*two backslashes"):
        trained(features("Pieces", attrs=["_.says"], separator=separator))


def test_settings_of_links_are_looked_through_too():
    nlp = spacy.blank("xx")
    items = {"@misc": "spacy-hocrf.SpanItems.v1", "spans_key": "$"}
    nlp.add_pipe("hocrf_links", config={"items": items})
    example = Example.from_dict(nlp.make_doc(TEXTS[0][0]), {})
    with pytest.raises(
        ValueError, match=r"H267.*spans_key = '\$' in \[components.hocrf_links.items\]"
    ):
        nlp.initialize(lambda: [example])


def test_names_and_keys_outside_of_training():
    nlp = spacy.blank("xx")
    with pytest.raises(ValueError, match=r"H267.*spans_key = '\$ner'"):
        nlp.add_pipe("hocrf_ents_to_spans", config={"spans_key": "$ner"})
    pipe = nlp.add_pipe("hocrf", name="all$")
    example = Example.from_dict(nlp.make_doc(TEXTS[0][0]), {"entities": TEXTS[0][1]})
    with pytest.raises(ValueError, match=r"H267.*name = 'all\$'"):
        nlp.initialize(lambda: [example])
    pipe.initialize(lambda: [example])  # by itself, without a config
    assert pipe.labels == ("US$",)
