"""The registered functions of [components.*.model.features]: what they make, what they refuse, and
how their blocks merge.
"""

import pytest
import spacy
from spacy.tokens import Token
from spacy.util import registry
from thinc.api import Config

from spacy_hocrf.features.combined import Wider, make_features
from spacy_hocrf.features.config import make_token, make_transition
from spacy_hocrf.features.flags import FLAGS
from spacy_hocrf.features.segments import TransitionTemplate
from spacy_hocrf.features.tokens import ATTRIBUTES
from spacy_hocrf.model.structure import Settings
from spacy_hocrf.types import CONST, END, INNER, LENGTH, SPAN, START, TOKEN


def make(function, **arguments):
    return registry.misc.get(f"spacy-hocrf.{function}.v1")(**arguments)


def names(templates):
    return [template.name for template in templates]


def of_order(templates, order):
    """Those of a model of an order."""
    return [*Settings(tuple(templates), order=order).used]


@pytest.fixture
def extension():
    Token.set_extension("unit", default="", force=True)
    yield
    Token.remove_extension("unit")


TOKENS = {"parts": ["tokens"]}

MADE = [
    ("Token", {"attrs": ["NORM", "SHAPE"], **TOKENS}, ["NORM[0]", "SHAPE[0]"], TOKEN),
    (
        "Token",
        {"attrs": ["NORM"], "window": [-1, 2], "parts": ["end"], "order": 1},
        ["end:NORM[-1]@1", "end:NORM[2]@1"],
        END,
    ),
    (
        "Token",
        {"attrs": ["_.unit", "MORPH.Case"], "parts": ["inner"]},
        ["inner:_.unit[0]", "inner:MORPH.Case[0]"],
        INNER,
    ),
    (
        "Conjunction",
        {"terms": ["NORM[-1]", "SHAPE"], "parts": ["start"]},
        ["start:NORM[-1]|SHAPE[0]"],
        START,
    ),
    (
        "CharNgrams",
        {"prefix": [1, 2], "suffix": [3], **TOKENS},
        ["NORM:prefix1", "NORM:prefix2", "NORM:suffix3"],
        TOKEN,
    ),
    (
        "CharNgrams",
        {"attr": "LOWER", "inside": [2], "order": 2, **TOKENS},
        ["LOWER:inside2@2"],
        TOKEN,
    ),
    ("Flags", TOKENS, ["FLAG[0]"], TOKEN),
    (
        "Flags",
        {"window": [-1, 1], "parts": ["end"], "order": 1},
        ["end:FLAG[-1]@1", "end:FLAG[1]@1"],
        END,
    ),
    ("Position", {"bins": 4, **TOKENS}, ["POSITION/4"], TOKEN),
    ("Real", {"source": "tensor", "window": [0, 1]}, ["tensor[0]", "tensor[1]"], TOKEN),
    ("Real", {"source": "_.unit", "parts": ["start"]}, ["start:_.unit[0]"], START),
    ("Transition", {}, ["LABELS@1"], CONST),
    ("Transition", {"order": 0, "copies": 2}, ["LABELS", "LABELS.1"], CONST),
    (
        "Transition",
        {"order": 2, "terms": ["FIRST.NORM", "BEFORE.SHAPE[-1]"]},
        ["start:NORM[0]|SHAPE[-2]@2"],
        START,
    ),
    (
        "Transition",
        {"order": 1, "terms": ["LAST.NORM", "AFTER.NORM"]},
        ["end:NORM[0]|NORM[1]@1"],
        END,
    ),
    ("Transition", {"order": 1, "terms": ["TOKENS._.unit"]}, ["_.unit[0]@1"], TOKEN),
    ("Segment", {"what": ["LENGTH"], "order": 1}, ["LENGTH@1"], LENGTH),
    ("Segment", {"what": ["TEXT"], "attrs": ["NORM", "LOWER"]}, ["TEXT.NORM", "TEXT.LOWER"], SPAN),
    ("Segment", {"what": ["FIRST", "BEFORE"]}, ["start:NORM[0]", "start:NORM[-1]"], START),
    ("Segment", {"what": ["LAST", "AFTER"]}, ["end:NORM[0]", "end:NORM[1]"], END),
    ("Spans", {"source": "ents", "what": ["MATCH"], "order": 2}, ["ENTS:MATCH@2"], SPAN),
]


