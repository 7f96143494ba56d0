"""The guest's kernels: the axis, the recipes, and builds that cannot end well."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from analysis.metrics.metric_rows import AXIS, with_axes
from testbed.cli import kernel as kernel_verb
from testbed.cli.kernel import print_comparison, run_on_both
from testbed.cli.machine import kernel_states
from testbed.errors import TestbedError, UsageError
from testbed.guest import kernels
from testbed.guest.worker import cache_folder
from testbed.host.engine import HostEngine
from testbed.machine.journal import JOURNAL
from testbed.machine.process import run
from testbed.plan.plan import Task, make_plan
from testbed.plan.requirements import Need
from testbed.runs import sources
from testbed.runs.engine_choice import Choice
from testbed.runs.orchestration import with_ready_kernels
from testbed.runs.sweep import TrialFinished
from testbed.scenario.model import BASE_KERNEL
from testbed.scenario.reading import read_scenario
from testbed.scenario.variations import axes_of, on_kernels, split_kernels
from testbed.store.names import RECORD, SCENARIO
from testbed.store.records import CaptureRecord, Record, Status
from tests.scenarios import router
from tests.sealing import seal
from tests.unit.test_sweep import FakeEngine, succeed

REFUSED = "error: 0001-y.patch does not apply: net/ipv4/Makefile: Hunk #1 FAILED at 1."
NEEDED = "0002-clock-exact-and-free.patch"  # without it there is no virtual time


def test_the_first_kernel_changes_no_trial() -> None:
    assert on_kernels([router()], [BASE_KERNEL]) == [router()]
    (newer,) = on_kernels([router()], ["6.12"])
    assert json.loads(newer.to_json())["kernel"] == "6.12"
    assert newer.label.endswith("kernel-6.12") and newer.name != router().name
    assert read_scenario(newer.to_json()) == newer


def test_kernels_stand_beside_each_other() -> None:
    assert split_kernels({"kernel": ["6.1", "6.12"], "queue": ["red"]}, ["queue"]) == (
        ("6.1", "6.12"),
        {"queue": ["red"]},
    )
    own = {"kernel": ["6.12"]}
    assert split_kernels(own, ["kernel"]) == ((), own)
    both = on_kernels([router()], ["6.1", "6.12"])
    assert [axes_of(each).get("kernel") for each in both] == [None, "6.12"]


def test_the_kernel_of_older_trials_is_the_first() -> None:
    """And versions are no numbers: 6.10 is not 6.1."""
    table = with_axes(pd.DataFrame({"axes": ["queue=red", "queue=red; kernel=6.10"]}))
    assert list(table[f"{AXIS}kernel"]) == ["6.1", "6.10"]
    assert f"{AXIS}kernel" not in with_axes(pd.DataFrame({"axes": ["queue=red"]}))


def test_the_host_has_only_its_own_kernel() -> None:
    (newer,) = on_kernels([router()], ["6.12"])
    needs = [need for need in make_plan(newer).needs if need.kind == "kernel"]
    assert needs == [Need("kernel", "6.12")]
    (missing,) = HostEngine().missing(needs)
    assert str(missing) == "kernel 6.12" and "--engine guest" in missing.remedy


def test_every_version_has_each_patch_once() -> None:
    """One of a version's own has the number of a common one only if it replaces it, by its name."""
    common = {path.name for path in (kernels.SOURCE_FOLDER / "patches").iterdir()}
    for version in kernels.versions():
        own = {path.name for path in (kernels.SOURCE_FOLDER / version / "patches").iterdir()}
        numbers = [name[:4] for name in common | own]
        assert len(numbers) == len(set(numbers))
    assert kernels.versions()[0] == BASE_KERNEL


def test_a_kernel_that_is_not_there_is_named_with_what_to_type(tmp_path: Path) -> None:
    assert kernels.not_built("6.12").hint == "testbed kernel build 6.12"
    error = kernels.not_built("6.13")
    assert error.message == "there is no kernel 6.13" and "--name 6.13" in error.hint
    with pytest.raises(UsageError, match=r"no patches for Linux 7\.0"):
        kernels.build_version("7.0", print)
    with pytest.raises(UsageError, match="is Debian's"):
        kernels.remove("6.1")
    with pytest.raises(UsageError, match="is Debian's"):
        kernels.build_custom(kernels.CustomKernel("6.12", str(tmp_path)), print)
    with pytest.raises(TestbedError, match="not a name for a file"):
        kernels.build_custom(kernels.CustomKernel("../x", str(tmp_path)), print)


