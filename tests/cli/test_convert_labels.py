"""`python -m spacy hocrf convert`: labels of tokens in all schemes and ways of writing, and comments."""

import converting
import pytest
from converting import iob, named

from spacy_hocrf.cli.convert.labels import scheme_of, spans_of
from spacy_hocrf.cli.convert.records import ConvertSettings

MISPLACED = "labels inside a span that does not begin: taken as its beginning"
BAD = "labels that are no part of a span: unknown"


def read(tmp_path, lines, name="a.conll", into="ents", **settings):
    """The Docs of lines, and the losses."""
    content, settings = "\n".join(lines) + "\n", ConvertSettings(**settings)
    docs, report = converting.read(tmp_path / name, content, settings=settings, into=into)
    return docs, report.losses


def tokens(words, labels):
    return [f"{word} {label}" for word, label in zip(words.split(), labels.split())]


@pytest.mark.parametrize(
    "labels, expected",
    [
        # IOB1: B only between two of a label
        ("I-A I-A B-A O I-B", [(0, 2), (2, 3), (4, 5)]),
        # IOB2
        ("B-A I-A B-A O B-B", [(0, 2), (2, 3), (4, 5)]),
        # IOE1 and IOE2: E ends a span, and begins one where none of its label is open
        ("I-A E-A E-A O O", [(0, 2), (2, 3)]),
        ("I-A E-A I-A O O", [(0, 2), (2, 3)]),
        ("E-A E-A O E-B I-B", [(0, 1), (1, 2), (3, 4), (4, 5)]),
        # BIOES
        ("B-A I-A E-A S-A S-A", [(0, 3), (3, 4), (4, 5)]),
        ("S-A I-A E-A S-A E-A", [(0, 1), (1, 3), (3, 4), (4, 5)]),
        ("B-A E-B E-A O I-A", [(0, 1), (1, 2), (2, 3), (4, 5)]),
        # BILOU
        ("B-A I-A L-A U-A L-A", [(0, 3), (3, 4), (4, 5)]),
        # BMES, BMEOW
        ("B-A M-A E-A S-A M-A", [(0, 3), (3, 4), (4, 5)]),
        ("B-A M-A E-A W-A W-A", [(0, 3), (3, 4), (4, 5)]),
        ("B-A B-A I-B I-A O", [(0, 1), (1, 2), (2, 3), (3, 4)]),
    ],
)
@pytest.mark.parametrize("way", ["B-X", "b-X", "B_X", "X-B", "X_B"])
def test_spans_of_all_schemes_in_all_ways_of_writing(labels, expected, way):
    labels = labels.split()
    written = [label if label == "O" else rewritten(label, way) for label in labels]
    spans = spans_of(written, way)
    assert [(start, end) for start, end, _ in spans] == expected
    for start, _, label in spans:
        assert label == labels[start][2:]


def rewritten(label, way):
    letter, _, name = label.partition("-")
    return {
        "B-X": label,
        "b-X": f"{letter.lower()}-{name}",
        "B_X": f"{letter}_{name}",
        "X-B": f"{name}-{letter}",
        "X_B": f"{name}_{letter}",
    }[way]


@pytest.mark.parametrize("scheme", ["auto", "bio"])
def test_brackets_around_spans_are_read(tmp_path, scheme):
    lines = tokens("Ada Lovelace met Max in Rome", "(PER* *) * (PER*) * (LOC)")
    docs, losses = read(tmp_path, [*lines, "", *tokens("Max ran", "(PER) *")], scheme=scheme)
    expected = [("Ada Lovelace", "PER"), ("Max", "PER"), ("Rome", "LOC")]
    assert [named(doc.ents) for doc in docs] == [expected, [("Max", "PER")]] and not losses
    assert docs[1][1].ent_iob_ == "O"


def test_an_end_ends_only_its_own_span(tmp_path):
    lines = tokens("Ada Lovelace Max met", "I-PER E-PER E-PER O")
    (doc,), losses = read(tmp_path, lines)
    assert named(doc.ents) == [("Ada Lovelace", "PER"), ("Max", "PER")] and not losses


