"""`python -m spacy hocrf config`: a config to start from, with word vectors if there are some."""

from pathlib import Path
from typing import Annotated, Any

import spacy
from spacy.language import Language
from spacy.training.initialize import load_vectors_into_model
from thinc.api import Config
from typer import Argument, Option
from wasabi import msg

from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.messages import coded_errors
from spacy_hocrf.pipeline.score_weights import weigh_spans

__all__ = ["REQUIRED", "blank", "config_cli", "starting_config"]

STEPS = {"max_steps": 200, "eval_frequency": 20, "patience": 0}
"""Of training: to the optimum, or near it with thousands of texts."""
LOGGER = {
    "@loggers": "spacy-hocrf.ConsoleLogger.v1",
    "progress_bar": None,
    "console_output": True,
    "output_file": None,
}
REQUIRED = {"@callbacks": "spacy-hocrf.Required.v1"}
HEADER = """\
# Written by `python -m spacy hocrf config`. It trains a model from annotated texts:
#
#     python -m spacy train {path} --output model --paths.train train.spacy --paths.dev dev.spacy
#
# Training goes on to the optimum (patience = 0), so the model to take is model-last.

"""


def config_cli(
    output: Annotated[Path, Argument(help="File for the config")],
    lang: Annotated[str, Option("--lang", "-l", help="Two-letter code of the language")] = "en",
    vectors: Annotated[
        str | None,
        Option("--vectors", "-v", help="Package or folder of a pipeline that has word vectors"),
    ] = None,
    spans_key: Annotated[
        str | None,
        Option("--spans-key", "-sk", help="Learn doc.spans under this key instead of doc.ents"),
    ] = None,
    force: Annotated[bool, Option("--force", "-F", help="Replace OUTPUT if it is there")] = False,
) -> None:
    """Write a config for `spacy train`, with every setting filled in.

    With --vectors, the default features score the words' vectors: much is known then of words that no
    training text has.
    """
    with coded_errors():
        if output.exists() and not force:
            raise ValueError(CommandErrors.H157.format(path=output))
        config = starting_config(lang, vectors, spans_key)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(HEADER.format(path=output.name) + config.to_str(), encoding="utf8")
    msg.good("Saved the config", output)
    print(f"python -m spacy train {output} --paths.train train.spacy --paths.dev dev.spacy")


def starting_config(lang: str, vectors: str | None, spans_key: str | None = None) -> Config:
    """A config for `spacy train`.

    lang (str): of the tokenizer.
    vectors (Optional[str]): package or folder of a pipeline with word vectors.
    spans_key (Optional[str]): learn `doc.spans` under this key; None for `doc.ents`.
    RAISES (ValueError): H159 for an unknown language, H187 or H188 for vectors that are not there.
    """
    nlp = blank(lang, vectors)
    settings: dict[str, Any] = {} if spans_key is None else {"spans_key": spans_key}
    nlp.add_pipe("hocrf" if spans_key is None else "hocrf_spans", config=settings)
    if spans_key is not None:
        weigh_spans(nlp, "hocrf_spans", spans_key)
    config = nlp.config.copy()
    config["paths"]["vectors"] = vectors
    config["training"].update(STEPS)
    config["training"]["logger"] = dict(LOGGER)
    config["nlp"]["before_creation"] = dict(REQUIRED)
    return config


def blank(lang: str, vectors: str | None) -> Language:
    """A pipeline without components.

    vectors (Optional[str]): package or folder of a pipeline whose word vectors it has.
    RAISES (ValueError): H159 for an unknown language, H187 or H188 for vectors that are not there.
    """
    try:
        nlp = spacy.blank(lang)
    except ImportError as error:
        raise ValueError(CommandErrors.H159.format(found=lang)) from error
    if vectors is not None:
        try:
            load_vectors_into_model(nlp, vectors)
        except OSError as error:
            raise ValueError(CommandErrors.H187.format(found=vectors)) from error
        if not nlp.vocab.vectors.size:
            raise ValueError(CommandErrors.H188.format(found=vectors))
    return nlp
