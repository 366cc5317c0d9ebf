"""Templates of CRF++ and Wapiti. What Wapiti 1.5.0 makes of them was read from its model files: here
are small ones. Where it is installed, the last tests compare with it.
"""

import pytest

from spacy_hocrf.sequences.templates import read_templates
from spacy_hocrf.sklearn import HighOrderCRF

ROWS = [["The", "DT"], ["U.S.", "NNP"], ["fell", "VBD"], ["5.5", "CD"]]


def observed(line, toolkit, rows=ROWS):
    """What one template observes at each item."""
    return [found for (found,) in read_templates(line, toolkit).items(rows)]


@pytest.mark.parametrize(
    "line, expected",
    [
        ("U00:%x[0,0]", ["U00:The", "U00:U.S.", "U00:fell", "U00:5.5"]),
        ("U1:%x[-1,0]/%x[1,1]", ["U1:_B-1/NNP", "U1:The/VBD", "U1:U.S./CD", "U1:fell/_B+1"]),
        ("U:%x[-2,0]|%x[2,0]", ["U:_B-2|fell", "U:_B-1|5.5", "U:The|_B+1", "U:U.S.|_B+2"]),
        ("B2:%x[ +1,1]!", ["B2:NNP!", "B2:VBD!", "B2:CD!", "B2:_B+1!"]),
        ("U:%x[-8,0]", ["U:_B-8", "U:_B-7", "U:_B-6", "U:_B-5"]),
        ("Ubias # no comment", ["Ubias # no comment"] * 4),
    ],
)
def test_crfpp(line, expected):
    assert observed(line, "crf++") == expected


@pytest.mark.parametrize(
    "line, expected",
    [
        ("U:%x[0,0]", ["u:The", "u:U.S.", "u:fell", "u:5.5"]),
        ("*:%X[0,0]  # comment", ["*:the", "*:u.s.", "*:fell", "*:5.5"]),
        ("*", ["*"] * 4),
        ("b:%x[-1,1]", ["b:_x-1", "b:DT", "b:NNP", "b:VBD"]),
        ("u:%x[-6,0]", ["u:_x-#", "u:_x-#", "u:_x-4", "u:_x-3"]),
        ("u:%x[6,0]", ["u:_x+3", "u:_x+4", "u:_x+#", "u:_x+#"]),
        ("u:%x[@1,0]%x[@-1,1]%x[@-5,0]", ["u:TheCD_x-1"] * 4),
        ('u:%m[0,0,"^.?.?"]', ["u:Th", "u:U.", "u:fe", "u:5."]),
        ('u:%m[0,0,".?.?$"]', ["u:he", "u:S.", "u:ll", "u:.5"]),
        ('u:%t[0,0,"^\\u"]', ["u:true", "u:true", "u:false", "u:false"]),
        ('u:%t[0,0,"^\\u*$"]', ["u:false"] * 4),
        ('u:%m[0,0,"\\l\\l*"]', ["u:h", "u:", "u:f", "u:"]),  # * takes as little as it can
        ('u:%m[0,0,"\\l\\l*$"]', ["u:he", "u:", "u:fell", "u:"]),
        ('u:%M[0,0,"\\W"]', ["u:", "u:.", "u:", "u:."]),
        ('u:%t[0,0,"\\."]', ["u:false", "u:true", "u:false", "u:true"]),
        ('u:%t[0,0,"5$.^"]', ["u:false"] * 4),
        ('u:%t[0,0,"\\.5$"]', ["u:false", "u:false", "u:false", "u:true"]),
        ('u:%m[-1,0,"\\d"]', ["u:1", "u:", "u:", "u:"]),  # of _x-1
        # an attempt that fails has counted beyond the end, where the string is cut
        ('u:%m[0,1,"\\D?\\u?\\w$"]/a', ["u:DT/a", "u:NNP/a", "u:VBD/a", "u:CD/a"]),
        ('u:%m[0,0,"\\p.*\\p"]', ["u:", "u:.S.", "u:", "u:"]),
    ],
)
def test_wapiti(line, expected):
    assert observed(line, "wapiti") == expected


