"""A real PostgreSQL server for the tests, on a port of its own, with a password."""

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

USER, PASSWORD = "curator", "s3cret-Passw0rd"


def programs():
    """Find the server's programs; `make` has installed them where that is possible."""
    if not (found := _programs()):
        pytest.skip("PostgreSQL is not here: apt-get install postgresql")
    return found


def _programs():
    inside = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    beside = shutil.which("initdb")
    return inside[-1] if inside else Path(beside).resolve().parent if beside else None


def _run(*words):
    """Run as another user where this one is root, whom PostgreSQL refuses."""
    before = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*before, *map(str, words)], capture_output=True, text=True, cwd="/", check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout


@contextmanager
def running_postgres():
    """Give the address of a fresh server."""
    where = programs()
    folder = Path(tempfile.mkdtemp(prefix="aquatint-pg-"))
    try:
        (folder / "password").write_text(PASSWORD)
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
            shutil.chown(folder / "password", "postgres")
        data = folder / "data"
        _run(where / "initdb", "-D", data, "-U", USER, "-A", "scram-sha-256", "-N",
             "--pwfile", folder / "password", "--encoding", "UTF8")  # fmt: skip
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = f"-p {port} -k {folder} -c fsync=off -c listen_addresses=127.0.0.1"
        _run(where / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
        try:
            yield f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{port}/postgres"
        finally:
            _run(where / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
