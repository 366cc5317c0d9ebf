"""Get the sentences of GUM, a file for each genre, as project/genre_transfer sorts them."""

import sys
from pathlib import Path
from typing import Annotated

import srsly
import typer
from wasabi import msg

sys.path.append(str(Path(__file__).parents[2] / "genre_transfer" / "scripts"))
from corpus import get_sentences, sort_by_genre

OTHER = Path(__file__).parents[2] / "genre_transfer"


def main(
    output: Annotated[Path, typer.Argument(help="Folder for the files; made if it is missing")],
) -> None:
    """Write a word and its tag on each line, and a blank line after each sentence."""
    genres = srsly.read_json(OTHER / "assets" / "genres.json")
    by_genre = sort_by_genre(get_sentences(OTHER / "project.yml"), genres)
    output.mkdir(parents=True, exist_ok=True)
    for genre, sentences in by_genre.items():
        blocks = ("\n".join(map(" ".join, zip(*sentence))) for sentence in sentences)
        (output / f"{genre}.bio").write_text("\n\n".join(blocks) + "\n", encoding="utf8")
        msg.good(f"{output / genre}.bio: {len(sentences):,} sentences")


if __name__ == "__main__":
    typer.run(main)
