#!/usr/bin/python3
"""An executor for NIPA: which of netdev's branches change TCP's packets.

It looks once at NIPA's list of branches, runs `testbed kernel compare` for the newest that has no
result yet, and writes the result as NIPA's other executors do: a test for each condition, `fail`
where packets differ or a trial did not run, with the answer as a mail beside it. A timer starts it
again.

    executor.py --branches URL --tree ~/net-next --base origin/main --results DIR --url URL

With --selftests, it also runs the branch's own tests of the network on its kernel, in virtual time:
those of the suites that are named, or of all.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

MANIFEST = "results.json"
NAME, GROUP = "testbed-packets", "tcp-packets"
KERNEL = "nipa"  # the testbed's name of a branch's kernel for its tests


def main() -> int:
    """Test the newest branch without a result, if there is one, and return the exit status."""
    options = read_options()
    manifest = options.results / MANIFEST
    known: list[dict[str, Any]] = json.loads(manifest.read_text()) if manifest.exists() else []
    tested = {each["branch"] for each in known}
    branches = [each for each in read_branches(options.branches) if each["branch"] not in tested]
    if not branches:
        return 0
    newest = max(branches, key=lambda each: datetime.datetime.fromisoformat(each["date"]))
    subprocess.run(["git", "-C", options.tree, "fetch", "--all", "--quiet"], check=True)
    commit = commit_of(options.tree, newest["branch"])
    start = datetime.datetime.now(datetime.UTC)
    stamp = int(start.timestamp())
    results = compare(options, commit, f"{options.url}/{stamp}.txt")
    if options.selftests is not None:
        results += selftests(options, commit, stamp)
    entry = {
        "executor": NAME,
        "branch": newest["branch"],
        "start": str(start),
        "end": str(datetime.datetime.now(datetime.UTC)),
        "results": results,
    }
    (options.results / f"{stamp}.json").write_text(json.dumps(entry))
    url = f"{options.url}/{stamp}.json"
    known.append({"url": url, "branch": newest["branch"], "executor": NAME})
    manifest.write_text(json.dumps(known))
    return 0


def read_options() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--branches", required=True, help="NIPA's list of branches: URL or file")
    parser.add_argument("--tree", required=True, help="a clone that can fetch them")
    parser.add_argument("--base", required=True, help="the commit to compare with")
    parser.add_argument("--results", required=True, type=Path, help="the folder for results")
    parser.add_argument("--url", required=True, help="where that folder can be read")
    about = "run Linux's own tests of the network, too: these suites, or all"
    parser.add_argument("--selftests", nargs="*", metavar="SUITE", help=about)
    parser.add_argument("--testbed", default="testbed", help="the program")
    return parser.parse_args()


def read_branches(place: str) -> list[dict[str, Any]]:
    """Return the branches, each with its name and date."""
    if "://" not in place:
        found: list[dict[str, Any]] = json.loads(Path(place).read_text())
        return found
    with urllib.request.urlopen(place) as page:
        fetched: list[dict[str, Any]] = json.load(page)
    return fetched


def commit_of(tree: str, branch: str) -> str:
    """Return the commit of a branch, which has only been fetched: git knows it by its remote."""
    places = (f"refs/remotes/*/{branch}", f"refs/heads/{branch}")
    argv = ["git", "-C", tree, "for-each-ref", "--format=%(objectname)", *places]
    commits = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    if not commits:
        raise SystemExit(f"executor: no remote of {tree} has the branch {branch}")
    return commits[0]


def compare(options: argparse.Namespace, commit: str, link: str) -> list[dict[str, Any]]:
    """Compare the branch with its base; write the report, and return a result per condition."""
    argv = [options.testbed, "kernel", "compare"]
    argv += [f"{options.tree}@{options.base}", f"{options.tree}@{commit}"]
    done = subprocess.run([*argv, "--format", "json"], capture_output=True, text=True, check=False)
    linked = options.results / link.rpartition("/")[2]
    if not done.stdout:  # a kernel was not built
        linked.write_text(done.stderr)
        return [{"test": "build", "group": GROUP, "result": "fail", "link": link}]
    mail = subprocess.run([*argv, "--format", "mail"], capture_output=True, text=True, check=False)
    linked.write_text(mail.stdout)
    answer = json.loads(done.stdout)
    failing = {each["condition"]: "other packets" for each in answer["differing"]}
    failing |= answer["failed_conditions"]
    return [
        result_of(condition, link, failing.get(condition)) for condition in answer["conditions"]
    ]


def selftests(options: argparse.Namespace, commit: str, stamp: int) -> list[dict[str, Any]]:
    """Build the branch's kernel for its own tests, run them, and return a result for each."""
    out = options.results / f"{stamp}-selftests"
    git = ["git", "-C", options.tree, "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        tree = f"{folder}/tree"
        subprocess.run([*git, "add", "--quiet", "--detach", tree, commit], check=True)
        try:
            argv = [options.testbed, "kernel", "build", "--source", tree, "--name", KERNEL]
            done = subprocess.run([*argv, "--for-selftests"], stderr=subprocess.PIPE, check=False)
            if not done.returncode:
                argv = [options.testbed, "kernel", "test", KERNEL, "selftests"]
                argv += [*options.selftests, "--source", tree, "--out", str(out)]
                done = subprocess.run(argv, stderr=subprocess.PIPE, check=False)
        finally:
            subprocess.run([*git, "remove", "--force", tree], check=True)
    if not (out / MANIFEST).exists():
        (options.results / f"{stamp}-selftests.txt").write_bytes(done.stderr)
        link = f"{options.url}/{stamp}-selftests.txt"
        return [{"test": "selftests", "group": GROUP, "result": "fail", "link": link}]
    found: list[dict[str, Any]] = json.loads((out / MANIFEST).read_text())
    return [{**each, "link": f"{options.url}/{out.name}/{each['folder']}"} for each in found]


def result_of(condition: str, link: str, why: str | None) -> dict[str, Any]:
    """Return a test's result; why it failed, if it did, is in `reason`."""
    outcome = {"result": "fail", "reason": why} if why else {"result": "pass"}
    return {"test": condition, "group": GROUP, "link": link, **outcome}


if __name__ == "__main__":
    raise SystemExit(main())
