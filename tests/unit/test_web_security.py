"""The gate: what is refused is refused before anything is read, and the server stays alive."""

import asyncio
import socket
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from web_pages import ORIGIN, PORT, TOKEN, Guest

from aquatint.web import security
from aquatint.web.security import LARGEST, Gate
from aquatint.web.server import HOST, ServerError, in_background, listen

FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture
def done():
    """What the pages behind the gate were asked to do."""
    return []


@pytest.fixture
def app(done):
    async def page(request):
        return PlainTextResponse(request.scope["secret"])

    async def act(request):
        done.append(request.scope["form"])
        return PlainTextResponse("done")

    return Starlette(routes=[Route("/", page), Route("/act", act, methods=["POST"])])


@pytest.fixture
def guest(app):
    guest = Guest(app)
    guest.secret = guest.get("/").text
    return guest


def test_the_token_opens_one_session_and_is_then_void(app):
    gate = Gate(app, port=PORT, token=TOKEN)
    first, second = (Guest(app, enter=False, gate=gate) for _ in range(2))
    given = first.get(f"/?token={TOKEN}")
    assert given.status_code == 200
    cookie = given.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in given.text
    assert first.get("/").status_code == 200
    assert second.get(f"/?token={TOKEN}").status_code == 403
    assert second.get("/").status_code == 403
    assert first.get(f"/?token={TOKEN}").status_code == 200, "a reload is no second session"


@pytest.mark.parametrize("token", ["", "wrong", "the-ke", "the-key2", "ключ", "%00"])
def test_a_missing_or_wrong_token_opens_nothing(app, token):
    guest = Guest(app, enter=False)
    said = guest.get(f"/?token={token}" if token else "/")
    assert said.status_code == 403
    assert "set-cookie" not in said.headers
    assert guest.get("/").status_code == 403


@pytest.mark.parametrize("cookie", ["", "x", "aquatint-8765=", "aquatint-8765=x", "a=b; =;;", "é"])
def test_a_wrong_cookie_opens_nothing(guest, cookie):
    guest.client.cookies.clear()
    assert guest.get("/", headers={"cookie": cookie.encode()}).status_code == 403


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"[::1]:{PORT}"),
        *(f"127.0.0.1.evil.example:{PORT}", f"0.0.0.0:{PORT}", ""),
    ],
)
def test_a_foreign_host_is_refused_even_with_the_cookie_and_the_token(guest, host):
    assert guest.get("/", headers={"host": host}).status_code == 421
    assert guest.get(f"/?token={TOKEN}", headers={"host": host}).status_code == 421


@pytest.mark.parametrize(
    "changed",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
        {"origin": f"https://127.0.0.1:{PORT}"},
        {"origin": ""},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_form_of_another_site_does_nothing(guest, done, changed):
    assert guest.post("/act", headers=changed, a="1").status_code == 403
    assert done == []
    assert guest.post("/act", a="1").status_code == 200
    assert done == [{"a": ["1"]}]


def test_a_form_without_an_origin_does_nothing(guest, done):
    said = guest.client.post("/act", data={"secret": guest.secret}, headers={})
    assert said.status_code == 403
    assert done == []


@pytest.mark.parametrize("secret", ["", "wrong", "é"])
def test_a_form_without_the_secret_does_nothing(guest, done, secret):
    guest.secret = secret
    assert guest.post("/act").status_code == 403
    assert done == []


def test_another_site_may_not_even_look(guest):
    assert guest.get("/", headers={"sec-fetch-site": "cross-site"}).status_code == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(guest, method):
    assert guest.client.request(method, "/").status_code == 405


@pytest.mark.parametrize(
    "kind", ["multipart/form-data; boundary=x", "text/plain", "application/json"]
)
def test_nothing_can_be_uploaded(guest, done, kind):
    headers = {"origin": ORIGIN, "content-type": kind}
    assert guest.client.post("/act", content=b"x", headers=headers).status_code == 415
    assert done == []


def ask_directly(gate, headers, messages):
    """Speak ASGI to the gate; give what it sends, and how much of the body it read."""
    sent, read = [], []

    async def receive():
        read.append(1)
        message = next(messages, None)
        if message is None:
            await asyncio.sleep(3600)
        return message

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/act",
        "query_string": b"",
        "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
    }
    asyncio.run(gate(scope, receive, send))
    return sent[0]["status"], len(read)


