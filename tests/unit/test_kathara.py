"""Kathará's laboratories: what is read of a folder, what is refused, and the script made of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.programs.kathara import is_lab, lab_script, read_lab

LAB = """
LAB_NAME="two networks"
# a comment
pc1[0]="A"
pc1[image]="kathara/base"
r1[0]=A/00:00:00:00:00:b1   # the gateway
r1[1]="B"
r1[sysctl]="net.ipv4.tcp_sack=0"
r1[exec]="echo up"
r1[bridged]=false
pc2[0]='B'
pc2[ipv6]="true"
pc2[env]="NAME=a b"
pc2[bridged]=true
"""


def lab(folder: Path, text: str = LAB) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "lab.conf").write_text(text)
    return folder


def test_a_lab_has_its_machines_and_what_they_do_not_get(tmp_path: Path) -> None:
    found = read_lab(lab(tmp_path / "lab"))
    assert [(m.name, [(i.number, i.domain) for i in m.interfaces]) for m in found.machines] == [
        *(("pc1", [(0, "A")]), ("r1", [(0, "A"), (1, "B")]), ("pc2", [(0, "B")])),
    ]
    _, router, host = found.machines
    assert (router.interfaces[0].mac, router.sysctls) == (
        *("00:00:00:00:00:b1", ("net.ipv4.tcp_sack=0",)),
    )
    assert router.commands == ("echo up",) and host.environment == ("NAME=a b",) and host.ipv6
    assert len({i.mac for m in found.machines for i in m.interfaces}) == 4
    assert found.left_out == (
        "image: the programs are this machine's (pc1)",
        "bridged: no machine reaches the Internet (pc2)",
    )
    assert is_lab(found.folder) and not is_lab(tmp_path)


def test_the_script_is_bash_and_has_every_machine_in_its_domains(tmp_path: Path) -> None:
    found = read_lab(lab(tmp_path / "lab"))
    script = lab_script(found, ["pc1@1: ping -c 1 10.0.0.2", "r1: tcpdump -w x &"], ["r1:1"])
    assert subprocess.run(["bash", "-n", "-c", script], check=False).returncode == 0
    lines = script.splitlines()
    masters = [line.split()[-2] for line in lines if " master " in line]
    assert masters == ["domain0", "domain0", "domain1", "domain1"]
    assert any("net.ipv4.tcp_sack=0" in line and "exec r1 sysctl" in line for line in lines)
    assert any(line.startswith("ip netns exec r1 printf ") for line in lines)
    assert sum(line == "waited+=($!)" for line in lines) == 1
    assert "ip -brief address" in lab_script(found, [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pc1[0]=A B", "lab.conf:1: 'A B': not one value"),
        ("pc1[0]='A", 'lab.conf:1: "\'A": No closing quotation'),
        ("pc1[0]=A\npc1[0]=B", "lab.conf:2: pc1[0]='B': no interface"),
        ("pc1[0]=A/12", "pc1[0]='A/12': no interface"),
        ("../x[0]=A", "expected MACHINE[NUMBER]=DOMAIN"),
        ("pc1[sysctl]=kernel.core_pattern=|x", "'kernel.core_pattern=|x': not net.….…=VALUE"),
        ("# nothing", "0 machines"),
        ("\n".join(f"m{n}[0]=A" for n in range(201)), "201 machines: 1 to 200"),
        ("\x00", "expected MACHINE"),
    ],
)
def test_what_is_no_lab_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_lab(lab(tmp_path / "lab", text))
    assert said in caught.value.message and "\n" not in caught.value.message


@pytest.mark.parametrize("name", ["lab.conf", "pc1.startup", "pc1/etc/shadow"])
def test_a_link_out_of_the_lab_is_refused(tmp_path: Path, name: str) -> None:
    folder = lab(tmp_path / "lab")
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    place.symlink_to("/etc/passwd")
    with pytest.raises(UsageError, match="a link out of the laboratory, to /etc/passwd"):
        read_lab(folder)
    place.unlink()
    (folder / "inside").write_text(LAB)
    place.symlink_to(Path("../" * name.count("/")) / "inside")
    if name != "lab.conf":
        assert read_lab(folder).machines


@pytest.mark.parametrize(
    ("words", "captured", "said"),
    [
        (["ping"], [], "'ping': expected MACHINE: COMMAND"),
        (["pc9: ping"], [], "no node 'pc9'"),
        ([], ["pc1:3"], "the lab has no such interface"),
    ],
)
def test_what_is_not_in_the_lab_is_named(
    tmp_path: Path, words: list[str], captured: list[str], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        lab_script(read_lab(lab(tmp_path / "lab")), words, captured)
    assert said in caught.value.message
