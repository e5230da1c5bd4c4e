"""The commands that open pages, as processes: they say where, answer there, and end on Ctrl-C."""

import re
import signal
import time

import httpx2
import pytest
from web_pages import people, released


def test_the_server_says_where_answers_there_and_ends(folder):
    released(folder.path / "people.aqt", people(0, count=300))
    process = folder.start(["serve", "people.aqt", "--no-browser"])
    try:
        said = [process.stdout.readline() for _ in range(3)]
        address = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", "".join(said))[0]
        base = address.partition("?")[0]
        deadline = time.monotonic() + 60
        while True:
            try:
                assert httpx2.get(base).status_code == 403
                break
            except httpx2.ConnectError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        with httpx2.Client(base_url=base) as client:
            assert client.get(address).status_code == 200
            page = client.get("/0/")
            assert "differentially private" in page.text
            assert address.partition("=")[2] not in page.text
    finally:
        process.send_signal(signal.SIGINT)  # in the midst of the fit
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert (out, err) == ("", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve", "people.csv", "--no-browser"], "is not a valid release"),
        (["serve", "nothing.aqt", "--no-browser"], "nothing.aqt"),
        (["studio", "--folder", "nowhere", "--no-browser"], "nowhere is not a folder"),
        (["studio", "--port", "1", "--no-browser"], "cannot listen on port 1"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_sentence(run, arguments, said, monkeypatch):
    from aquatint.web import server

    monkeypatch.setattr(server.Listening, "run", lambda _: None)
    if "--port" in arguments:
        monkeypatch.setattr(server, "HOST", "192.0.2.1")  # an address that no machine has
    found = run(arguments)
    assert found.code == 1
    assert said in found.err
    assert found.err.count("\n") == 1
