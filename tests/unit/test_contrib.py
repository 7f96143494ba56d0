"""The callers in contrib/: NIPA's executor, with a program in place of the testbed."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

MAX_WHEEL_BYTES = 25 << 20
WHEEL_FOLDERS = ("analysis", "experiments", "foreign", "kernel", "stacks", "testbed", "topologies")
UPLOT_LICENCE = "analysis/report/templates/vendor/uplot/LICENSE"
ANSWER = {
    "conditions": ["red", "pie", "cake"],
    "differing": [{"condition": "red", "variant": "cubic"}],
    "failed_conditions": {"cake": "the guest hung"},
}
SELFTESTS = [{"test": "diag.sh", "group": "net/mptcp", "result": "pass", "folder": "diag"}]
PROGRAM = """#!/bin/sh
echo "$@" >>{calls}
for out; do :; done # the last word
case $* in
*--for-selftests) exit 0 ;;
*--out*) mkdir "$out" && cp {tests} "$out/results.json" && exit 1 ;;
esac
case $* in *json) cat {answer} ;; *) echo Subject: other packets ;; esac
echo "kernel: x.c:1: error" >&2
exit {status}
"""


GIT = ("git", "-c", "user.name=x", "-c", "user.email=x@example.org")


def executed(
    root: Path, folder: Path, status: int, answer: str, *more: str
) -> list[dict[str, str]]:
    """Run the executor for two branches, and return the results of the newer one."""
    (folder / "results").mkdir(exist_ok=True)
    (folder / "remote").mkdir()
    branches = [
        {"branch": "old", "date": "2026-11-25T00:00:00+00:00"},
        {"branch": "new", "date": "2026-11-26T00:00:00+00:00"},
    ]
    (folder / "branches").write_text(json.dumps(branches))
    (folder / "answer").write_text(answer)
    (folder / "tests").write_text(json.dumps(SELFTESTS))
    remote = str(folder / "remote")
    for act in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"], ["branch", "new"]):
        subprocess.run([*GIT, "-C", remote, *act], check=True)
    subprocess.run([*GIT, "clone", "-q", remote, str(folder / "tree")], check=True)
    program = folder / "testbed"
    files = {name: folder / name for name in ("calls", "answer", "tests")}
    words = {**files, "status": status}
    program.write_text(PROGRAM.format(**words))
    program.chmod(0o755)
    argv = [sys.executable, str(root / "contrib/nipa/executor.py"), "--base", "main"]
    argv += ["--branches", str(folder / "branches"), "--tree", str(folder / "tree")]
    argv += ["--results", str(folder / "results"), "--url", "x", "--testbed", str(program)]
    subprocess.run([*argv, *more], check=True)
    manifest = json.loads((folder / "results/results.json").read_text())
    assert manifest[0]["branch"] == "new"
    name = Path(manifest[0]["url"]).name
    entry = json.loads((folder / "results" / name).read_text())
    assert entry["branch"] == "new"
    results: list[dict[str, str]] = entry["results"]
    return results


@pytest.mark.parametrize("status", [0, 1, 125])
def test_a_condition_is_a_test(root: Path, tmp_path: Path, status: int) -> None:
    """One whose trials did not run has not passed: the status is 125 if no other one differs."""
    results = executed(root, tmp_path, status, json.dumps(ANSWER))
    assert [(each["test"], each["result"], each.get("reason")) for each in results] == [
        ("red", "fail", "other packets"),
        ("pie", "pass", None),
        ("cake", "fail", "the guest hung"),
    ]
    mail = tmp_path / "results" / Path(results[0]["link"]).name
    assert mail.read_text() == "Subject: other packets\n"
    first = (tmp_path / "calls").read_text().splitlines()[0]
    tree = tmp_path / "tree"
    argv = ["git", "-C", str(tree), "rev-parse", "origin/new"]  # no branch of the clone's
    new = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
    assert first == f"kernel compare {tree}@main {tree}@{new} --format json"


def test_a_branchs_own_tests_run_on_its_kernel(root: Path, tmp_path: Path) -> None:
    """And the clone has no other worktree afterwards."""
    *_, last = executed(root, tmp_path, 0, json.dumps(ANSWER), "--selftests", "net/mptcp")
    assert (last["test"], last["group"], last["result"]) == ("diag.sh", "net/mptcp", "pass")
    assert re.fullmatch(r"x/\d+-selftests/diag", last["link"])
    _, _, built, tested = (tmp_path / "calls").read_text().splitlines()
    assert re.fullmatch(r"kernel build --source (\S+) --name nipa --for-selftests", built)
    assert re.match(r"kernel test nipa selftests net/mptcp --source \S+ --out ", tested)
    worktrees = subprocess.run(
        ["git", "-C", str(tmp_path / "tree"), "worktree", "list"], capture_output=True, check=True
    )
    assert len(worktrees.stdout.splitlines()) == 1


def test_a_kernel_that_cannot_be_built(root: Path, tmp_path: Path) -> None:
    (result,) = executed(root, tmp_path, 125, "")
    assert (result["test"], result["result"]) == ("build", "fail")
    assert "x.c:1: error" in (tmp_path / "results" / Path(result["link"]).name).read_text()


def test_the_bill_of_materials_names_every_locked_package(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the hashes of its files; and Debian's packages with this machine's versions."""
    root = request.config.rootpath
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1764000000")
    argv = [sys.executable, str(root / "contrib/sbom.py")]
    said = [subprocess.run(argv, capture_output=True, check=True, text=True) for _ in range(2)]
    assert said[0].stdout == said[1].stdout
    bill = json.loads(said[0].stdout)
    assert bill["metadata"]["timestamp"] == "2025-11-24T16:00:00Z"
    lock = (root / "requirements.lock").read_text().splitlines()
    locked = [line.split()[0] for line in lock if "==" in line and not line.startswith((" ", "#"))]
    python = [each for each in bill["components"] if each["purl"].startswith("pkg:pypi/")]
    assert [f"{each['name']}=={each['version']}" for each in python] == locked
    assert sum(len(each["hashes"]) for each in python) == sum("--hash=" in line for line in lock)
    debian = {each["name"]: each["version"] for each in bill["components"]}
    asked = ["dpkg-query", "-W", "-f", "${Package} ${Version}\n", "iperf3", "linux-source-6.1*"]
    shown = subprocess.run(asked, capture_output=True, check=False, text=True)
    installed = dict(line.split() for line in shown.stdout.splitlines() if line[-1] != " ")
    assert "iperf3" in installed and installed.items() <= debian.items()


