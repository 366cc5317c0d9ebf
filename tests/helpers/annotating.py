"""What tests of `hocrf annotate` share: small pipelines, one of which is deadly, and a program."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import spacy
from small_corpus import examples
from spacy.util import import_file

TRAINER = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0, "threads": 1}

JOB = """
import sys
from spacy_hocrf.cli import hocrf_cli
if __name__ == "__main__":
    hocrf_cli(["annotate", *sys.argv[1:]])
"""

KILLER = """
import os
from pathlib import Path
from spacy.language import Language
from spacy.tokens import Doc

@Language.component("killer")
def killer(doc):
    for path in map(Path, {paths!r}):
        if "DEADLY" in doc.text and not path.exists():
            path.touch()
            os._exit(9)
    return doc
"""


def write_pipeline(folder, factory="hocrf", **settings):
    """A pipeline of one component."""
    nlp = spacy.blank("xx")
    nlp.add_pipe(factory, config={"trainer": TRAINER, "model": {"order": 1}, **settings})
    data = examples(nlp)
    for example in data:
        example.reference.spans["found"] = list(example.reference.ents)
        for token in example.reference:
            token.tag_ = token.ent_type_ or "X"
    nlp.initialize(lambda: data)
    for _ in range(5):
        nlp.update(data, sgd=nlp.create_optimizer())
    nlp.to_disk(folder)


def write_deadly(folder, model, deaths):
    """The pipeline, but so many processes that read DEADLY die; and its code."""
    code = folder / "killer.py"
    code.write_text(KILLER.format(paths=[str(folder / f"dead{i}") for i in range(deaths)]))
    import_file("killer", code)
    nlp = spacy.load(model)
    nlp.add_pipe("killer", first=True)
    nlp.to_disk(folder / "deadly")
    return folder / "deadly", code


def some_texts():
    data = examples(spacy.blank("xx"))
    return [f"{example.reference.text} Ünïcode {i}" for i, example in enumerate(data)]


def descendants(pid):
    """Processes that a process has begun, and these, where the system says so."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [each for n in map(int, children) for each in (n, *descendants(n))]


def kill(pid):
    """End a process, which may have ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