@pytest.mark.parametrize("function, arguments, made, part", MADE)
def test_a_registered_function_makes_templates(extension, function, arguments, made, part):
    templates = make(function, **arguments)
    assert names(templates) == made
    assert {template.part for template in templates} == {part}
    assert {template.order for template in templates} == {
        arguments.get("order", 1 if function == "Transition" else 0)
    }


@pytest.mark.parametrize(
    "function, arguments, observed",
    [
        ("Token", {"attrs": ["NORM", "SHAPE"]}, ["NORM[0]", "SHAPE[0]"]),
        ("Conjunction", {"terms": ["NORM[-1]", "NORM"]}, ["NORM[-1]|NORM[0]"]),
        ("CharNgrams", {"prefix": [1], "suffix": [2]}, ["NORM:prefix1", "NORM:suffix2"]),
        ("Flags", {}, ["FLAG[0]"]),
        ("Position", {}, ["POSITION/10"]),
        ("Real", {"source": "tensor", "window": [0, 1]}, ["tensor[0]", "tensor[1]"]),
    ],
)
def test_a_block_looks_at_several_parts(function, arguments, observed):
    templates = make(function, **arguments, parts=["end", "tokens"], order=1)
    assert names(templates) == [f"{part}{name}@1" for part in ("end:", "") for name in observed]
    assert [template.part for template in templates] == [
        part for part in (END, TOKEN) for _ in observed
    ]


def test_the_default_window():
    words = [f"NORM[{i}]" for i in (-1, 0, 1)] + [f"SHAPE[{i}]" for i in (-2, -1, 0, 1, 2)]
    affixes = [f"NORM:{kind}{n}" for kind in ("prefix", "suffix") for n in (1, 2, 3, 4)]
    inside = [*words, *affixes, "FLAGS[-1]|FLAGS[0]", "FLAGS[0]|FLAGS[1]", "FLAG[0]"]
    made = names(make("Window", order=1, wide=False))
    ends = [f"{end}:{name}" for end in ("start", "end") for name in inside]
    assert made == [*inside, *ends, "LENGTH", "LABELS", "LABELS@1", "vector[0]"]
    assert names(make("Window", **BARE | {"attrs": ["LOWER", "SHAPE"]})) == [
        "LOWER[0]",
        "SHAPE[0]",
        "LABELS",
    ]


@pytest.mark.parametrize("vectors", ["auto", True, False])
def test_vectors_of_a_window_are_optional_if_they_are_auto(vectors):
    found = make("Window", **BARE | {"vectors": vectors})[2:]
    assert [each.optional for each in found] == ([vectors == "auto"] if vectors else [])
    assert not vectors or found[0].name == make("Vectors")[0].name


def test_a_block_of_vectors_takes_the_place_of_those_of_the_window():
    window, mine = make("Window", **BARE | {"vectors": "auto"}), make("Vectors", scale=2.0)
    for blocks in ((window, mine), (mine, window)):
        (found,) = (each for each in make_features(*blocks) if each.name == "vector[0]")
        assert found.scale == 2.0 and not found.optional
    with pytest.raises(ValueError, match="H240"):
        make_features(make("Window", **BARE | {"vectors": True}), mine)


BARE = {
    "attrs": ["NORM"],
    "window": 0,
    "prefix": [],
    "suffix": [],
    "bigrams": [],
    "flags": [],
    "boundaries": False,
    "lengths": False,
    "order": 0,
    "vectors": False,
    "wide": False,
}