@pytest.mark.parametrize("scheme", ["auto", "bio"])
@pytest.mark.parametrize(
    "labels, label",
    [
        ("PER_B PER_I O", "PER"),
        ("B_PER I_PER O", "PER"),
        ("b-PER i-PER o", "PER"),
        ("PER-b PER-i O", "PER"),
        ("date-of-birth_B date-of-birth_I O", "date-of-birth"),
        ("B I O", "SPAN"),
        ("b i o", "SPAN"),
        ("B- I- O", "SPAN"),
        ("B E _", "SPAN"),
    ],
)
def test_letters_are_found_wherever_they_stand(tmp_path, labels, label, scheme):
    (doc,), losses = read(tmp_path, tokens("Kim Min ran", labels), scheme=scheme)
    assert named(doc.ents) == [("Kim Min", label)] and not losses
    assert doc[2].ent_iob_ == "O"


def test_what_only_looks_like_letters_stands(tmp_path):
    (doc,), _ = read(tmp_path, tokens("a b c", "type_b in-l e-mail"))
    assert [label for _, label in named(doc.ents)] == ["type_b", "in-l", "e-mail"]
    assert scheme_of(["S-bahn", "U-bahn", "E-bike"]) == "io"


def test_letters_are_asked_for_and_none_are_there(tmp_path):
    with pytest.raises(ValueError, match=r"H362.*'PER'"):
        read(tmp_path, tokens("a b", "O PER"), scheme="bio")
    (doc,), _ = read(tmp_path, tokens("a b", "O O"), scheme="bio")
    assert doc.has_annotation("ENT_IOB", require_complete=True)


@pytest.mark.parametrize("scheme", ["auto", "bio"])
def test_one_bad_label_does_not_change_how_others_are_read(tmp_path, scheme):
    lines = ["a O", "", *tokens("Ada Lovelace won", "B-PER I-PER 0")]
    (_, doc), losses = read(tmp_path, lines, scheme=scheme)
    assert named(doc.ents) == [("Ada Lovelace", "PER")]
    assert iob(doc) == [3, 1, 0]  # of "won" nothing is known
    assert losses == [(BAD, "line 5 (0)", 1)]


def test_a_bad_label_stays_a_tag(tmp_path):
    (doc,), _ = read(tmp_path, tokens("Ada L. won", "B-PER I-PER 0"), into="tags")
    assert [token.tag_ for token in doc] == ["B-PER", "I-PER", "0"]


def test_the_label_of_missing_annotation_is_unknown(tmp_path):
    (doc,), losses = read(tmp_path, tokens("Ada L. won it", "B-P L-P - O"))
    assert iob(doc) == [3, 1, 0, 2]
    assert [(loss.what, loss.place) for loss in losses] == [("labels '-': unknown", "line 3 (-)")]


@pytest.mark.parametrize("labels", [["B-P", "", "O"], ["P", "", "O"], ["P", "-", "_"]])
def test_a_token_without_a_label_is_unknown_where_others_have_one(tmp_path, labels):
    lines = [f"w{i}\t{label}" for i, label in enumerate(labels)]
    (doc,), losses = read(tmp_path, lines)
    assert iob(doc) == [3, 0, 2]
    assert [loss.place[:6] for loss in losses] == ["line 2"]
    (doc,), losses = read(tmp_path, lines[:2])  # nothing else says that a token is in no span
    assert not losses


def test_a_mark_of_comments_may_be_a_label_of_crfsuite(tmp_path):
    lines = ["# a comment", "#\tw[0]=#", "CD\tw[0]=5"]
    (doc,), _ = read(tmp_path, lines, "a.crfsuite", into="tags")
    assert [(token.text, token.tag_) for token in doc] == [("#", "#"), ("5", "CD")]


def test_insides_that_do_not_begin_are_named_with_their_lines(tmp_path):
    _, losses = read(tmp_path, tokens("a b c d", "B-A O I-A L-B"))
    assert losses == [(MISPLACED, "line 3", 1), (MISPLACED, "line 4", 1)]


