"""Bar 21: is what is fast also good? F1 of chunks beside the speed of prediction and the CPU time of
training.

The last tenth of the training part of CoNLL-2000 is held back; its test part is not used, and no
setting is chosen by this F1.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import models
import peers
from compare import CONLL, Setting, fresh_docs
from corpora import Sentence
from default_bars import piping, tagging
from measure import Work, take_turns
from models import Spans, chunks_of
from results import Outcome, Row, System, speed
from spacy.language import Language
from spacy.util import minibatch
from user_features import features

sys.path.append(str(Path(__file__).parents[2]))
from common.scores import ratios

ORDERS = (1, 2, 3)
HELD_BACK = 10  # one in so many sentences
OURS, CRFSUITE, NER = "spacy-hocrf", "CRFsuite", "ner"
BATCH = 32  # sentences of an update of `ner`
DROPOUT = 0.1


@dataclass(frozen=True)
class Trained:
    """A system that has learnt, from words and labels to a model in so many CPU seconds."""

    name: str
    variant: str
    seconds: float
    f1: float  # percent, on what was held back
    prepare: Callable[[], Work]  # of turns of prediction


def bar_16(setting: Setting) -> Outcome:
    """F1, tokens a second, CPU seconds of training."""
    sentences = setting.corpora.chunks()
    first = len(sentences) - len(sentences) // HELD_BACK
    train, held_back = sentences[:first], sentences[first:]
    trained = [_ours(setting, order, train, held_back) for order in ORDERS]
    trained.append(_crfsuite(setting, train, held_back))
    trained += _ner(setting, train, held_back)
    sides = {(each.name, each.variant): each.prepare for each in trained}
    seconds = take_turns(sides, setting.rounds)
    systems = [
        System(each.name, each.variant, each.f1, 1 / seconds[each.name, each.variant], each.seconds)
        for each in trained
    ]
    check = (
        f"{len(train):,} sentences for training, {len(held_back):,} for F1; {OURS} {setting.steps} "
        "steps at most, CRFsuite with the user's features to its own stop"
    )
    return Outcome([_row(system) for system in systems], checks=[check], systems=systems)


def _row(system: System) -> Row:
    reached = f"{system.f1:.2f}, {speed(1 / system.tokens_per_second)}, {system.training:.1f} s"
    ours = system.name == OURS
    what = f"{'default' if ours else system.name}, {system.variant}"
    title = f"F1 of {CONLL} chunks, speed of prediction, CPU time of training: {what}"
    return Row(title, *((reached, "") if ours else ("", reached)))


def _ours(
    setting: Setting, order: int, train: Sequence[Sentence], held_back: Sequence[Sentence]
) -> Trained:
    """The default but for the order, which is given."""
    begun = time.process_time()
    config = {"model": {"order": order}, "trainer": {"threads": 1}}
    nlp = models.default(train, setting.steps, **config)
    spent = time.process_time() - begun
    return _pipeline(OURS, f"order {order}", spent, nlp, held_back)


def _ner(
    setting: Setting, train: Sequence[Sentence], held_back: Sequence[Sentence]
) -> Iterator[Trained]:
    """One training; a system after each of some numbers of passes."""
    begun = time.process_time()
    nlp, examples, optimizer = peers.new_ner(train)
    spent = time.process_time() - begun
    for before, passes in pairwise((0, *setting.ner_passes)):
        begun = time.process_time()
        for _ in range(passes - before):
            for batch in minibatch(examples, BATCH):
                nlp.update(batch, sgd=optimizer, drop=DROPOUT)
        spent += time.process_time() - begun
        yield _pipeline(NER, f"{passes} pass{'es' * (passes > 1)}", spent, nlp, held_back)


def _pipeline(
    name: str, variant: str, spent: float, nlp: Language, held_back: Sequence[Sentence]
) -> Trained:
    predicted = [
        [(ent.start, ent.end, ent.label_) for ent in doc.ents]
        for doc in nlp.pipe(fresh_docs(nlp, held_back))
    ]
    return Trained(name, variant, spent, f1(predicted, held_back), partial(piping, nlp, held_back))


def _crfsuite(
    setting: Setting, train: Sequence[Sentence], held_back: Sequence[Sentence]
) -> Trained:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        begun = time.process_time()
        observed = ((features(words), labels) for words, labels in train)
        peers.train_as_user(observed, setting.whole_iterations, path)
        spent = time.process_time() - begun
        tagger = peers.open_tagger(path)
    predicted = [chunks_of(tagger.tag(features(words))) for words, _ in held_back]
    prepare = partial(tagging, tagger, held_back)
    return Trained(CRFSUITE, "order 1", spent, f1(predicted, held_back), prepare)


def f1(predicted: Sequence[Spans], held_back: Sequence[Sentence]) -> float:
    """Percent, of spans and their labels."""
    gold = [chunks_of(labels) for _, labels in held_back]
    right = sum(len(set(ours) & set(wanted)) for ours, wanted in zip(predicted, gold))
    return 100 * ratios(right, sum(map(len, predicted)), sum(map(len, gold)))["f"]
