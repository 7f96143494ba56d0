"""The page of a run under way: who may see it, what it says, and that it ends with the run."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from analysis.report.live import loopback_server
from analysis.report.live.loopback_server import LoopbackServer
from analysis.report.live.run_progress import RunProgress, live_server
from analysis.results.reduction import reduction_of
from testbed.plan.plan import Task, tasks
from testbed.store.reading import open_trial
from tests import report_writer
from tests.browser import Tab, browser
from tests.lab import PATIENCE_S, wait_until


class Clock:
    """Stands still until it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Run:
    """A run of four trials, told event by event."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock = folder, Clock()
        self.progress = RunProgress("someones-own", "throughput_mbps", self.clock)
        points = [(values, seed) for values, seed in report_writer.points("someones-own", 2)]
        made = [report_writer.scenario("someones-own", *each) for each in points]
        self.tasks: list[Task] = tasks(made[:4])
        self.progress.begin(len(self.tasks))

    def begin(self, number: int, where: str = "") -> None:
        self.progress.began(self.tasks[number].scenario, where)

    def end(self, number: int) -> None:
        task = self.tasks[number]
        path = report_writer.write(self.folder, task.scenario)
        self.progress.finished(open_trial(path), fresh=True)
        self.progress.reduced(task.scenario, reduction_of(open_trial(path)).flows)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


@pytest.fixture
def server(run: Run) -> Iterator[LoopbackServer]:
    with live_server(run.progress, "someones-own") as opened:
        yield opened


def asked(
    url: str, path: str = "", method: str = "GET", host: str = ""
) -> tuple[int, bytes, dict[str, str]]:
    """The status, the content and the headers of an answer."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.netloc, timeout=PATIENCE_S)
    connection.request(method, path or where.path, headers={"Host": host or where.netloc})
    answer = connection.getresponse()
    found = answer.status, answer.read(), dict(answer.getheaders())
    connection.close()
    return found


def test_it_is_told_what_happens(run: Run) -> None:
    run.begin(0)
    run.begin(1, where="worker-7")
    run.clock.now = 10.0
    run.end(0)
    for _ in range(2):
        run.progress.note("tcp://elsewhere:1 takes no trials: another kernel")
    told = run.progress.as_json()
    assert (told["total"], told["done"], told["counts"]) == (4, 1, {"ok": 1})
    assert (told["elapsed_s"], told["left_s"]) == (10.0, 30.0)
    name = run.tasks[1].scenario.name
    assert told["running"] == [{"name": name, "where": "worker-7", "for_s": 10.0}]
    assert told["notes"] == ["tcp://elsewhere:1 takes no trials: another kernel"]
    assert [each["name"] for each in told["ended"]] == [run.tasks[0].scenario.name]


def test_time_left_counts_only_trials_that_ran_now(run: Run) -> None:
    path = report_writer.write(run.folder, run.tasks[0].scenario)
    run.progress.finished(open_trial(path), fresh=False)
    assert run.progress.as_json()["left_s"] is None
    run.clock.now = 6.0
    run.end(1)
    assert run.progress.as_json()["left_s"] == 12.0


def test_the_figure_has_each_settings_mean(run: Run) -> None:
    run.end(0)
    figure = run.progress.as_json()["figure"]
    trials, means = figure["marks"]
    assert figure["panels"][0]["y"]["ticks"] == [[0, "cubic 1 tcp"]]
    assert trials["x"] == means["x"] and means["told"]["n"] == 1
    assert "figure" not in run.progress.as_json(have=run.progress.as_json()["figure_number"])
    json.dumps(run.progress.as_json(), allow_nan=False)


def test_only_who_has_the_token_sees_it(server: LoopbackServer) -> None:
    status, page, headers = asked(server.url)
    assert status == 200 and b"someones-own" in page
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    path = urlsplit(server.url).path
    for wrong in ("/", "/now", "/x/", path.upper() + "now", path[:-2] + "/", "/%00/", "//"):
        status, said, _ = asked(server.url, wrong)
        assert status == 403 and said == b"403\n", wrong
    assert asked(server.url, path + "other")[0] == 404


