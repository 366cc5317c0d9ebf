"""Who is answered by the server of the page, and with what: every attack here is refused, or harmless."""

import json
import socket

import pytest
from word_loop import WordLoop

from spacy_hocrf.cli.label.session import Session, TextToLabel
from spacy_hocrf.cli.label.store import DecisionStore

pytest.importorskip("uvicorn")
testclient = pytest.importorskip("starlette.testclient")
server = pytest.importorskip("spacy_hocrf.cli.label.server")
MAX_BYTES, METHODS, TOKEN = server.MAX_BYTES, server.METHODS, server.TOKEN
EVIL = "</script><img src=x onerror=alert(1)>\u2028{{data}}"
WORDS = [["Ada ", "lives ", "in ", "Paris"], [EVIL, " ", "\x00\u202e", "Ada"]]
HERE = "http://127.0.0.1:8765"


@pytest.fixture
def session(tmp_path):
    texts = [TextToLabel(words) for words in WORDS]
    plain = ["".join(words) for words in WORDS]
    store = DecisionStore(tmp_path / "mine", plain, ["PER", EVIL])
    yield Session(texts, ["PER", EVIL], store, WordLoop(plain), lambda _: f"written to {EVIL}")
    store.close()


@pytest.fixture
def client(session):
    app = server.make_app(session, "secret", ["hub.example.org"])
    return testclient.TestClient(app, base_url=HERE, raise_server_exceptions=False)


def post(client, what="open", content=b"{}", **headers):
    return client.post(f"/api/{what}", content=content, headers={TOKEN: "secret"} | headers)


def test_the_page_annotates(client):
    answer = post(client).json()
    view = answer["view"]
    about = {"window": answer["window"], "text": 0, "revision": view["revision"]}
    body = json.dumps(about | {"spans": [[0, 1, 0]]})
    assert post(client, "decide", body).json()["view"]["text"] == 1
    assert post(client, "decide", body).status_code == 409  # the same once more
    assert post(client, "undo", json.dumps(about)).json()["view"]["spans"] == [[0, 1, 0]]
    assert set(METHODS) == {name for name in METHODS if post(client, name).status_code < 500}


@pytest.mark.parametrize("name", ["", "shared.css", "page.css", "shared.js", "page.js"])
def test_files_of_the_page_hold_no_data(client, name):
    answer = client.get(f"/{name}")
    assert answer.status_code == 200
    assert "Paris" not in answer.text and "secret" not in answer.text


@pytest.mark.parametrize("token", [None, "", "Secret", "sécret".encode("latin1"), "x" * 9000])
@pytest.mark.parametrize("what", sorted(METHODS))
def test_who_has_not_the_token(client, session, token, what):
    headers = {} if token is None else {TOKEN: token}
    for place in (f"/api/{what}", f"/api/{what}?token=secret"):
        answer = client.post(place, content=b'{"window": 0, "text": 0}', headers=headers)
        assert answer.status_code == 403
    assert session._window == 0


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8765", "", "[::2]", "10.0.0.1",
     "127.0.0.1@evil.example", "evil.example#127.0.0.1", "0.0.0.0:8765", "[", "hub.example.org.evil"],
)  # fmt: skip
def test_another_host(client, host):
    for answer in (post(client, host=host), client.get("/", headers={"host": host})):
        assert answer.status_code == 403 and "H545" in answer.json()["error"]


@pytest.mark.parametrize(
    "host",
    ["localhost:9000", "127.0.0.1", "[::1]:8765", "LOCALHOST:1", "hub.example.org", "127.8.9.1"],
)
def test_this_machine_by_any_port_and_a_name_that_was_given(client, host):
    assert post(client, host=host).status_code == 200
    assert post(client, host=host, origin=f"http://{host}").status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["null", "http://evil.example", "http://localhost:8765", "http://127.0.0.1:3000", "file://", "",
     "http://127.0.0.1:8765.evil.example", "http://hub.example.org.evil"],
)  # fmt: skip
def test_another_origin(client, origin):
    assert post(client, origin=origin).status_code == 403


