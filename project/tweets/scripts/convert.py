"""Make spaCy's format of the two corpora, each cut into train, dev and test, a Doc for each tweet.

MSM2013: only its training part has a public annotation, so that part is cut. Its tweets come in
clusters of retweets and of headlines about one event; a cluster goes into one part as a whole, or
the test would repeat the training. Its annotation is a list of phrases beside the tweet, which are
looked up among the tokens here. Broad Twitter Corpus: by section.
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from spacy.vocab import Vocab
from wasabi import msg

from spacy_hocrf.api import SingleLinkage

sys.path.append(str(Path(__file__).parents[2]))
from common.training import annotated, write_docs
from common.tweets import Tweet, read_conll, read_msm, split_by_cluster

PAPER = SingleLinkage(min_overlap=5)
"""Groups as in the paper."""

SECTIONS = {"train": ("a", "b", "e", "g"), "dev": ("h",), "test": ("h",)}
"""Parts of Broad Twitter Corpus; dev and test are the first and second half of section H. Section F
is left out.
"""


def main(
    msm_path: Annotated[
        Path, typer.Argument(help="TweetsTrainingSetCH.tsv of MSM2013", exists=True)
    ],
    btc_dir: Annotated[
        Path,
        typer.Argument(
            help="Folder with Broad Twitter Corpus, a .conll file for each section", exists=True
        ),
    ],
    output_dir: Annotated[Path, typer.Argument(help="Where the folders msm2013 and btc go")],
) -> None:
    """Write train.spacy, dev.spacy and test.spacy of both corpora."""
    tweets, lost = read_msm(msm_path.read_bytes().decode("utf8"))
    annotated = sum(len(tweet.entities) for tweet in tweets) + lost
    msg.info(f"msm2013: {lost} of {annotated} annotated phrases are not in their tweets")
    write(split_by_cluster(tweets), output_dir / "msm2013")
    sections = {name: list(read_conll(btc_dir / f"{name}.conll")) for name in "abegh"}
    write(split_by_section(sections), output_dir / "btc")


def split_by_section(sections: dict[str, list[Tweet]]) -> dict[str, list[Tweet]]:
    """Whole sections for training, the halves of another to choose by and to test on."""
    parts = {
        part: [tweet for name in names for tweet in sections[name]]
        for part, names in SECTIONS.items()
    }
    half = len(parts["dev"]) // 2
    return {**parts, "dev": parts["dev"][:half], "test": parts["test"][half:]}


def write(parts: dict[str, list[Tweet]], folder: Path) -> None:
    """A .spacy file for each part."""
    vocab = Vocab()
    for part, tweets in parts.items():
        docs = [annotated(vocab, *tweet) for tweet in tweets]
        write_docs(docs, folder / f"{part}.spacy")
        entities = sum(len(doc.ents) for doc in docs)
        largest = Counter(PAPER(docs)).most_common(1)[0][1]
        msg.good(
            f"{folder.name}, {part}: {len(docs):,} tweets, {sum(map(len, docs)):,} tokens, "
            f"{entities:,} entities; largest group by the paper's rule: {largest:,} tweets"
        )


if __name__ == "__main__":
    typer.run(main)