def test_another_name_for_this_machine_is_refused(server: LoopbackServer) -> None:
    port = urlsplit(server.url).port
    assert urlsplit(server.url).hostname == "127.0.0.1"
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1"):
        assert asked(server.url, host=host)[0] == 403, host
    assert asked(server.url, host=f"localhost:{port}")[0] == 200


def test_no_answer_gives_the_token_away(server: LoopbackServer) -> None:
    """No referer for a page that is linked, no copy in a cache, nothing for other origins."""
    path = urlsplit(server.url).path
    for place in (path, path + "now", path + "other", "/"):
        _, said, headers = asked(server.url, place)
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in headers
        assert path.strip("/").encode() not in said


def connect(server: LoopbackServer) -> socket.socket:
    where = urlsplit(server.url)
    return socket.create_connection((where.hostname, where.port or 0), timeout=PATIENCE_S)


def answering() -> int:
    """How many threads answer requests."""
    return sum("process_request_thread" in thread.name for thread in threading.enumerate())


@pytest.mark.parametrize("reads", [True, False])
def test_a_slow_reader_is_hung_up_on(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch, reads: bool
) -> None:
    """One who sends a byte now and then, and one who asks for much and never reads."""
    monkeypatch.setattr(loopback_server, "REQUEST_TIMEOUT_S", 0.5)
    if not reads:
        server._server.page = b"x" * 50_000_000  # more than the kernel's buffers take
    with connect(server) as slow:
        if reads:
            with pytest.raises(OSError):
                while True:
                    slow.send(b"G")
                    time.sleep(0.05)
        else:
            path, host = urlsplit(server.url).path, urlsplit(server.url).netloc
            slow.send(f"GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        wait_until(lambda: answering() == 0)
    assert asked(server.url, "/")[0] == 403


def test_a_hundred_connections_keep_nobody_out(server: LoopbackServer) -> None:
    """Descriptors and threads stay few, and who has the token still sees the page."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    connections = [connect(server) for _ in range(100)]
    try:
        wait_until(lambda: answering() <= loopback_server.MAX_CONNECTIONS)
        opened = len(list(Path("/proc/self/fd").iterdir())) - before - len(connections)
        assert opened <= loopback_server.MAX_CONNECTIONS
        assert asked(server.url)[0] == 200
    finally:
        for connection in connections:
            connection.close()
    wait_until(lambda: answering() == 0)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_it_is_only_to_be_read(server: LoopbackServer, method: str) -> None:
    assert asked(server.url, method=method)[0] == 405


def test_it_is_gone_afterwards(run: Run) -> None:
    with live_server(run.progress, "someones-own") as opened:
        url = opened.url
    with pytest.raises(ConnectionRefusedError):
        asked(url)


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with browser() as opened:
        yield opened


def until(tab: Tab, condition: str) -> Any:
    """What a condition gives as soon as it is true of the page."""
    return tab.run(
        "new Promise(done => { const look = () => { const found = "
        f"{condition}; found ? done(found) : requestAnimationFrame(look); }}; look(); }})"
    )


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1280])
def test_it_fills_in_the_browser(tab: Tab, tmp_path: Path, width: int, dark: bool) -> None:
    run = Run(tmp_path)
    with live_server(run.progress, "someones-own") as server:
        tab.visit(server.url, width, dark=dark)
        assert until(tab, "document.title.startsWith('0/4')")
        run.begin(0, where="worker-7")
        shown = until(tab, "document.querySelector('#running tr')?.innerText")
        assert run.tasks[0].scenario.name in shown and "worker-7" in shown
        run.end(0)
        run.end(1)
        assert until(tab, "document.title.startsWith('2/4')")
        assert until(tab, "document.querySelector('.plotted').plot?.spec.marks[1].x.length") == 2
        assert tab.run("document.querySelector('progress').value") == 2
        assert tab.run("document.documentElement.scrollWidth") == width
        run.progress.end("complete", tmp_path / "report.html")
        server.deliver()
    assert until(tab, "!document.querySelector('#finished').hidden")
    said = "document.querySelector('#file').textContent"
    assert tab.run(said) == str((tmp_path / "report.html").resolve())
    assert tab.run("document.querySelector('#said').textContent") == "The run is complete."
    assert tab.complaints == []
