"""Get the Cora references, which are not ours to ship: the assets of project.yml, or a copy that HOCRF_DATA names."""

import hashlib
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Annotated

import srsly
import typer
from wasabi import msg

LOCAL = "hosemicrf/ref"  # their folder in $HOCRF_DATA


def main(
    project_path: Annotated[Path, typer.Argument(help="project.yml, whose assets are fetched", exists=True)],
) -> None:
    """Write every asset that has an address to its place, and check it against its checksum (MD5)."""
    local = os.environ.get("HOCRF_DATA")
    for asset in srsly.read_yaml(project_path)["assets"]:
        if "url" not in asset:
            continue
        dest = project_path.parent / asset["dest"]
        if local:
            content = from_copy(Path(local) / LOCAL / dest.name)
        else:
            content = from_address(asset["url"])
        found = hashlib.md5(content, usedforsecurity=False).hexdigest()
        if found != asset["checksum"]:
            msg.fail(f"{asset['dest']}: the checksum is {found}, project.yml expects {asset['checksum']}", exits=1)
        dest.parent.mkdir(parents=True, exist_ok=True)
        dest.write_bytes(content)
        msg.good(f"{asset['dest']}: {len(content):,} bytes from {'$HOCRF_DATA' if local else asset['url']}")


def from_copy(path: Path) -> bytes:
    """Read a file of $HOCRF_DATA."""
    if not path.exists():
        msg.fail(f"HOCRF_DATA is set, but has no {LOCAL}/{path.name}", "Unset it to download the file.", exits=1)
    return path.read_bytes()


def from_address(url: str) -> bytes:
    """Download a file."""
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return response.read()
    except (urllib.error.URLError, TimeoutError) as error:
        msg.fail(
            f"Could not download {url}: {error}",
            f"Without a network, set HOCRF_DATA to a folder that has {LOCAL}/{url.rsplit('/', 1)[-1]}.",
            exits=1,
        )
        raise


if __name__ == "__main__":
    typer.run(main)