@pytest.mark.parametrize("separator", [" ", "\t"])
def test_a_comment_is_a_line_without_the_columns_of_the_file(tmp_path, separator):
    lines = ["# a comment of many words", "Buy O", "# O", "5 B-NUM", "# two", "No O", "# x"]
    lines = [line if "comment" in line else line.replace(" ", separator) for line in lines]
    docs, losses = read(tmp_path, lines, comment="#")
    assert [[token.text for token in doc] for doc in docs] == [["Buy", "#", "5"], ["No"]]
    assert [(loss.what, loss.place) for loss in losses] == [
        ("comments with as many columns as tokens: left out", "line 5"),
        ("comments with as many columns as tokens: left out", "line 7"),
    ]


def test_comments_alone_are_no_text(tmp_path):
    assert read(tmp_path, ["# a", "#"], comment="#") == ([], [])


CONLLU = """\
# sent_id = fr-1
1-2	du	_	_	_	_	_	_	_	_
1	de	de	ADP	P	_	3	case	_	_
2	le	le	DET	D	Definite=Def|Gender=Masc	3	det	_	_
3	Havre	Havre	PROPN	N	_	0	root	_	SpaceAfter=No|NE=B-LOC
3.1	x	_	_	_	_	_	_	_	_
4	.	.	PUNCT	.	_	3	punct	_	_

1	Ada	Ada	PROPN	N	_	0	root	_	B-per1
2	ran	ran	VERB	V	_	1	dep	_	_
"""


def test_a_token_of_several_words_is_one_token(tmp_path):
    (first, second), losses = read(tmp_path, CONLLU.split("\n"), "a.conllu")
    assert first.text == "du Havre. " and [token.text for token in first] == ["du", "Havre", "."]
    assert (first[0].tag_, first[0].lemma_, first[0].head.text) == ("P_D", "de le", "Havre")
    assert named(first.ents) == [("Havre", "LOC")] and named(second.ents) == [("Ada", "per1")]
    assert second[1].ent_iob_ == "O"
    assert (first._.hocrf_id, second._.hocrf_id) == ("fr-1", None)
    assert {loss.place: loss.what for loss in losses} == {
        "line 2": "tokens of several words (1-2) that do not make them up: one token",
        "line 6": "words that are not in the text (8.1): left out",
    }


def test_a_token_that_its_words_make_up_is_these_words(tmp_path):
    rows = [
        "1-2 don't _ _ _ _ _ _ _ _",
        "1 do do AUX VBP _ 3 aux _ NE=B-X",
        "2 n't not PART RB _ 3 advmod _ _",
        "3 go go VERB VB _ 0 root _ _",
        "4-5 !! _ _ _ _ _ _ _ SpaceAfter=No",
        "4 ! ! PUNCT . _ 3 punct _ x=y",
        "5 ! ! PUNCT . _ 3 punct _ _",
        "6 ok ok X UH _ 3 dep _ _",
    ]
    (doc,), losses = read(tmp_path, [row.replace(" ", "\t") for row in rows], "a.conllu")
    assert doc.text == "don't go !!ok "
    assert [token.tag_ for token in doc] == ["VBP", "RB", "VB", ".", ".", "UH"]
    assert named(doc.ents) == [("do", "X")] and not losses


@pytest.mark.parametrize("key", ["name", "NER", "ner"])
def test_entities_have_one_of_several_keys(tmp_path, key):
    (first, _), _ = read(tmp_path, CONLLU.replace("NE=", f"{key}=").split("\n"), "a.conllu")
    assert named(first.ents) == [("Havre", "LOC")]


def test_entities_of_several_words_in_one_token(tmp_path):
    lines = CONLLU.replace("SpaceAfter=No|NE=B-LOC", "NE=I-LOC").split("\n")
    lines[2] = lines[2][:-1] + "NE=B-LOC"
    (first, _), _ = read(tmp_path, lines, "a.conllu")
    assert named(first.ents) == [("du Havre", "LOC")]


def test_entities_of_a_file_without_any_are_unknown(tmp_path):
    lines = CONLLU.replace("NE=B-LOC", "_").replace("B-per1", "_").split("\n")
    docs, losses = read(tmp_path, lines, "a.conllu")
    assert not any(doc.has_annotation("ENT_IOB") for doc in docs)
    what = "texts of a file without entities (NE=…): these are unknown"
    assert [loss.place for loss in losses if loss.what == what] == ["line 2", "line 9"]


