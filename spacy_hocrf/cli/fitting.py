"""Pipelines that are trained as by `spacy train`, on texts that a command gives them, and which texts each
of several holds back.
"""

import io
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_model
from thinc.api import Config, Optimizer

from spacy_hocrf.cli.compare import group_of
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.pipeline.component import SegmentationPipe
from spacy_hocrf.pipeline.heldout import divided
from spacy_hocrf.pipeline.spans import words_of
from spacy_hocrf.training.folders import WorkingFolder

__all__ = ["folds_of", "train_on", "trained"]


def folds_of(
    docs: Sequence[Doc], folds: int, seed: int, attribute: str | None = None
) -> list[list[int]]:
    """Numbers of the texts that each fold holds back: parts of nearly equal size, at random.

    attribute (Optional[str]): extension attribute that says which texts are a group. They are in one part,
        and so are texts of the same words.
    RAISES (ValueError): H077 if there are fewer than folds.
    """
    groups: dict[Hashable, list[int]] = {}
    for i, doc in enumerate(docs):
        group = None if attribute is None else group_of(doc, attribute)
        key = ("words", *words_of(doc)) if group is None else ("group", group)
        groups.setdefault(key, []).append(i)
    if len(groups) < folds:
        raise ValueError(CommandErrors.H077.format(found=len(groups), folds=folds))
    numbers = [*groups.values()]
    return [
        [i for group in part for i in numbers[group]] for part in divided(len(numbers), folds, seed)
    ]


def train_on(pipe: SegmentationPipe, optimizer: Optimizer, most: float) -> int:
    """Train an initialized component until the trainer has converged, or for so many steps.

    RETURNS (int): the steps that were taken.
    """
    steps = 0
    while steps < most and pipe.run is not None and pipe.run.running:
        pipe.finish_update(optimizer)
        steps += 1
    return steps


def trained(config: Config, docs: Sequence[Doc], *, best: bool = True) -> Language:
    """The pipeline that a config makes of these training texts.

    config (Config): not interpolated; its training corpus is replaced.
    best (bool): the pipeline that is best on the development corpus; else the last one, and then a
        development corpus without a path is replaced, too.
    RAISES (ValueError): H184 if nothing is trained, H185 if the corpus has no path to replace.
    """
    with WorkingFolder("hocrf-") as folder:
        path = folder / "train.spacy"
        DocBin(docs=docs, store_user_data=True).to_disk(path)
        config = config.copy()
        _reader_of(config, "train")["path"] = str(path)
        if not best:
            _give_dev(config, path)
        nlp = init_nlp(config)
        _check(nlp)
        silent = io.StringIO()
        train(nlp, folder, stdout=silent, stderr=silent)
        chosen = folder / "model-best"
        return load_model(chosen if best and chosen.exists() else folder / "model-last")


def _reader_of(config: Config, part: str) -> dict[str, Any]:
    """The block of a corpus. RAISES (ValueError): H185 if no path can be set there."""
    name = config.get("training", {}).get(f"{part}_corpus", f"corpora.{part}")
    block: Any = config
    for key in name.split("."):
        block = block.get(key) if isinstance(block, dict) else None
    if not isinstance(block, dict) or "path" not in block:
        raise ValueError(CommandErrors.H185.format(name=name))
    return block


def _give_dev(config: Config, path: Path) -> None:
    """spaCy wants a development corpus, even if nothing is decided by it."""
    try:
        without_one = _reader_of(config.interpolate(), "dev")["path"] is None
    except ValueError:  # it is read in another way
        return
    if without_one:
        _reader_of(config, "dev")["path"] = str(path)


def _check(nlp: Language) -> None:
    frozen = nlp.config.interpolate()["training"]["frozen_components"]
    if not any(
        getattr(pipe, "is_trainable", False) and name not in frozen for name, pipe in nlp.pipeline
    ):
        raise ValueError(CommandErrors.H184.format(known=", ".join(nlp.pipe_names) or "none"))
