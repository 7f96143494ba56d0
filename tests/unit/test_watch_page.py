"""`testbed watch`: packets where captures have them, why they were sent, and the page itself."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageSequence

from analysis.report import watch_page
from analysis.trials.packets import TrialPackets, epoch_ns
from analysis.watch import excerpt
from analysis.watch.excerpt import Span, watched_capture, watched_trial
from analysis.watch.journeys import ARRIVED, LOST_ON_WAY, UNSEEN, Integers
from analysis.watch.reasons import Sender, SocketHistory, changes, reasons
from experiments.command import main
from testbed.kernels import rewind
from testbed.store.names import FIGURES, TRIAL_PAGE, WATCH_PAGE
from testbed.store.reading import open_trial
from tests import accessible
from tests.browser import Tab, browser
from tests.pcap_writer import Frame, tcp, write_pcap
from tests.trial_writer import ISN, TCP, ns, write_trial
from tests.trial_writer import LOST as LOST_NUMBER
from tests.watched_positions import compare

READY = "watching.then(() => 1)"
CLOCK = "document.getElementById('clock').value"
SAID = "document.getElementById('say').textContent"
PACKET = "document.getElementById('packet').textContent"


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_trial(tmp_path_factory.mktemp("trial") / "reno", samples=True)
    assert main(["watch", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def page(trial: Path) -> Path:
    return trial / FIGURES / WATCH_PAGE


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with browser() as opened:
        yield opened


def opened(tab: Tab, page: Path, fragment: str = "", width: int = 1400) -> Tab:
    tab.visit("about:blank", width)
    tab.visit(page.resolve().as_uri() + fragment, width)
    tab.run(READY)
    return tab


def press(tab: Tab, key: str) -> None:
    event = f"new KeyboardEvent('keydown', {{ key: {key!r}, bubbles: true, cancelable: true }})"
    tab.run(f"void document.getElementById('watch').dispatchEvent({event})")


# ---- where packets were


def test_each_packet_is_where_its_captures_have_it(trial: Path) -> None:
    watched = watched_trial(open_trial(trial))
    columns, times = watched.journeys.columns, watched.journeys.times_ns
    data = (columns["seq"] == 1 + 1000 * LOST_NUMBER) & (columns["payload"] > 0)
    first, again = np.flatnonzero(data)
    assert (times[first] == [ns(2.03), ns(2.031), UNSEEN, UNSEEN]).all()
    assert (times[again] == [ns(2.165), ns(2.166), ns(2.205), ns(2.215)]).all()
    assert columns["fate"][[first, again]].tolist() == [LOST_ON_WAY, ARRIVED]
    assert columns["gone_ns"][[first, again]].tolist() == [ns(2.08), UNSEEN]
    assert (columns["fate"] == LOST_ON_WAY).sum() == 2  # that one, and one of the CBR flow's


def test_positions_agree_with_a_second_reading_of_the_captures(
    tab: Tab, trial: Path, page: Path
) -> None:
    assert compare(tab, trial, page, 200) == []


def test_a_shifted_packet_would_be_found(tab: Tab, trial: Path, tmp_path: Path) -> None:
    watched = watched_trial(open_trial(trial))
    moved = watched.journeys.times_ns + np.array([0, 5_000_000, 0, 0])
    moved[watched.journeys.times_ns == UNSEEN] = UNSEEN
    other = replace(watched, journeys=replace(watched.journeys, times_ns=moved))
    page = watch_page.write_watch_page(other, tmp_path / "moved.html", "")
    assert compare(tab, trial, page, 50) != []


def test_numbers_are_packed_without_loss() -> None:
    values: Integers = np.array([0, 1, -1, 63, 64, -65, 1 << 40, -(1 << 52), 127, 128])
    bits, found = 0, []
    shift = 0
    for byte in watch_page.varints(values):
        bits |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            found.append(-(bits + 1) // 2 if bits & 1 else bits // 2)
            bits = shift = 0
    assert found == values.tolist()


# ---- which packets


def test_a_stretch_has_the_packets_that_were_under_way(trial: Path) -> None:
    watched = watched_trial(open_trial(trial), span=Span(2.02, 2.04))
    seq = watched.journeys.columns["seq"][watched.journeys.columns["payload"] == 1000]
    assert sorted({(each - 1) // 1000 for each in seq.tolist()}) == [0, 1, 2, 3, 4]


def test_too_many_packets_become_the_stretch_with_the_most_sent_again(
    trial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(excerpt, "MAX_WATCHED_PACKETS", 10)
    watched = watched_trial(open_trial(trial))
    zero = epoch_ns(open_trial(trial))
    assert watched.start_ns <= zero + 2.165e9 <= watched.stop_ns < zero + 10e9
    assert re.search(r"are too many for a page: these are the 10 from", watched.notes[0])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--from", "50"], "no packet lies between"),
        (["--from", "3", "--to", "2"], "no packet lies between"),
        (["--from", "nan"], "nan and inf are no seconds"),
        (["--flow", "tcq"], "no flow 'tcq'"),
    ],
)
def test_bad_requests_are_one_line(
    trial: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    complaint: str,
) -> None:
    out = tmp_path / "x.html"
    assert main(["watch", str(trial), "--out", str(out), *arguments]) == 2
    assert complaint in capsys.readouterr().err
    assert not out.exists()


def test_a_trial_without_captures_and_what_is_no_capture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every = (
        "sender1-eth0",
        "sender2-eth0",
        "router-eth1",
        "router-eth2",
        "router-eth0",
        "receiver-eth0",
    )
    empty = write_trial(tmp_path / "empty", without=every)
    assert main(["watch", str(empty)]) == 1
    assert "no captures" in capsys.readouterr().err
    (text := tmp_path / "notes.txt").write_text("nothing")
    assert main(["watch", str(text)]) == 1
    assert main(["watch", str(tmp_path / "gone")]) == 2


def test_what_was_not_captured_is_said(tmp_path: Path) -> None:
    folder = write_trial(tmp_path / "few", without=("sender1-eth0", "router-eth1"))
    notes = " ".join(watched_trial(open_trial(folder)).notes)
    assert "Not captured at the sender, so that reasons are not known: tcp" in notes
    assert (
        "Without a capture, passed in proportion to the links' delays: router-eth1, sender1"
        in notes
    )
    assert "Sockets were not sampled" in notes


def test_somebodys_capture_has_a_plane_and_no_network(
    tab: Tab, trial: Path, tmp_path: Path
) -> None:
    out = tmp_path / "x.html"
    capture = trial / "captures" / "sender1-eth0.pcap"
    assert main(["watch", str(capture), "--out", str(out)]) == 0
    opened(tab, out)
    assert tab.run("!!document.getElementById('plane') && !document.querySelector('svg.network')")
    press(tab, "Home")
    press(tab, "l")
    assert "fast retransmission of 3001:4001" in tab.run(PACKET)
    assert tab.complaints == []


# ---- why


def frames(*lines: tuple[float, str, int, int, int]) -> list[Frame]:
    """Return a connection's packets: seconds, s or r, sequence and acknowledged number, bytes."""
    made = [
        tcp(TCP, ns(0), seq=ISN, flags="S"),
        tcp(TCP.back, ns(0.1), seq=0, ack=ISN + 1, flags="SA"),
    ]
    for number, (time_s, end, seq, ack, size) in enumerate(lines):
        if end == "s":
            made.append(tcp(TCP, ns(time_s), seq=ISN + seq, ack=1, payload=size, ip_id=number))
        else:
            made.append(tcp(TCP.back, ns(time_s), seq=1, ack=ISN + ack))
    return made


