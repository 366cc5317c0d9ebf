"""Damaged files of annotated texts, in every format that `hocrf convert` reads: whatever a file says, reading
it ends in a coded error, or in Docs that can be saved, with spans that are words.

    python tests/fuzz/convert.py --mutations 100000

Mutation k of a seed is always the same. Printed are the outcomes by format and the slowest one in seconds of
CPU. A mutation that takes a minute ends the process with a traceback; run it by itself with --first.
"""

import argparse
import faulthandler
import json
import re
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import spacy
from spacy.tokens import DocBin

from spacy_hocrf.cli.convert.command import convert
from spacy_hocrf.cli.convert.formats import FORMATS
from spacy_hocrf.cli.convert.records import ConvertSettings, Report

CODED = re.compile(r"^\[(H\d{3})\]")
SLOWEST = 5.0  # seconds of CPU for one file
HANGS = 60  # seconds

TEXT = "Ada Lovelace lives \N{GRINNING FACE} in Paris"
SPANS = [[0, 12, "PER"], [24, 29, "LOC"]]
OBJECTS = [{"start": start, "end": end, "label": label} for start, end, label in SPANS]
TOKENS = TEXT.split()
TAGS = ["B-PER", "I-PER", "O", "O", "O", "B-LOC"]

JSON = {
    "prodigy": {"text": TEXT, "spans": OBJECTS, "answer": "accept", "_task_hash": 7},
    "prodigy-tokens": {
        "text": "It's me",
        "tokens": [{"text": "It's", "ws": True, "id": 0}, {"text": "me", "ws": False, "id": 1}],
        "spans": [{"start": 0, "end": 4, "label": "X", "token_start": 0, "token_end": 0}],
        "meta": {"source": "a"},
    },
    "doccano": {"id": 1, "text": TEXT, "label": SPANS, "Comments": []},
    "doccano-relations": {
        "id": 2,
        "text": TEXT,
        "entities": [{"id": 1, "label": "PER", "start_offset": 0, "end_offset": 12}],
        "relations": [{"id": 0, "from_id": 1, "to_id": 1, "type": "same"}],
    },
    "studio": {
        "id": 1,
        "data": {"text": TEXT, "source": "b"},
        "annotations": [
            {
                "was_cancelled": False,
                "result": [
                    {
                        "type": "labels",
                        "value": {"start": 0, "end": 12, "text": "Ada Lovelace", "labels": ["PER"]},
                    },
                    {"type": "relation", "from_id": "a", "to_id": "b"},
                ],
            }
        ],
        "predictions": [],
    },
    "tags": {"id": "1", "tokens": TOKENS, "ner_tags": TAGS, "pos_tags": ["N"] * 6},
    "numbers": {"tokens": ["Ada", "ran"], "tags": [1, 0]},
    "gliner": {"tokenized_text": TOKENS, "ner": [[0, 1, "person"], [5, 5, "place"]]},
    "pair": [TEXT, {"entities": SPANS, "cats": {"A": 1.0}}],
    "doc": {
        "text": "Ada ran",
        "ents": [{"start": 0, "end": 3, "label": "PER"}],
        "tokens": [{"id": 0, "start": 0, "end": 3, "tag": "N"}, {"id": 1, "start": 4, "end": 7}],
        "spans": {"sc": [{"start": 4, "end": 7, "label": "X", "kb_id": ""}]},
    },
    "extractions": {
        "document_id": "d",
        "text": TEXT,
        "extractions": [
            {
                "extraction_class": "PER",
                "extraction_text": "Ada",
                "char_interval": {"start_pos": 0, "end_pos": 3},
                "alignment_status": "match_exact",
                "attributes": {},
            },
            {"extraction_class": "LOC", "extraction_text": "Rome", "char_interval": None},
        ],
    },
}
"""An entry of each tool."""

