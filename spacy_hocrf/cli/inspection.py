"""What a component has learnt, in words: what `hocrf inspect` finds, prints and writes."""

from dataclasses import dataclass

__all__ = ["Block", "Inspection", "Weighted"]


@dataclass(frozen=True)
class Weighted:
    """A feature and its weight."""

    weight: float
    feature: str  # its observation, in words
    pattern: str  # labels of consecutive segments, oldest first
    count: int  # how often it was seen in training


@dataclass(frozen=True)
class Block:
    """The features of one template, or the weights of one dense score."""

    name: str
    features: int
    total: float  # sum of the weights' absolute values
    largest: float  # of these values


@dataclass(frozen=True)
class Inspection:
    """What a component has learnt."""

    component: str
    lang: str  # of the pipeline, as spaCy calls it
    features: int
    order: int
    labels: tuple[str, ...]  # of the model's segments
    blocks: list[Block]  # the heaviest first
    # the heaviest features of each label, by weight; those for it and those against it
    by_label: dict[str, list[Weighted]]
    # weights of label patterns alone, the heaviest first
    patterns: list[Weighted]