def why(tmp_path: Path, *lines: tuple[float, str, int, int, int]) -> list[str]:
    write_pcap(path := tmp_path / "x.pcap", frames(*lines), 144)
    return [sentence for _, sentence in reasons(watched_capture(path).journeys, {})]


def test_a_third_duplicate(tmp_path: Path) -> None:
    sent = [(0.2 + i / 1000, "s", 1 + 100 * i, 0, 100) for i in range(6)]
    heard = [(0.3 + i / 1000, "r", 0, 101, 0) for i in range(4)]
    assert why(tmp_path, *sent, *heard, (0.303, "s", 101, 0, 100)) == [
        "Third duplicate ACK: fast retransmission of 101:201; "
        "recovery lasts until 601 is acknowledged."
    ]


def test_a_partial_acknowledgement(tmp_path: Path) -> None:
    sent = [(0.2 + i / 1000, "s", 1 + 100 * i, 0, 100) for i in range(6)]
    heard = [(0.3 + i / 1000, "r", 0, 101, 0) for i in range(4)]
    more = [(0.303, "s", 101, 0, 100), (0.4, "r", 0, 301, 0), (0.4, "s", 301, 0, 100)]
    assert why(tmp_path, *sent, *heard, *more)[1:] == [
        "A partial ACK, up to 301 (recovery until 601): the next segment is missing, too."
    ]