@pytest.mark.parametrize(
    "old, new, part",
    [
        ("1-2\tdu", "1-9\tdu", "word 9"),
        ("1-2\tdu", "2-1\tdu", "word 1"),
        ("3\tHavre", "7\tHavre", "word 3"),
        ("3\tHavre", "x\tHavre", "9 more columns"),
        ("\t_\t3\tpunct", "\t3\tpunct", "9 more columns"),
        ("\t3\tpunct", "\tx\tpunct", "CoNLL-U"),
        ("\t3\tpunct", "\t99\tpunct", "CoNLL-U"),
        ("Definite=Def|", "Definite|", "CoNLL-U"),
    ],
)
def test_malformed_words_are_named_with_their_lines(tmp_path, old, new, part):
    assert old in CONLLU
    with pytest.raises(ValueError, match=rf"H290.*line \d+.*{part}"):
        read(tmp_path, CONLLU.replace(old, new).split("\n"), "a.conllu")


CONLL_2012 = [
    "#begin document (nw/a); part 000",
    "nw/a  0  0  Hong   NNP  (S(NP*   -    -   -  Max  (GPE*     *       *    (1",
    "nw/a  0  1  Kong   NNP  *)       -    -   -  Max  *)        *       *    1)",
    "nw/a  0  2  was    VBD  (VP*))   be   01  1  Max  *         (V*)    *    -",
    "",
    "nw/a  0  0  Ada    NNP  (S*)     -    -   -  Max  (PERSON)  -",
    "#end document",
    "#begin document (nw/a); part 001",
    "nw/a  1  0  Kim    NNP  (S*      -    -   -  Max  (PERSON)  (ARG0*) -",
    "nw/a  1  1  slept  VBD  *)       -    -   -  Max  *         (V*)    -",
    "#end document",
]


def test_texts_with_different_numbers_of_columns(tmp_path):
    """As in CoNLL-2012, where there is a column for each predicate of the sentence."""
    docs, losses = read(tmp_path, CONLL_2012, "a.v4_gold_conll", word=3, label=10)
    assert not losses
    assert [doc.text for doc in docs] == ["Hong Kong was ", "Ada ", "Kim slept "]
    found = [named(doc.ents) for doc in docs]
    assert found == [[("Hong Kong", "GPE")], [("Ada", "PERSON")], [("Kim", "PERSON")]]
    assert [docs[0][0]._.c13, docs[1][0]._.c13] == ["(1", ""]
    with pytest.raises(ValueError, match=r"H290.*at line 6: found 12 columns, expected 14 columns"):
        read(tmp_path, CONLL_2012, "a.v4_gold_conll", word=3)
    advice = r"H380.*CoNLL-2012: see hocrf convert --word 3 --label 10"
    for name in ("a.v4_gold_conll", "a.conll"):
        with pytest.raises(ValueError, match=advice):
            read(tmp_path, CONLL_2012, name)


@pytest.mark.parametrize("last", ["Kim B-P", "Kim NNP B-P x\nran VBD", "Kim NNP B-P\nran VBD O x"])
def test_lines_without_a_column_that_is_named(tmp_path, last):
    with pytest.raises(ValueError, match=r"H290.* columns, expected 3|H290.*expected 4 columns"):
        read(tmp_path, ["Ada NNP B-P", "", *last.splitlines()], label=2)


def test_columns_with_tabs_and_blanks_between(tmp_path):
    lines = ["Ada\tNNP  B-PER", "lives  VBZ\tO", "", "Max NNP B-PER", "ran\t\tVBD   O"]
    docs, losses = read(tmp_path, lines)
    assert [named(doc.ents) for doc in docs] == [[("Ada", "PER")], [("Max", "PER")]] and not losses
    docs, _ = read(tmp_path, ["New York\tB-LOC", "is\tO"])
    assert [token.text for token in docs[0]] == ["New York", "is"]