def test_what_a_wheel_has(root: Path, tmp_path: Path) -> None:
    """All files of its folders, what `make release` puts there, and the licences; no picture."""
    tree = tmp_path / "tree"
    ignored = shutil.ignore_patterns("__pycache__", "*.png")
    for folder in WHEEL_FOLDERS:
        shutil.copytree(root / folder, tree / folder, ignore=ignored)
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(root / name, tree)
    (tree / "analysis" / "figures" / "x.png").write_bytes(b"x")
    for name in ("compiled/testbed-iperf3", "guest/linux_6_1/linux", "guest/linux_6_1/config"):
        (tree / "testbed" / name).parent.mkdir(exist_ok=True)
        (tree / "testbed" / name).write_bytes(b"x")
    files = [path for folder in WHEEL_FOLDERS for path in (tree / folder).rglob("*.*")]
    files += (tree / "testbed" / "compiled").iterdir()
    expected = {str(path.relative_to(tree)) for path in files if path.is_file()}
    argv = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*argv, "-w", str(tmp_path), str(tree)], check=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
        about = next(name for name in names if name.endswith("/METADATA")).removesuffix("METADATA")
        needs = re.findall(r"^Requires-Dist: (\w+)$", wheel.read(f"{about}METADATA").decode(), re.M)
        entries = wheel.read(f"{about}entry_points.txt").decode()
    assert len(expected) > 700
    assert expected - names == {"analysis/figures/x.png"}
    assert {name.split("/")[0] for name in names} == {*WHEEL_FOLDERS, about[:-1]}
    licences = ("LICENSE", "kernel/LICENSE-GPL-2.0", "foreign/LICENSE-iperf3", UPLOT_LICENCE)
    assert {f"{about}licenses/{each}" for each in licences} <= names
    assert "6.1 = testbed.guest.linux_6_1" in entries
    assert not {"scipy", "aioquic", "distributed", "pyshark"} & set(needs)


@pytest.mark.slow
def test_the_same_commit_gives_the_same_wheel(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Under another umask, in another zone of time, later, with other modes and line ends."""
    root, found = request.config.rootpath, []
    if not (root / ".git").exists():
        pytest.skip("not a clone")
    here = {"tar.umask": "0002"}
    (tmp_path / "attributes").write_text("* text=auto\n")
    theirs = {"tar.umask": "0077", "core.autocrlf": "true"}
    theirs["core.attributesFile"] = str(tmp_path / "attributes")
    for umask, zone, settings in ((0o022, "UTC", here), (0o077, "NZ", theirs)):
        copy = tmp_path / f"{umask:o}"
        subprocess.run(["git", "clone", "-q", "--shared", str(root), str(copy)], check=True)
        (copy / ".venv").symlink_to(root / ".venv")
        environment = {**os.environ, "TZ": zone, "GIT_CONFIG_COUNT": str(len(settings))}
        for number, (key, value) in enumerate(settings.items()):
            environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        subprocess.run(["contrib/release.sh"], cwd=copy, env=environment, check=True, umask=umask)
        made = [*(copy / "dist").glob("*.whl"), copy / "dist" / "sbom.json"]
        found.append({path.name: path.read_bytes() for path in made})
    assert found[0] == found[1]
    (name,) = (name for name in found[0] if name.startswith("tcp_testbed-"))
    assert len(found[0][name]) < MAX_WHEEL_BYTES
    _run_a_trial(copy / "dist" / name, tmp_path)


def _run_a_trial(wheel: Path, folder: Path) -> None:
    """Install a wheel into an environment, beside the packages that are here, and use it."""
    run = functools.partial(subprocess.run, check=True, cwd=folder)
    run([sys.executable, "-m", "venv", "--system-site-packages", "environment"])
    (place,) = folder.glob("environment/lib/python*/site-packages")
    python = str(folder / "environment/bin/python")
    run([python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", str(wheel)])
    (place / "here.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    argv = [str(folder / "environment/bin/testbed"), "run", "router-bottleneck"]
    run([*argv, *"--quick --engine guest --set variant=cubic --set queue=bfifo".split()])
    record = next((folder / "results").rglob("trial.json")).read_text()
    assert '"status": "ok"' in record
