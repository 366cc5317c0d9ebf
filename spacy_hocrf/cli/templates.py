"""`python -m spacy hocrf templates`: convert CRF++ templates and Wapiti patterns to blocks of a config."""

from pathlib import Path
from typing import Annotated

from thinc.api import Config
from typer import Argument, Option

from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.options import names_in

__all__ = ["features_of_templates", "templates_cli"]

FEATURES = "spacy-hocrf.Features.v1"


def templates_cli(
    path: Annotated[Path, Argument(help="File with templates", exists=True, dir_okay=False)],
    toolkit: Annotated[
        str, Option("--toolkit", "-t", help="Toolkit that they are written for: crf++ or wapiti")
    ] = "crf++",
    columns: Annotated[
        str,
        Option(
            "--columns",
            help="Token attributes of the columns, in order; by default those of hocrf convert",
        ),
    ] = "ORTH,_.c1,_.c2,_.c3,_.c4,_.c5,_.c6,_.c7,_.c8,_.c9",
    component: Annotated[
        str, Option("--component", help="Name of the component in the config")
    ] = "hocrf",
) -> None:
    """Print the block [components.*.model.features] that has the same features as a file of templates."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(CommandErrors.H291.format(path=path, name="utf8", found=error)) from error
    features = features_of_templates(text, toolkit, names_in(columns))
    print(
        f'# For spans with labels such as B-NP: encoding = "bio" in [components.{component}.model]'
    )
    nested = Config({"components": {component: {"model": {"features": features}}}})
    print(nested.to_str().split("\n\n", 3)[-1])


def features_of_templates(text: str, toolkit: str, columns: list[str]) -> dict[str, object]:
    """Convert templates to settings of `spacy-hocrf.Features.v1` with the same features.

    toolkit (str): "crf++" or "wapiti". columns (list[str]): token attribute of each column.
    RAISES (ValueError): H278, H288 or H289 for anything else than templates.
    """
    from spacy_hocrf.features.commands import wrong_template
    from spacy_hocrf.sequences.templates import read_templates

    blocks = read_templates(text, toolkit).blocks(columns)
    if not blocks:
        raise wrong_template(1, text.partition("\n")[0], "templates, here or below")
    numbered = {f"template_{i}": block for i, block in enumerate(blocks)}
    return {"@misc": FEATURES, "basics": False, "*": numbered}
