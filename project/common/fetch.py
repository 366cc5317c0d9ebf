"""Get corpora that are not ours to ship: the assets of project.yml that have an address, or the
copies that HOCRF_DATA names.
"""

import gzip
import hashlib
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Annotated

import srsly
import typer
from wasabi import msg

LOCAL = {"assets/cora": "hosemicrf/ref", "assets/punc": "hosemicrf/punc"}
"""Folders whose place in $HOCRF_DATA is not their place in assets/."""


def main(
    project_path: Annotated[
        Path, typer.Argument(help="project.yml, whose assets are fetched", exists=True)
    ],
) -> None:
    """Write every asset that has an address to its place, and check its checksum (MD5)."""
    local = os.environ.get("HOCRF_DATA")
    for asset in srsly.read_yaml(project_path)["assets"]:
        if "url" not in asset:
            continue
        dest = project_path.parent / asset["dest"]
        place = place_of(asset["dest"])
        content = from_copy(Path(local), place) if local else from_address(asset["url"], place)
        computed = hashlib.md5(content, usedforsecurity=False).hexdigest()
        if computed != asset["checksum"]:
            msg.fail(
                f"{asset['dest']}: the checksum is {computed}, project.yml expects "
                f"{asset['checksum']}",
                exits=1,
            )
        dest.parent.mkdir(parents=True, exist_ok=True)
        dest.write_bytes(content)
        source = "$HOCRF_DATA" if local else asset["url"]
        msg.good(f"{asset['dest']}: {len(content):,} bytes from {source}")


def place_of(dest: str) -> str:
    """Where a copy of an asset is in $HOCRF_DATA."""
    folder, _, name = dest.rpartition("/")
    return f"{LOCAL.get(folder, folder.removeprefix('assets/'))}/{name}"


def from_copy(data: Path, place: str) -> bytes:
    """Read a file of $HOCRF_DATA, which may be compressed there."""
    packed = data / f"{place}.gz"
    if packed.exists():
        return gzip.decompress(packed.read_bytes())
    if not (data / place).exists():
        msg.fail(
            f"HOCRF_DATA is set, but has no {place}", "Unset it to download the file.", exits=1
        )
    return (data / place).read_bytes()


def from_address(url: str, place: str, variable: str = "HOCRF_DATA") -> bytes:
    """Download a file.

    place, variable (str): what to have, and which variable to set, where there is no network.
    """
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return response.read()
    except (urllib.error.URLError, TimeoutError) as error:
        msg.fail(
            f"Could not download {url}: {error}",
            f"Without a network, set {variable} to a folder that has {place}.",
            exits=1,
        )
        raise


if __name__ == "__main__":
    typer.run(main)