def test_check_shows_the_other_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "version").write_text("6.18.1-testbed-mine (mine, of Linux 6.18)\n")
    monkeypatch.setattr(kernels, "custom_names", lambda: ["mine"])
    monkeypatch.setattr(kernels, "default_kernel", lambda: "6.1")
    monkeypatch.setattr(kernels, "built_folder", lambda name: tmp_path if name == "mine" else None)
    newer, newest, mine = kernel_states()
    assert (newer.what, newer.ok, newer.needed) == ("kernel 6.12", False, False)
    assert "testbed kernel build 6.12" in newer.remedy and newest.what == "kernel 7.3"
    assert mine.ok and mine.state.startswith("6.18.1-testbed-mine")


def test_a_machine_without_the_first_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian 13: what names no kernel runs on the oldest that there is, and the run says so."""
    monkeypatch.setattr(kernels, "has_source", lambda version: version != BASE_KERNEL)
    monkeypatch.setattr(
        kernels, "built_folder", lambda name: None if name == BASE_KERNEL else Path()
    )
    assert kernels.default_kernel() == "6.12"
    said: list[str] = []
    planned = [Task(each, make_plan(each)) for each in (router(), *on_kernels([router()], ["x"]))]
    found = with_ready_kernels(FakeEngine(succeed), planned, said.append, named=False)
    assert [task.scenario.kernel for task in found] == ["6.12", "x"]
    assert said == ["this machine has no Linux 6.1: trials that name no kernel run on 6.12"]


@pytest.mark.parametrize(("named", "axes"), [(True, {}), (False, {"kernel": "6.1"})])
def test_the_first_kernel_by_name_where_it_is_missing(
    monkeypatch: pytest.MonkeyPatch, named: bool, axes: dict[str, str]
) -> None:
    """It is built, and no other runs in its place: one would be compared with itself."""
    built: list[str] = []
    monkeypatch.setattr(kernels, "has_source", lambda version: version == "6.12")
    monkeypatch.setattr(kernels, "built_folder", lambda _name: None)
    monkeypatch.setattr(kernels, "build_version", lambda version, _progress: built.append(version))
    planned = [Task(each, make_plan(each)) for each in [router(axes=axes)]]
    assert with_ready_kernels(FakeEngine(succeed), planned, print, named=named) == planned
    assert built == ["6.1"]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache_folder()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """As little as is taken for a source tree."""
    for name in ("arch/um", "net/ipv4", "net/sched"):
        (tmp_path / "linux" / name).mkdir(parents=True)
    for name in ("arch/um/Kconfig", "net/ipv4/Makefile", "net/ipv4/Kconfig"):
        (tmp_path / "linux" / name).touch()
    (tmp_path / "linux/Makefile").write_text("VERSION = 6\nPATCHLEVEL = 18\nSUBLEVEL = 1\n")
    return tmp_path / "linux"


def left(cache: Path) -> list[str]:
    """What a build has left, but for its log and lock."""
    own = (p for p in cache.rglob("*") if p.is_file() or p.parent.name in ("own", "trees"))
    return [str(p.relative_to(cache)) for p in own if p.suffix not in (".log", ".lock")]


def test_a_folder_that_is_no_source_tree(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match=r"is no source tree of Linux") as caught:
        kernels.build_custom(kernels.CustomKernel("mine", str(tmp_path)), print)
    assert "arch/um" in caught.value.hint and not left(cache)
    with pytest.raises(TestbedError, match="nowhere: no such file or folder"):
        kernels.build_custom(kernels.CustomKernel("mine", str(tmp_path), Path("nowhere")), print)


def test_patches_that_do_not_apply_are_named_with_what_that_costs(cache: Path, tree: Path) -> None:
    said: list[str] = []
    with pytest.raises(TestbedError, match=f"{NEEDED} does not apply"):
        kernels.build_custom(kernels.CustomKernel("mine", str(tree)), said.append)
    assert not any(NEEDED in line for line in said)  # the error says it, once
    assert any("Linux 6.18: it gets the patches for 6.12" in line for line in said)
    assert "kernel: 0001-tick-rate-as-debian.patch does not apply: TCP's timers" in "\n".join(said)
    assert not left(cache)


def test_a_first_build_that_fails_keeps_what_was_compiled(cache: Path, tree: Path) -> None:
    compiled = cache / "trees/mine/net/x.o"
    compiled.parent.mkdir(parents=True)
    compiled.touch()
    with pytest.raises(TestbedError, match="does not apply"):
        kernels.build_custom(kernels.CustomKernel("mine", str(tree)), print)
    assert compiled.exists() and (cache / "trees/mine.log").exists()
    kernels.remove("mine")
    assert not left(cache) and not (cache / "trees/mine.log").exists()


def test_each_patch_that_is_not_needed_says_what_it_costs() -> None:
    """Those that are make time virtual and everything random the seed's.

    What the flavours have besides (`machine/`, `debug/`) is in no tree of the user's.
    """
    costs = {line[:4] for line in (kernels.SOURCE_FOLDER / "without").read_text().splitlines()}
    folders = kernels.SOURCE_FOLDER.glob("**/patches")
    numbers = {
        patch.name[:4]
        for folder in folders
        if folder.parent.name not in (kernels.MACHINE_FLAVOUR, kernels.DEBUG_FLAVOUR)
        for patch in folder.glob("*.patch")
    }
    needed = {"0002", "0003", "0004", "0016", "0017", "0028", "0030", "0032"}
    assert numbers - costs == {*needed, "0038"}  # new files alone: it applies to any tree
    assert costs <= numbers


@pytest.mark.parametrize(
    ("program", "script", "message"),
    [
        ("make", """case "$*" in *linux*) echo "  CC      lib/error.o"
         echo "x.c:9: warning: unused variable 'error'"; echo "x.c:1: error: no" ;;
         *) exit 0 ;; esac; exit 2""",
         "error: the build failed: x.c:1: error: no"),
        ("make", """case "$*" in *linux*) echo "x.c:1: error: no member named 'tso_segs'" ;;
         *) exit 0 ;; esac; exit 2""",
         "tso_segs is of the BBRv3 tree"),
        ("df", "printf 'a\\na 1 1 7 1 /\\n'", "error: only 7 MB free"),
    ],
)  # fmt: skip
def test_a_build_that_fails_leaves_nothing(
    tmp_path: Path, tree: Path, program: str, script: str, message: str
) -> None:
    recipe, bin_ = tmp_path / "recipe", tmp_path / "bin"
    for folder in (recipe / "congestion", recipe / "patches", bin_, tmp_path / "place"):
        folder.mkdir(parents=True)
    (recipe / "guest.config").write_text("CONFIG_X=n\n")
    (recipe / "initramfs.list").touch()
    (recipe / "init.c").write_text("int main(void) { return 0; }\n")
    (bin_ / program).write_text(f"#!/bin/sh\n{script}\n")
    (bin_ / program).chmod(0o755)
    place = tmp_path / "place"
    words = (
        kernels.SOURCE_FOLDER / "build.sh",
        recipe,
        tree,
        place / "out",
        place / "tree",
        place / "log",
        "a test",
    )
    argv = [str(word) for word in words]
    env = {**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and f"kernel: {message}" in done.stderr
    assert not (place / "out").exists() and not (place / "tree.stage").exists()


def test_a_patch_whose_surroundings_are_others_is_refused(tmp_path: Path, tree: Path) -> None:
    """With fuzz, one has landed in another struct."""
    (tree / "net/ipv4/Makefile").write_text("struct a {\n\tint x;\n};\n")
    recipe = tmp_path / "recipe"
    (recipe / "patches").mkdir(parents=True)
    (recipe / "patches/0001-y.patch").write_text(
        "--- a/net/ipv4/Makefile\n+++ b/net/ipv4/Makefile\n"
        "@@ -1,3 +1,4 @@\n struct b {\n \tint x;\n+\tint y;\n };\n"
    )
    places = [str(tmp_path / name) for name in ("out", "made", "log")]
    script = str(kernels.SOURCE_FOLDER / "build.sh")
    argv = [script, str(recipe), str(tree), *places, "a test"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and REFUSED in done.stderr


def test_sources_that_are_the_same_keep_their_time(tmp_path: Path) -> None:
    """So that make leaves them alone."""
    new, kept = tmp_path / "new", tmp_path / "kept"
    for folder in (new, kept):
        (folder / "net").mkdir(parents=True)
    script = str(kernels.SOURCE_FOLDER / "refresh.py")
    for name in ("net/same.c", "net/changed.c", "gone.c"):
        (new / name).write_text(name)
    subprocess.run([script, str(new), str(kept)], check=True)
    os.utime(kept / "net/same.c", (1, 1))
    (kept / "net/same.o").touch()
    (new / "net/changed.c").write_text("other")
    (new / "gone.c").unlink()
    (new / "link").symlink_to("net/same.c")
    subprocess.run([script, str(new), str(kept)], check=True)
    assert (kept / "net/same.c").stat().st_mtime == 1 and (kept / "net/same.o").exists()
    assert (kept / "net/changed.c").read_text() == "other"
    assert not (kept / "gone.c").exists() and (kept / "link").is_symlink()


def trial(folder: Path, digest: str, status: Status = Status.OK) -> TrialFinished:
    """A trial with one capture of this digest."""
    folder.mkdir()
    (folder / SCENARIO).write_text(router().to_json())
    capture = CaptureRecord("captures/x.pcapng", "sender1", "eth0", (), 144, 9, 0, digest)
    record = Record(status, "it broke" if status is not Status.OK else "", captures=(capture,))
    (folder / RECORD).write_text(record.to_json())
    seal(folder)
    return TrialFinished(Task(router(), make_plan(router())), folder, status)


def test_the_answer_to_a_bisection(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, same, other = (trial(tmp_path / name, name[0]) for name in ("ab", "ac", "b"))
    failed = trial(tmp_path / "failed", "a", Status.FAILED)
    assert print_comparison([(good, same)], "good") == 0
    assert capsys.readouterr().out == "the same packets as on good, in all 1 trials\n"
    assert print_comparison([(good, same), (good, other)], "good") == 1
    assert capsys.readouterr().out == f"other packets than on good: {other.path}\n"
    assert print_comparison([(good, other), (good, failed)], "good") == 125
    assert capsys.readouterr().out == "failed: it broke\n"


def test_both_kernels_run_every_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine(succeed)
    monkeypatch.setattr(kernel_verb, "choose", lambda *_: Choice(engine, "a test"))
    pairs = run_on_both([router(seed=1), router(seed=2)], "6.1", "mine", tmp_path / "out")
    kernels = [[each.scenario.kernel for each in pair] for pair in pairs]
    assert kernels == [["6.1", "mine"], ["6.1", "mine"]]
    assert [pair[0].scenario.seed for pair in pairs] == [1, 2]


def test_a_kernels_sources_have_each_patch_once() -> None:
    """A patch may move from a version's folder to the common one: its name says which it is."""
    for version in kernels.versions():
        found = sources.kernel_sources(version)
        patches = {name: path for name, path in found.items() if name.endswith(".patch")}
        own = set((kernels.SOURCE_FOLDER / version / "patches").iterdir())
        assert len(patches) >= 20 and own <= set(patches.values())
        assert all(re.match(r"patches/\d{4}-", name) for name in patches)


