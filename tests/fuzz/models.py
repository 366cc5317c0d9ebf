"""Saved models with damage that the checksum does not show: whatever the files say, loading ends in
a coded error or in a model that predicts.

    python tests/fuzz/models.py --mutations 20000

Mutation k of a seed is always the same. They run in a child process, so that one that kills it is
counted, and the next one follows. Printed are the outcomes, the slowest load in seconds of CPU and
the largest allocations, by `tracemalloc`: above ten times the file is a failure, but 2 MB are no
failure: a file below 200 kB may be all header, whose values take some fifteen times their text.
"""

import argparse
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
import tracemalloc
import warnings
from collections import Counter
from pathlib import Path
from typing import get_args

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from joint_config import joint
from small_corpus import documents, fit, initialize, untrained
from small_encoder import model as with_encoder
from spacy.vectors import Vectors

from spacy_hocrf.saving import archive

RATIO, SMALL = 10, 2 * 2**20  # allocated by one load: times the file, and in bytes
MAX_SECONDS = 2.0  # seconds of CPU for one load
MEMORY = 4 * 2**30  # bytes of addresses; an allocation beyond is a MemoryError
SEGMENTS = {
    "@misc": "spacy-hocrf.Features.v1",
    "*": {
        "words": {"@misc": "spacy-hocrf.Token.v1", "attrs": ["NORM", "SHAPE"], "window": [-1, 0]},
        "ends": {"@misc": "spacy-hocrf.Token.v1", "attrs": ["NORM"], "parts": ["end"], "order": 1},
        "whole": {"@misc": "spacy-hocrf.Segment.v1", "what": ["LENGTH", "TEXT", "LAST"]},
        "labels": {"@misc": "spacy-hocrf.Transition.v1", "order": 2},
    },
}
VECTORS = {
    "@misc": "spacy-hocrf.Features.v1",
    "*": {
        "vectors": {"@misc": "spacy-hocrf.Vectors.v1", "window": [-1, 0]},
        "labels": {"@misc": "spacy-hocrf.Transition.v1"},
    },
}
AUTO = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": "auto"}
SGD = {"@misc": "spacy-hocrf.SGD.v1", "sigma": 3.0}
MODELS = {  # factory, its model, and other settings
    "semi-CRF of order 2": ("hocrf", {"features": SEGMENTS, "order": 2}, {}),
    "semi-CRF, outside runs": ("hocrf", {"outside": "run"}, {}),
    "CRF, bio": ("hocrf", {"encoding": "bio", "order": 2}, {}),
    "tagger": ("hocrf_tagger", {}, {}),
    "word vectors": ("hocrf", {"features": VECTORS}, {}),
    "settings that are chosen": ("hocrf", {}, {"trainer": AUTO}),
    "joint features": ("hocrf", {}, {"joint": joint()}),
    "encoder": ("hocrf", with_encoder(), {"trainer": SGD}),
}
TEXTS = ("Ada Lovelace slept in New York .", "It rains", "", "zzz \n\n Emmy Emmy London")
NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    7,
    99,
    2**15,
    2**16,
    2**31 - 1,
    2**31,
    2**40,
    2**62,
    -(2**63),
    2.7,
    1e300,
)
VALUES = (*NUMBERS, None, True, False, "", "O", "PERSON", "\ud800", [], {}, [[]], [0], {"a": 1})
KINDS = ("header", "table", "element", "order", "extent", "type", "swap", "pattern")
EXPECTED = re.compile(r"H\d{3}|loads(, then H\d{3})?")
CODED = re.compile(r"^\[(H\d{3})\]")


