"""Pipelines for the commands: find the component, hide annotation, make blank ones, train as `spacy train`
does, and split texts into folds.
"""

import io
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.initialize import init_nlp, load_vectors_into_model
from spacy.training.loop import train
from spacy.util import load_model
from thinc.api import Config, Optimizer

from spacy_hocrf.annotation.groups import get_group
from spacy_hocrf.annotation.readers import given_of, has_tokens_of
from spacy_hocrf.annotation.spans import words_of
from spacy_hocrf.annotation.targets import SpansTarget, TagsTarget, Target
from spacy_hocrf.cli.counts import EntsScorer, Scorer, SpansScorer, TagsScorer
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.files import write_docs
from spacy_hocrf.cli.folders import WorkingFolder
from spacy_hocrf.learning.heldout import divided
from spacy_hocrf.pipeline.component import SegmentationPipe
from spacy_hocrf.types import AUTO

__all__ = [
    "ENCODER",
    "LARGE",
    "MEMORY",
    "OVER_ENCODER",
    "alone",
    "begin",
    "blank",
    "component_of",
    "folds_of",
    "group_numbers",
    "numbered_keys",
    "predictions",
    "ready_docs",
    "scorer_of",
    "settled",
    "sourced",
    "train_on",
    "trained",
    "with_other_tokens",
]

ENCODER = "hocrf_encoder"
"""Factory and name of a frozen encoder."""
OVER_ENCODER = {
    "@misc": "spacy-hocrf.Features.v1",
    "*": {
        "window": {"@misc": "spacy-hocrf.Window.v1"},
        "encoder": {"@misc": "spacy-hocrf.Vectors.v1", "source": "tensor"},
    },
}
"""Features of a component after an encoder: the default ones, and the encoder's vectors."""
MEMORY: Mapping[str, Any] = {"order": 3, "unseen": True}
"""Settings of a model of higher order, which gets more whole records right (project/records)."""
LARGE = 2_000_000
"""Tokens times labels. With more, `unseen` would need too much memory: a weight for each label with each
observation.
"""
MAX_OTHER = 0.01
"""Share of texts with other tokens above which commands warn."""
SILENT = {"@loggers": "spacy.ConsoleLogger.v1"}
"""A logger that writes no file, only to the streams that it is given."""
MAX_ORDER = 2
"""The highest order that "auto" tries."""


def component_of(nlp: Language, name: str | None) -> tuple[str, SegmentationPipe]:
    """Find a component of ours; return its name and the component.

    name (Optional[str]): None for the only one.
    RAISES (ValueError): H204 if none has this name, or, for None, unless there is exactly one.
    """
    ours = {key: pipe for key, pipe in nlp.pipeline if isinstance(pipe, SegmentationPipe)}
    if name is None and len(ours) == 1:
        return next(iter(ours.items()))
    if name is None or name not in ours:
        names = ", ".join(ours) or "none"
        raise ValueError(CommandErrors.H204.format(found=name or "none", known=names))
    return name, ours[name]


def ready_docs(nlp: Language, docs: Sequence[Doc], component: str) -> list[Doc]:
    """Copy the tokens of documents, and run the components before this one on them."""
    later = nlp.pipe_names[nlp.pipe_names.index(component) :]
    with nlp.select_pipes(disable=later):
        return list(nlp.pipe(given_of(nlp, doc) for doc in docs))


def predictions(nlp: Language, docs: Iterable[Doc]) -> Iterator[Doc]:
    """Run a pipeline on the tokens of documents, without their annotation."""
    return nlp.pipe(given_of(nlp, doc) for doc in docs)


def with_other_tokens(nlp: Language, docs: Sequence[Doc]) -> int:
    """Count documents whose tokens differ from those of nlp(text); 0 if the share is at most MAX_OTHER."""
    other = sum(not has_tokens_of(nlp, doc) for doc in docs)
    return other if other > MAX_OTHER * len(docs) else 0