def test_a_timeout_and_what_follows(tmp_path: Path) -> None:
    sent = [(0.2 + i / 1000, "s", 1 + 100 * i, 0, 100) for i in range(3)]
    first, second = why(
        tmp_path, *sent, (1.2, "s", 1, 0, 100), (1.3, "r", 0, 101, 0), (1.3, "s", 101, 0, 100)
    )
    assert first == (
        "Timeout: nothing was sent or acknowledged for 998 ms; "
        "1:101 is the first that is not acknowledged."
    )
    assert second.startswith("The timer fired 100 ms ago: what was outstanding then, up to 301")


def test_a_probe_an_idle_time_and_what_is_not_known(tmp_path: Path) -> None:
    sent = [(0.2 + i / 1000, "s", 1 + 100 * i, 0, 100) for i in range(3)]
    assert why(tmp_path, *sent, (0.35, "s", 201, 0, 100))[0].startswith(
        "Tail loss probe: nothing was acknowledged for 148 ms"
    )
    answered = [*sent, (0.3, "r", 0, 301, 0)]
    assert why(tmp_path, *answered, (2.2, "s", 301, 0, 100)) == [
        "First data after 1.9 s in which nothing was outstanding: "
        "the application had nothing to send."
    ]
    assert why(tmp_path, *sent, (0.3, "r", 0, 101, 0), (0.3, "s", 101, 0, 100))[0].startswith(
        "The rules do not know why 101:201 is sent again: 0 duplicate ACKs"
    )


def test_blocks_of_selective_acknowledgements_add_up() -> None:
    sender = Sender(acked=100, highest=1000)
    sender.hear(1, 100, [(300, 400)], pure=True)
    sender.hear(2, 100, [(400, 500), (700, 800)], pure=True)
    assert (sender.above(200), sender.above(450), sender.duplicates) == (300, 150, 2)
    sender.hear(3, 600, [], pure=True)
    assert (sender.above(600), sender.duplicates, sender.advanced) == (100, 0, True)


def test_changes_of_the_window(trial: Path) -> None:
    found = open_trial(trial)
    watched = watched_trial(found)
    state = watch_page._kernel_states(found)["tcp"]
    assert isinstance(state, SocketHistory)
    path = next(each for each in watched.journeys.paths if each.flow.name == "tcp")
    first, second = changes(path, state, watched.journeys)
    assert (first.time_s, first.kind, second.kind) == (3.0, "slow-start-end", "recovery")
    assert second.sentence == (
        "A loss was detected and recovery begins: the window goes from 12 to 5, "
        "ssthresh is 5, 0.42 of the window."
    )


