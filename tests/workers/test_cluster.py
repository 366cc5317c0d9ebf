"""A cluster of this machine is started again where its processes were late."""

from types import SimpleNamespace

import pytest

from spacy_hocrf.workers.ray import _started

pytestmark = pytest.mark.slow


class Late:
    """A Ray that gives up so often."""

    def __init__(self, times):
        self.times, self.said, self.ended = times, [], 0

    def init(self, address, **settings):
        self.said.append((address, settings["num_cpus"]))
        if len(self.said) <= self.times:
            raise RuntimeError("timed out during startup")
        return SimpleNamespace(address_info={"gcs_address": "127.0.0.1:1"})

    def shutdown(self):
        self.ended = len(self.said)


@pytest.mark.parametrize("times", [0, 2])
def test_it_is_started_again(times):
    ray = Late(times)
    assert _started(ray, num_cpus=2) == "127.0.0.1:1"
    assert ray.said == [("local", 2)] * (times + 1)
    assert ray.ended == times


def test_after_three_times_it_is_an_error():
    with pytest.raises(RuntimeError, match="timed out"):
        _started(Late(3), num_cpus=2)
