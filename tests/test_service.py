"""The service in examples/ answers many at a time, and after a fork, as one process answers one."""

import json
import os
import runpy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from small_corpus import documents, trained

EXAMPLE = Path(__file__).parents[1] / "examples" / "service.py"
TEXTS = [text for text, _ in documents(40)]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """The running application, and what it should answer."""
    nlp, folder = trained(), tmp_path_factory.mktemp("service")
    nlp.to_disk(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODEL", str(folder))
        app = runpy.run_path(str(EXAMPLE))["app"]
    expected = [
        [
            (ent.start_char, ent.end_char, ent.label_, round(ent._.hocrf_score, 4))
            for ent in doc.ents
        ]
        for doc in nlp.pipe(TEXTS)
    ]
    assert sum(map(len, expected)) > len(TEXTS)
    return app, expected


def ask(client, texts):
    """What the service answers."""
    response = client.post("/spans", json={"texts": texts})
    assert response.status_code == 200
    return [[tuple(span.values()) for span in spans] for spans in response.json()]


@pytest.mark.slow
def test_it_answers_many_requests_at_a_time(service):
    app, expected = service
    client = TestClient(app)
    numbers = [i * 7 % len(TEXTS) for i in range(200)]
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda i: ask(client, [TEXTS[i], TEXTS[0]]), numbers))
    assert answers == [[expected[i], expected[0]] for i in numbers]
    assert ask(client, []) == [] and ask(client, [""]) == [[]]
    assert client.post("/spans", json={"text": "Ada"}).status_code == 422


@pytest.mark.slow
def test_no_request_is_an_error_of_the_service(service):
    app, expected = service
    client = TestClient(app)
    half = "\\ud83d"  # of an emoji, as JSON spells it

    def status(body):
        sent = client.post("/spans", content=body, headers={"content-type": "application/json"})
        return sent.status_code, sent.json()

    cut = json.dumps({"texts": [f"{TEXTS[0]} HALF"]}).replace("HALF", half)
    found = [[tuple(span.values()) for span in spans] for spans in status(cut)[1]]
    assert [span[:3] for span in found[0]] == [span[:3] for span in expected[0]]
    wrong = [f'{{"text": "{half}"}}', f'"{half}"', '{"texts": ["Ada", 1]}', "{", '{"texts": null}']
    for body in (*wrong, json.dumps({"texts": ["Ada " * 300_000]})):
        code, said = status(body)
        assert code == 422 and said["detail"][0]["msg"] and len(str(said)) < 500


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_it_answers_after_a_fork(service):
    app, expected = service
    assert ask(TestClient(app), TEXTS) == expected  # threads have been at work before
    read, write = os.pipe()
    process = os.fork()
    if not process:
        with os.fdopen(write, "w") as pipe:
            json.dump(ask(TestClient(app), TEXTS), pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        answer = json.load(pipe)
    os.waitpid(process, 0)
    assert [[tuple(span) for span in spans] for spans in answer] == expected