# ---- the page


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("width", "dark"), [(390, True), (1400, False)])
def test_it_fits_and_is_quiet(tab: Tab, page: Path, width: int, dark: bool) -> None:
    tab.visit("about:blank", width)
    tab.requests.clear()
    tab.complaints.clear()
    tab.open(page, width, dark=dark)
    tab.run(READY)
    assert tab.run("document.documentElement.scrollWidth") == width
    asked = {each for each in tab.requests if not each.startswith("data:,")}
    assert asked == {page.resolve().as_uri()}
    assert tab.complaints == []
    assert accessible.faint(tab) == []
    assert accessible.nameless(tab) == []


def test_it_begins_at_the_first_loss_and_keys_go_on(tab: Tab, page: Path) -> None:
    opened(tab, page)
    assert tab.run(CLOCK) == "2.080000000 s"  # when the next one left the queue of a CoDel
    press(tab, "ArrowRight")
    assert tab.run(CLOCK) == "2.081000000 s"  # another segment reaches the queue
    press(tab, "ArrowLeft")
    press(tab, "ArrowLeft")
    assert tab.run(CLOCK) == "2.071000000 s"
    press(tab, "l")
    assert "dropped by router (router-eth0) when it should have left" in tab.run(PACKET)
    press(tab, "k")
    assert "loses nothing before this" in tab.run(SAID)
    press(tab, "End")
    press(tab, "Escape")
    press(tab, ",")
    assert "sequence: 10001:11001 (1000 bytes)" in tab.run(SAID)


def test_a_packet_shows_its_fields_why_it_was_sent_and_what_tcp_knew(tab: Tab, page: Path) -> None:
    opened(tab, page, "#t=2.2&flow=tcp")
    press(tab, ",")
    shown = tab.run(PACKET)
    assert "Why? Third duplicate ACK: fast retransmission of 3001:4001" in shown
    assert "What TCP knew (tcp" in shown and "12, – segments" in shown


def test_the_address_leads_to_a_moment(tab: Tab, page: Path) -> None:
    opened(tab, page, "#t=2.05&speed=0.001&flow=cbr&span=0.02")
    assert tab.run(CLOCK) == "2.050000000 s"
    assert tab.run("document.getElementById('speed').value") == "0.001"
    assert tab.run("document.getElementById('flow').selectedOptions[0].text") == "cbr"
    opened(tab, page, "#t=99")
    assert "is outside of this page" in tab.run(SAID)
    assert tab.run(CLOCK) == tab.run("document.getElementById('clock').value")
    opened(tab, page, "#t=x&speed=-1&flow=%00&packet=1e9&span=NaN")
    assert tab.complaints == []


def test_a_click_in_a_diagram_sets_the_instant_everywhere(tab: Tab, page: Path) -> None:
    opened(tab, page, "#t=2.05&span=0.2")
    tab.run(
        "document.getElementById('window').dispatchEvent(new MouseEvent('click',"
        " { clientX: document.getElementById('window').getBoundingClientRect().left + 400 }))"
    )
    moved = tab.run(CLOCK)
    assert moved != "2.050000000 s"
    lines = tab.run(
        "[...document.querySelectorAll('.cursor:not(.down)')].map(each => each.style.transform)"
    )
    assert len(set(lines[1:])) == 1 and tab.run("location.hash").startswith(f"#t={moved[:-2]}")


def test_it_plays(tab: Tab, page: Path) -> None:
    opened(tab, page, "#t=2.05&speed=1")
    press(tab, " ")
    tab.run("new Promise(done => setTimeout(done, 400))")
    press(tab, " ")
    assert float(tab.run(CLOCK)[:-2]) > 2.05
    assert "Paused at" in tab.run(SAID)


def test_what_is_in_flight_is_not_guessed_on_a_page_of_a_part(
    tab: Tab, trial: Path, page: Path, tmp_path: Path
) -> None:
    part = tmp_path / "part.html"
    assert main(["watch", str(trial), "--from", "2.16", "--flow", "tcp", "--out", str(part)]) == 0
    opened(tab, page, "#t=2.17&flow=tcp")
    assert "7 segments not acknowledged" in tab.run(SAID)
    opened(tab, part, "#t=2.17")
    assert "in the queue" in tab.run(SAID) and "not acknowledged" not in tab.run(SAID)