FILES = {
    "a.conll": "-DOCSTART- -X- O\n\nAda NNP B-PER\nLovelace NNP I-PER\nran VBD O\n\nParis NNP B-LOC\n",
    "b.txt": "12\tnumber\nOld\tstreet\nOak\tstreet\n\n9\tnumber\nNew\tstreet\nElm\tstreet\n",
    "c.crfsuite": "B-A\tw[0]=x\\:y\tw[-1]=q\tcap\n\nO\tw[0]=z\tp=N:0.5\n",
    "d.conllu": "# sent_id = 1\n1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n"
    + "".join(
        f"{i}\t{word}\t{word}\tX\tY\t_\t0\troot\t_\tNE=O\n"
        for i, word in enumerate(("de", "le"), 1)
    )
    + "3\tHavre\thavre\tX\tY\t_\t1\tx\t_\tNE=B-LOC|SpaceAfter=No\n\n",
    "h.xml": "<c><s><N>12</N> <S>Old</S> <S>Oak</S><P>,</P> so</s></c>",
    "i.xml": "<dataset><sequence><author>Li,\n A.</author><title>On &amp; on</title></sequence></dataset>",
    "j.xml": '<?xml version="1.0" encoding="utf-8"?><t xmlns="http://x.org/"><l><b><a>A. B.</a>, '
    '<d when="1">1843</d>.</b></l></t>',
    "k.ann": "T1\tPER 0 12\tAda Lovelace\nT2\tLOC 24 29;0 3\tParis Ada\nR1\tin Arg1:T1 Arg2:T2\n",
    "l.tsv": "#FORMAT=WebAnno TSV 3.3\n#T_SP=x.POS|PosValue\n#T_SP=x.NE|value|identifier\n"
    "#T_RL=x.R|kind|BT_x.NE\n\n\n#Text=Ada Lovelace\n1-1\t0-3\tAda\tN\tPER[1]\t*[1]\t_\t_\n"
    "1-2\t4-12\tLovelace\tN\tPER[1]|X\\|Y\t*[1]|_\tk\t1-1\n1-2.1\t4-8\tLove\t_\tZ\t_\t_\t_\n",
    "m.csv": 'text,start,end,label\n"Ada, or ""L""",0,3,PER\nMax,0,3,PER\n',
    "n.csv": "sentence_id,token,pos,tag\n1,Ada,N,B-PER\n1,ran,V,O\n2,Max,N,B-PER\n",
    "o.csv": 'id;text;entities\n1;Ada ran;"[[0, 3, ""PER""]]"\n2;Max;B-PER\n',
    **{
        f"p{i}.jsonl": json.dumps(entry) + "\n" + json.dumps(entry) + "\n"
        for i, entry in enumerate(JSON.values())
    },
    **{f"q{i}.json": json.dumps([entry], indent=1) for i, entry in enumerate(JSON.values())},
}
BESIDE = {"k.txt": TEXT}

STRINGS = (
    *("", " ", "\t", "\n", "\r", "\r\n", "\0", "\ufeff", "\ud83d", "\N{GRINNING FACE}", "O", "B-", "I-X"),
    *("-", "_", "*", "[1]", "|", "\\", "/", ";", '"', "'", "<", ">", "</", "&", "&#0;", "]]>", "-1", "1e9"),
    *("9" * 20, "x" * 300, "\u3000", "#", "#Text=", "NaN", "null", "[", "{", "1-1", "PER 0 3"),
    *("\x85", "\u2028"),
)  # fmt: skip
VALUES = (
    *(None, True, False, -1, 0, 1, 2, 5, 2**31, 2**70, -(2**63), 0.5, 1e308, float("nan")),
    *("", " ", "x", "O", "PER", "\ud83d", "\n\t "),
    *(
        [],
        {},
        [[]],
        [None],
        [0, 3, "PER"],
        [1, 0, ""],
        {"start": 0},
        {"a": {"b": [1]}},
        [[[[[[1]]]]]],
    ),
)
KEYS = (
    *"text spans label labels entities tokens ner_tags data annotations result value".split(),
    *"start end id meta answer ents extractions ner tokenized_text".split(),
    "",
)