@pytest.mark.parametrize(
    ("file", "old", "new", "same"),
    [
        ("patches/0007-no-umid-directory.patch", "\n--- a/", " Other words.\n--- a/", True),
        ("patches/0007-no-umid-directory.patch", "\n+", "\n+ ", False),
        ("build.sh", "\nset ", "\n# Other words.\nset ", True),
        ("build.sh", "\nset ", "\ntrue\nset ", False),
        ("guest.config", "CONFIG_NET=y", "CONFIG_NET=n", False),
    ],
)
def test_the_key_of_an_image_is_of_its_code(
    tmp_path: Path, file: str, old: str, new: str, same: bool
) -> None:
    """Words above a patch and in a script build no other kernel."""
    folder = tmp_path / "kernel"
    shutil.copytree(kernels.SOURCE_FOLDER, folder, symlinks=True)

    def key() -> str:
        return run([str(folder / "image.sh"), "--path", "6.1"], check=False).stdout

    before, path = key(), folder / file
    assert before.startswith("/") and old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    assert (key() == before) == same


def test_what_is_added_is_built_in(tmp_path: Path, tree: Path) -> None:
    """The source, its line in the Makefile and its symbol; a BPF object's source is none of it."""
    own = tmp_path / "own"
    own.mkdir()
    for name in ("tcp_gentle.c", "tcp_gentle.bpf.c"):
        shutil.copy(kernels.SOURCE_FOLDER / "examples" / name, own)
    (own / "sch_mine.c").write_text("/* A queue. */\n")
    fair = "obj-$(CONFIG_NET_SCH_FQ_PIE)\t+= sch_fq_pie.o\n"
    (tree / "net/sched/Makefile").write_text(fair)
    (tree / "net/sched/Kconfig").write_text("# SPDX-License-Identifier: GPL-2.0-only\n")
    built = built_with(own, tree, tmp_path)
    assert (built / "net/ipv4/Makefile").read_text() == (
        "obj-$(CONFIG_TCP_CONG_GENTLE) += tcp_gentle.o\n"
    )
    assert "config TCP_CONG_GENTLE\n\tdef_bool y\n" in (built / "net/ipv4/Kconfig").read_text()
    assert "sch_mine.o" in (built / "net/sched/Makefile").read_text()
    assert "config NET_SCH_MINE\n\tdef_bool y\n" in (built / "net/sched/Kconfig").read_text()
    assert (built / "net/sched/sch_mine.c").read_text() == "/* A queue. */\n"
    assert [p.name for p in (built / "net/ipv4").glob("*.c")] == ["tcp_gentle.c"]


