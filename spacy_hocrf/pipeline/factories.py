"""The factories `hocrf`, `hocrf_spans`, `hocrf_tagger` and `hocrf_ents_to_spans` with their default configs,
and the registered console logger.

spaCy finds them by their entry points; importing this module registers all of them. Every `spacy.blank`
imports this module along with all loggers, so it imports the rest of the package only when one is called.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import Config, Model

if TYPE_CHECKING:
    from spacy_hocrf.annotation.readers import EntsToSpans
    from spacy_hocrf.pipeline.component import SegmentationPipe
    from spacy_hocrf.pipeline.console import Logger

__all__ = [
    "make_console_logger",
    "make_hocrf",
    "make_hocrf_ents_to_spans",
    "make_hocrf_spans",
    "make_hocrf_tagger",
]


def make_console_logger(
    progress_bar: Literal["train", "eval"] | None = None,
    console_output: bool = True,
    output_file: str | Path | None = None,
) -> "Logger":
    """`spacy-hocrf.ConsoleLogger.v1`, with the settings of `spacy.ConsoleLogger.v3`.

    progress_bar (Optional[str]): "train" for a bar up to the last step, "eval" for one up to the next
        evaluation.
    console_output (bool): print the table.
    output_file (Union[str, Path, None]): also write the rows to this file, as JSONL.
    """
    from spacy_hocrf.pipeline.console import logger_of

    return logger_of(progress_bar, console_output, output_file)


DEFAULTS = """
[model]
@architectures = "spacy-hocrf.HighOrderCRF.v1"
encoding = "{encoding}"

[model.features]
@misc = "spacy-hocrf.Window.v1"

[trainer]
@misc = "spacy-hocrf.LBFGS.v1"
sigma = "auto"