class Fuzzer:
    """Models, what damages them, and what comes of it."""

    def __init__(self, seed=0):
        self.seed = seed
        self.pipelines = [made(*settings) for settings in MODELS.values()]
        self.data = [
            learnt(made(*settings)).get_pipe("hocrf").to_bytes() for settings in MODELS.values()
        ]

    @np.errstate(all="ignore")
    def mutation(self, k):
        """Number of the model, and its damaged bytes."""
        rng = np.random.default_rng([self.seed, k])
        which = int(rng.integers(len(self.data)))
        payload = archive.read_bytes(self.data[which])
        header, arrays = json.loads(json.dumps(payload.header)), dict(payload.arrays)
        sizes = False
        for _ in range(1 + int(rng.integers(3) == 0)):
            kind = rng.choice(KINDS)
            if kind == "header":
                damage_json(rng, header)
            elif kind == "table":
                sizes = True
            elif kind == "pattern":
                damage_patterns(rng, arrays)
            else:
                damage_array(rng, arrays, kind)
        encoded, parts = archive._encode(archive.Payload({}, arrays))
        raw = b"".join(parts)
        table = json.loads(json.loads(encoded)["model"])["arrays"]
        if sizes:
            damage_json(rng, table)
        body = json.dumps({**header, "arrays": table})
        if rng.integers(4) == 0:
            body = damage_bytes(rng, body.encode()).decode(errors="replace")
            raw = damage_bytes(rng, raw)
        return which, framed(body, raw)

    def outcome(self, k):
        """What comes of mutation k; as `load`, and when it has loaded the model predicts."""
        which, data = self.mutation(k)
        found, *costs = self.load(which, data)
        if found == "loads":
            try:
                list(self.pipelines[which].pipe(TEXTS))
            except ValueError as error:
                coded = CODED.match(str(error))
                found = f"loads, then {coded[1] if coded else repr(error)}"
        return found, *costs

    def load(self, which, data):
        """What comes of some bytes: a code, "loads", or the name of an exception without a code.

        RETURNS (tuple[str, float, int, int]): it, seconds of CPU, bytes at the peak and of the file.
        """
        pipe = self.pipelines[which].get_pipe("hocrf")
        tracemalloc.start()
        begin = time.process_time()
        try:
            pipe.from_bytes(data)
            found = "loads"
        except Exception as error:
            coded = CODED.match(str(error))
            found = coded[1] if coded and isinstance(error, ValueError) else type(error).__name__
        seconds = time.process_time() - begin
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found, seconds, peak, len(data)


def made(factory, model, settings):
    """An untrained pipeline, whose vocabulary has vectors if its model reads them."""
    nlp = untrained(factory, model, **settings)
    if model.get("features") is not VECTORS:
        return nlp
    words = sorted({token.text for text, _ in documents() for token in nlp.make_doc(text)})
    table = np.random.default_rng(0).normal(size=(len(words), 3)).astype(np.float32)
    nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=table, keys=words)
    return nlp


def learnt(nlp):
    data = initialize(nlp, documents(6))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "\\[W009\\]")  # no joint weight is learnt
        fit(nlp, data, 20)
    return nlp


def damage_json(rng, values):
    """Replace, delete or repeat one value, however deep."""
    place = values
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = keys[int(rng.integers(len(keys)))]
        if not isinstance(place[key], dict | list) or not place[key] or rng.integers(3) == 0:
            break
        place = place[key]
    how = rng.integers(4)
    if how == 0:
        del place[key]
    elif how == 1 and isinstance(place, list):
        place.extend([place[key]] * int(rng.choice([1, 100, 5000])))
    else:
        place[key] = VALUES[int(rng.integers(len(VALUES)))]


def damage_array(rng, arrays, kind):
    name = str(rng.choice(list(arrays)))
    array = arrays[name]
    if kind == "swap":
        other = str(rng.choice(list(arrays)))
        arrays[name], arrays[other] = arrays[other], array
    elif kind == "type":
        arrays[name] = array.astype(rng.choice(get_args(archive.Dtype)))
    elif kind == "order":
        arrays[name] = rng.permutation(array) if rng.integers(2) else array[::-1].copy()
    elif kind == "extent":
        how = rng.integers(4)
        arrays[name] = (
            array[: int(rng.integers(len(array) + 1))]
            if how == 0
            else np.concatenate([array, array[: int(rng.integers(1, 9))]])
            if how == 1
            else array.reshape(1, *array.shape)
            if how == 2
            else array.ravel()
        )
    else:
        damaged = array.copy()
        flat = damaged.reshape(-1)
        for _ in range(int(rng.integers(1, 4)) if len(flat) else 0):
            value = np.array(rng.choice(np.array(NUMBERS)), dtype=np.float64).astype(array.dtype)
            another = flat[int(rng.integers(len(flat)))]
            flat[int(rng.integers(len(flat)))] = value if rng.integers(2) else another
        arrays[name] = damaged