def test_a_version_that_is_built_again_has_what_is_new(tmp_path: Path, tree: Path) -> None:
    own, release = tmp_path / "own", tmp_path / "linux-source.tar.xz"
    subprocess.run(["tar", "-cJf", str(release), "-C", str(tmp_path), tree.name], check=True)
    own.mkdir()
    for name in ("tcp_one.c", "tcp_two.c"):
        (own / name).write_text(f"/* {name} */\n")
        built = built_with(own, release, tmp_path)
        assert (built / "net/ipv4" / name).exists()


def built_with(own: Path, tree: Path, place: Path) -> Path:
    """A tree or a tarball as it is compiled: with what a folder adds, without our patches."""
    (place / "bin").mkdir(exist_ok=True)
    (place / "tree").mkdir(exist_ok=True)
    (place / "bin/make").write_text("#!/bin/sh\nexit 2\n")  # the tree stays as it is then
    (place / "bin/make").chmod(0o755)
    script = """
        . "$1/recipe.sh"
        mkdir "$recipe"/{patches,congestion}
        cp "$1"/{guest.config,initramfs.list,init.c} "$recipe/"
        add_sources "$2"
        "$1/build.sh" "$recipe" "$3" "$4/out" "$4/tree" "$4/log" test
    """
    words = (kernels.SOURCE_FOLDER, own, tree, place)
    argv = ["bash", "-c", script, "test", *map(str, words)]
    env = {**os.environ, "PATH": f"{place}/bin:{os.environ['PATH']}"}
    subprocess.run(argv, env=env, capture_output=True, check=False)
    return place / "tree"


