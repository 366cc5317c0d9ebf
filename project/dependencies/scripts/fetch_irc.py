"""Get the IRC corpus (Kummerfeld et al., ACL 2019): its repository's archive, or the copy that
HOCRF_DATA has.
"""

import hashlib
import io
import os
import re
import sys
import tarfile
from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

sys.path.append(str(Path(__file__).parents[2]))
from common.fetch import from_address, from_copy

COMMIT = "82ed04f9627a45d0d6f2ec3c8683c88eb408a0d5"
ADDRESS = f"https://codeload.github.com/jkkummerfeld/irc-disentanglement/tar.gz/{COMMIT}"
COPY = "irc/irc_train_dev.tar.gz"
MEMBER = re.compile(r"(?:.*/)?data/((?:train|dev)/[^/]+\.(?:ascii|annotation)\.txt)")
DIGEST = "adb3c330148f2362dfca588a691ab97096727fcfdfe28ed2c07f01401be82fdf"


def main(
    output: Annotated[Path, typer.Argument(help="Folder for the logs; made if it is missing")],
    address: Annotated[
        str, typer.Option(help="Where the archive is, unless HOCRF_DATA is set")
    ] = ADDRESS,
) -> None:
    """Write the logs of the training and the development part, and check that they are the expected
    ones.
    """
    local = os.environ.get("HOCRF_DATA")
    files = unpack(from_copy(Path(local), COPY) if local else from_address(address, COPY))
    computed = digest(files)
    if computed != DIGEST:
        msg.fail(
            f"The {len(files)} files of the archive have the digest {computed}; expected was {DIGEST}",
            exits=1,
        )
    for name, content in files.items():
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        (output / name).write_bytes(content)
    msg.good(f"{output}: {len(files)} files from {'$HOCRF_DATA' if local else address}")


def unpack(archive: bytes) -> dict[str, bytes]:
    """The logs and their annotations, by part and name, such as
    train/2005-02-06.train-c.ascii.txt.
    """
    files = {}
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as opened:
        for member in opened:
            match = MEMBER.fullmatch(member.name)
            content = opened.extractfile(member) if match else None
            if match and content:
                files[match[1]] = content.read()
    return files


def digest(files: dict[str, bytes]) -> str:
    """SHA-256 of the names and contents in the order of the names."""
    whole = hashlib.sha256()
    for name in sorted(files):
        whole.update(name.encode())
        whole.update(hashlib.sha256(files[name]).digest())
    return whole.hexdigest()


if __name__ == "__main__":
    typer.run(main)