@pytest.mark.parametrize(
    "more, observed",
    [
        (
            {"attrs": ["NORM", "ORTH", "SHAPE"], "window": {"SHAPE": 1, "NORM": 0}},
            ["NORM[0]", "ORTH[0]", "SHAPE[-1]", "SHAPE[0]", "SHAPE[1]"],
        ),
        ({"attrs": ["NORM", "ORTH"], "window": {}}, ["NORM[0]", "ORTH[0]"]),
        (
            {"attrs": ["ORTH", "NORM"], "window": None},
            [*(f"ORTH[{i}]" for i in (-1, 0, 1)), *(f"NORM[{i}]" for i in (-2, -1, 0, 1, 2))],
        ),
        ({"prefix": [5]}, ["NORM[0]", "NORM:prefix5"]),
        (
            {"bigrams": ["ORTH", "SHAPE"]},
            [
                "NORM[0]",
                "ORTH[-1]|ORTH[0]",
                "ORTH[0]|ORTH[1]",
                "SHAPE[-1]|SHAPE[0]",
                "SHAPE[0]|SHAPE[1]",
            ],
        ),
        ({"flags": [0, 1]}, ["NORM[0]", "FLAG[0]", "FLAG[1]"]),
    ],
)
def test_what_a_window_observes_of_every_token_and_of_both_ends(more, observed):
    assert names(make("Window", **BARE | more)) == [*observed, "LABELS"]
    ends = [f"{end}:{name}" for end in ("start", "end") for name in observed]
    made = names(make("Window", **BARE | more | {"boundaries": True}))
    assert made == [*observed, *ends, "LABELS"]


def test_a_wide_window_observes_more_of_the_words_around():
    narrow, wide, auto = make("Window", wide=False), make("Window", wide=True), make("Window")
    words = ["NORM[-2]", "NORM[2]", "ORTH[0]"]
    pairs = [f"{a}[{i}]|{a}[{i + 1}]" for a in ("SHAPE", "NORM") for i in (-1, 0)]
    more = [f"{part}{name}" for part in ("", "start:", "end:") for name in [*words, *pairs]]
    assert [name for name in names(wide) if name not in names(narrow)] == more
    assert not {*names(narrow)} - {*names(wide)}
    assert names(auto) == names(wide)
    assert [each.name for each in auto if isinstance(each, Wider)] == more


@pytest.mark.parametrize("settings", [BARE, {"attrs": ["NORM"], "window": 1, "bigrams": []}])
def test_a_window_whose_words_are_all_named_is_not_wider(settings):
    assert not any(
        isinstance(each, Wider) for each in make("Window", **settings | {"wide": "auto"})
    )


def test_a_template_that_another_block_asks_for_is_there_however_wide_the_window_is():
    own = make("Token", attrs=["NORM"], window=[2], parts=["tokens"])
    both = make_features(make("Window", wide="auto"), own)
    [found] = [each for each in both if each.name == "NORM[2]"]
    assert found == own[0]


def test_a_window_observes_some_of_it_of_both_ends():
    everything = {"prefix": [1], "suffix": [2], "bigrams": ["SHAPE"], "flags": [0]}
    ends = {
        "attrs": ["NORM[0]"],
        "prefix": ["NORM:prefix1"],
        "suffix": ["NORM:suffix2"],
        "bigrams": ["SHAPE[-1]|SHAPE[0]", "SHAPE[0]|SHAPE[1]"],
        "flags": ["FLAG[0]"],
    }
    inside = [name for observed in ends.values() for name in observed]
    for some in ([], ["flags"], ["suffix", "attrs"], ["bigrams"], [*ends]):
        found = names(make("Window", **BARE | everything | {"boundaries": some}))
        chosen = [name for setting in ends if setting in some for name in ends[setting]]
        expected = [f"{end}:{name}" for end in ("start", "end") for name in chosen]
        assert found == [*inside, *expected, "LABELS"]


@pytest.mark.parametrize("order", [0, 1, 5, 40])
def test_the_default_window_has_label_patterns_of_every_order_that_a_model_has(order):
    made = of_order(make("Window", vectors=False, wide=False), order)
    assert [template.order for template in made if template.part == CONST] == [*range(order + 1)]


def test_label_patterns_of_all_orders_stand_where_their_block_does():
    every = make_transition(None, copies=2)
    words = make_token(["NORM"], parts=["tokens"])
    assert names(every) == ["LABELS@1 and up", "LABELS.1@1 and up"]
    for order, made in ((0, []), (1, ["@1"]), (3, ["@1", "@2", "@3"])):
        labels = [f"{kind}{each}" for kind in ("LABELS", "LABELS.1") for each in made]
        assert names(of_order([*every, *words], order)) == [*labels, "NORM[0]"]
    both = of_order(make_features(words, make_transition(2), make_transition(None)), 3)
    assert names(both) == ["NORM[0]", "LABELS@2", "LABELS@1", "LABELS@3", "LENGTH", "LABELS"]
    assert not any(each.every for each in both if each.part == CONST)


