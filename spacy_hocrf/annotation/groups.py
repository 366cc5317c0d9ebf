"""The extension attribute of Docs that says which of them belong together: texts of one author, patient
or work, tweets of one conversation. A group is never split when texts are held out, and may be decoded
jointly.
"""

from collections.abc import Hashable

from spacy.tokens import Doc
from spacy.training import Example

from spacy_hocrf.annotation.identity import meta_of
from spacy_hocrf.errors import Errors

__all__ = ["GROUP", "check_group_by", "get_group", "group_in", "register", "set_group"]

GROUP = "hocrf_group"
"""Name of the attribute: any id, equal for the Docs of a group; None is a group of its own."""


def register(*names: str) -> None:
    """Register extension attributes of Docs, None by default; existing ones stay."""
    for name in names:
        if not Doc.has_extension(name):
            Doc.set_extension(name, default=None)


def check_group_by(attribute: str | None, block: str) -> None:
    """Check a `group_by` setting, and register GROUP if it is set to that.

    block (str): block of the config, without "components.".
    RAISES (ValueError): H101 for an attribute that is not registered.
    """
    if attribute == GROUP:
        register(GROUP)
    elif attribute is not None and not Doc.has_extension(attribute):
        raise ValueError(Errors.H101.format(name=attribute, block=block))


def get_group(doc: Doc, attribute: str | None) -> Hashable:
    """Return the value of a registered extension attribute that says which Docs are a group, or else of the
    field of that name in `doc._.hocrf_meta`; unhashable values as their `repr`; None if there is neither.
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
    """The group of an example: the predicted Doc's, or else the reference's."""
    group = get_group(example.predicted, attribute)
    return get_group(example.reference, attribute) if group is None else group


def set_group(doc: Doc, group: Hashable) -> None:
    """Set `doc._.hocrf_group`, registering it if necessary."""
    register(GROUP)
    doc._.set(GROUP, group)
