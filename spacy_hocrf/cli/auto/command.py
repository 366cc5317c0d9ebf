"""`python -m spacy hocrf auto`: train a model on annotated texts without any settings.

The config that is written contains the chosen values, so that `spacy train` reproduces the model without
another search: it trains to the optimum, and no development corpus decides when to stop.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from spacy.cli._util import import_code
from spacy.language import Language
from spacy.util import load_model_from_config
from thinc.api import Config
from tqdm import tqdm
from typer import Argument, Option
from wasabi import msg

from spacy_hocrf.cli.auto.estimates import NEW, learning_curve, scores
from spacy_hocrf.cli.auto.folds import SettingsTrial, divide, read_in_folds, tried
from spacy_hocrf.cli.auto.page import curve_numbers, page
from spacy_hocrf.cli.auto.reading import Subject, doubted_texts
from spacy_hocrf.cli.auto.report import AutoResults, by_label, report
from spacy_hocrf.cli.auto.texts import AutoSetup, read_annotated
from spacy_hocrf.cli.card import card_of_scores
from spacy_hocrf.cli.config import LOGGER, REQUIRED
from spacy_hocrf.cli.corpora import read_corpus
from spacy_hocrf.cli.files import write_json, write_whole
from spacy_hocrf.cli.options import (
    BestAt,
    Code,
    EncoderFolder,
    Force,
    Goal,
    GroupBy,
    Lang,
    SpansKey,
    Teachers,
    Vectors,
    check_path,
    names_in,
    write_config,
    written,
)
from spacy_hocrf.cli.pipelines import LARGE, MEMORY, component_of, train_on
from spacy_hocrf.cli.show import CURVE_FILE

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
REPORTED_WARNINGS = r"\[W00[134]\]"
"""Warnings to suppress: the report has notes on them, and every model would repeat them."""
FRACTIONS = (0.25, 0.5)
"""Shares of the training texts for further points of the learning curve."""
STEPS = 10_000
"""Largest number of training steps. Training ends when the trainer has converged."""
SPARE = 20
"""Number of steps that the config allows beyond those that were needed."""
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
    teachers: Teachers = None,
    seed: Annotated[int, Option("--seed", min=0, help="Seed of random choices")] = 0,
    force: Force = False,
    code: Code = None,
) -> None:
    """Train a model on annotated texts, and estimate how good it is by cross-validation.

    Writes OUTPUT/model-last, a pipeline to load; OUTPUT/config.cfg, which trains it again with `spacy
    train`; and a report, OUTPUT/report.txt and OUTPUT/report.html. The result is the same on every run.
    """
    import_code(code)
    teacher_keys = () if teachers is None else tuple(names_in(teachers))
    results = auto(
        AutoSetup(train, lang, spans_key, vectors, group_by, encoder, best_at, teacher_keys),
        output,
        seed=seed,
        force=force,
    )
    print(report(results))
    msg.good("Saved the model, its config and the report", output)


def auto(setup: AutoSetup, output: Path, *, seed: int = 0, force: bool = False) -> AutoResults:
    """Train a model, estimate how good it is, and write model, config and report.

    setup (AutoSetup): the user's choices.
    output (Path): a folder that is new or empty.
    seed (int): seed of random choices.
    force (bool): replace the folder if it is not empty.
    RETURNS (AutoResults): results for the report.
    RAISES (ValueError): H153 to H156, H158 and H159 for texts or settings that cannot be used, H157 if the
        output exists, H269 for a path that a config cannot hold.
    """
    for path in (setup.train.resolve(), setup.vectors, setup.encoder):
        check_path(path)
    with written(output, force=force) as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=REPORTED_WARNINGS)
        results = choose(setup, seed=seed)
        nlp = train_model(results.config, setup.factory)
        nlp.meta["notes"] = _card(results, nlp)
        write_config(results.config, folder / "config.cfg", HEADER)
        nlp.to_disk(folder / MODEL)
        write_whole(folder / "report.txt", report(results))
        write_whole(folder / "report.html", page(results))
        write_json(folder / CURVE_FILE, curve_numbers(results.curve))
    return results


def _card(results: AutoResults, nlp: Language) -> str:
    """Make the model card."""
    right = results.chosen.counts.whole
    paragraphs = [
        f"F1 is an estimate for {NEW} new texts like these; P and R were measured on {len(right):,} texts, "
        "each read by a model that had not learnt from it.",
        f"Settings that `hocrf auto` has chosen: {results.chosen}.",
    ]
    curve = curve_numbers(results.curve)
    return card_of_scores(nlp, results.setup.factory, by_label(results), right, paragraphs, curve)


def choose(setup: AutoSetup, *, seed: int) -> AutoResults:
    """Choose settings by cross-validation, and estimate how good a model with them will be."""
    nlp = setup.blank()
    texts = read_annotated(setup, nlp)
    default = default_settings(setup, nlp)
    other = {**default, "model": {**default["model"], **MEMORY}}
    division = divide(texts.complete, texts.groups, seed)
    small = int(texts.lengths.sum()) * len(texts.labels) <= LARGE
    with tqdm(total=2 + len(FRACTIONS), desc="Reading", disable=None, leave=False) as bar:
        trials = list[SettingsTrial]()
        for settings in (default, other) if small else (default,):
            trials.append(tried(Subject(settings, setup, texts, nlp), division))
            bar.update()
        chosen = trials[-1] if trials[-1].beats(trials[0], setup.best_at) else trials[0]
        learnt, counts = [chosen.learnt], [chosen.counts]
        for fraction in FRACTIONS:
            reading, size, _ = read_in_folds(chosen.subject, division, fraction)
            learnt.insert(-1, size)
            counts.insert(-1, reading.counts(chosen.cost).only(reading.held))
            bar.update()
    curve = learning_curve(learnt, counts, len(texts), seed)
    settings = chosen.subject.chosen(chosen.cost)
    config = make_config(setup, nlp, settings, gold_tokens=texts.gold_tokens, seed=seed)
    return AutoResults(
        setup,
        texts,
        chosen,
        tuple(trials),
        config,
        curve,
        tuple(scores(counts[-1], curve.gain, seed)),
        tuple(doubted_texts(texts, chosen.reading, chosen.cost)),
    )


def default_settings(setup: AutoSetup, nlp: Language) -> dict[str, Any]:
    """Make the default config block of the component, with all settings filled in.

    nlp (Language): a pipeline without the component; it is not changed.
    """
    other = nlp.from_config(nlp.config)
    other.add_pipe(setup.factory, config=setup.settings)
    settings = dict(other.get_pipe_config(setup.factory))
    settings.pop("factory", None)
    return settings


def make_config(
    setup: AutoSetup, nlp: Language, settings: Mapping[str, Any], *, gold_tokens: bool, seed: int
) -> Config:
    """Make a config for `spacy train`.

    nlp (Language): a pipeline without the component; it is not changed.
    settings (Mapping[str, Any]): settings of the component.
    gold_tokens (bool): use the tokens of the annotation (`gold_preproc`).
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
    """Train until the trainer has converged, and write the number of steps into the config.

    name (str): name of the component.
    """
    nlp = load_model_from_config(config, auto_fill=True)
    examples = read_corpus(nlp)
    optimizer = nlp.initialize(lambda: examples)
    steps = train_on(component_of(nlp, name)[1], optimizer, STEPS)
    for training in (config["training"], nlp.config["training"]):
        training.update(max_steps=steps + SPARE, eval_frequency=steps + SPARE)
    return nlp
