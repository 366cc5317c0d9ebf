"""The corpora of the suite as texts with labelled spans, on the tokens that each comes with.

Every reader takes the folder that HOCRF_DATA names and returns parts by name: "train", and "dev"
and "test" where the corpus has them. project.yml says where the corpora are from.
"""

import html
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[2]))
from common.columns import Spans, chunks_of, read_columns, runs
from common.conll04 import read_sentences
from common.tweets import Tweet, read_conll, read_msm, split_by_cluster

TALK = 40
"""A text of the talks ends with the first sentence that ends after so many words."""

NONE = "O"
"""The label of a word without a mark."""


class Text(NamedTuple):
    """Tokens, and the first token, one past the last token and the label of each span."""

    words: list[str]
    spans: Spans


Parts = dict[str, list[Text]]


def read_addresses(data: Path) -> Parts:
    """US addresses and their fields: usaddress."""
    folder = data / "usaddress"
    return {
        "train": list(read_labelled_words(folder / "labeled.xml")),
        "test": list(read_labelled_words(folder / "test_labeled.xml")),
    }


def read_cora(data: Path) -> Parts:
    """References of computer science and their fields: Cora, as HOSemiCRF has it."""
    folder = data / "hosemicrf" / "ref"
    return {
        part: [Text(words, runs(labels)) for words, labels in read_columns(folder / f"ref.{part}")]
        for part in ("train", "test")
    }


def read_anystyle(data: Path) -> Parts:
    """References of all sciences and their fields: AnyStyle. What is in the training part, too, is
    left out of the test part.
    """
    train, gold = (
        list(read_fields(data / "anystyle" / f"{name}.xml")) for name in ("core", "gold")
    )
    seen = {tuple(text.words) for text in train}
    return {"train": train, "test": [text for text in gold if tuple(text.words) not in seen]}


def read_tweets(data: Path) -> Parts:
    """Tweets of many places, entities: Broad Twitter Corpus, section H."""
    return {"train": from_tweets(read_conll(data / "btc" / "h.conll"))}


def read_news_tweets(data: Path) -> Parts:
    """Tweets of newspapers and stations, entities: Broad Twitter Corpus, section G."""
    return {"train": from_tweets(read_conll(data / "btc" / "g.conll"))}


def read_all_tweets(data: Path) -> Parts:
    """Tweets of all kinds, entities: the sections of the Broad Twitter Corpus together."""
    paths = sorted((data / "btc").glob("*.conll"))
    return {"train": [text for path in paths for text in from_tweets(read_conll(path))]}


def read_msm2013(data: Path) -> Parts:
    """Tweets, entities: MSM2013, cut so that tweets about one event are in one part."""
    source = data / "msm2013" / "TweetsTrainingSetCH.tsv"
    tweets, _ = read_msm(source.read_bytes().decode("utf8"))
    return {part: from_tweets(some) for part, some in split_by_cluster(tweets).items()}


def read_wnut17(data: Path) -> Parts:
    """Tweets for training, YouTube comments for testing; entities that are rare: WNUT-17."""
    folder = data / "wnut17"
    return {
        "train": list(read_bio(folder / "wnut17train.conll")),
        "test": list(read_bio(folder / "emerging.dev.conll")),
    }


def read_gum(data: Path) -> Parts:
    """Sentences of four genres, entities: GUM."""
    paths = sorted((data / "gum_ner" / "by_genre").glob("*.bio"))
    return {"train": [text for path in paths for text in read_bio(path)]}


def read_conll04(data: Path) -> Parts:
    """Sentences of news, entities: CoNLL04."""
    return {
        part: [
            Text([token.text for token in tokens], chunks_of(token.tag for token in tokens))
            for tokens in read_sentences(data / "conll04" / f"{part}.txt")
        ]
        for part in ("train", "dev", "test")
    }


def read_chunks(data: Path) -> Parts:
    """Sentences of news, chunks, without the words' tags: CoNLL-2000."""
    return {part: list(read_bio(data / "conll2000" / f"{part}.txt")) for part in ("train", "test")}


def read_transcripts(data: Path) -> Parts:
    """Film transcripts, clauses by the mark that ends them: HOSemiCRF."""
    folder = data / "hosemicrf" / "punc"
    return {
        part: [Text(words, clauses(marks)) for words, marks in read_columns(folder / name)]
        for part, name in (("train", "punc.tr"), ("test", "punc.ts"))
    }


def read_talks(data: Path) -> Parts:
    """TED talks, clauses by the mark that ends them: IWSLT 2012 and 2011."""
    folder = data / "iwslt_punct"
    return {
        part: list(cut_stream(*read_columns(folder / name)[0]))
        for part, name in (("train", "dev2012"), ("test", "test2011"))
    }


def read_labelled_words(path: Path) -> Iterator[Text]:
    """XML with an element for each word; words of one name that touch are a span."""
    source = path.read_text(encoding="utf8")
    for address in re.findall(r"<AddressString>(.*?)</AddressString>", source, re.S):
        words: list[str] = []
        labels: list[str] = []
        for label, body in re.findall(r"<(\w+)>(.*?)</\1>", address, re.S):
            tokens = html.unescape(body).split()
            words += tokens
            labels += [label] * len(tokens)
        yield Text(words, runs(labels))


def read_fields(path: Path) -> Iterator[Text]:
    """XML with an element for each field of a sequence; blanks are between tokens."""
    source = path.read_text(encoding="utf8")
    for sequence in re.findall(r"<sequence>(.*?)</sequence>", source, re.S):
        words: list[str] = []
        spans: Spans = []
        for label, body in re.findall(r"<([\w-]+)>(.*?)</\1>", sequence, re.S):
            start = len(words)
            words += html.unescape(body).split()
            if len(words) > start:
                spans.append((start, len(words), label))
        yield Text(words, spans)


def read_bio(path: Path) -> Iterator[Text]:
    """The first column has the words, the last one B-, I- and O."""
    return (Text(words, chunks_of(tags)) for words, tags in read_columns(path))


def from_tweets(tweets: Iterable[Tweet]) -> list[Text]:
    """Tweets as texts."""
    return [Text(words, entities) for words, entities in tweets]


def clauses(marks: Sequence[str]) -> Spans:
    """The words up to each mark, with the mark; words after the last one are in no clause."""
    ends = [i + 1 for i, mark in enumerate(marks) if mark != NONE]
    return [(start, end, marks[end - 1]) for start, end in zip([0, *ends], ends)]


def cut_stream(words: Sequence[str], marks: Sequence[str]) -> Iterator[Text]:
    """A stream of talks as texts of whole sentences: TALK words, and what completes the last
    sentence. What is no text at the end is left out.
    """
    start = 0
    for end, mark in enumerate(marks, start=1):
        if end - start >= TALK and mark in ("PERIOD", "QUESTION"):
            yield Text(list(words[start:end]), clauses(marks[start:end]))
            start = end
