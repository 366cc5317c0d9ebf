"""Runs the blocks of code of a page in their order, in a folder: Python in one namespace, commands in bash,
and configs, put into the config of that folder, in a training of two steps.

`test_blocks.py` does so without installing anything. As they are written, word for word:

python tests/helpers/page_blocks.py docs/data.md     # in the folder, by the Python of the page's installation
"""

import contextlib
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import spacy
import srsly
from documentation import ROOT, code_of, page, with_parents
from spacy.cli._util import app
from spacy.cli.init_config import init_config
from spacy.cli.train import train
from spacy.training import Corpus
from spacy.util import working_dir
from thinc.api import Config
from typer.testing import CliRunner

import spacy_hocrf.cli  # noqa: F401 - adds the commands

START = "docs/start.md"
CODE = {"docs/own-parts.md": "examples/own_parts.py"}
"""Files that pages say to give with --code."""
OUTSIDE = "en_core_web_md"
"""A pipeline with vectors and entities: where it is not installed, a small one has its name."""
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
NEAR = {"rtol": 0.02, "atol": 0.011}  # instruction sets round otherwise
SETTLED = {"model": {"order": 1}, "trainer": {"sigma": 1.0}}
"""Instead of "auto", which takes most of the time that a short training takes."""
SHOWN = {"json", "text", "xml"}
"""Languages of samples, which say what a file has."""
LESS = {
    "hocrf ablate config.cfg": "hocrf ablate config.cfg --folds 2 --training.max_steps 1",
    "--sigmas 0.3,1,3,10 --orders 1,2": "--sigmas 1,3 --orders 1",
    "doubt config.cfg train.spacy": "doubt config.cfg dev.spacy",
    "train mine.cfg --output mine": "train mine.cfg --output mine --training.max_steps 9",
}
"""What takes long, and what is run instead."""
COLOUR = re.compile(r"\x1b\[[\d;]*m")


def run_page(name, folder, as_written=False):
    """Run the blocks of a page in a folder, and return those that were run.

    as_written (bool): word for word, those too that only `.ci/run` runs, but for the installation in the
        folder itself, by whose Python this is run. Else no package is installed, no wheel is built, and
        projects are run dry.
    """
    if name == START:  # the reader's own
        for file, lines in (("mine", slice(30)), ("others", slice(30, 40))):
            write_columns(folder / f"{file}.conll", lines)
    if OUTSIDE in page(name):
        put_outside(folder)
    if name in CODE:
        runpy.run_path(str(ROOT / CODE[name]))
    namespace, done = {"__name__": "__main__"}, []
    for block in code_of(name):
        if not (block.in_journey and not block.installs if as_written else not block.reason):
            continue
        if block.language in SHOWN:
            continue
        where = f"{block.page}:{block.line}"
        if block.language == "python":
            printed = run_python(block.code, namespace, folder)
        elif block.language == "bash":
            code = block.code if as_written else harmless(block.code)
            commands = None if as_written else commands_of_spacy(code)
            printed = (
                run_bash(code, folder, where)
                if commands is None
                else "".join(run_spacy(command, folder, where) for command in commands)
            )
        else:
            assert block.language == "ini", where
            run_config(block.code, folder, "sample.cfg" if block.added else "config.cfg")
        if block.output is not None and block.language != "ini":
            assert_same(printed, block.output, where)
        done.append(block)
    return done


def run_python(code, namespace, folder):
    """What it prints."""
    with working_dir(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, namespace)
    return printed.getvalue()


def harmless(code):
    """Commands without those that install packages, without wheels, with less of what takes long, and with
    projects run dry.
    """
    code = re.sub(r"^pip install .*$", ":", code, flags=re.MULTILINE)
    for long, short in LESS.items():
        code = code.replace(long, short)
    code = code.replace("--build wheel", "--build none")
    return code.replace("project run ", "project run --dry ")


def commands_of_spacy(code):
    """The arguments of each line, where all lines are commands of spaCy; else None."""
    if set(code) & set("|>$*&"):
        return None
    lines = [shlex.split(line, comments=True) for line in code.replace("\\\n", " ").splitlines()]
    commands = [line for line in lines if line and line != [":"]]
    known = all(line[:3] == ["python", "-m", "spacy"] for line in commands)
    return [line[3:] for line in commands] if known else None


def run_spacy(arguments, folder, where):
    """What a command prints, run here: to import spaCy takes longer than most commands."""
    with working_dir(folder), warnings.catch_warnings():
        warnings.simplefilter("default")
        done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, f"{where}\n{done.output}{done.exception!r}"
    return COLOUR.sub("", done.stdout)


def run_bash(code, folder, where):
    """What it prints, with the Python that runs this first on the path."""
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
    match = re.search(pattern, printed, flags=re.DOTALL)
    assert match, f"{where} prints\n{printed}\nand not\n{expected}"
    values = [float(number.replace(",", "")) for number in match.groups()]
    assert np.allclose(values, numbers, **NEAR), f"{where} prints {values}, and not {numbers}"


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
    for word in sorted(words):
        nlp.vocab.set_vector(word, numbers.standard_normal(16))
    for name in ("tok2vec", "ner"):
        nlp.add_pipe(name)
    nlp.initialize(lambda: examples)
    nlp.to_disk(folder / OUTSIDE)
    config = init_config(pipeline=["ner"])
    config["training"] |= {"max_steps": 4, "eval_frequency": 4}
    config.to_disk(folder / "ner.cfg")


if __name__ == "__main__":
    sys.path.insert(0, "")  # as in a session in this folder
    print(len(run_page(sys.argv[1], Path.cwd(), as_written=True)))
