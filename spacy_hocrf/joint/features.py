"""Joint features of a batch of Docs: all places of a set agree, though they may be far apart and in
several Docs.

A feature is a joint template with a label or a state, and has one weight. Each set of places that
the template finds yields one pattern for each of its features. Qian and Liu, TACL 2 (2014) §2.1 and
§4.1.1.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.joint.patterns import (
    PlacePatterns,
    check_states,
    entity_patterns,
    state_patterns,
    stated_patterns,
)
from spacy_hocrf.joint.places import PlaceSets
from spacy_hocrf.joint.problems import BatchPatterns
from spacy_hocrf.joint.templates import JointTemplate, places_of, states_of
from spacy_hocrf.model.scheme import OUTSIDE, LabelScheme

__all__ = ["JointFeatures"]

What = str | tuple[str, ...]


@dataclass(frozen=True)
class JointFeatures:
    """The G features of joint templates for the labels of a model.

    templates (Tuple[JointTemplate, ...]): the templates, which find places that should agree.
    scheme (LabelScheme): the labels.
    """

    templates: tuple[JointTemplate, ...]
    scheme: LabelScheme

    @cached_property
    def _features(self) -> tuple[tuple[int, What], ...]:
        """Template of each feature, and the label of all places in a set, or the state of each, [G]."""
        features = list[tuple[int, What]]()
        for k, template in enumerate(self.templates):
            stated = states_of(template)
            if stated is not None:
                check_states(stated, self.scheme)
            outside = [OUTSIDE] if template.outside and self.scheme.outside >= 0 else []
            agreeing = [*self.scheme.labels, *outside]
            features += ((k, state) for state in (agreeing if stated is None else [stated]))
        return tuple(features)

    @cached_property
    def agree(self) -> NDArray[np.bool_]:
        """Is one state common to all places of a set, for each feature? (bool [G])"""
        return np.array([not isinstance(what, tuple) for _, what in self._features], dtype=bool)

    @cached_property
    def hard(self) -> NDArray[np.bool_]:
        """Is the weight infinite, so that it is not learnt, for each feature? (bool [G])"""
        return np.isinf(self.initial_weights)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of each feature: its template and label, or state, [G]."""
        return tuple(_named(self.templates[k].name, what) for k, what in self._features)

    @cached_property
    def initial_weights(self) -> NDArray[np.float64]:
        """Weights from the templates' settings, float64 [G]."""
        return np.array([self.templates[k].weight for k, _ in self._features], dtype=np.float64)

    def patterns(
        self,
        batch: TokenBatch,
        groups: NDArray[np.int64],
        chosen: NDArray[np.bool_] | None = None,
    ) -> BatchPatterns:
        """Return the patterns of a batch.

        groups (int64 [D]): number of each Doc's group, ascending; patterns connect Docs of one
            group.
        chosen (Optional[bool [G]]): features to use; by default all.
        RAISES (ValueError): H120 for places that a template must not find.
        """
        places: dict[int, PlaceSets] = {}
        patterns: list[tuple[int, PlacePatterns]] = []
        for g, (k, state) in enumerate(self._features):
            if chosen is not None and not chosen[g]:
                continue
            if k not in places:
                places[k] = places_of(self.templates[k], batch, groups)
            if len(places[k]):
                patterns.append((g, self._patterns(places[k], state, batch)))
        return BatchPatterns(batch, patterns, self.scheme.n_labels)

    def _patterns(
        self, places: PlaceSets, state: str | tuple[str, ...], batch: TokenBatch
    ) -> PlacePatterns:
        if not isinstance(state, str):
            return stated_patterns(places, state, self.scheme, batch)
        if state == OUTSIDE and state not in self.scheme.labels:
            return state_patterns(places, self.scheme.outside)
        return entity_patterns(places, self.scheme, state, batch)


def _named(template: str, what: What) -> str:
    return f"{template}, {what}" if isinstance(what, str) else template
