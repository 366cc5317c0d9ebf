"""Files of Docs that a command is given, or what to do with a file that has none; the corpora of a config."""

import shlex
from pathlib import Path

from spacy.language import Language
from spacy.training import Example
from spacy.training.corpus import walk_corpus
from spacy.util import registry, resolve_dot_names
from thinc.api import fix_random_seed

from spacy_hocrf.cli.convert.formats import FORMATS, recognized
from spacy_hocrf.cli.convert.records import Settings
from spacy_hocrf.cli.errors import CommandErrors

__all__ = ["doc_files", "read_corpus"]

SUFFIX = ".spacy"


def doc_files(path: str | Path) -> list[Path]:
    """A file of spaCy's (.spacy), or all that are in a folder, sorted.

    RAISES (ValueError): H381 for a file of another kind, or a folder without any but with others.
    """
    path = Path(path)
    if path.is_file() and path.suffix != SUFFIX:
        name, kind = recognized(path, Settings())
        _refuse(path, kind if name is None else f"a file of {FORMATS[name].what}")
    if path.is_dir() and not any(path.rglob(f"*{SUFFIX}")):
        others = sum(each.is_file() for each in path.rglob("*"))
        if others:
            _refuse(path, f"a folder with {others} other files")
        return []
    return [Path(each) for each in walk_corpus(path, SUFFIX)]


def read_corpus(nlp: Language, part: str = "train") -> list[Example]:
    """The training corpus, the same at every call; no other corpus is touched.

    part (str): "dev" for the development corpus.
    RAISES (ValueError): H381 if it is empty since its path has no file of spaCy's, but others.
    """
    config = nlp.config.interpolate()
    fix_random_seed(config["training"]["seed"] or 0)
    place = config["training"][f"{part}_corpus"]
    section, *rest = place.split(".")
    corpora = config[section]
    if len(rest) == 1 and rest[0] in corpora:
        reader = registry.resolve({"corpus": corpora[rest[0]]})["corpus"]
    else:  # one function makes all corpora
        [reader] = resolve_dot_names(config, [place])
    examples = list(reader(nlp))
    path = corpora[rest[0]].get("path") if len(rest) == 1 and rest[0] in corpora else None
    if not examples and isinstance(path, str):
        doc_files(path)
    return examples


def _refuse(path: Path, found: str) -> None:
    output = path.with_suffix(SUFFIX) if path.is_file() else path.with_name(f"{path.name}{SUFFIX}")
    arguments = shlex.join((str(path), str(output)))
    raise ValueError(CommandErrors.H381.format(path=path, found=found, arguments=arguments))
