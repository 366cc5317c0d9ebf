"""The extension attributes of Docs that say which of them belong together: texts of one author, patient
or work, tweets of one conversation. They are on one side wherever texts are held back, and may be decoded
together.
"""

from collections.abc import Hashable

from spacy.tokens import Doc
from spacy.training import Example

from spacy_hocrf.annotation.identity import meta_of
from spacy_hocrf.errors import Errors

__all__ = ["GROUP", "check_group_by", "get_group", "group_in", "register", "set_group"]

GROUP = "hocrf_group"
"""Any id; Docs with an equal one are a group, and None is a group of its own."""


def register(*names: str) -> None:
    """Extension attributes of these names, None by default; those that are there stay."""
    for name in names:
        if not Doc.has_extension(name):
            Doc.set_extension(name, default=None)


def check_group_by(attribute: str | None, block: str) -> None:
    """Check a setting group_by, and register GROUP if it is that.

    block (str): of the config, without "components.".
    RAISES (ValueError): H101 for an attribute that is not registered.
    """
    if attribute == GROUP:
        register(GROUP)
    elif attribute is not None and not Doc.has_extension(attribute):
        raise ValueError(Errors.H101.format(name=attribute, block=block))


def get_group(doc: Doc, attribute: str | None) -> Hashable:
    """The value of a registered extension attribute that says which Docs are a group, or else of the field of
    that name in `doc._.hocrf_meta`; or what stands for a list or a table; None without one.
    """
    group: Hashable = None if attribute is None else doc._.get(attribute)
    if group is None and attribute is not None:
        group = meta_of(doc).get(attribute)
    try:
        hash(group)
    except TypeError:
        return repr(group)
    return group


def group_in(example: Example, attribute: str | None) -> Hashable:
    """The group of an example: that of the predicted Doc, or else of the reference."""
    group = get_group(example.predicted, attribute)
    return get_group(example.reference, attribute) if group is None else group


def set_group(doc: Doc, group: Hashable) -> None:
    """Set `doc._.hocrf_group`, which is registered if need be."""
    register(GROUP)
    doc._.set(GROUP, group)
