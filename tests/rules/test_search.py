"""The best segmentation where breaking a rule has a price, against enumeration."""

import joint_oracle
import numpy as np
import oracle
import pytest
from rules_of_models import TEMPLATES, compiled, kind_of
from small_corpus import documents, learner_of, trained, words

from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.pool import BufferPool
from spacy_hocrf.rules.search import RuledSearch

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("states, readings", [(128, 0), (4, 0), (1, 0), (4, 3000), (1, 3000)])
def test_the_bound_is_reached_by_a_large_product_or_by_many_readings(monkeypatch, states, readings):
    monkeypatch.setattr("spacy_hocrf.rules.compiled.MAX_JOINT_STATES", states)
    monkeypatch.setattr("spacy_hocrf.rules.search.MAX_READINGS", readings)
    pipe = trained(rows=documents(5)).get_pipe("hocrf")
    pipe.model.set_param("W", 0.2 * pipe.model.get_param("W"))
    structure, automaton = pipe.structure, pipe.automaton
    nlp = trained(rows=documents(2))
    rng = np.random.default_rng(0)
    reached = 0
    for _ in range(20):
        doc = words(nlp, *(str(word) for word in rng.choice(["Ada", "in", "Paris", "York"], 5)))
        own = [
            type(t)(**{**vars(t), "price": float(rng.choice([0.3, 1.0, 2.0]))}) for t in TEMPLATES
        ]
        rules = compiled(pipe, rules={str(i): each for i, each in enumerate(own)})
        known = [
            (kind_of(t, r.name), t.price) for t in own for r in t.rules(structure.scheme.labels)
        ]
        optimum, score = joint_oracle.best(pipe, [doc], [], known)
        potentials = structure.compile(structure.observe([doc]), structure.allowed([doc]))
        potentials = potentials.potentials(learner_of(pipe).snapshot().placed)
        search = RuledSearch(rules, np.zeros((1, len(rules.rules)), dtype=bool), BufferPool())
        for _ in range(2):  # the second search knows what the first one needed
            best = search.best(potentials, automaton, Buffers(automaton))
            [segments] = oracle.listed(best.segments)
            assert best.scores[0] == pytest.approx(score([segments]))
            assert best.bounds[0] >= optimum - 1e-9
            assert best.scores[0] <= optimum + 1e-9
        reached += best.bounds[0] <= best.scores[0] + 1e-9
    assert (reached == 20) == (states == 128 or readings > 0)
