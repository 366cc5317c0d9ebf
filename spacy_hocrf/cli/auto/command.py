"""`python -m spacy hocrf auto`: from annotated texts to a model, with nothing else to decide."""

import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import numpy as np
from srsly import write_json
from tqdm import tqdm
from typer import Argument, Option
from wasabi import msg

from spacy_hocrf.cli.auto.candidates import DEFAULT, Candidate
from spacy_hocrf.cli.auto.doubts import doubts
from spacy_hocrf.cli.auto.drawing import CURVE_FILE, curve_numbers
from spacy_hocrf.cli.auto.estimates import Curve, lead, learning_curve, scores
from spacy_hocrf.cli.auto.page import page
from spacy_hocrf.cli.auto.reading import joined
from spacy_hocrf.cli.auto.recipe import HEADER, default_settings, make_config, train_model
from spacy_hocrf.cli.auto.report import AutoResults, report
from spacy_hocrf.cli.auto.search import Clock, Found, Search
from spacy_hocrf.cli.auto.texts import AutoSetup, Texts, read_texts
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.messages import coded_errors
from spacy_hocrf.cli.writing import check_path, write_config
from spacy_hocrf.training.folders import WorkingFolder

__all__ = ["MODEL", "auto", "auto_cli", "choose", "written"]

MODEL = "model-last"
"""Folder of the model, named as `spacy train` names it."""
SAID = r"\[W00[134]\]"
"""Warnings of what is among the notes of the report, and would come again with every model."""
FRACTIONS = (0.25, 0.5)
"""Of the texts that models have learnt from: further points of the learning curve."""


def auto_cli(
    train: Annotated[
        Path, Argument(help="The annotated texts: a .spacy file, or a folder of them", exists=True)
    ],
    output: Annotated[Path, Argument(help="Folder for the model, its config and the report")],
    lang: Annotated[str, Option("--lang", "-l", help="Two-letter code of the language")] = "en",
    spans_key: Annotated[
        str | None,
        Option("--spans-key", "-sk", help="Learn doc.spans under this key instead of doc.ents"),
    ] = None,
    vectors: Annotated[
        str | None,
        Option("--vectors", "-v", help="Package or folder of a pipeline that has word vectors"),
    ] = None,
    minutes: Annotated[
        float, Option("--minutes", "-m", min=0.0, help="Time that it may take, about")
    ] = 3.0,
    seed: Annotated[int, Option("--seed", min=0, help="Seed of what is left to chance")] = 0,
    force: Annotated[bool, Option("--force", "-F", help="Replace OUTPUT if it is there")] = False,
) -> None:
    """Choose a model for annotated texts by cross-validation, train it, and say how good it is.

    Writes OUTPUT/model-last, a pipeline to load; OUTPUT/config.cfg, which trains it again with `spacy
    train`; and a report, OUTPUT/report.txt and OUTPUT/report.html. The choice is the same on every run
    unless the time ends it.
    """
    with coded_errors():
        results = auto(
            AutoSetup(train, lang, spans_key, vectors),
            output,
            minutes=minutes,
            seed=seed,
            force=force,
        )
    print(report(results))
    msg.good("Saved the model, its config and the report", output)


def auto(
    setup: AutoSetup, output: Path, *, minutes: float = 3.0, seed: int = 0, force: bool = False
) -> AutoResults:
    """Choose a model, train it, and write all of it.

    setup (AutoSetup): what the user decides.
    output (Path): a folder that is new or empty.
    minutes (float): for the choice, and what comes after it.
    seed (int): of what is left to chance.
    force (bool): replace the folder if there is something in it.
    RETURNS (AutoResults): what the report says.
    RAISES (ValueError): H153 to H159 for what cannot be learnt from, or is in the way, H269 for
            a path that a config cannot hold.
    """
    for path in (setup.train.resolve(), setup.vectors):
        check_path(path)
    with written(output, force=force) as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=SAID)
        results = choose(setup, minutes=minutes, seed=seed)
        nlp = train_model(results.config, setup.factory)
        write_config(results.config, folder / "config.cfg", HEADER)
        nlp.to_disk(folder / MODEL)
        (folder / "report.txt").write_text(report(results), encoding="utf8")
        (folder / "report.html").write_text(page(results), encoding="utf8")
        write_json(folder / CURVE_FILE, curve_numbers(results.curve))
    return results


def choose(setup: AutoSetup, *, minutes: float, seed: int) -> AutoResults:
    """Choose settings, and say how good a model with them will be."""
    clock = Clock(60 * minutes)
    nlp = setup.blank()
    texts = read_texts(setup, nlp)
    default = Candidate(DEFAULT, default_settings(setup, nlp))
    with tqdm(desc="Choosing", disable=None, leave=False) as bar:
        search = Search(setup, texts, nlp, clock, seed, bar)
        found = search.run(default)
        bar.set_postfix_str("learning curve")
        curve = _curve(found, texts, seed)
    chosen = found.chosen
    ahead = lead(chosen.counts, found.default.counts)
    config = make_config(setup, nlp, chosen.settings, gold_tokens=texts.gold_tokens, seed=seed)
    return AutoResults(
        setup,
        texts,
        found,
        config,
        curve,
        ahead,
        tuple(scores(chosen.counts, curve.gain, ahead, seed)),
        tuple(doubts(texts, chosen.known, chosen.cost)),
    )


def _curve(found: Found, texts: Texts, seed: int) -> Curve:
    """That of the chosen settings, on the folds of the last rung."""
    chosen, learnt, counts = found.chosen, [], []
    for fraction in FRACTIONS:
        parts, sizes = [], []
        for some, held in found.division:
            fewer = some[: max(2, round(fraction * len(some)))]
            sizes.append(len(fewer))
            fold = found.subject.fold(fewer, held)
            fold.train(found.subject.trainer(chosen.sigma))
            parts.append(found.subject.read(fold, held))
        reading = joined(parts)
        learnt.append(round(np.mean(sizes)))
        counts.append(reading.counts(chosen.cost and reading.cost).only(reading.held))
    learnt.append(round(np.mean([len(some) for some, _ in found.division])))
    counts.append(chosen.counts)
    return learning_curve(learnt, counts, len(texts), seed)


@contextmanager
def written(output: Path, *, force: bool) -> Iterator[Path]:
    """A folder beside OUTPUT that becomes OUTPUT in the end, if nothing goes wrong.

    RAISES (ValueError): H157 if there is something in the way.
    """
    if output.exists() and not force and (output.is_file() or any(output.iterdir())):
        raise ValueError(CommandErrors.H157.format(path=output))
    output.parent.mkdir(parents=True, exist_ok=True)
    with WorkingFolder(f".{output.name}-", output.parent) as folder:
        new = folder / "new"
        new.mkdir()
        yield new
        old = folder.with_name(f"{folder.name}-old")  # which is not lost if this is ended here
        if output.exists():
            output.rename(old)
        new.rename(output)
        if old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink(missing_ok=True)