[decoder]
@misc = "spacy-hocrf.{decoder}.v1"
"""


def _defaults(encoding: str, decoder: str, **settings: Any) -> dict[str, Any]:
    """Return the default config of a factory: common defaults and its own settings."""
    text = DEFAULTS.format(encoding=encoding, decoder=decoder)
    empty = {"joint": None, "constraints": None, "group_by": None}
    return {**Config().from_str(text), **empty, **settings}


@Language.factory(
    "hocrf",
    assigns=["doc.ents", "token.ent_iob", "token.ent_type", "doc.spans"],
    default_config=_defaults(
        "segments",
        "ExpectedF",
        positives_only=False,
        teachers=[],
        scores_key="hocrf",
        spans=False,
        n_best=0,
        threshold=None,
        overwrite=False,
        scorer={"@scorers": "spacy.ner_scorer.v1"},
    ),
    default_score_weights={
        "ents_f": 1.0,
        "ents_p": 0.0,
        "ents_r": 0.0,
        "ents_per_type": None,
        "hocrf_texts_acc": 0.0,
    },
)
def make_hocrf(
    nlp: Language,
    name: str,
    model: Model[list[Doc], Any],
    trainer: Any,
    decoder: Any,
    joint: Any,
    constraints: Any,
    group_by: str | None,
    positives_only: bool,
    teachers: list[str],
    scores_key: str | None,
    spans: bool,
    n_best: int,
    threshold: float | None,
    overwrite: bool,
    scorer: Callable[..., Any] | None,
) -> "SegmentationPipe":
    """Predict segments as `doc.ents`.

    model (Model[List[Doc], Potentials]): a model made by `spacy-hocrf.HighOrderCRF.v1`.
    trainer (Trainer): one of the registered trainers.
    decoder (Decoder): how an answer is read off the model, such as `spacy-hocrf.ExpectedF.v1`.
    joint (Optional[Joint]): which Docs are decoded together, `spacy-hocrf.Joint.v1`; null decodes every Doc
        by itself.
    constraints (Optional[Constraints]): constraints on the spans of every text, such as
        `spacy-hocrf.Constraints.v1`.
    group_by (Optional[str]): extension attribute of Docs; Docs with the same value are held out together when
        settings are chosen by held-out texts.
    positives_only (bool): in training texts, annotated spans are right, and everything else is unknown.
    teachers (List[str]): groups of `doc.spans` in training texts, with or without `attrs["scores"]`, that
        tell what is known of texts, and parts of texts, without annotation.
    scores_key (Optional[str]): name of the probabilities in `doc._.hocrf_scores`; null computes none.
    spans (bool): also write the spans to `doc.spans[scores_key]`, with `attrs["scores"]`.
    n_best (int): write this many of the most probable readings to `doc.spans["hocrf_1"]` and so on, named
        after `scores_key`.
    threshold (Optional[float]): drop spans with a lower probability; null keeps all.
    overwrite (bool): ignore entities that earlier components have set, instead of keeping them and decoding
        around them.
    scorer (Optional[Callable]): scoring method.
    """
    from spacy_hocrf.annotation.errors import ReadingErrors
    from spacy_hocrf.annotation.targets import EntsTarget

    _check_n_best(name, n_best, scores_key)
    if spans and scores_key is None:
        raise ValueError(ReadingErrors.H212.format(found="spans = true", name=name))
    return _pipe(
        nlp,
        model,
        name,
        joint=joint,
        target=EntsTarget(scores_key, overwrite, n_best, spans=spans),
        trainer=trainer,
        decoder=decoder,
        constraints=constraints,
        group_by=group_by,
        positives_only=positives_only,
        teachers=teachers,
        threshold=threshold,
        scores=scores_key is not None,
        scorer=scorer,
    )


@Language.factory(
    "hocrf_spans",
    assigns=["doc.spans"],
    default_config=_defaults(
        "segments",
        "ExpectedF",
        positives_only=False,
        teachers=[],
        spans_key="sc",
        select="decoded",
        n_best=0,
        scores=True,
        threshold=None,
        scorer={"@scorers": "spacy.spancat_scorer.v1"},
    ),
    default_score_weights={
        "spans_sc_f": 1.0,
        "spans_sc_p": 0.0,
        "spans_sc_r": 0.0,
        "spans_sc_texts_acc": 0.0,
    },
)
def make_hocrf_spans(
    nlp: Language,
    name: str,
    model: Model[list[Doc], Any],
    trainer: Any,
    decoder: Any,
    joint: Any,
    constraints: Any,
    group_by: str | None,
    positives_only: bool,
    teachers: list[str],
    spans_key: str,
    select: str,
    n_best: int,
    scores: bool,
    threshold: float | None,
    scorer: Callable[..., Any] | None,
) -> "SegmentationPipe":
    """Predict segments as `doc.spans[spans_key]`.

    spans_key (str): key of the span group, for annotation and predictions.
    select (str): "decoded": the spans that the decoder chooses, which do not overlap; "all": all spans that
        are at least as probable as `threshold`. Overlapping annotation is not learnt in either case.
    n_best (int): write this many of the most probable readings to `doc.spans["sc_1"]` and so on, named after
        `spans_key`.
    scores (bool): write probabilities to the group's `attrs["scores"]`; false saves the backward pass.
    The other arguments are those of `hocrf`.
    """
    from spacy_hocrf.annotation.targets import SpansTarget

    _check_selection(name, select, threshold, scores, joint)
    _check_n_best(name, n_best, spans_key)
    return _pipe(
        nlp,
        model,
        name,
        joint=joint,
        target=SpansTarget(spans_key, select == "all", n_best),
        trainer=trainer,
        decoder=decoder,
        constraints=constraints,
        group_by=group_by,
        positives_only=positives_only,
        teachers=teachers,
        threshold=threshold,
        scores=scores,
        scorer=scorer,
        spans_key=spans_key,
    )


@Language.factory(
    "hocrf_tagger",
    assigns=["token.tag"],
    default_config=_defaults(
        "tags",
        "Viterbi",
        scores=False,
        overwrite=False,
        scorer={"@scorers": "spacy.tagger_scorer.v1"},
    ),
    default_score_weights={"tag_acc": 1.0, "tag_texts_acc": 0.0},
)
def make_hocrf_tagger(
    nlp: Language,
    name: str,
    model: Model[list[Doc], Any],
    trainer: Any,
    decoder: Any,
    joint: Any,
    constraints: Any,
    group_by: str | None,
    scores: bool,
    overwrite: bool,
    scorer: Callable[..., Any] | None,
) -> "SegmentationPipe":
    """Predict a tag for every token.

    scores (bool): compute the probability of each tag, `token._.hocrf_score`, which takes as long as the tags
        themselves or, with many label patterns, longer.
    overwrite (bool): replace tags that earlier components have set, instead of keeping them and decoding
        around them.
    The other arguments are those of `hocrf`.
    """
    from spacy_hocrf.annotation.targets import TagsTarget

    return _pipe(
        nlp,
        model,
        name,
        joint=joint,
        target=TagsTarget(overwrite),
        trainer=trainer,
        decoder=decoder,
        constraints=constraints,
        group_by=group_by,
        scores=scores,
        scorer=scorer,
    )


@Language.factory(
    "hocrf_ents_to_spans",
    requires=["doc.ents"],
    assigns=["doc.spans"],
    default_config={"spans_key": "ner"},
)
def make_hocrf_ents_to_spans(nlp: Language, name: str, spans_key: str) -> "EntsToSpans":
    """Move the entities of earlier components to `doc.spans[spans_key]`.

    spans_key (str): key of the span group.
    RAISES (ValueError): H267 for a key with a dollar sign.
    """
    from spacy_hocrf.annotation.readers import EntsToSpans
    from spacy_hocrf.pipeline.saved_settings import check_key

    check_key("spans_key", spans_key, f"components.{name}")
    return EntsToSpans(spans_key)


def _pipe(
    nlp: Language, model: Model[list[Doc], Any], name: str, **settings: Any
) -> "SegmentationPipe":
    """Make the component. RAISES (ValueError): H119 for a `joint` of the wrong type."""
    from spacy_hocrf.pipeline.component import SegmentationPipe

    if settings["joint"] is not None:
        from spacy_hocrf.errors import Errors
        from spacy_hocrf.joint.settings import Joint

        if not isinstance(settings["joint"], Joint):
            kind = type(settings["joint"]).__name__
            raise ValueError(Errors.H119.format(name=name, found=kind))
    return SegmentationPipe(nlp.vocab, model, name, **settings)


def _check_selection(
    name: str, select: str, threshold: float | None, scores: bool, joint: Any
) -> None:
    """RAISES (ValueError): H202 unless select is "decoded" or "all", H203 for settings that exclude "all"."""
    if select == "decoded":
        return
    from spacy_hocrf.annotation.errors import ReadingErrors

    if select != "all":
        raise ValueError(ReadingErrors.H202.format(found=repr(select), name=name))
    conflicts = []
    if threshold is None or not 0 <= threshold <= 1:
        conflicts.append(f"threshold = {'null' if threshold is None else threshold}")
    conflicts += ["scores = false"] if not scores else []
    conflicts += ["Docs are decoded together"] if joint is not None else []
    if conflicts:
        raise ValueError(ReadingErrors.H203.format(found=" and ".join(conflicts), name=name))


def _check_n_best(name: str, n_best: int, key: str | None) -> None:
    """RAISES (ValueError): H211 unless it is a whole number from 0 on, H212 if there is no key for them."""
    is_count = isinstance(n_best, int) and n_best >= 0
    if is_count and (n_best == 0 or key is not None):
        return
    from spacy_hocrf.annotation.errors import ReadingErrors

    if not is_count:
        raise ValueError(ReadingErrors.H211.format(found=repr(n_best), name=name))
    raise ValueError(ReadingErrors.H212.format(found=f"n_best = {n_best}", name=name))
