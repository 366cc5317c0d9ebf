"""Values on disk: what was put there, for several threads, and nothing that is left."""

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from spacy_hocrf.engine.reduction import ThreadWorkers
from spacy_hocrf.training.lbfgs import LBFGSTrainer
from spacy_hocrf.training.sgd import SGDTrainer
from spacy_hocrf.training.stored import Store, store_of
from spacy_hocrf.workers.summing import ProcessWorkers


def test_values_come_back_in_any_order(tmp_path):
    store = Store(str(tmp_path))
    values = [f"text {i}" * i for i in range(50)]
    places = [store.put(value) for value in values]
    assert [store.get(place) for place in reversed(places)] == values[::-1]
    later = store.put(np.arange(3))
    assert store.get(later).tolist() == [0, 1, 2] and store.get(places[0]) == values[0]


def test_threads_have_one_store_in_common(tmp_path):
    store = Store(str(tmp_path))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: store.get(store.put(str(i) * 100)), range(200)))
    assert found == [str(i) * 100 for i in range(200)]


@pytest.mark.slow
def test_nothing_is_left_of_it(tmp_path):
    store = Store(str(tmp_path))
    store.put("text")
    file = store._file
    del store
    gc.collect()
    assert file.closed and not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_an_error_with_the_first_value(tmp_path):
    store = Store(str(tmp_path / "missing"))
    with pytest.raises(OSError, match="missing"):
        store.put("text")


def test_documents_are_where_the_workers_have_files(tmp_path):
    workers = ProcessWorkers(number=1, folder=str(tmp_path))
    store = store_of(LBFGSTrainer(workers=workers))
    assert store is not None and store.get(store.put("text")) == "text"
    assert store_of(LBFGSTrainer(workers=ThreadWorkers(1))) is None
    assert store_of(LBFGSTrainer()) is None and store_of(SGDTrainer()) is None
