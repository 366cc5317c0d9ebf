"""`spacy-hocrf.GlobalFeatures.v1`: several templates."""

from typing import Any

from spacy_hocrf.joint.templates import JointTemplate, check_templates

__all__ = ["make_global_features"]


def make_global_features(*templates: Any) -> list[JointTemplate]:
    """All templates of its `*` blocks, or of lists of them."""
    flat = [
        template
        for block in templates
        for template in (block if isinstance(block, list | tuple) else [block])
    ]
    return list(check_templates(flat))