def scorer_of(target: Target) -> Scorer:
    """Return the scorer for the annotation that a component learns from."""
    if isinstance(target, SpansTarget):
        return SpansScorer(target.spans_key)
    return TagsScorer() if isinstance(target, TagsTarget) else EntsScorer()


def blank(lang: str, vectors: str | None = None, encoder: Path | None = None) -> Language:
    """Make a pipeline without components, except perhaps a frozen encoder. It takes texts of any length, as
    spaCy's limit is for parsers.

    vectors (Optional[str]): package or folder of a pipeline whose word vectors it gets.
    encoder (Optional[Path]): folder of the encoder.
    RAISES (ValueError): H159 for a language that spaCy does not have, H363 for one whose tokenizer needs a
        package that is not installed, H187 or H188 for missing vectors, H490 to H495 for an encoder that
        cannot be run.
    """
    try:
        nlp = spacy.blank(lang)
    except (ImportError, AttributeError) as error:  # the module is no language: it has no __all__
        if isinstance(error, AttributeError) or str(error).startswith("[E048]"):
            raise ValueError(CommandErrors.H159.format(found=lang)) from error
        raise ValueError(
            CommandErrors.H363.format(found=lang, reason=str(error).rstrip("."))
        ) from error
    nlp.max_length = sys.maxsize
    if vectors is not None:
        try:
            load_vectors_into_model(nlp, vectors)
        except OSError as error:
            raise ValueError(CommandErrors.H187.format(found=vectors)) from error
        if not nlp.vocab.vectors.size:
            raise ValueError(CommandErrors.H188.format(found=vectors))
    if encoder is not None:
        pipe: Any = nlp.add_pipe(ENCODER, config={"folder": encoder.as_posix()})
        assert pipe.encoder.width  # runs the encoder, so that an unusable one is found here
        nlp.config["training"]["annotating_components"] = [ENCODER]
    return nlp


def folds_of(
    docs: Sequence[Doc], folds: int, seed: int, attribute: str | None = None
) -> list[list[int]]:
    """Split texts at random into folds of nearly equal size; return the numbers of the texts in each.

    attribute (Optional[str]): extension attribute that names a text's group. A group is in one fold, and so
        are texts with the same words.
    RAISES (ValueError): H077 if there are fewer groups than folds.
    """
    groups = [get_group(doc, attribute) for doc in docs]
    keys: list[Hashable] = [
        ("words", *words_of(doc)) if group is None else ("group", group)
        for doc, group in zip(docs, groups)
    ]
    if len({*keys}) < folds:
        raise ValueError(CommandErrors.H077.format(found=len({*keys}), folds=folds))
    return divided(keys, folds, seed)


def group_numbers(docs: Iterable[Doc], attribute: str | None) -> NDArray[np.int64]:
    """Number the groups of texts by first appearance: int64 [D], the group of each text.

    attribute (Optional[str]): extension attribute that names a text's group; a text without a value is a
        group by itself.
    """
    groups = [get_group(doc, attribute) for doc in docs]
    return numbered_keys([None if group is None else (group,) for group in groups])


def numbered_keys(keys: Iterable[Hashable]) -> NDArray[np.int64]:
    """Number groups by first appearance: int64 [D]. Keys are no numbers; None is a group by itself."""
    numbers: dict[Hashable, int] = {}
    distinct = (i if key is None else key for i, key in enumerate(keys))
    return np.array([numbers.setdefault(key, len(numbers)) for key in distinct], dtype=np.int64)


def train_on(pipe: SegmentationPipe, optimizer: Optimizer, most: float) -> int:
    """Train an initialized component until the trainer has converged, or for at most `most` steps.

    RETURNS (int): number of steps taken.
    """
    steps = 0
    while steps < most and pipe.run is not None and pipe.run.running:
        pipe.finish_update(optimizer)
        steps += 1
    return steps


