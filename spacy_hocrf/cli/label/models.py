"""Retrain a component after every few texts.

Each time a new component is trained on all texts, so that withdrawn annotation leaves no trace. Training
starts at the weights of the last model, and takes few steps to the optimum of the same objective. Sigma,
order, width and cost are kept, since choosing them takes several times as long; before there are enough texts
to choose them, they have the component's defaults for few texts.

A component that was trained already is adapted instead: each time it starts from the given weights, which are
the prior (`prior` of its trainer).
"""

from collections.abc import Sequence
from copy import deepcopy
from math import inf
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.training import Example

from spacy_hocrf.answers.decoders import DEFAULT_COST
from spacy_hocrf.cli.config import ENDING
from spacy_hocrf.cli.pipelines import component_of, train_on
from spacy_hocrf.learning.choosing import ORDERS
from spacy_hocrf.model.architectures import set_weights, weights_of
from spacy_hocrf.pipeline.component import SegmentationPipe
from spacy_hocrf.training.base import DEFAULT_SIGMA
from spacy_hocrf.training.lbfgs import LBFGSTrainer
from spacy_hocrf.types import AUTO

__all__ = ["Blocks", "Models"]

Blocks = dict[str, dict[str, Any]]
"""Blocks of a component's config, with values for settings that are "auto"."""
FIRST: Blocks = {
    "model": {"order": ORDERS[0]},
    "trainer": {"sigma": DEFAULT_SIGMA},
    "decoder": {"cost": DEFAULT_COST},
}


class Models:
    """Trains new copies of a pipeline's component.

    nlp (Language): a pipeline with one component of ours, trained or not; those before it are trained.
    labels (Sequence[str]): all possible labels.
    RAISES (ValueError): H204 unless there is one component of ours.

    adapts (bool): is it trained already?
    first (Blocks): settings before any were chosen.
    """

    def __init__(self, nlp: Language, labels: Sequence[str]) -> None:
        self.name, pipe = component_of(nlp, None)
        self._nlp, self._labels = nlp, labels
        self._maker = type(nlp)(nlp.vocab)  # a pipeline that makes a component stores its config
        self._optimizer = nlp.create_optimizer()  # type: ignore[no-untyped-call]
        self._factory = nlp.get_pipe_meta(self.name).factory
        config = nlp.get_pipe_config(self.name)
        self._config = {key: deepcopy(config[key]) for key in config if key != "factory"}
        if "improvement_tolerance" in self._config["trainer"]:
            self._config["trainer"].update(ENDING)
        self.adapts = pipe.structure.ready
        self._given = pipe.to_bytes() if self.adapts else b""
        self.first: Blocks = {} if self.adapts else self._auto_only(FIRST)

    def given(self) -> SegmentationPipe | None:
        """The component as it was given; None if it is not trained."""
        return self._new_pipe({}) if self.adapts else None

    def train(
        self,
        examples: Sequence[Example],
        settings: Blocks,
        near: SegmentationPipe | None = None,
    ) -> SegmentationPipe:
        """Train a model on some texts.

        examples (Sequence[Example]): their predicted Docs are as earlier components leave them.
        settings (Blocks): `first`, or settings returned by `choose`.
        near (Optional[SegmentationPipe]): model at whose weights training starts; None to start at 0.
        """
        pipe = self._initialized(examples, settings)
        if near is not None:
            weights = np.append(weights_of(near.model), 0.0)  # place -1 is the last
            set_weights(pipe.model, weights[pipe.structure.found_in(near.structure)])
        train_on(pipe, self._optimizer, inf)
        return pipe

    def choose(self, examples: Sequence[Example]) -> tuple[SegmentationPipe, Blocks]:
        """Train a model on some texts and choose its settings. RETURNS: the model and the settings."""
        pipe = self._initialized(examples, {})
        train_on(pipe, self._optimizer, inf)
        choice = pipe.choice
        if choice is None or self.adapts:
            return pipe, self.first
        blocks = {"order": choice.order}, {"sigma": choice.sigma}, {"cost": choice.cost}
        settings = self._auto_only(dict(zip(FIRST, blocks)))
        features = self._config["model"].get("features", {})
        if choice.wide and features.get("wide") == AUTO:
            settings.setdefault("model", {})["features"] = {**features, "wide": True}
        return pipe, settings

    def pipeline(self, pipe: SegmentationPipe, settings: Blocks) -> Language:
        """Put a model, which was trained with these settings, into the pipeline and return it."""
        if not self.adapts:
            self._nlp.replace_pipe(self.name, self._factory, config=self._config_with(settings))
        _, ours = component_of(self._nlp, self.name)
        ours.from_bytes(pipe.to_bytes())
        return self._nlp

    def _initialized(self, examples: Sequence[Example], settings: Blocks) -> SegmentationPipe:
        """Make a model that is initialized with the texts, but not trained yet."""
        pipe = self._new_pipe(settings)
        if self.adapts:
            for label in self._labels:
                pipe.add_label(label)
            pipe.update(examples)
        else:
            pipe.initialize(lambda: examples, labels=self._labels)
        return pipe

    def _new_pipe(self, settings: Blocks) -> SegmentationPipe:
        config = self._config_with(settings)
        pipe: Any = self._maker.create_pipe(self._factory, self.name, config=config)
        if self.adapts:
            pipe.from_bytes(self._given)
        assert isinstance(pipe, SegmentationPipe)
        if pipe.trainer.batchwise:  # it never reaches an optimum
            pipe.set_trainer(LBFGSTrainer(sigma=DEFAULT_SIGMA))
        return pipe

    def _config_with(self, settings: Blocks) -> dict[str, Any]:
        """Merge settings into the component's config."""
        changed = {block: {**self._config[block], **values} for block, values in settings.items()}
        return deepcopy({**self._config, **changed})

    def _auto_only(self, blocks: Blocks) -> Blocks:
        """Keep only the settings that are "auto" in the config and have a chosen value."""
        return {
            block: {
                key: value
                for key, value in values.items()
                if value is not None and self._config[block].get(key) == AUTO
            }
            for block, values in blocks.items()
        }
