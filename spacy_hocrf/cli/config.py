"""`python -m spacy hocrf config`: a config to start from, with word vectors if there are some."""

import shlex
from collections import Counter
from filecmp import cmp
from pathlib import Path
from typing import Annotated, Any

from spacy.util import load_model_from_config
from thinc.api import Config
from typer import Argument, Option
from wasabi import msg

from spacy_hocrf.annotation.readers import read_examples
from spacy_hocrf.cli.checking import MAX_LOST, CorpusFacts, facts_of
from spacy_hocrf.cli.docbins import doc_files, docs_of_file
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.options import (
    BestAt,
    EncoderFolder,
    Force,
    Goal,
    Lang,
    SpansKey,
    Teachers,
    Vectors,
    check_path,
    names_in,
    write_config,
)
from spacy_hocrf.cli.pipelines import LARGE, MEMORY, OVER_ENCODER, blank, component_of
from spacy_hocrf.pipeline.saved_settings import check_key
from spacy_hocrf.pipeline.score_weights import weigh_spans

__all__ = ["LOGGER", "REQUIRED", "config_cli", "fit_to_texts", "starting_config", "stream_texts"]

STEPS = {"max_steps": 40, "eval_frequency": 20, "patience": 0}
"""Settings of [training]; steps after the trainer has converged cost only the evaluations."""
ENDING = {"improvement_tolerance": 5e-4, "improvement_period": 5}
"""Settings of the trainer: stop once the objective hardly improves. Going on to the optimum takes twice the
steps and changes F1 by chance only, by 0.00 on average over 46 trainings on the dev parts of
project/defaults.
"""
LOGGER = {
    "@loggers": "spacy-hocrf.ConsoleLogger.v1",
    "progress_bar": None,
    "console_output": True,
    "output_file": None,
}
REQUIRED = {"@callbacks": "spacy-hocrf.Required.v1"}
STREAMED = 2_000
"""Number of texts from which on --train is streamed from disk; with fewer, that does not pay."""
FACTORIES = ("hocrf", "hocrf_spans", "hocrf_tagger")
MAX_LABELS = 30
HEADER = """\
# Written by `python -m spacy hocrf config`. It trains a model from annotated texts:
#
#     python -m spacy train {path} --output model{paths}
#
# Training ends by itself where it has hardly anything to gain (improvement_tolerance; 1e-6 goes on to the
# optimum), and no patience ends it before: the model to take is model-last.

"""


def config_cli(
    output: Annotated[Path, Argument(help="File for the config")],
    lang: Lang = "en",
    vectors: Vectors = None,
    encoder: EncoderFolder = None,
    spans_key: SpansKey = None,
    best_at: Goal = BestAt.FIELDS,
    pipeline: Annotated[
        str | None,
        Option("--pipeline", "-p", help=f"Component: {', '.join(FACTORIES)}"),
    ] = None,
    train: Annotated[
        Path | None,
        Option("--train", help="Annotated texts (.spacy, or a folder) to learn from", exists=True),
    ] = None,
    dev: Annotated[
        Path | None, Option("--dev", help="Texts to score the model on", exists=True)
    ] = None,
    stream: Annotated[
        bool | None,
        Option(
            "--stream/--no-stream",
            help=f"Stream the texts from disk; by default if --train has {STREAMED:,} texts or more",
        ),
    ] = None,
    teachers: Teachers = None,
    force: Force = False,
) -> None:
    """Write a config for `spacy train`, with every setting filled in.

    With --vectors, the default features also score word vectors, which helps with words that no training
    text has. With --encoder, a component in front reads every text with a frozen encoder, and the features
    score its vectors. With --train, the tokens of the annotation are used if spans do not fit spaCy's.
    With --stream, spaCy keeps no Examples in memory; the model is the same.
    """
    facts = None
    if output.exists() and not force:
        raise ValueError(CommandErrors.H157.format(path=output))
    for path in (train, dev, vectors, encoder):
        check_path(path)
    if dev is not None and not any(True for file in doc_files(dev) for _ in docs_of_file(file)):
        raise ValueError(CommandErrors.H158.format(path=dev))
    config = starting_config(lang, vectors, spans_key, pipeline, encoder, best_at)
    component = config["components"][config["nlp"]["pipeline"][-1]]
    if teachers is not None:
        if "teachers" not in component:
            raise ValueError(CommandErrors.H253.format(found=component["factory"]))
        component["teachers"] = names_in(teachers)
    if train is not None:
        facts = fit_to_texts(config, train)
        if facts.tokens * len(facts.labels) > LARGE:
            component["model"]["unseen"] = False
    if stream or (stream is None and facts is not None and facts.texts >= STREAMED):
        stream_texts(config)
    config["paths"].update({"train": _posix(train), "dev": _posix(dev)})
    missing = [(name, path) for name, path in (("train", train), ("dev", dev)) if path is None]
    paths = "".join(f" --paths.{name} {name}.spacy" for name, _ in missing)
    write_config(config, output, HEADER.format(path=shlex.quote(output.name), paths=paths))
    if facts is not None:
        _print_texts(facts, lang, gold_tokens=config["corpora"]["train"]["gold_preproc"])
    if train and dev and train.is_file() and dev.is_file() and cmp(train, dev, shallow=False):
        msg.warn("--dev is the same as --train, so its scores will not show how good the model is.")
    msg.good("Saved the config", output)
    print(f"python -m spacy train {shlex.quote(str(output))} --output model{paths}")


