"""Buffers are lent to one call at a time, and used again by the next."""

import copy
import pickle
import threading

import pytest

from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.engine.pool import MAX_OTHERS, BufferPool


@pytest.fixture
def automaton():
    return compile_automaton([(0,), (1,)], [1, 1])


def test_one_call_after_the_other_gets_the_same_buffers(automaton):
    pool = BufferPool()
    with pool.lend(automaton) as first:
        pass
    with pool.lend(automaton) as second:
        assert second is first


def test_calls_at_the_same_time_do_not_share(automaton):
    pool, lent, together = BufferPool(), [], threading.Barrier(4)

    def call():
        with pool.lend(automaton) as buffers:
            lent.append(buffers)
            together.wait(timeout=10)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(buffers) for buffers in lent}) == 4


def test_buffers_come_back_after_an_error(automaton):
    pool = BufferPool()
    with pytest.raises(ZeroDivisionError), pool.lend(automaton) as first:
        raise ZeroDivisionError
    with pool.lend(automaton) as second:
        assert second is first


def test_another_automaton_gets_its_own(automaton):
    pool = BufferPool()
    with pool.lend(automaton) as first:
        pass
    other = compile_automaton([(0,)], [1])
    with pool.lend(other) as second:
        assert second is not first and second.automaton is other


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda pool: pickle.loads(pickle.dumps(pool))]
)
def test_a_copy_has_buffers_of_its_own(duplicate, automaton):
    pool = BufferPool()
    with pool.lend(automaton) as first:
        pass
    with duplicate(pool).lend(automaton) as second:
        assert second is not first


def test_two_automata_in_turns_keep_their_buffers(automaton):
    pool, other = BufferPool(), compile_automaton([(0,)], [1])
    lent = []
    for each in (automaton, other) * 2:
        with pool.lend(each) as buffers:
            lent.append(buffers)
    assert lent[2] is lent[0] and lent[3] is lent[1]


def test_buffers_that_are_no_longer_asked_for_are_dropped(automaton):
    pool = BufferPool()
    with pool.lend(automaton) as first:
        pass
    for _ in range(MAX_OTHERS + 1):
        with pool.lend(compile_automaton([(0,)], [1])):
            pass
    with pool.lend(automaton) as second:
        assert second is not first