def test_a_folder_without_anything_to_add(cache: Path, tmp_path: Path, tree: Path) -> None:
    shutil.copy(kernels.SOURCE_FOLDER / "examples" / "tcp_gentle.bpf.c", tmp_path)
    with pytest.raises(TestbedError, match="nothing to add"):
        kernels.build_custom(kernels.CustomKernel("mine", str(tree), add=tmp_path), print)
    assert not left(cache)


FAKE_BUILD = """#!/bin/sh
mkdir "$3"
[ -z "$SYMBOLS" ] || debug=-g more=MORE
echo "int main(void) { return $more 0; }" | gcc $debug -x c - -o "$3/linux"
touch "$3/config" "$3/version"
[ -z "$SYMBOLS" ] || cp "$3/linux" "$3/symbols"
"""


@pytest.fixture
def faked(tmp_path: Path, cache: Path) -> list[str]:
    """image.sh for the base kernel, with a compiler of kernels that takes no time."""
    return fake_script(tmp_path / "kernel", cache, "")


def fake_script(kernel: Path, cache: Path, more: str) -> list[str]:
    """Copy the kernel's folder, with another build.sh, and give the words that run image.sh."""
    shutil.copytree(kernels.SOURCE_FOLDER, kernel)
    (kernel / "build.sh").write_text(FAKE_BUILD.replace("MORE", more))
    (cache / "sources" / BASE_KERNEL).mkdir(parents=True)
    (cache / "sources" / BASE_KERNEL / f"linux-source-{BASE_KERNEL}.tar.xz").touch()
    (cache / "sources" / BASE_KERNEL / "version").write_text("1\n")
    return [str(kernel / "image.sh")]