def good_headers(guest, **more):
    cookie = "; ".join(f"{c.name}={c.value}" for c in guest.client.cookies.jar)
    return {"host": f"127.0.0.1:{PORT}", "origin": ORIGIN, "cookie": cookie, **FORM, **more}


def test_a_large_body_is_refused_before_a_byte_of_it_is_read(guest, done):
    headers = good_headers(guest, **{"content-length": str(100 * 2**20)})
    assert ask_directly(guest.gate, headers, iter([])) == (413, 0)
    assert done == []


def test_a_body_that_is_longer_than_it_said_is_refused_in_time(guest, done):
    part = {"type": "http.request", "body": b"x" * 2**16, "more_body": True}
    endless = iter(lambda: part, None)
    status, reads = ask_directly(guest.gate, good_headers(guest), endless)
    assert status == 413
    assert reads == LARGEST // 2**16 + 1
    assert done == []


def test_a_body_that_never_comes_is_not_waited_for(guest, done, monkeypatch):
    monkeypatch.setattr(security, "PATIENCE", 0.05)
    assert ask_directly(guest.gate, good_headers(guest), iter([]))[0] == 408
    gone = iter([{"type": "http.disconnect"}])
    assert ask_directly(guest.gate, good_headers(guest), gone)[0] == 400
    assert done == []


@pytest.mark.parametrize("length", ["-1", "x", "1e9", "", "٣"])
def test_a_length_that_is_no_number_is_refused(guest, done, length):
    headers = good_headers(guest) | {"content-length": length}
    assert ask_directly(guest.gate, headers, iter([]))[0] in {400, 413}
    assert done == []


def test_forms_that_cannot_be_read_are_refused(guest, done, monkeypatch):
    monkeypatch.setattr(security, "MOST_FIELDS", 10)
    for body in (b"\xff\xfe", b"&".join(b"a=1" for _ in range(20))):
        said = guest.client.post("/act", content=body, headers={"origin": ORIGIN, **FORM})
        assert said.status_code in {400, 403}
    assert done == []


def test_every_answer_keeps_the_page_to_itself(guest):
    for said in (guest.get("/"), guest.get("/nowhere"), guest.get("/", headers={"host": "x"})):
        policy = said.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert said.headers["cache-control"] == "no-store"
        assert said.headers["x-content-type-options"] == "nosniff"
        assert said.headers["referrer-policy"] == "same-origin"


def test_websockets_are_not_answered(guest):
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(guest.gate({"type": "websocket", "path": "/"}, None, send))
    assert sent == []


def test_the_server_listens_on_loopback_only_and_on_a_port_nobody_chose(app):
    one, other = listen(app), listen(app)
    try:
        ports = {urlsplit(listening.address).port for listening in (one, other)}
        assert len(ports) == 2
        assert one.socket.getsockname()[0] == HOST == "127.0.0.1"
        tokens = {listening.address.partition("token=")[2] for listening in (one, other)}
        assert len(tokens) == 2
        assert min(map(len, tokens)) >= 43, "256 bits"
        with pytest.raises(ServerError, match="leave --port out"):
            listen(app, port=ports.pop())
    finally:
        one.socket.close()
        other.socket.close()


def test_a_hundred_megabytes_are_refused_by_a_real_server_that_lives_on(app, done):
    with in_background(app) as address:
        port = urlsplit(address).port
        for head in (
            f"POST /act HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 104857600\r\n\r\n",
            "GET / HTTP/1.1\r\n" + "X-Long: " + "a" * 200_000 + "\r\n\r\n",
            "\x00\x01nonsense\r\n\r\n",
        ):
            with socket.create_connection((HOST, port), timeout=10) as raw:
                try:
                    raw.sendall(head.encode() + b"x" * 2**20)
                    assert b" 4" in raw.recv(100)[:16]
                except ConnectionError:
                    pass  # it hung up: as good an answer
        with socket.create_connection((HOST, port), timeout=10) as raw:
            raw.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            assert b"403" in raw.recv(100)
    assert done == []
