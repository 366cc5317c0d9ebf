"""The page's HTTP server: it answers only requests from its own page that have the token.

The token is in the fragment (after #) of the address, which browsers do not send; the page's script sends it
in a header, which no other page can. Host and Origin are also checked, against DNS rebinding. The static
files of the page come from the package and contain no data.
"""

import secrets
import signal
import socket
import sys
from collections.abc import Collection
from contextlib import suppress
from importlib.resources import files
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request as HTTPRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.label.session import Conflict, Request, Session

__all__ = ["TOKEN", "listen", "make_app", "serve"]

TOKEN = "x-hocrf-token"
"""Header with the token."""
MAX_BYTES = 1 << 20
"""Largest size of a request in bytes."""
METHODS = {"open", "show", "read", "decide", "skip", "undo", "search", "progress", "export"}
"""Methods of `Session` that the page may call."""
PAGE = {
    "": ("cli.label", "page.html", "text/html"),
    "shared.css": ("answers", "page.css", "text/css"),
    "page.css": ("cli.label", "page.css", "text/css"),
    "shared.js": ("answers", "shared.js", "text/javascript"),
    "page.js": ("cli.label", "page.js", "text/javascript"),
}
"""Files of the page by address: package folder, file and media type."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


def make_app(session: Session, token: str, names: Collection[str] = ()) -> ASGIApp:
    """Make the server's application.

    token (str): token that requests for data must have.
    names (Collection[str]): further host names under which browsers may reach it, for example of a proxy.
    """

    async def answer(request: HTTPRequest) -> Response:
        method = request.path_params["method"]
        if method not in METHODS:
            return _refused(404, f"there is no {method!r}")
        sent = request.headers.get(TOKEN, "").encode()
        if not secrets.compare_digest(sent, token.encode()):
            return _refused(
                403, "it does not have the token in the address that hocrf label prints"
            )
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MAX_BYTES:
                return _refused(413, f"it has more than {MAX_BYTES:,} bytes")
        try:
            decoded = msgspec.json.decode(body, type=Request)
        except (ValueError, RecursionError) as error:
            return _refused(400, str(error))
        try:
            return JSONResponse(await run_in_threadpool(getattr(session, method), decoded))
        except ValueError as error:
            if not str(error).startswith("["):
                raise
            return JSONResponse({"error": str(error)}, 409 if isinstance(error, Conflict) else 400)

    async def page(request: HTTPRequest) -> Response:
        if request.path_params["name"] not in PAGE:
            return _refused(404, "there is no such file")
        folder, name, kind = PAGE[request.path_params["name"]]
        place = files(f"spacy_hocrf.{folder}").joinpath(name)
        return Response(place.read_text(encoding="utf8"), media_type=kind)

    routes = [
        Route("/api/{method}", answer, methods=["POST"]),
        Route("/{name:path}", page, methods=["GET"]),
    ]
    return _Guard(Starlette(routes=routes), names)


def listen(address: str, port: int) -> socket.socket:
    """Open a listening socket. port (int): 0 for any free one.

    RAISES (ValueError): H548 if this fails.
    """
    try:
        family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((address, port), family=family)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else answers wait 40 ms
        return listening
    except OSError as error:
        text = CommandErrors.H548.format(address=address, port=port, reason=error)
        raise ValueError(text) from error


def serve(app: ASGIApp, listening: socket.socket) -> None:
    """Answer requests until the process gets SIGINT or SIGTERM, or SIGHUP from a terminal that is closed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:

        def end(*_: Any) -> None:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the shell sends another one
            signal.raise_signal(signal.SIGTERM)

        signal.signal(signal.SIGHUP, end)
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    with suppress(KeyboardInterrupt):  # uvicorn raises it again when it has shut down
        uvicorn.Server(config).run(sockets=[listening])


class _Guard:
    """Middleware that refuses requests for other hosts or from other pages, and adds headers to answers.

    names (Collection[str]): further host names that are allowed.
    """

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app, self._names = app, {name.lower() for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *RAW_HEADERS]
            await send(message)

        app = self._app
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            host, origin = headers.get("host", ""), headers.get("origin")
            if not self._is_ours(_name(f"//{host}")):
                app = _refused(403, f"its host is {host!r}: see --name")
            elif origin is not None and not self._comes_from(origin, host):
                app = _refused(403, f"it comes from {origin!r}: see --name")
        await app(scope, receive, sending)

    def _is_ours(self, name: str) -> bool:
        try:
            return ip_address(name).is_loopback or name in self._names
        except ValueError:
            return name == "localhost" or name in self._names

    def _comes_from(self, origin: str, host: str) -> bool:
        """Is the origin this host, or one of the further names?"""
        return origin.partition("://")[2] == host or _name(origin) in self._names


def _name(address: str) -> str:
    """Return the host name of an address, "" if it is invalid."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _refused(status: int, reason: str) -> Response:
    return JSONResponse({"error": CommandErrors.H545.format(reason=reason)}, status)