def test_a_proxy_may_show_the_page_under_a_name_that_was_given(client):
    assert post(client, origin="https://hub.example.org").status_code == 200
    assert post(client, host="hub.example.org", origin="https://hub.example.org").status_code == 200


def test_no_other_page_is_given_leave(client):
    headers = {
        "origin": "http://evil.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": TOKEN,
    }
    for origin in ("http://evil.example", HERE):
        answer = client.options("/api/open", headers=headers | {"origin": origin})
        assert answer.status_code in (403, 405)
        assert not any(name.startswith("access-control") for name in answer.headers)


@pytest.mark.parametrize("place", ["/", "/page.js", "/api/open", "/none", "/api/__init__"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_every_answer_forbids_markup_frames_and_other_places(client, place, method):
    headers = client.request(method, place, headers={TOKEN: "secret"}).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"null", b"{", b'{"text": "0"}', b'{"text": 1e99}', b'{"spans": [[0, 1]]}', b"\xff\xfe",
     b'{"text": 0, "more": 1}', b'{"spans": [[0, 1, 0.5]]}', b"[" * 100_000, b'{"text": 99}',
     b'{"text": 1' + b"0" * 400 + b"}", b'{"text": 0, "spans": [[0, 9, 0]]}'],
)  # fmt: skip
def test_what_is_no_request(client, content):
    post(client)
    for what in ("show", "read", "decide"):
        body = content.replace(b'{"', b'{"window": 1, "') if what == "decide" else content
        answer = post(client, what, body)
        if answer.status_code != 200:  # a text's number alone may be all that `show` needs
            assert answer.status_code == 400 and "[H545]" in answer.json()["error"]
    assert post(client, "progress").json()["annotated"] == 0


def test_too_much_is_not_read(client):
    body = b'{"words": "' + b"x" * MAX_BYTES + b'"}'
    assert post(client, "search", body).status_code == 413
    parts = (b" " * 1024 for _ in range(1 << 11))  # without a length
    assert client.post("/api/search", content=parts, headers={TOKEN: "secret"}).status_code == 413
    assert post(client, "search", body[: MAX_BYTES // 2] + b'"}').json() == {"rows": []}


@pytest.mark.parametrize(
    "place", ["/../server.py", "/%2e%2e/server.py", "/page.js/../server.py", "/static", "//etc/passwd",
              "/api",               "/api/_keep", "/api/__class__", "/api/open/more", "/page%00.js"]
)  # fmt: skip
def test_there_is_nothing_else(client, place):
    headers = {TOKEN: "secret"}
    assert client.get(place, headers=headers).status_code in (404, 405)
    assert client.post(place, headers=headers, content=b"{}").status_code in (404, 405)


def test_markup_is_data(client):
    answer = post(client)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["labels"] == ["PER", EVIL]
    assert "".join(post(client, "show", b'{"text": 1}').json()["view"]["words"]) == "".join(
        WORDS[1]
    )
    rows = post(client, "search", json.dumps({"words": EVIL})).json()["rows"]
    assert [row["text"] for row in rows] == [1]
    assert post(client, "export").json()["told"] == f"written to {EVIL}"


def test_an_error_of_ours_tells_nothing_of_it(client, session, monkeypatch):
    monkeypatch.setattr(session, "_progress", lambda: 1 / 0)
    answer = post(client, "progress")
    assert answer.status_code == 500 and "division" not in answer.text


def test_a_port_in_use():
    with server.listen("127.0.0.1", 0) as taken:
        assert taken.getsockname()[0] == "127.0.0.1"
        assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        for address, port in (taken.getsockname(), ("no.such.host.invalid", 0)):
            with pytest.raises(ValueError, match=r"H548.*--port"):
                server.listen(address, port)
    if socket.has_ipv6:
        server.listen("::1", 0).close()