class Fuzzer:
    """Damages a file of each format.

    seed (int): of the mutations. folder (Path): where they are written.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed, self.folder = seed, folder
        self.nlp = spacy.blank("xx")
        for name, text in BESIDE.items():
            (folder / name).write_text(text, encoding="utf8", newline="")

    def mutate(self, k: int) -> tuple[str, bytes, dict[str, object]]:
        """Name and content of the file that mutation k makes, and how it is read."""
        rng = np.random.default_rng([self.seed, k])
        name = sorted(FILES)[int(rng.integers(len(FILES)))]
        text = FILES[name]
        for _ in range(int(rng.integers(1, 4))):
            ways = [_in_text, _in_lines, _in_fields]
            ways += [_in_values] * 5 if name.endswith((".json", ".jsonl")) else []
            text = ways[int(rng.integers(len(ways)))](rng, text)
        content = text.encode("utf8", "surrogatepass")
        if rng.integers(5) == 0:
            content = _in_bytes(rng, content)
        formats = ["auto"] * 20 + list(FORMATS)
        settings = {
            "names": ("O", "B-X") if rng.integers(2) else (),
            "scheme": ("auto", "auto", "bio", "io")[int(rng.integers(4))],
            "record": ("", "", "", "s", "b", "a")[int(rng.integers(6))],
        }
        own = [row.options for row in FORMATS.values() if name.endswith(row.suffixes or "?")]
        given = {key for key in settings if key in set().union(*own) or not rng.integers(9)}
        how = {
            "format_": formats[int(rng.integers(len(formats)))],
            "into": ("ents", "ents", "tags", "sc")[int(rng.integers(4))],
            "align": ("strict", "contract", "expand")[int(rng.integers(3))],
            "settings": ConvertSettings(**{key: settings[key] for key in given}),
        }
        return name, content, how

    def outcome(self, k: int) -> str:
        """A code, "read", or what is wrong."""
        name, content, how = self.mutate(k)
        path = self.folder / name
        path.write_bytes(content)
        try:
            docs = list(convert(path, self.nlp, Report(), **how))
        except Exception as error:
            coded = CODED.match(str(error))
            return coded[1] if coded and isinstance(error, ValueError) else f"wrong: {error!r}"
        try:
            DocBin(docs=docs, store_user_data=True).to_bytes()
        except Exception as error:
            return f"wrong: Docs that cannot be saved: {error!r}"
        spans = [
            span for doc in docs for group in (doc.ents, *doc.spans.values()) for span in group
        ]
        if not all(len(doc) for doc in docs):
            return "wrong: a Doc without tokens"
        for span in spans:
            if not (span.label_ and span[0].text.strip() and span[-1].text.strip()):
                return f"wrong: the span {span.text!r} {span.label_!r}"
        return "read"


def _pick(rng: np.random.Generator, n: int) -> int:
    return int(rng.integers(max(1, n)))


def _in_text(rng: np.random.Generator, text: str) -> str:
    """Characters that are put in, taken away, doubled or cut off."""
    start = _pick(rng, len(text) + 1)
    end = min(len(text), start + _pick(rng, 12))
    string = STRINGS[_pick(rng, len(STRINGS))]
    return [
        text[:start] + string + text[start:],
        text[:start] + string + text[end:],
        text[:start] + text[end:],
        text[:end] + text[start:],
        text[:start],
    ][int(rng.choice(5, p=[0.3, 0.3, 0.2, 0.15, 0.05]))]


def _in_lines(rng: np.random.Generator, text: str) -> str:
    """Lines that are left out, doubled, moved or emptied."""
    lines = re.split(r"(?<=[\r\n])", text)
    i, j = _pick(rng, len(lines)), _pick(rng, len(lines))
    kind = _pick(rng, 5)
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines.insert(j, lines[i])
    elif kind == 2:
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == 3:
        lines[i] = "\n"
    else:
        lines[i] = lines[i][: _pick(rng, len(lines[i]))]
    return "".join(lines)


def _in_fields(rng: np.random.Generator, text: str) -> str:
    """A word, a number or a column that is something else."""
    words = [found.span() for found in re.finditer(r"[^\s,;|<>\"\[\]{}:]+", text)]
    if not words:
        return text
    start, end = words[_pick(rng, len(words))]
    other, last = words[_pick(rng, len(words))]
    string = STRINGS[_pick(rng, len(STRINGS))] if rng.integers(2) else text[other:last]
    return text[:start] + string + text[end:]


def _in_values(rng: np.random.Generator, text: str) -> str:
    """A value of JSON that is of another type, is gone, or has another name."""
    try:
        whole = json.loads(text)
        lines = None
    except ValueError:
        lines = text.split("\n")
        i = _pick(rng, len(lines))
        try:
            whole = json.loads(lines[i])
        except ValueError:
            return text
    holder = [whole]
    place: tuple[object, object] = (holder, 0)
    for _ in range(_pick(rng, 7)):
        value = place[0][place[1]]  # type: ignore[index]
        if isinstance(value, dict) and value:
            place = (value, sorted(value)[_pick(rng, len(value))])
        elif isinstance(value, list) and value:
            place = (value, _pick(rng, len(value)))
    container, key = place
    kind = _pick(rng, 4)
    if kind == 0 and container is not holder:
        del container[key]  # type: ignore[attr-defined]
    elif kind == 1 and isinstance(container, dict):
        container[KEYS[_pick(rng, len(KEYS))]] = container.pop(key)
    elif kind == 2:
        container[key] = [container[key]] * (1 + _pick(rng, 3))  # type: ignore[index]
    else:
        container[key] = VALUES[_pick(rng, len(VALUES))]  # type: ignore[index]
    written = json.dumps(holder[0])
    if lines is None:
        return written
    lines[i] = written
    return "\n".join(lines)


def _in_bytes(rng: np.random.Generator, content: bytes) -> bytes:
    """A byte that is another one."""
    data = bytearray(content or b"x")
    data[_pick(rng, len(data))] = _pick(rng, 256)
    return bytes(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mutations", type=int, default=20000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts, wrong, slowest = Counter[str](), list[str](), (0.0, 0)
    with TemporaryDirectory() as name:
        fuzzer = Fuzzer(options.seed, Path(name))
        for k in range(options.first, options.first + options.mutations):
            if k % 1000 == 0:
                print(k, end="\r", file=sys.stderr, flush=True)
            faulthandler.dump_traceback_later(HANGS, exit=True)
            before = time.process_time()
            found = fuzzer.outcome(k)
            slowest = max(slowest, (time.process_time() - before, k))
            counts[found[:60]] += 1
            if found.startswith("wrong"):
                wrong.append(f"mutation {k} of {fuzzer.mutate(k)[0]}: {found}")
        faulthandler.cancel_dump_traceback_later()
    print(f"{options.mutations} mutations of {len(FILES)} files, seed {options.seed}")
    for outcome, count in counts.most_common():
        print(f"{count:7} {outcome}")
    print(f"slowest: {slowest[0]:.2f} s of CPU, mutation {slowest[1]}")
    if slowest[0] > SLOWEST:
        wrong.append(f"mutation {slowest[1]} took {slowest[0]:.1f} s")
    sys.exit("\n".join(wrong[:20]) or None)


if __name__ == "__main__":
    main()