def starting_config(
    lang: str,
    vectors: str | None,
    spans_key: str | None = None,
    factory: str | None = None,
    encoder: Path | None = None,
    best_at: BestAt = BestAt.FIELDS,
) -> Config:
    """Make a config for `spacy train`.

    lang (str): language of the tokenizer.
    vectors (Optional[str]): package or folder of a pipeline with word vectors.
    spans_key (Optional[str]): learn `doc.spans` under this key; None for `doc.ents`.
    factory (Optional[str]): one of FACTORIES; by default hocrf, or hocrf_spans if there is a `spans_key`.
    encoder (Optional[Path]): folder of a frozen encoder in front of the component.
    best_at (BestAt): TEXTS for a decoder that scores whole readings, and a higher order.
    RAISES (ValueError): H159 for an unknown language, H187 or H188 for missing vectors, H260 for another
        factory, H261 if the factory takes no `spans_key`, H267 for a `spans_key` with a dollar sign, H490 to
        H495 for an encoder that cannot be run.
    """
    factory = factory or ("hocrf" if spans_key is None else "hocrf_spans")
    if factory not in FACTORIES:
        raise ValueError(CommandErrors.H260.format(found=factory, known=", ".join(FACTORIES)))
    if spans_key is not None and factory != "hocrf_spans":
        raise ValueError(CommandErrors.H261.format(key=spans_key, found=factory))
    check_key("spans_key", spans_key or "", f"components.{factory}")
    nlp = blank(lang, vectors, encoder)
    settings: dict[str, Any] = {} if spans_key is None else {"spans_key": spans_key}
    if encoder is not None:
        settings["model"] = {"features": OVER_ENCODER}
    if best_at is BestAt.TEXTS:
        whole = "Viterbi" if factory == "hocrf_tagger" else "Reranked"
        settings["decoder"] = {"@misc": f"spacy-hocrf.{whole}.v1"}
        if factory != "hocrf_tagger":
            settings["model"] = {**settings.get("model", {}), **MEMORY}
    nlp.add_pipe(factory, config=settings)
    if spans_key is not None:
        weigh_spans(nlp, "hocrf_spans", spans_key)
    config = nlp.config.copy()
    config["paths"]["vectors"] = vectors
    config["training"].update(STEPS)
    config["components"][factory]["trainer"].update(ENDING)
    config["training"]["logger"] = dict(LOGGER)
    config["nlp"]["before_creation"] = dict(REQUIRED)
    return config


def fit_to_texts(config: Config, train: Path) -> CorpusFacts:
    """Set `gold_preproc` in a config if more than 1 % of the spans do not fit spaCy's tokens.

    RAISES (ValueError): H257, H381 or H158 if there are no texts, H153 without annotation or
        constraints.
    """
    doc_files(train)
    nlp = load_model_from_config(config, auto_fill=True)
    gold = component_of(nlp, None)[1].gold
    facts = facts_of(gold, read_examples(nlp, train, 0, gold_preproc=False))
    if not facts.texts:
        raise ValueError(CommandErrors.H158.format(path=train))
    if not facts.annotated and not facts.hints:
        raise ValueError(CommandErrors.H153.format(found=facts.texts, place=gold.places))
    for corpus in config["corpora"].values():
        corpus["gold_preproc"] = facts.misfits > MAX_LOST * facts.annotated
    return facts


def stream_texts(config: Config) -> None:
    """Let training stream the texts instead of keeping Examples in memory."""
    for name in config["nlp"]["pipeline"][-1:]:  # earlier components are not trained
        config["initialize"]["components"][name] = {"corpus": "${corpora.train}"}
    config["training"]["max_epochs"] = -1


def _posix(path: Path | None) -> str | None:
    return None if path is None else path.as_posix()


def _print_texts(facts: CorpusFacts, lang: str, *, gold_tokens: bool) -> None:
    if facts.taught:
        msg.info(f"{facts.taught:,} texts are not annotated: teachers say what is in them")
    counts = Counter({label: each.annotated for label, each in facts.labels.items()})
    named = ", ".join(f"{label} {n:,}" for label, n in counts.most_common(MAX_LABELS))
    rest = f", and {len(counts) - MAX_LABELS} more" if len(counts) > MAX_LABELS else ""
    msg.info(f"{facts.texts:,} texts, {len(counts)} labels: {named}{rest}")
    if facts.hints:
        hints = ", ".join(f"{label} in {n:,}" for label, n in facts.hints.most_common(MAX_LABELS))
        msg.info(f"Constraints on single texts name {hints}")
    if facts.misfits:
        what = (
            f"{facts.misfits:,} of {facts.annotated:,} annotated spans fit no tokens of the tokenizer "
            f"({lang})"
        )
        kept = (
            "so the tokens of the annotation are used (gold_preproc = true). nlp(text) has others, and "
            "cannot find such spans: if the texts are in another language, name it with --lang"
        )
        msg.warn(f"{what}, {kept if gold_tokens else 'and are lost'}.")