def trained(config: Config, docs: Sequence[Doc], *, best: bool = True) -> Language:
    """Train the pipeline of a config on these texts, without logging.

    config (Config): not interpolated; its training corpus is replaced.
    best (bool): return the pipeline that is best on the development corpus; else the last one, and then a
        development corpus without a path is replaced, too.
    RAISES (ValueError): H184 if nothing is trained, H185 if the corpus has no path to replace.
    """
    with WorkingFolder("hocrf-") as folder:
        path = folder / "train.spacy"
        write_docs(path, docs)
        config = config.copy()
        _reader_of(config, "train")["path"] = str(path)
        if not best:
            _set_dev(config, path)
        logger, config["training"]["logger"] = config["training"].get("logger"), SILENT
        nlp = init_nlp(config)
        _check_trainable(nlp)
        sink = io.StringIO()
        train(nlp, folder, stdout=sink, stderr=sink)
        best_folder = folder / "model-best"
        result = load_model(best_folder if best and best_folder.exists() else folder / "model-last")
        if logger is not None:
            result.config["training"]["logger"] = logger
        return result


def _reader_of(config: Config, part: str) -> dict[str, Any]:
    """Return the block of a corpus. RAISES (ValueError): H185 if no path can be set there."""
    name = config.get("training", {}).get(f"{part}_corpus", f"corpora.{part}")
    block: Any = config
    for key in name.split("."):
        block = block.get(key) if isinstance(block, dict) else None
    if not isinstance(block, dict) or "path" not in block:
        raise ValueError(CommandErrors.H185.format(name=name))
    return block


def _set_dev(config: Config, path: Path) -> None:
    """Set a development corpus if it has no path: spaCy needs one, even if nothing depends on it."""
    try:
        without_one = _reader_of(config.interpolate(), "dev")["path"] is None
    except ValueError:  # it is read in another way
        return
    if without_one:
        _reader_of(config, "dev")["path"] = str(path)


def _check_trainable(nlp: Language) -> None:
    frozen = nlp.config.interpolate()["training"]["frozen_components"]
    if not any(
        getattr(pipe, "is_trainable", False) and name not in frozen for name, pipe in nlp.pipeline
    ):
        raise ValueError(CommandErrors.H184.format(known=", ".join(nlp.pipe_names) or "none"))


def begin(nlp: Language, config: Config, sample: Sequence[Example]) -> Optimizer:
    """Initialize a pipeline and update it as `spacy train` does, without an optimizer step."""
    fixed = sourced(config, nlp.pipe_names)
    with nlp.select_pipes(disable=fixed):
        optimizer = nlp.initialize(lambda: sample)
    annotating = nlp.config.interpolate()["training"]["annotating_components"]
    for _ in range(2):  # a model grows in the second, if other components annotate in updates only
        nlp.update(sample, sgd=False, exclude=fixed, annotates=annotating)  # type: ignore[arg-type]
    return optimizer


def sourced(config: Config, names: Sequence[str]) -> list[str]:
    """Select the components that were trained before: frozen or sourced ones."""
    frozen = config.interpolate().get("training", {}).get("frozen_components", [])
    return [name for name in names if name in frozen or "source" in config["components"][name]]


def settled(config: Config, name: str) -> Config:
    """Replace the "auto" settings of a component by fixed ones, so that training does not choose them."""
    config = config.copy()
    component = config["components"][name]
    for block_name, setting, value in (("model", "order", MAX_ORDER), ("trainer", "sigma", 1.0)):
        block = component.setdefault(block_name, {})
        default = not any(key.startswith("@") for key in block)  # the default block has "auto"
        if block.get(setting, AUTO if default else None) == AUTO:
            block[setting] = value
    return config


def alone(config: Config, nlp: Language, name: str) -> Config:
    """Disable the other components of a pipeline that would have to be trained; return the config.

    RAISES (ValueError): H078 if the component of this name learns from one of them.
    """
    trainable = [key for key in nlp.pipe_names if getattr(nlp.get_pipe(key), "is_trainable", False)]
    untrained = {*trainable} - {name, *sourced(config, trainable)}
    for other in untrained.intersection(nlp.config["training"]["annotating_components"]):
        raise ValueError(CommandErrors.H078.format(other=other, name=name))
    config = config.copy()
    config["nlp"]["disabled"] = [*nlp.disabled, *untrained]
    return config
