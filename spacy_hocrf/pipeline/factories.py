"""The factories `hocrf`, `hocrf_spans` and `hocrf_tagger`, with their default configs, and
`hocrf_ents_to_spans`; and what spaCy looks up beside them.

spaCy finds them by their entry points; importing this module registers all of them. Every
`spacy.blank` imports it, and with it all loggers, so it imports nothing of ours before one is called.
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
    """`spacy-hocrf.ConsoleLogger.v1`; the settings are those of `spacy.ConsoleLogger.v3`.

    progress_bar (Optional[str]): "train" for a bar up to the last step, "eval" for one up to the next
        evaluation.
    console_output (bool): print the table.
    output_file (Union[str, Path, None]): write the rows here as well, as JSONL.
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
    """The default config of a factory: that of all three, and settings of its own."""
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
    """Segments as `doc.ents`.

    model (Model[List[Doc], Potentials]): what `spacy-hocrf.HighOrderCRF.v1` makes.
    trainer (Trainer): one of the registered trainers.
    decoder (Decoder): how an answer is read off the model, such as `spacy-hocrf.ExpectedF.v1`.
    joint (Optional[Joint]): what is decoded together, `spacy-hocrf.Joint.v1`; null decodes every Doc by
        itself.
    constraints (Optional[Constraints]): what every text's spans keep to, such as
        `spacy-hocrf.Constraints.v1`.
    group_by (Optional[str]): extension attribute of Docs: those with an equal value are on one side wherever
        settings are chosen by texts held back.
    positives_only (bool): in training texts, annotated spans are there, and of all else nothing is known.
    teachers (List[str]): groups of `doc.spans` in training texts, with `attrs["scores"]` or without: what is
        known of texts, and parts of texts, that are not annotated.
    scores_key (Optional[str]): name of the probabilities in `doc._.hocrf_scores`; null computes none.
    spans (bool): write the same spans to `doc.spans[scores_key]`, too, with `attrs["scores"]`.
    n_best (int): so many of the most probable readings are written to `doc.spans["hocrf_1"]` and so on,
        behind the name of `scores_key`.
    threshold (Optional[float]): spans with a lower probability are dropped; null keeps all.
    overwrite (bool): ignore entities that earlier components have set, instead of keeping them and
        decoding around them.
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
    """Segments as `doc.spans[spans_key]`.

    spans_key (str): key of the span group, of the annotation and of the predictions.
    select (str): "decoded" for the spans that the decoder chooses, which do not overlap; "all" for all
        spans that are as probable as `threshold`. Annotation that overlaps is not learnt either way.
    n_best (int): so many of the most probable readings are written to `doc.spans["sc_1"]` and so on, behind
        the name of `spans_key`.
    scores (bool): put probabilities into the group's `attrs["scores"]`; false saves the backward
        pass.
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
    """A tag on every token.

    scores (bool): compute the probability of each tag, `token._.hocrf_score`, which takes as long as the
        tags themselves or, with many label patterns, longer.
    overwrite (bool): replace tags that earlier components have set, instead of keeping them and
        decoding around them.
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
    """Moves the entities of earlier components to `doc.spans[spans_key]`.

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
    """RAISES (ValueError): H119 for a `joint` of another kind."""
    from spacy_hocrf.pipeline.component import SegmentationPipe

    if settings["joint"] is not None:
        from spacy_hocrf.errors import Errors
        from spacy_hocrf.joint.settings import Joint

        if not isinstance(settings["joint"], Joint):
            found = type(settings["joint"]).__name__
            raise ValueError(Errors.H119.format(name=name, found=found))
    return SegmentationPipe(nlp.vocab, model, name, **settings)


def _check_selection(
    name: str, select: str, threshold: float | None, scores: bool, joint: Any
) -> None:
    """RAISES (ValueError): H202 for another word than "decoded" and "all", H203 for settings that do not
    go with "all".
    """
    if select == "decoded":
        return
    from spacy_hocrf.annotation.errors import ReadingErrors

    if select != "all":
        raise ValueError(ReadingErrors.H202.format(found=repr(select), name=name))
    found = []
    if threshold is None or not 0 <= threshold <= 1:
        found.append(f"threshold = {'null' if threshold is None else threshold}")
    found += ["scores = false"] if not scores else []
    found += ["Docs are decoded together"] if joint is not None else []
    if found:
        raise ValueError(ReadingErrors.H203.format(found=" and ".join(found), name=name))


def _check_n_best(name: str, n_best: int, key: str | None) -> None:
    """RAISES (ValueError): H211 for what is no number from 0 on, H212 if there is no key for the readings."""
    fits = isinstance(n_best, int) and n_best >= 0
    if fits and (n_best == 0 or key is not None):
        return
    from spacy_hocrf.annotation.errors import ReadingErrors

    if not fits:
        raise ValueError(ReadingErrors.H211.format(found=repr(n_best), name=name))
    raise ValueError(ReadingErrors.H212.format(found=f"n_best = {n_best}", name=name))
