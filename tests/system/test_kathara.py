"""A laboratory of Kathará's in a guest: its machines are apart, and reach each other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

Ended = tuple[subprocess.CompletedProcess[str], Path]
FILES = {
    "lab.conf": 'pc1[0]="A"\nr_1[0]=A\nr_1[1]=B\npc2[0]=B\npc2[image]=kathara/base\n',
    "shared.startup": "echo from the shared script",
    "pc1.startup": "ip address add 10.0.0.2/24 dev eth0\nip route add default via 10.0.0.1\n"
    "echo mine >/etc/own; cp /shared/note /tmp/note; sleep 1000 &\nsystemctl start nothing",
    "r_1.startup": "ip address add 10.0.0.1/24 dev eth0\nip address add 10.0.1.1/24 dev eth1",
    "pc2.startup": "systemctl restart networking\necho started >/hostlab/started\nexit 3",
    "pc2/etc/network/interfaces": "auto eth0\niface eth0 inet static # plain\n"
    "  address 10.0.1.2\n  netmask 255.255.255.0\n  gateway 10.0.1.1\n",
    "pc2/root/kept": "at home",
    "shared/note": "of all",
}


@pytest.fixture(scope="module")
def ended(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[subprocess.CompletedProcess[str], Path]:
    folder = tmp_path_factory.mktemp("lab")
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    out = tmp_path_factory.mktemp("out")
    command = (sys.executable, "-m", "experiments", "mininet", "--capture=r_1:1", f"--out={out}")
    lines = (
        "pc1@1: ping -c 2 10.0.1.2",
        "pc1: echo pc1 $(hostname) $(cat /etc/own /tmp/note) $(getent hosts pc1)",
        "pc2: echo pc2 $(hostname) $(ls /etc/own /tmp/note 2>&1 | wc -l) $(pgrep -c sleep) "
        "$(cat /root/*)",
    )
    words = (*command, str(folder), *lines)
    return subprocess.run(words, capture_output=True, text=True, check=False), out


def test_machines_reach_each_other(ended: Ended) -> None:
    done, out = ended
    assert done.returncode == 0, done.stderr
    assert "2 packets transmitted, 2 received" in done.stdout
    assert (out / "captures" / "r_1-eth1.pcapng").is_file()
    assert (out / "flows.csv").is_file()


def test_each_has_its_name_its_files_and_its_processes(ended: Ended) -> None:
    lines = ended[0].stdout.splitlines()
    assert "pc1 pc1 mine of all 127.0.1.1 pc1" in lines
    assert "pc2 pc2 2 1 at home" in lines  # two files that are not there; the first process sleeps


def test_what_start_up_scripts_say_has_the_name_of_the_machine(ended: Ended) -> None:
    done, out = ended
    assert done.stdout.count("| from the shared script") == 3
    said = "pc1| systemctl start nothing: this machine has no /etc/init.d/nothing"
    assert said in done.stdout.splitlines()
    assert "image: the programs are this machine's (pc2)" in done.stderr
    assert (out / "files" / "started").read_text() == "started\n"
