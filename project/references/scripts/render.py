"""Make the corpus: every record in every style of styles.py, and as its paper has it, if there is
one.

The split is by work, not by reference: a title that two of the papers cite is one work, so that
nothing in test was seen in training in another style. Two styles are kept for test alone
(unseen.spacy): how well is a style read that nobody annotated?
"""

import random
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Annotated

import spacy
import srsly
import typer
from spacy.tokens import Doc, DocBin
from spacy.util import import_file
from wasabi import msg

from spacy_hocrf.api import set_group

HERE = Path(__file__).parent
styles = import_file("references_styles", HERE / "styles.py")
tokenizer = import_file("references_tokenizer", HERE / "tokenizer.py")

UNSEEN = ("aaai", "nature")  # styles of unseen.spacy only
TEST_RECORDS, DEV_RECORDS = 30, 15
ORIGINAL = "original"  # the style of the text as its paper has it
Reference = tuple[str, list]  # text and its (start, end, label) spans


def main(
    records_path: Annotated[Path, typer.Argument(help="Records (JSONL)", exists=True)],
    originals_path: Annotated[
        Path, typer.Argument(help="The references as annotated by hand (JSONL)", exists=True)
    ],
    output_dir: Annotated[Path, typer.Argument(help="Where the parts go (.spacy)")],
    more: Annotated[Path | None, typer.Option(help="Records that no paper has (JSONL)")] = None,
    seed: Annotated[int, typer.Option(help="Decides the split and what the styles leave open")] = 0,
) -> None:
    """Render the records and write one DocBin a part."""
    records = list(srsly.read_jsonl(records_path))
    records += srsly.read_jsonl(more) if more else []
    originals = {
        line["id"]: (line["text"], line["spans"]) for line in srsly.read_jsonl(originals_path)
    }
    corpus, misaligned = make_corpus(records, originals, seed)
    corpus["page"] = [*one_each(corpus["test"]), *one_each(corpus["unseen"])]
    output_dir.mkdir(parents=True, exist_ok=True)
    for part, docs in corpus.items():
        DocBin(docs=docs, store_user_data=True).to_disk(output_dir / f"{part}.spacy")
    counts = {
        part: Counter(ent.label_ for doc in docs for ent in doc.ents)
        for part, docs in corpus.items()
    }
    msg.table(
        [
            ("references", *(len(docs) for docs in corpus.values())),
            (
                "records",
                *(len({doc.user_data["record"] for doc in docs}) for docs in corpus.values()),
            ),
            *(
                (label, *(counts[part][label] for part in corpus))
                for label in styles.LABELS
                if any(labels[label] for labels in counts.values())
            ),
        ],
        header=("", *corpus),
        aligns=("l", *"r" * len(corpus)),
        divider=True,
    )
    for line in misaligned:
        msg.warn(line)
    if misaligned:
        msg.fail(f"Spans that no tokens match: {len(misaligned)}", exits=1)
    msg.good("Spans that no tokens match: 0")


def make_corpus(
    records: list[dict], originals: dict[str, Reference], seed: int
) -> tuple[dict[str, list[Doc]], list[str]]:
    """Render and tokenize every part.

    originals (dict[str, Reference]): the annotated references of records that papers have, by id.
    RETURNS (tuple): the documents of train, dev, test and unseen, with doc.user_data["record"],
        ["work"] and ["style"], and the work as doc._.hocrf_group; a line for each span that does not begin
        and end with a token.
    """
    nlp = spacy.blank("en")
    nlp.tokenizer = tokenizer.create_references_tokenizer()(nlp)
    seen = tuple(name for name in styles.STYLES if name not in UNSEEN)
    parts = {
        part: (chosen, (ORIGINAL, *seen)) for part, chosen in split_records(records, seed).items()
    }
    parts["unseen"] = (parts["test"][0], UNSEEN)
    corpus, misaligned = {}, []
    for part, (chosen, names) in parts.items():
        corpus[part] = []
        for record in chosen:
            for name in names:
                if name == ORIGINAL and record["id"] not in originals:
                    continue
                if name == ORIGINAL:
                    text, spans = originals[record["id"]]
                else:
                    rng = random.Random(f"{seed} {name} {record['id']}")
                    text, spans = styles.render(record, styles.STYLES[name], rng)
                doc = nlp.make_doc(text)
                ents = [doc.char_span(start, end, label) for start, end, label in spans]
                for ent, (start, end, label) in zip(ents, spans, strict=True):
                    if ent is None:
                        misaligned.append(
                            f"{record['id']} in {name}: {label} {text[start:end]!r} of {text!r}"
                        )
                doc.set_ents([ent for ent in ents if ent is not None])
                doc.user_data.update(record=record["id"], work=work_of(record), style=name)
                set_group(doc, work_of(record))
                corpus[part].append(doc)
    return corpus, misaligned


def one_each(docs: list[Doc]) -> list[Doc]:
    """One reference to each record, in one style after the other."""
    by_record = defaultdict[str, list[Doc]](list)
    for doc in docs:
        by_record[doc.user_data["record"]].append(doc)
    return [styled[number % len(styled)] for number, styled in enumerate(by_record.values())]


def split_records(records: list[dict], seed: int) -> dict[str, list[dict]]:
    """Split by work: records with one title stay together.

    The rarest fields choose first, one work for train and one for test each, so that train has
    every field there is.
    RETURNS (dict[str, list[dict]]): the records of train, dev and test in the order given.
    """
    works: dict[str, list[dict]] = {}
    for record in records:
        works.setdefault(work_of(record), []).append(record)
    order = sorted(works)
    random.Random(seed).shuffle(order)
    having: dict[str, list[str]] = {}
    for work in order:
        for name in sorted({name for record in works[work] for name in record}):
            having.setdefault(name, []).append(work)
    part_of: dict[str, str] = {}
    for _, candidates in sorted(having.items(), key=lambda item: (len(item[1]), item[0])):
        for part in ("train", "test"):
            free = [work for work in candidates if work not in part_of]
            if free and not any(part_of.get(work) == part for work in candidates):
                part_of[free[0]] = part
    for part, wanted in (("test", TEST_RECORDS), ("dev", DEV_RECORDS), ("train", len(records))):
        size = sum(len(works[work]) for work, chosen in part_of.items() if chosen == part)
        for work in order:
            if work not in part_of and size < wanted:
                part_of[work] = part
                size += len(works[work])
    parts: dict[str, list[dict]] = {"train": [], "dev": [], "test": []}
    for record in records:
        parts[part_of[work_of(record)]].append(record)
    return parts


def work_of(record: dict) -> str:
    """What tells works apart: the letters and digits of the title."""
    return re.sub(r"[\W_]", "", record["title"].lower())


if __name__ == "__main__":
    typer.run(main)
