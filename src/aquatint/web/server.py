"""A server for one person on one machine: loopback, a random port, and a key in the address."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread
from time import sleep

import uvicorn
from starlette.types import ASGIApp

from aquatint.errors import AquatintError
from aquatint.web.security import Gate

HOST = "127.0.0.1"


class ServerError(AquatintError):
    """The server cannot start; the text says why."""


@dataclass(frozen=True)
class Listening:
    """A server that is ready to run, and the address to open."""

    server: uvicorn.Server
    socket: socket.socket
    address: str

    def run(self) -> None:
        """Answer until Ctrl-C."""
        self.server.run(sockets=[self.socket])


def listen(app: ASGIApp, *, port: int = 0) -> Listening:
    """Bind to loopback, at a port that is free, and put the gate before the pages."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.bind((HOST, port))
    except (OSError, OverflowError) as error:
        bound.close()
        why = getattr(error, "strerror", None) or error
        msg = f"cannot listen on port {port}: {why}; leave --port out for a free one"
        raise ServerError(msg) from None
    port, token = bound.getsockname()[1], secrets.token_urlsafe(32)
    config = uvicorn.Config(
        Gate(app, port=port, token=token),
        http="h11",
        ws="none",
        loop="asyncio",
        log_level="error",
        access_log=False,  # addresses hold the token and, in forms, questions
        server_header=False,
        proxy_headers=False,
        limit_concurrency=100,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=2**16,
    )
    return Listening(uvicorn.Server(config), bound, f"http://{HOST}:{port}/?token={token}")


def run(app: ASGIApp, *, port: int, browser: bool, say: Callable[[str], None]) -> None:
    """Serve pages until Ctrl-C."""
    listening = listen(app, port=port)
    say(f"open this address once, in a browser on this machine:\n  {listening.address}")
    say("Ctrl-C ends the server.")
    if browser:
        Thread(target=webbrowser.open, args=(listening.address,), daemon=True).start()
    with suppress(KeyboardInterrupt):  # the way to end it, as was said
        listening.run()


@contextmanager
def in_background(app: ASGIApp) -> Iterator[str]:
    """Serve pages from a thread, and give the address: for tests and notebooks."""
    listening = listen(app)
    thread = Thread(target=listening.run, daemon=True)
    thread.start()
    while not listening.server.started and thread.is_alive():
        sleep(0.01)
    try:
        yield listening.address
    finally:
        listening.server.should_exit = True
        thread.join(10)
        listening.socket.close()