def damage_patterns(rng, arrays):
    """Far longer, or far more label patterns than there were."""
    labels = arrays["pattern_label"]
    n = int(rng.choice([2, 5, 50, 400]))
    more = int(rng.choice([1, 3, 30]))
    added = rng.integers(0, 3, n * more)
    arrays["pattern_length"] = np.append(arrays["pattern_length"], np.full(more, n)).astype(
        np.int32
    )
    arrays["pattern_label"] = np.append(labels, added).astype(np.int32)


def damage_bytes(rng, data):
    """Flip up to two bits."""
    damaged = bytearray(data)
    for _ in range(int(rng.integers(3)) if damaged else 0):
        damaged[int(rng.integers(len(damaged)))] ^= 1 << int(rng.integers(8))
    return bytes(damaged)


def framed(body, raw):
    """The bytes of a model with the checksum that it should have."""
    header = json.dumps({"checksum": archive._checksum(body, raw), "model": body}).encode()
    return b"".join([archive.MAGIC, len(header).to_bytes(8, "little"), header, raw])


def work(seed, first, end):
    """The child: one line of JSON for each mutation."""
    if "HOCRF_NO_LIMIT" not in os.environ:  # sanitizers reserve most addresses that there are
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    fuzzer = Fuzzer(seed)
    for k in range(first, end):
        signal.setitimer(signal.ITIMER_PROF, 5 * MAX_SECONDS)  # SIGPROF ends the process
        print(json.dumps(fuzzer.outcome(k)), flush=True)
    signal.setitimer(signal.ITIMER_PROF, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mutations", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.seed, options.first, options.mutations)
        return
    results = []
    while len(results) < options.mutations:
        command = [sys.executable, __file__, "--worker", "--seed", str(options.seed)]
        command += ["--first", str(len(results)), "--mutations", str(options.mutations)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        results += [json.loads(line) for line in done.stdout.splitlines()]
        if done.returncode > 0:
            sys.exit("the fuzzer itself has failed")
        if done.returncode:
            cause = (
                "hang"
                if done.returncode == -signal.SIGPROF
                else signal.Signals(-done.returncode).name
            )
            print(f"mutation {len(results)}: {cause}")
            results.append((cause, 0.0, 0, 1))
    sys.exit(report(results, options.seed))


def report(results, seed):
    """Print what has come of the mutations. RETURNS (Optional[str]): what is wrong with it."""
    outcomes = Counter(found for found, *_ in results)
    print(f"{len(results)} mutations of {len(MODELS)} models, seed {seed}")
    for found, count in outcomes.most_common():
        print(f"{count:7} {found}")
    slowest = max(range(len(results)), key=lambda k: results[k][1])
    ratios = [peak / size for _, _, peak, size in results]
    largest = int(np.argmax(ratios))
    most = max(peak for _, _, peak, _ in results)
    above = max((peak / size for _, _, peak, size in results if RATIO * size > SMALL), default=0.0)
    print(f"slowest: {results[slowest][1]:.2f} s of CPU (mutation {slowest})")
    print(f"largest: {ratios[largest]:.1f} times the file (mutation {largest}), {most} bytes")
    print(f"largest, files above {SMALL // RATIO} bytes: {above:.1f} times the file")
    wrong = sorted(found for found in outcomes if not EXPECTED.fullmatch(found))
    for k, (found, *_) in enumerate(results):
        if found in wrong:
            print(f"mutation {k}: {found}")
    wrong += ["too slow"] * (results[slowest][1] > MAX_SECONDS)
    wrong += ["too large"] * any(peak > max(RATIO * size, SMALL) for _, _, peak, size in results)
    return f"failed: {wrong}" if wrong else None


if __name__ == "__main__":
    main()