REFUSED = [
    ("Token", {"attrs": ["SHAPPE"]}, ["H023", "'SHAPPE'", *ATTRIBUTES]),
    ("Token", {"attrs": ["MORPH."]}, ["H023", "'MORPH.'"]),
    ("Token", {"attrs": ["HEAD"]}, ["H023", "'HEAD'", "a head"]),
    ("CharNgrams", {"attr": "SHAPPE", "prefix": [1]}, ["H023", "'SHAPPE'"]),
    ("Segment", {"attrs": ["SHAPPE"]}, ["H023", "'SHAPPE'"]),
    ("Conjunction", {"terms": ["SHAPPE[1]"]}, ["H023", "'SHAPPE'"]),
    ("Transition", {"terms": ["FIRST.SHAPPE"]}, ["H023", "'SHAPPE'"]),
    ("Window", {"attrs": ["SHAPPE"]}, ["H023", "'SHAPPE'"]),
    ("Token", {"attrs": ["_.gone"]}, ["H024", "_.gone", "set_extension"]),
    ("Real", {"source": "_.gone"}, ["H024", "_.gone", "set_extension"]),
    ("Conjunction", {"terms": ["NORM[x]"]}, ["H026", "'NORM[x]'", "NORM[-1]"]),
    ("Features", {}, ["H028", "no feature templates"]),
    ("Token", {"attrs": []}, ["H030", "'attrs'"]),
    ("Token", {"attrs": ["NORM"], "window": []}, ["H030", "'window'"]),
    ("Window", {"attrs": []}, ["H030", "'attrs'"]),
    ("Window", {"window": -1}, ["H030", "'window'"]),
    ("Conjunction", {"terms": []}, ["H030", "'terms'"]),
    ("CharNgrams", {}, ["H030", "'prefix, suffix, inside'"]),
    ("Real", {"source": "tensor", "window": []}, ["H030", "'window'"]),
    ("Segment", {"what": []}, ["H030", "'what'"]),
    ("Segment", {"attrs": []}, ["H030", "'attrs'"]),
    ("Token", {"attrs": ["NORM"], "parts": ["middle"]}, ["H031", "'middle'", "start, end, tokens, inner"]),
    *((name, {**arguments, **bad}, parts) for name, arguments in [
        ("Token", {"attrs": ["NORM"]}),
        ("Conjunction", {"terms": ["NORM"]}),
        ("CharNgrams", {"prefix": [1]}),
        ("Flags", {}),
        ("Position", {}),
        ("Real", {"source": "tensor"}),
    ] for bad, parts in [
        ({"parts": []}, ["H030", "'parts'"]),
        ({"parts": ["tokens", "middle"]}, ["H031", "'middle'"]),
        ({"parts": ["start", "end", "start"]}, ["H140", "['start', 'end', 'start']"]),
    ]),
    *((name, {**arguments, "order": -1}, ["H032", "-1"]) for name, arguments in [
        ("Token", {"attrs": ["NORM"]}),
        ("Conjunction", {"terms": ["NORM"]}),
        ("CharNgrams", {"prefix": [1]}),
        ("Flags", {}),
        ("Position", {}),
        ("Real", {"source": "tensor"}),
        ("Transition", {}),
        ("Segment", {}),
        ("Spans", {"source": "ents"}),
    ]),
    ("CharNgrams", {"suffix": [2, 0]}, ["H033", "'suffix': [2, 0]"]),
    ("CharNgrams", {"prefix": "3"}, ["H033", "'prefix': '3'"]),
    ("Window", {"suffix": ["3"]}, ["H033", "'suffix': ['3']"]),
    ("Position", {"bins": "3"}, ["H033", "3"]),
    ("Transition", {"copies": "3"}, ["H033", "3"]),
    ("Segment", {"longest": "3"}, ["H033", "'longest': '3'"]),
    ("Token", {"attrs": ["NORM"], "window": ["1"]}, ["H038", "['1']"]),
    ("Window", {"window": "2"}, ["H038", "'2'"]),
    ("Position", {"bins": 0}, ["H033", "0"]),
    ("Transition", {"copies": 0}, ["H033", "0"]),
    *(("Segment", {"bins": bins}, ["H033", str(bins)]) for bins in ([], [2, 3], [1, 3, 2], [1, 1])),
    ("Segment", {"longest": 0}, ["H033", "'longest': 0"]),
    ("Real", {"source": "tensors"}, ["H034", "'tensors'", "'tensor', 'vector' or '_.name'"]),
    ("Transition", {"order": None, "terms": ["LAST.NORM"]}, ["H326", "['LAST.NORM']", "Name the order"]),
    ("Transition", {"terms": ["NORM"]}, ["H035", "'NORM'", "FIRST, LAST, BEFORE, AFTER, TOKENS"]),
    ("Transition", {"terms": ["MIDDLE.NORM"]}, ["H035", "'MIDDLE.NORM'"]),
    ("Transition", {"terms": ["FIRST."]}, ["H035", "'FIRST.'"]),
    ("Transition", {"terms": ["FIRST.NORM", "LAST.NORM"]}, ["H036", "['FIRST.NORM', 'LAST.NORM']"]),
    ("Segment", {"what": ["LENGHT"]}, ["H037", "'LENGHT'", "LENGTH, TEXT, FIRST, LAST, BEFORE, AFTER"]),
    *(("Spans", {"source": found}, ["H180", f"'{found}'", "'ents'"]) for found in ("", "ner", "spans.")),
    ("Spans", {"source": "ents", "scores": ["bins"]}, ["H180", "'ents'", "has no scores"]),
    ("Spans", {"source": "ents", "what": []}, ["H030", "'what'"]),
    ("Spans", {"source": "ents", "what": ["SPAN"]}, ["H037", "'SPAN'", "MATCH, START, END, OVERLAP, TOKENS"]),
    ("Spans", {"source": "spans.a", "scores": ["bin"]}, ["H037", "'bin'", "bins, value"]),
    *(("Spans", {"source": "ents", "bins": bins}, ["H183", str(bins)]) for bins in
      ([], [0.5, 0.5], [0.9, 0.5], [float("nan")], [0.5, float("inf")])),
    ("Token", {"attrs": ["NORM"], "window": [0, 101]}, ["H038", "[0, 101]", "-100 and 100"]),
    ("Conjunction", {"terms": ["NORM[-101]"]}, ["H038", "[-101]"]),
    ("Real", {"source": "vector", "window": [-101]}, ["H038", "[-101]"]),
    ("Transition", {"terms": ["AFTER.NORM[100]"]}, ["H038", "[101]"]),
    ("Window", {"window": 101}, ["H038", "-100 and 100"]),
    ("Window", {"flags": [-101]}, ["H038", "[-101]"]),
    ("Flags", {"window": []}, ["H030", "'window'"]),
    ("Flags", {"flags": []}, ["H030", "'flags'"]),
    ("Flags", {"flags": ["IS_TITLE", "IS_STOP"]}, ["H142", "'IS_STOP'", *FLAGS]),
    ("Window", {"window": {"NORM": 1, "ORTH": 1}}, ["H141", "'ORTH'", "attrs: NORM, SHAPE"]),
    ("Window", {"window": {"NORM": -1}}, ["H030", "'window'"]),
    ("Window", {"attrs": ["NORM", "NORM"]}, ["H029", "'NORM[-1]'"]),
    ("Window", {"bigrams": ["SHAPPE"]}, ["H023", "'SHAPPE'"]),
    ("Window", {"vectors": "always"}, ["H174", "'always'"]),
    ("Window", {"wide": "no"}, ["H244", "'no'", "auto"]),
    ("Window", {"boundaries": ["words"]}, ["H037", "'words'", "attrs, prefix, suffix, bigrams, flags"]),
]  # fmt: skip