@pytest.mark.parametrize(
    "source, text, expected",
    [
        ("a\\$", "a$b", "a$"),
        ("a\\\\$", "a\\", "a\\"),
        ("a$b", "a$b", "a$b"),
        ("\\\\", "\\", "\\"),
        ('\\"', 'a"', '"'),
        ("", "a", ""),
        ("^$", "", ""),
        ("[a]", "a[a]", "[a]"),
        ("a?a?b", "aab", "aab"),
        ("a*b", "caab", "aab"),
        ("\\s", "a\u3000\tb", "\t"),
        ("\\A\\A", "éé", "éé"),
        ("^\\w?S*\\l", "a-b", "a"),
    ],
)
def test_regular_expressions_are_those_of_wapiti(source, text, expected):
    assert observed(f'u:%m[0,0,"{source}"]', "wapiti", [[text]]) == [f"u:{expected}"]


def test_lines_without_a_template_and_bare_bigrams_are_left_out():
    text = "# Unigram\n\nU0:%x[0,0]\n  # indented\nB\n"
    assert read_templates(text, "crf++").items([["a"]]) == [["U0:a"]]
    assert read_templates("b # c\n#\nB:%x[0,0]\r\n", "wapiti").items([["a"]]) == [["b:a"]]
    assert read_templates("", "wapiti").items([["a"]]) == [[]]
    assert read_templates("*", "wapiti").items([]) == []


@pytest.mark.parametrize(
    "line, toolkit",
    [
        ("X:%x[0,0]", "crf++"),
        ("*:%x[0,0]", "crf++"),
        ("u:%x[0,0]", "crf++"),
        ("U:%x[0]", "crf++"),
        ("U:%y[0,0]", "crf++"),
        ("U:100%", "crf++"),
        ("U:%X[0,0]", "crf++"),
        ('U:%m[0,0,"a"]', "crf++"),
        ("U:%x[@1,0]", "crf++"),
        ("U:%x[9,0]", "crf++"),
        ("u:%m[0,0]", "wapiti"),
        ('u:%x[0,0,"a"]', "wapiti"),
        ('u:%t[0,0,"a]', "wapiti"),
        ('u:%t[0,0,"**"]', "wapiti"),
        ('u:%t[0,0,"?a"]', "wapiti"),
        ("c:%x[0,0]", "wapiti"),
    ],
)
def test_what_is_no_template_is_named_with_its_line(line, toolkit):
    with pytest.raises(ValueError, match=r"H288.*Line 2 "):
        read_templates(f"#\n{line}\n", toolkit)


def test_another_toolkit():
    with pytest.raises(ValueError, match="H278"):
        read_templates("", "crfsuite")


def test_a_missing_column_is_named():
    with pytest.raises(ValueError, match=r"H289.*Item 1 has 1 columns.*column 1"):
        observed("U:%x[0,1]", "crf++", [["a", "b"], ["a"]])


def test_templates_serve_the_estimator():
    templates = read_templates("u:%x[0,0]\n*:%x[-1,1]\n", "wapiti")
    X = [templates.items(ROWS)] * 3
    crf = HighOrderCRF(attribute_orders=templates.attribute_orders).fit(X, [list("xyyx")] * 3)
    assert ("*:NNP", "y") in crf.state_features_ and ("*:NNP", "y", "y") in crf.state_features_
    assert not [z for z in crf.state_features_ if z[0].startswith("u") and len(z) > 2]
    assert crf.predict_single(X[0]) == list("xyyx")


def test_a_line_ends_only_where_it_does_in_the_toolkits():
    templates = read_templates("U:a\u2028b\x0bc%x[0,0]\r\nB\r\n", "crf++")
    assert templates.items([["d"]]) == [["U:a\u2028b\x0bcd"]] and templates.transitions