def test_why_runs_the_trial_again_and_opens_at_the_packet(
    tab: Tab, trial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = rewind.Sending(("__tcp_transmit_skb", "tcp_xmit_retransmit_queue", "tcp_ack"), ())
    monkeypatch.setattr(rewind, "sending_of", lambda *_: sent)
    out = tmp_path / "why.html"
    assert main(["watch", str(trial), "--out", str(out), "--why", "retransmission"]) == 0
    opened(tab, out)
    shown = tab.run(PACKET)
    assert "tcp_ack → tcp_xmit_retransmit_queue → __tcp_transmit_skb." in shown
    assert "duplicate ACK" in shown  # the sentence of the rules comes first
    assert tab.run(CLOCK) == "2.165000000 s"
    opened(tab, out, "#t=2.05")
    assert "The kernel's calls" not in tab.run(PACKET)


@pytest.mark.parametrize(
    ("number", "words", "message"),
    [
        ("999999", (), "packet 999999: no such TCP or UDP packet"),
        ("812b", (), "neither a number"),
        ("ack", (), "is not on this page, or was not sent there"),
        ("3", ("--from", "2.1"), "is not on this page, or was not sent there"),
    ],
)
def test_a_packet_that_cannot_be_asked_about_is_one_line(
    trial: Path,
    tmp_path: Path,
    number: str,
    words: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if number == "ack":  # one that arrives at the sender
        opened_trial = open_trial(trial)
        rows = TrialPackets(opened_trial).read(trial / "captures" / "sender1-eth0.pcap").rows
        number = str(rows.loc[rows["src_port"] == TCP.dst_port, "frame"].iloc[0])
    asked = ["watch", str(trial), "--out", str(tmp_path / "p.html"), "--why", number, *words]
    assert main(asked) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "p.html").exists()


def test_a_film_shows_one_instant_after_the_other(trial: Path, tmp_path: Path) -> None:
    out, stretch = tmp_path / "film.gif", ("--from", "2", "--to", "2.3", "--seconds", "0.5")
    asked = ["watch", str(trial), "--out", str(tmp_path / "p.html"), *stretch]
    assert main([*asked, "--video", str(out)]) == 0
    with Image.open(out) as film:
        assert (film.format, film.info["duration"]) == ("GIF", 80)
        assert film.width > 700
        pictures = [each.convert("RGB").tobytes() for each in ImageSequence.Iterator(film)]
    assert len(pictures) == len(set(pictures)) == 6


def test_a_film_for_slides_is_left_to_ffmpeg(
    trial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ffmpeg"
    program.write_text('#!/bin/sh\nfor last; do :; done\necho "$@" >"$last"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    out = tmp_path / "film.mp4"
    asked = ["watch", str(trial), "--out", str(tmp_path / "p.html"), "--seconds", "0.2"]
    assert main([*asked, "--video", str(out)]) == 0
    assert re.search(r"-framerate 12 -i \S+/%04d.png .*-f mp4", out.read_text())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("film.avi",), "neither a .gif nor an .mp4"),
        (("film.gif", "--seconds", "nan"), "a film has up to 60 s"),
        (("film.gif", "--seconds", "61"), "a film has up to 60 s"),
    ],
)
def test_a_film_that_cannot_be_made_is_one_line(
    trial: Path, words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", str(trial), "--video", *words]) == 2
    assert message in capsys.readouterr().err


def test_names_of_others_stay_words(tab: Tab, tmp_path: Path) -> None:
    folder = write_trial(tmp_path / "<img src=x onerror=alert(1)>", samples=True)
    assert main(["watch", str(folder)]) == 0
    opened(tab, folder / FIGURES / WATCH_PAGE)
    assert tab.run("document.querySelectorAll('img').length") == 0


def test_a_trials_page_leads_to_it(trial: Path) -> None:
    assert main(["report", str(trial)]) == 0
    assert f'href="{WATCH_PAGE}"' in (trial / FIGURES / TRIAL_PAGE).read_text()