def test_a_damaged_image_is_built_again(faked: list[str]) -> None:
    """One that is older than the hashes gets them, so that later damage is seen."""
    built = Path(run([*faked, BASE_KERNEL]).stdout.strip())
    whole = (built / "linux").read_bytes()
    (built / "config").write_bytes(b"CONFIG_HZ=100\n")
    assert run([*faked, "--whole", BASE_KERNEL], check=False).status == 1
    (built / "sha256").unlink()
    (built / "linux").write_bytes(b"")
    assert run([*faked, "--whole", BASE_KERNEL], check=False).status == 1
    (built / "linux").write_bytes(whole)
    assert run([*faked, "--whole", BASE_KERNEL], check=False).status == 0
    (built / "linux").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert run([*faked, "--path", BASE_KERNEL], check=False).status == 0
    assert run([*faked, "--whole", BASE_KERNEL], check=False).status == 1
    assert "is damaged, and built again" in run([*faked, BASE_KERNEL]).stderr
    assert kernels.is_whole(built) and (built / "linux").stat().st_size == len(whole)


def test_the_container_gets_the_image_of_whole_programs(faked: list[str]) -> None:
    recipe = (kernels.SOURCE_FOLDER.parent / "Containerfile").read_text()
    (words,) = re.findall(r"kernel/image\.sh (.*) &&", recipe)
    script = [*faked, *words.split()]
    built = Path(run(script).stdout.strip())
    assert (built / "linux").exists() and words.split()[-1] == kernels.MACHINE_FLAVOUR


@pytest.mark.parametrize(("more", "status"), [("", 0), ("7+", 1)])
def test_symbols_are_of_the_same_code(tmp_path: Path, cache: Path, more: str, status: int) -> None:
    """A second build adds them, and is refused if it has other code than the first."""
    script = fake_script(tmp_path / "kernel", cache, more)
    first = subprocess.run([*script, BASE_KERNEL], capture_output=True, text=True, check=True)
    built = Path(first.stdout.strip())
    assert not (built / kernels.SYMBOLS).exists()
    done = subprocess.run(
        [*script, "--symbols", BASE_KERNEL], capture_output=True, text=True, check=False
    )
    assert done.returncode == status
    assert (built / kernels.SYMBOLS).exists() == (status == 0)
    assert ("has other code" in done.stderr) == (status == 1)
    assert not list(cache.glob(".new.*")) and not list(cache.glob(".tree.*"))


def test_a_killed_script_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What finds or builds a kernel lays out its sources in a temporary folder."""
    script, temporary = tmp_path / "image.sh", tmp_path / "tmp"
    script.write_text(
        "#!/bin/sh\nmktemp -d >>$0.made\necho $TCP_TESTBED_RUN >>$0.marks\nkill -9 $$\n"
    )
    script.chmod(0o755)
    temporary.mkdir()
    monkeypatch.setattr(kernels, "IMAGE_SCRIPT", script)
    monkeypatch.setenv("TMPDIR", str(temporary))
    assert kernels.built_folder(kernels.default_kernel()) is None
    with pytest.raises(TestbedError, match="ended with -9"):
        kernels.build_version(kernels.default_kernel(), print)
    made = (tmp_path / "image.sh.made").read_text().splitlines()
    assert len(made) == 2 and all(name.startswith(f"{temporary}/") for name in made)
    marks = (tmp_path / "image.sh.marks").read_text().split()
    assert marks == [JOURNAL.mark] * 2, "by which `testbed clean` ends them"
    assert list(temporary.iterdir()) == []
