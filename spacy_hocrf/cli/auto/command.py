"""`python -m spacy hocrf auto`: from annotated texts to a model, with nothing else to decide.

The config that is written has a number wherever something was chosen, so that `spacy train` reproduces the
model at once: it trains until the optimum is reached, which no dev corpus decides.
"""

import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from spacy.cli._util import import_code
from spacy.language import Language
from spacy.util import load_model_from_config
from srsly import write_json
from thinc.api import Config
from tqdm import tqdm
from typer import Argument, Option
from wasabi import msg

from spacy_hocrf.cli.auto.candidates import DEFAULT, Candidate
from spacy_hocrf.cli.auto.estimates import NEW, Curve, lead, learning_curve, scores
from spacy_hocrf.cli.auto.page import curve_numbers, page
from spacy_hocrf.cli.auto.reading import doubted_texts, joined
from spacy_hocrf.cli.auto.report import AutoResults, by_label, report
from spacy_hocrf.cli.auto.search import Clock, Search, SearchResults
from spacy_hocrf.cli.auto.texts import AnnotatedTexts, AutoSetup, read_texts
from spacy_hocrf.cli.card import card_of_scores
from spacy_hocrf.cli.config import LOGGER, REQUIRED
from spacy_hocrf.cli.corpora import read_corpus
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.options import (
    BestAt,
    Code,
    EncoderFolder,
    Force,
    Goal,
    GroupBy,
    Lang,
    SpansKey,
    Vectors,
    check_path,
    write_config,
)
from spacy_hocrf.cli.pipelines import component_of, train_on
from spacy_hocrf.cli.show import CURVE_FILE
from spacy_hocrf.workers.folders import WorkingFolder

__all__ = [
    "HEADER",
    "MODEL",
    "auto",
    "auto_cli",
    "choose",
    "default_settings",
    "make_config",
    "train_model",
    "written",
]

MODEL = "model-last"
"""Folder of the model, named as `spacy train` names it."""
SAID = r"\[W00[134]\]"
"""Warnings of what is among the notes of the report, and would come again with every model."""
FRACTIONS = (0.25, 0.5)
"""Of the texts that models have learnt from: further points of the learning curve."""
STEPS = 10_000
"""Of training, at most. It ends where the trainer has converged."""
SPARE = 20
"""Steps that the config allows for beyond those that were needed."""
HEADER = """\
# Written by `python -m spacy hocrf auto`, with the settings that it chose. This trains the same model:
#
#     python -m spacy train config.cfg --output trained
#
# Training goes on to the optimum (patience = 0), so the model to take is model-last. No dev corpus
# decides anything; spaCy wants one, so it is the training corpus, and the scores that are printed are
# of texts that the model has learnt from. Honest ones are in report.txt.

"""


def auto_cli(
    train: Annotated[
        Path, Argument(help="The annotated texts: a .spacy file, or a folder of them", exists=True)
    ],
    output: Annotated[Path, Argument(help="Folder for the model, its config and the report")],
    lang: Lang = "en",
    spans_key: SpansKey = None,
    vectors: Vectors = None,
    encoder: EncoderFolder = None,
    group_by: GroupBy = None,
    best_at: Goal = BestAt.FIELDS,
    minutes: Annotated[
        float, Option("--minutes", "-m", min=0.0, help="Time that it may take, about")
    ] = 3.0,
    seed: Annotated[int, Option("--seed", min=0, help="Seed of what is left to chance")] = 0,
    force: Force = False,
    code: Code = None,
) -> None:
    """Choose a model for annotated texts by cross-validation, train it, and say how good it is.

    Writes OUTPUT/model-last, a pipeline to load; OUTPUT/config.cfg, which trains it again with `spacy
    train`; and a report, OUTPUT/report.txt and OUTPUT/report.html. The choice is the same on every run
    unless the time ends it.
    """
    import_code(code)
    results = auto(
        AutoSetup(train, lang, spans_key, vectors, group_by, encoder, best_at),
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
    for path in (setup.train.resolve(), setup.vectors, setup.encoder):
        check_path(path)
    with written(output, force=force) as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=SAID)
        results = choose(setup, minutes=minutes, seed=seed)
        nlp = train_model(results.config, setup.factory)
        nlp.meta["notes"] = _card(results, nlp)
        write_config(results.config, folder / "config.cfg", HEADER)
        nlp.to_disk(folder / MODEL)
        (folder / "report.txt").write_text(report(results), encoding="utf8")
        (folder / "report.html").write_text(page(results), encoding="utf8")
        write_json(folder / CURVE_FILE, curve_numbers(results.curve))
    return results


def _card(results: AutoResults, nlp: Language) -> str:
    """What the package of a model says of it."""
    chosen, curve = results.found.chosen, curve_numbers(results.curve)
    right = chosen.counts.whole
    told = [
        f"F1 is an estimate for {NEW} new texts like these; P and R were measured on {len(right):,} texts, "
        "each read by a model that had not learnt from it.",
        f"Settings that `hocrf auto` has chosen: {chosen}.",
    ]
    return card_of_scores(nlp, results.setup.factory, by_label(results), right, told, curve)


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
        tuple(doubted_texts(texts, chosen.known, chosen.cost)),
    )


def _curve(found: SearchResults, texts: AnnotatedTexts, seed: int) -> Curve:
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


def default_settings(setup: AutoSetup, nlp: Language) -> dict[str, Any]:
    """The config block of the component by default, every setting filled in.

    nlp (Language): a pipeline without it, which is not changed.
    """
    other = nlp.from_config(nlp.config)
    other.add_pipe(setup.factory, config=setup.settings)
    settings = dict(other.get_pipe_config(setup.factory))
    settings.pop("factory", None)
    return settings


def make_config(
    setup: AutoSetup, nlp: Language, settings: Mapping[str, Any], *, gold_tokens: bool, seed: int
) -> Config:
    """A config for `spacy train`.

    nlp (Language): a pipeline without the component, which is not changed.
    settings (Mapping[str, Any]): of the component.
    gold_tokens (bool): learn from the tokens of the annotation.
    """
    other = nlp.from_config(nlp.config)
    other.add_pipe(setup.factory, config=dict(settings))
    config = other.config.copy()
    path = setup.train.resolve().as_posix()
    config["paths"].update(train=path, dev=path, vectors=setup.vectors)
    config["system"]["seed"] = seed
    config["nlp"]["before_creation"] = dict(REQUIRED)
    for corpus in config["corpora"].values():
        corpus["gold_preproc"] = gold_tokens
    config["training"].update(patience=0, max_steps=STEPS, eval_frequency=STEPS)
    config["training"]["score_weights"] = {setup.target.metric: 1.0}
    config["training"]["logger"] = dict(LOGGER)
    return config


def train_model(config: Config, name: str) -> Language:
    """Train until the trainer has converged; the config then has the number of steps it takes.

    name (str): of the component.
    """
    nlp = load_model_from_config(config, auto_fill=True)
    examples = read_corpus(nlp)
    optimizer = nlp.initialize(lambda: examples)
    steps = train_on(component_of(nlp, name)[1], optimizer, STEPS)
    for training in (config["training"], nlp.config["training"]):
        training.update(max_steps=steps + SPARE, eval_frequency=steps + SPARE)
    return nlp
