"""Every block of code of README, of docs/ and of the projects' READMEs runs, or says why it does not.

The commands of docs/start.md are run first. Every other page begins in a copy of the folder that they
leave, and its blocks are run in their order: Python in one namespace, commands in bash, and configs, put
into the config of that page, in a training of two steps. What stands right below a block is what it
prints, but for other last digits. Commands of projects are run dry.
"""

import contextlib
import io
import os
import re
import runpy
import shutil
import subprocess
import sys

import numpy as np
import pytest
import spacy
import srsly
from documentation import ROOT, code_of, pages, with_parents
from spacy.cli.init_config import init_config
from spacy.cli.train import train
from spacy.training import Corpus
from spacy.util import working_dir
from thinc.api import Config

START = "docs/start.md"
PROJECTS = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("project/*/README.md"))
PAGES = [name for name in (*pages(), "CONTRIBUTING.md", *PROJECTS) if [*code_of(name)]]
CODE = {"docs/trainers.md": "examples/own_parts.py"}
"""Files that pages say to give with --code."""
OUTSIDE = "en_core_web_md"
"""A pipeline with vectors and entities: where it is not installed, a small one has its name."""
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
NEAR = {"rel": 0.02, "abs": 0.011}  # instruction sets round otherwise
SETTLED = {"model": {"order": 1}, "trainer": {"sigma": 1.0}}
"""Instead of "auto", which takes most of the time that a short training takes."""
SHOWN = {"json", "text", "xml"}
"""Languages of samples, which say what a file has."""
COLOUR = re.compile(r"\x1b\[[\d;]*m")

pytestmark = pytest.mark.skipif(
    os.name == "nt" or shutil.which("bash") is None or not PROJECTS,
    reason="needs bash with the paths of Python, and the projects",
)


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """The folder that the commands of the first page leave, and what its blocks need besides."""
    folder = tmp_path_factory.mktemp("started")
    (folder / "project").symlink_to(ROOT / "project")
    for name, lines in (("mine", slice(30)), ("others", slice(30, 40))):
        write_columns(folder / f"{name}.conll", lines)
    run_blocks(START, folder)
    return folder


@pytest.mark.parametrize("name", [name for name in PAGES if name != START])
def test_blocks_of_a_page_run(name, started, tmp_path):
    folder = tmp_path / "folder"
    shutil.copytree(started, folder, symlinks=True)
    if OUTSIDE in (ROOT / name).read_text(encoding="utf8"):
        put_outside(folder)
    run_blocks(name, folder)


def test_blocks_of_the_first_page_run(started):
    model = spacy.load(started / "model" / "model-last")
    assert model.pipe_names == ["hocrf"]
    (package,) = started.glob("packages/*_mine-*/*_mine/*_mine-*")
    assert spacy.load(package)("Ada Lovelace. 1843. Notes.").ents


PARTS = [block for name in PAGES for block in code_of(name) if block.reason.startswith("a part of")]


@pytest.mark.parametrize("block", PARTS, ids=lambda block: block.page)
def test_parts_of_configs_are_in_them(block):
    path = (ROOT / block.page).parent / block.reason.removeprefix("a part of ")
    whole = Config().from_disk(path, interpolate=False)
    part = Config().from_str(with_parents(block.code), interpolate=False)
    assert whole.copy().merge(part) == whole


def test_few_blocks_are_not_run(capsys):
    """They are listed by `pytest -s`, and in any case when there are more."""
    found = [block for name in PAGES for block in code_of(name)]
    reasons = [f"{b.page}:{b.line} {b.language}: {b.reason}" for b in found if b.reason]
    with capsys.disabled():
        print(f"\n{len(found) - len(reasons)} blocks of code are run, {len(reasons)} are not:")
        print(*sorted(reasons), sep="\n")
    assert len(reasons) <= MOST, "\n".join(reasons)


MOST = 20


# ------------------------------------------------------------ running them


