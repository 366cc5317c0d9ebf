"""The config that is written, and the model that it trains.

It has a number wherever something was chosen, so that `spacy train` reproduces the model at once: it
trains until the optimum is reached, which no dev corpus decides.
"""

from collections.abc import Mapping
from typing import Any

from spacy.language import Language
from spacy.util import load_model_from_config
from thinc.api import Config

from spacy_hocrf.cli.auto.texts import AutoSetup
from spacy_hocrf.cli.config import LOGGER, REQUIRED
from spacy_hocrf.cli.corpora import read_corpus
from spacy_hocrf.cli.pipelines import component_of, train_on

__all__ = ["HEADER", "default_settings", "make_config", "train_model"]

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


def default_settings(setup: AutoSetup, nlp: Language) -> dict[str, Any]:
    """The config block of the component by default, every setting filled in.

    nlp (Language): a blank pipeline, which is not changed.
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

    nlp (Language): a blank pipeline, which is not changed.
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
