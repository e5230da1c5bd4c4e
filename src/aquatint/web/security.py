"""The gate before every page: who may ask, from where, and how much.

A page on loopback can be reached by every program of the machine and, through the browser, by every
site that its user visits. So each request has to name this server as its host (a foreign name that
resolves to loopback is refused), to carry the cookie that the one-time token in the opened address
was exchanged for, and, if it changes anything, to come from our own page and to hold its secret.
Whatever is refused is refused before a body is read.
"""

from __future__ import annotations

import asyncio
import html
import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST = 2**20
"""The most bytes that a form may hold: a question, or the schema of a very wide table."""
MOST_FIELDS = 50_000
PATIENCE = 10.0
"""Seconds to wait for the next part of a form."""
FORM = "application/x-www-form-urlencoded"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",  # without any, browsers send no origin with a form
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_DOCUMENT = """<!doctype html><html lang="en"><head><meta charset="utf-8">{head}
<title>Aquatint</title></head><body><main><h1>Aquatint</h1>{body}</main></body></html>"""


class Refused(Exception):  # noqa: N818  # an answer to the browser, not an error of ours
    """A request that is not answered: its status, and one sentence with the way out."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


class Gate:
    """The one way in: an ASGI application around another one.

    Parameters
    ----------
    app
        The pages. Forms reach them parsed, as ``scope["form"]``; the secret that their own forms
        have to hold is ``scope["secret"]``.
    port
        Where the server listens.
    token
        What the address that is opened first has to hold. It opens one session and is then void.
    """

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        self._app, self._token = app, token
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._cookie = f"aquatint-{port}"
        self._session: str | None = None
        self._secret = secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        guarded = _guarded(send)
        try:
            if answer := self._looked_at(scope):
                await answer(scope, receive, guarded)
                return
            if scope["method"] == "POST":
                scope["form"] = await self._form(scope, receive)
        except Refused as refused:
            await refusal(scope, refused)(scope, receive, guarded)
            return
        scope["secret"] = self._secret
        await self._app(scope, receive, guarded)

    def _looked_at(self, scope: Scope) -> Response | None:
        """Check what can be checked without reading; give an answer if that settles it."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host not in self._hosts:
            raise Refused(421, "This server answers to its own address only.")
        if scope["method"] not in {"GET", "HEAD", "POST"}:
            raise Refused(405, "This server knows GET and POST only.")
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if given and scope["path"] == "/" and scope["method"] == "GET":
            return self._exchange(given[0], headers)
        if not self._knows(headers):
            why = "Open the address that the terminal shows: it holds the key, and works once."
            raise Refused(403, why)
        if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            raise Refused(403, "Another site asked for this. Nothing was done.")
        if scope["method"] == "POST":
            _check_post(headers, f"http://{host}")
        return None

    def _exchange(self, token: str, headers: Headers) -> Response:
        """Give a session for the token, once."""
        if self._knows(headers):
            return _onward()
        if self._session is not None or not _same(token, self._token):
            why = (
                "This address was used already, or is wrong: start the server again for a new one."
            )
            raise Refused(403, why)
        self._session = secrets.token_urlsafe(32)
        answer = _onward()
        answer.set_cookie(self._cookie, self._session, httponly=True, samesite="strict", path="/")
        return answer

    def _knows(self, headers: Headers) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return False
        return bool(self._session and found and _same(found.value, self._session))

    async def _form(self, scope: Scope, receive: Receive) -> dict[str, list[str]]:
        """Read a form, and check that our own page made it."""
        body = await _body(receive)
        try:
            pairs = parse_qsl(
                body.decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS
            )
        except (UnicodeDecodeError, ValueError):
            raise Refused(400, "This form cannot be read: go back and send it again.") from None
        form: dict[str, list[str]] = {}
        for name, value in pairs:
            form.setdefault(name, []).append(value)
        secret = form.pop("secret", [""])[-1] or Headers(scope=scope).get("x-secret", "")
        if not _same(secret, self._secret):
            raise Refused(403, "This form is not from this page: reload it, and send it again.")
        return form


def _check_post(headers: Headers, origin: str) -> None:
    if headers.get("origin") != origin:
        raise Refused(403, "Another site sent this form. Nothing was done.")
    if headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise Refused(415, "Files and other contents are not taken: only plain forms are.")
    length = headers.get("content-length")
    if length is not None and (not length.isdecimal() or int(length) > LARGEST):
        raise Refused(413, f"That is too much text: {LARGEST // 2**20} MB is the most.")


async def _body(receive: Receive) -> bytes:
    """Read a body, which may be longer than it said or never end."""
    parts, size, more = [], 0, True
    while more:
        try:
            message = await asyncio.wait_for(receive(), PATIENCE)
        except TimeoutError:
            raise Refused(408, "The form took too long to arrive: send it again.") from None
        if message["type"] == "http.disconnect":
            raise Refused(400, "The form was cut off: send it again.")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LARGEST:
            raise Refused(413, f"That is too much text: {LARGEST // 2**20} MB is the most.")
        more = message.get("more_body", False)
    return b"".join(parts)


def refusal(scope: Scope, refused: Refused) -> Response:
    """Say no in one sentence: as a part of a page where a script asked, else as a page."""
    said = f'<p class="problem" role="alert">{html.escape(refused.why)}</p>'
    partial = Headers(scope=scope).get("hx-request") == "true"
    body = said if partial else _DOCUMENT.format(head="", body=said)
    # The rest of a body that was not read is not waited for.
    return HTMLResponse(body, refused.status, {"connection": "close"})


def _onward() -> Response:
    """Go on from our own page: a cookie for this site alone is not sent after a foreign link."""
    head = '<meta http-equiv="refresh" content="0;url=/">'
    return HTMLResponse(_DOCUMENT.format(head=head, body='<p><a href="/">Open the page</a></p>'))


def _same(given: str, known: str) -> bool:
    return secrets.compare_digest(given.encode(), known.encode())


def _guarded(send: Send) -> Send:
    """Add the headers that keep a page to itself to every answer."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
        await send(message)

    return guarded