def run_blocks(name, folder):
    """Run those of a page, in a folder."""
    namespace = {"__name__": "__main__"}
    if name in CODE:
        runpy.run_path(str(ROOT / CODE[name]))
    for block in code_of(name):
        if block.reason or block.language in SHOWN:
            continue
        where = f"{block.page}:{block.line}"
        if block.language == "python":
            printed = run_python(block.code, namespace, folder)
        elif block.language == "bash":
            printed = run_bash(block.code, folder, where)
        else:
            assert block.language == "ini", where
            run_config(block.code, folder, "sample.cfg" if block.added else "config.cfg")
            continue
        if block.output is not None:
            assert_same(printed, block.output, where)


def run_python(code, namespace, folder):
    """What it prints."""
    with working_dir(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, namespace)
    return printed.getvalue()


def run_bash(code, folder, where):
    """What it prints; packages are there, no wheel is built, and projects are run dry."""
    code = re.sub(r"^pip install .*$", ":", code, flags=re.MULTILINE)
    code = code.replace("--build wheel", "--build none").replace(
        "project run ", "project run --dry "
    )
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    command = ["bash", "-euo", "pipefail", "-c", code]
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{where}\n{done.stdout}{done.stderr}"
    return COLOUR.sub("", done.stdout)


def run_config(code, folder, base):
    """Train two steps with a config in which this stands; only where it says so, settings are chosen."""
    config = Config().from_disk(folder / base, interpolate=False)
    for name, settings in SETTLED.items():
        config["components"]["hocrf"][name] |= settings
    sample = Config().from_str(with_parents(code), interpolate=False)
    model = sample.get("components", {}).get("hocrf", {}).get("model", {})
    if "features" in model:
        del config["components"]["hocrf"]["model"]["features"]
    if "@architectures" in model:
        config["components"]["hocrf"]["model"] = dict(SETTLED["model"])
    config = config.merge(sample)
    config["training"] |= {"max_steps": 2, "eval_frequency": 2}
    config.to_disk(folder / "sample.cfg")
    with working_dir(folder), contextlib.redirect_stdout(io.StringIO()):
        train(folder / "sample.cfg", folder / "sample")


def assert_same(printed, expected, where):
    """The same words, and nearly the same numbers; "…" in a line of its own is any lines."""
    parts = [NUMBER.split(part.strip()) for part in expected.split("\n…\n")]
    numbers = [float(number.replace(",", "")) for number in NUMBER.findall(expected)]
    pattern = ".*?".join(
        r"([-+]?\d[\d,]*(?:\.\d+)?)".join(re.escape(word) for word in part) for part in parts
    )
    found = re.search(pattern, printed, flags=re.DOTALL)
    assert found, f"{where} prints\n{printed}\nand not\n{expected}"
    values = [float(number.replace(",", "")) for number in found.groups()]
    assert values == pytest.approx(numbers, **NEAR), where


# ------------------------------------------------------------ what they need


def write_columns(path, lines):
    """Some references in two columns, with B- and I-."""
    nlp = spacy.blank("en")
    source = ROOT / "project" / "references" / "assets" / "paper-references.jsonl"
    texts = []
    for row in [*srsly.read_jsonl(source)][lines]:
        doc = nlp(row["text"])
        spans = [doc.char_span(start, end, label) for start, end, label in row["spans"]]
        doc.set_ents([span for span in spans if span is not None])
        tags = [f"{token.ent_iob_}-{token.ent_type_}".strip("-") for token in doc]
        texts.append("".join(f"{token.text}\t{tag}\n" for token, tag in zip(doc, tags)))
    path.write_text("\n".join(texts), encoding="utf8")


def put_outside(folder):
    """A pipeline with vectors, an encoder and entities, and the config of another."""
    nlp = spacy.blank("en")
    examples = [*Corpus(folder / "train.spacy")(nlp)]
    numbers = np.random.default_rng(0)
    words = {token.text for example in examples for token in example.reference}
    for word in [*sorted(words), *map(str, range(1000))]:  # enough for as many clusters
        nlp.vocab.set_vector(word, numbers.standard_normal(16))
    for name in ("tok2vec", "ner"):
        nlp.add_pipe(name)
    nlp.initialize(lambda: examples)
    nlp.to_disk(folder / OUTSIDE)
    config = init_config(pipeline=["ner"])
    config["training"] |= {"max_steps": 4, "eval_frequency": 4}
    config.to_disk(folder / "ner.cfg")
