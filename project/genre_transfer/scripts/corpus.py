"""Get the entities of GUM and make spaCy's format of them, a file for each of four genres.

The corpus comes as two files, train and test, whose sentences are shuffled over all genres.
`assets/genres.json` says which sentence belongs to which genre, by a digest of its words and tags,
so it is the checksum of the corpus, too. Where HOCRF_DATA is set, the sentences are those of its
folder gum_ner/by_genre.
"""

import hashlib
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import srsly
import typer
from spacy.tokens import Doc
from spacy.vocab import Vocab
from wasabi import msg

sys.path.append(str(Path(__file__).parents[2]))
from common.columns import Sentence, sentences_of
from common.fetch import from_address
from common.training import write_docs

LOCAL = "gum_ner/by_genre/*.bio"
DIGITS = 8


def main(
    project_path: Annotated[
        Path, typer.Argument(help="project.yml, whose assets are fetched", exists=True)
    ],
    genres_path: Annotated[
        Path, typer.Argument(help="genres.json: digests of each genre's sentences", exists=True)
    ],
    output_dir: Annotated[Path, typer.Argument(help="Where a .spacy file for each genre goes")],
) -> None:
    """Write a .spacy file for each genre, a Doc for each sentence."""
    vocab = Vocab()
    by_genre = sort_by_genre(get_sentences(project_path), srsly.read_json(genres_path))
    for genre, sentences in by_genre.items():
        docs = [Doc(vocab, words=words, ents=tags) for words, tags in sentences]
        write_docs(docs, output_dir / f"{genre}.spacy")
        entities = sum(len(doc.ents) for doc in docs)
        msg.good(
            f"{genre}: {len(docs):,} sentences, {sum(map(len, docs)):,} tokens, "
            f"{entities:,} entities"
        )


def get_sentences(project_path: Path) -> list[Sentence]:
    """All sentences, from HOCRF_DATA or from the addresses in project.yml."""
    if "HOCRF_DATA" in os.environ:
        paths = sorted(Path(os.environ["HOCRF_DATA"]).glob(LOCAL))
        if not paths:
            msg.fail(
                f"HOCRF_DATA is set, but has no {LOCAL}",
                "Unset it to download the corpus.",
                exits=1,
            )
        return [
            sentence
            for path in paths
            for sentence in read_sentences(path.read_text(encoding="utf8"))
        ]
    sentences: list[Sentence] = []
    for asset in srsly.read_yaml(project_path)["assets"]:
        if "url" in asset:
            dest = project_path.parent / asset["dest"]
            if not dest.exists():
                content = from_address(asset["url"], LOCAL)
                dest.parent.mkdir(parents=True, exist_ok=True)
                dest.write_bytes(content)
                msg.good(f"{asset['dest']}: {len(content):,} bytes from {asset['url']}")
            sentences += read_sentences(dest.read_text(encoding="utf8"))
    return sentences


def read_sentences(text: str) -> Iterator[Sentence]:
    """Words and tags (B-type, I-type or O) of a text."""
    return sentences_of(text.splitlines())


def digest(sentence: Sentence) -> str:
    """The first hexadecimal digits of the MD5 of its words and tags."""
    lines = "\n".join(f"{word}\t{tag}" for word, tag in zip(*sentence))
    return hashlib.md5(lines.encode(), usedforsecurity=False).hexdigest()[:DIGITS]


def sort_by_genre(
    sentences: Iterable[Sentence], genres: Mapping[str, Sequence[str]]
) -> dict[str, list[Sentence]]:
    """Each genre's sentences in the order of its digests, whatever order they come in.

    sentences (Iterable[Sentence]): the whole corpus.
    genres (Mapping[str, Sequence[str]]): digests by genre.
    RETURNS (Dict[str, List[Sentence]]): by genre.
    """
    by_digest: defaultdict[str, list[Sentence]] = defaultdict(list)
    for sentence in sentences:
        by_digest[digest(sentence)].append(sentence)
    here = Counter({name: len(equal) for name, equal in by_digest.items()})
    wanted = Counter(name for names in genres.values() for name in names)
    if here != wanted:
        missing, more = (wanted - here).total(), (here - wanted).total()
        msg.fail(
            f"This is not the corpus of genres.json: {missing} sentences are missing, "
            f"{more} are not in it",
            exits=1,
        )
    return {genre: [by_digest[name].pop() for name in names] for genre, names in genres.items()}


if __name__ == "__main__":
    typer.run(main)
