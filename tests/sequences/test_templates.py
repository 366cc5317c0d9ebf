"""Templates of CRF++ and Wapiti. What Wapiti 1.5.0 makes of them was read from its model files: here
are small ones. Where it is installed, the last tests compare with it.
"""

import os
import random
import re
import shutil
import subprocess
from pathlib import Path

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
        ('u:%m[0,1,"\\D?\\u?\\w$"]/a', ["u:DT", "u:NNP/a", "u:VBD/a", "u:CD"]),
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
        ("^\\w?S*\\l", "a-b", "a-"),  # an attempt that fails has counted one
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


# ------------------------------------------------------------ beside Wapiti itself

PEER = Path(os.environ.get("HOCRF_PEERS", "nowhere")) / "wapiti" / "dat"


def has_wapiti():
    """Is it there? Another program of this name looks for holes in web sites."""
    if shutil.which("wapiti") is None:
        return False
    done = subprocess.run(["wapiti", "--version"], capture_output=True, text=True)
    return done.stdout.startswith("Wapiti v1.") or done.stderr.startswith("Wapiti v1.")


needs_wapiti = pytest.mark.skipif(not has_wapiti(), reason="needs Wapiti 1.5, the CRF toolkit")


def seen_by_wapiti(folder, patterns, sequences):
    """The strings in the model that it learns from sequences of lines, the last column being the label."""
    (folder / "patterns").write_text(patterns, encoding="utf8")
    (folder / "data").write_text("\n\n".join(map("\n".join, sequences)) + "\n", encoding="utf8")
    command = ["wapiti", "train", "-p", "patterns", "-i", "1", "-t", "1", "data", "model"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
    text = (folder / "model").read_text(encoding="utf8")
    *_, strings = re.split(r"^#qrk#\d+\n", text, flags=re.MULTILINE)
    return set(re.findall(r"^\d+:(.*),$", strings, flags=re.MULTILINE))


def seen_here(patterns, sequences):
    templates = read_templates(patterns, "wapiti")
    rows = [[line.split()[:-1] for line in sequence] for sequence in sequences]
    found = {text for each in rows for item in templates.items(each) for text in item}
    return found | {"b"} if templates.transitions else found


def random_command(numbers):
    """With an offset, absolute or not, and a regular expression without a dangling * or ?."""
    place = f"{numbers.choice(['', '', '@'])}{numbers.choice([-6, -4, -2, -1, 1, 2, 5])}"
    column = numbers.randrange(2)
    kind = numbers.choice("xXtTmM")
    if kind in "xX":
        return f"%{kind}[{place},{column}]"
    units = ["\\a", "\\d", "\\l", "\\p", "\\u", "\\w", "\\U", "\\D", ".", "a", "S", "\\."]
    found = [numbers.choice(units) + numbers.choice(["", "", "*", "?"]) for _ in range(3)]
    ends = numbers.choice(["", "^"]), numbers.choice(["", "$"])
    return f'%{kind}[{place},{column},"{"".join(found).join(ends)}"]'


@needs_wapiti
@pytest.mark.parametrize("seed", range(10))
def test_random_patterns_make_the_strings_of_wapiti(tmp_path, seed):
    numbers = random.Random(seed)
    patterns = "\n".join(
        f"{numbers.choice('uUb*')}{number}:{random_command(numbers)}/{random_command(numbers)}"
        for number in range(40)
    )
    letters = "aAbS1.-0z"
    sequences = [
        [
            " ".join("".join(numbers.choices(letters, k=numbers.randint(1, 5))) for _ in range(2))
            + f" {numbers.choice('xy')}"
            for _ in range(numbers.randint(1, 8))
        ]
        for _ in range(20)
    ]
    assert seen_here(patterns, sequences) == seen_by_wapiti(tmp_path, patterns, sequences)


@needs_wapiti
@pytest.mark.skipif(not PEER.is_dir(), reason="needs HOCRF_PEERS, a folder with wapiti/dat")
@pytest.mark.parametrize("name", ["", "ch", "np"])
def test_patterns_that_come_with_wapiti_make_its_strings(tmp_path, name):
    patterns = (PEER / f"{name}pattern.txt").read_text(encoding="utf8")
    text = (PEER / f"{name}train.txt").read_text(encoding="utf8")
    sequences = [part.splitlines() for part in re.split(r"\n\s*\n", text.strip())[:300]]
    assert seen_here(patterns, sequences) == seen_by_wapiti(tmp_path, patterns, sequences)
