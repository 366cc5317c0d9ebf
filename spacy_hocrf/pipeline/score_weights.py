"""Which scores `spacy train` shows and weighs: those of the span group that a component writes.

A factory has one default for `[training.score_weights]`, whatever its settings: the scores of
`doc.spans["sc"]`. With another `spans_key` these would be 0.00 in every row, and the first model the best.
"""

from spacy.language import Language
from spacy.util import logger

__all__ = ["weigh_spans"]

DEFAULT_WEIGHTS = {"f": 1.0, "p": 0.0, "r": 0.0, "texts_acc": 0.0}
"""Weights of F-score, precision, recall and whole texts, as the factory has them."""


def weigh_spans(nlp: Language, name: str, key: str) -> None:
    """Give the weights of the default scores to those of `doc.spans[key]`, unless the config has some for
    these; and let the default ones go, unless another component has them.

    name (str): of the component.
    """
    weights = nlp.config["training"]["score_weights"]
    own_scores, default_scores = (
        {metric: f"spans_{group}_{metric}" for metric in DEFAULT_WEIGHTS} for group in (key, "sc")
    )
    if key == "sc" or any(weights.get(score) is not None for score in own_scores.values()):
        return
    own_weights = {metric: weights.get(score) for metric, score in default_scores.items()}
    if all(weight is None for weight in own_weights.values()):  # another component has taken them
        own_weights = dict(DEFAULT_WEIGHTS)
    weights.update((own_scores[metric], weight) for metric, weight in own_weights.items())
    if not any(_writes_default(nlp, other) for other in nlp.component_names if other != name):
        weights.update(dict.fromkeys(default_scores.values()))
    logger.info(
        "%s: the scores of doc.spans['%s'] are shown and weighed: %s in [training.score_weights]",
        name,
        key,
        own_scores["f"],
    )


def _writes_default(nlp: Language, name: str) -> bool:
    """Are `spans_sc_f` and so on the scores of this component?"""
    if "spans_sc_f" not in (nlp.get_pipe_meta(name).default_score_weights or {}):
        return False
    return bool(nlp.get_pipe_config(name).get("spans_key", "sc") == "sc")