@pytest.mark.parametrize("function, arguments, parts", REFUSED)
def test_a_bad_argument_is_named_with_the_choices(function, arguments, parts):
    with pytest.raises(ValueError) as caught:
        make(function, **arguments)
    for part in parts:
        assert part in str(caught.value)
    assert str(caught.value).startswith(f"[{parts[0]}] ")


@pytest.mark.parametrize("block", [TransitionTemplate(0), [object()], None, "word"])
def test_a_block_that_is_no_list_of_templates_is_named(block):
    with pytest.raises(ValueError, match=r"\[H575\].* list of templates") as caught:
        make_features(make_transition(1), block)
    assert repr(block) in str(caught.value)


def test_a_template_that_occurs_twice_in_a_block_is_named():
    with pytest.raises(ValueError, match=r"H029.*'NORM\[0\]'.*one block"):
        make_features(make_transition(1), make_token(["NORM", "SHAPE", "NORM"]))


def test_what_two_blocks_have_alike_is_there_once():
    window, own = make("Window"), make("Token", attrs=["NORM", "POS"], window=[0, 1])
    assert len({*names(own)} & {*names(window)}) == 6
    both = make_features(window, own)
    assert sorted(names(both)) == sorted({*names(window), *names(own)})
    assert names(make_features(own, window))[: len(own)] == names(own)


@pytest.mark.parametrize(
    "more, name",
    [
        ({"function": "Segment", "what": ["LENGTH"], "bins": [1, 9]}, "LENGTH"),
        ({"function": "Flags", "flags": ["IS_TITLE"]}, r"FLAG\[0\]"),
        ({"function": "Vectors", "scale": 2.0}, r"vector\[0\]"),
    ],
)
def test_one_template_with_two_settings_is_named_with_both(more, name):
    window = make("Window", vectors=True)
    with pytest.raises(ValueError, match=rf"H240.*'{name}'.*different.*lengths = false"):
        make_features(window, make(**more))


BASICS = ["LENGTH", "LABELS", "LABELS@1", "LABELS@2", "LABELS@3"]


def test_a_list_of_blocks_has_what_no_model_does_without():
    words = make_token(["NORM"])
    assert names(of_order(make_features(words), 3)) == [*names(words), *BASICS]
    assert names(make_features(words, basics=False)) == names(words)


def test_basics_give_way_to_blocks():
    lengths, order = make("Segment", what=["LENGTH"], bins=[1, 9]), make_transition(2)
    assert names(of_order(make_features(order, lengths), 3)) == [
        "LABELS@2",
        "LENGTH",
        *(name for name in BASICS if name not in ("LABELS@2", "LENGTH")),
    ]
    assert lengths[0] in make_features(order, lengths)


def test_nothing_is_added_beside_a_window():
    window = make("Window", lengths=False, order=0)
    assert names(make_features(window, make_transition(2))) == [*names(window), "LABELS@2"]


BLOCKS = """
[features]
@misc = "spacy-hocrf.Features.v1"

[features.*.second]
@misc = "spacy-hocrf.Transition.v1"
order = 1

[features.*.first]
@misc = "spacy-hocrf.Token.v1"
attrs = ["NORM"]
"""


def test_blocks_are_taken_in_the_order_of_the_config():
    features = registry.resolve(Config().from_str(BLOCKS))["features"]
    assert names(features)[:2] == ["LABELS@1", "NORM[0]"]


NLP = """
[nlp]
lang = "en"
pipeline = ["hocrf"]

[components]

[components.hocrf]
factory = "hocrf"
"""


def features_of(nlp):
    return nlp.get_pipe("hocrf").structure.settings.templates


def test_without_a_block_the_default_is_the_window():
    nlp = spacy.util.load_model_from_config(Config().from_str(NLP), auto_fill=True, validate=True)
    assert (
        nlp.config["components"]["hocrf"]["model"]["features"]["@misc"] == "spacy-hocrf.Window.v1"
    )
    assert len(features_of(nlp)) > 10


def test_blocks_of_a_users_own_replace_the_default_window_wholesale():
    own = BLOCKS.replace("[features", "[components.hocrf.model.features")
    config = Config().from_str(
        f'{NLP}\n[components.hocrf.model]\n@architectures = "spacy-hocrf.HighOrderCRF.v1"\n{own}'
    )
    nlp = spacy.util.load_model_from_config(config, auto_fill=True, validate=True)
    assert names(features_of(nlp))[:5] == [
        "LABELS@1",
        "NORM[0]",
        "start:NORM[0]",
        "end:NORM[0]",
        "LENGTH",
    ]
    assert nlp.config["components"]["hocrf"]["model"]["features"]["basics"]
