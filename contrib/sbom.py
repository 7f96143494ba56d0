"""The software bill of materials: what the testbed is made of here, as CycloneDX JSON.

    python3 contrib/sbom.py >sbom.json

It names the Python packages of requirements.lock and the sources of foreign/ with their hashes, and
the Debian packages that setup.sh installs, with the versions that this machine has.
SOURCE_DATE_EPOCH is its time.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKED = re.compile(r"^([\w.-]+)==(\S+)((?: \\\n +--hash=sha256:[0-9a-f]{64})*)", re.MULTILINE)
DEBIAN_LISTS = re.compile(r"^(?:readonly )?\w+_PACKAGES=\(\n(.*?)^\)", re.MULTILINE | re.DOTALL)
KERNEL_SOURCE = re.compile(r"\blinux-source-[\d.]+")
NAME = re.compile(r"^[a-z0-9][a-z0-9.+-]+$")


def python_packages(lock: str) -> Iterator[dict[str, object]]:
    """Yield the packages of a lock file with the hashes of their files."""
    for name, version, hashes in LOCKED.findall(lock):
        files = [
            {"alg": "SHA-256", "content": each} for each in re.findall(r"[0-9a-f]{64}", hashes)
        ]
        yield {
            "type": "library",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
            "hashes": files,
        }


def debian_packages(setup: str) -> Iterator[dict[str, object]]:
    """Yield the packages that setup.sh installs, as far as this machine has them."""
    words = [word for names in DEBIAN_LISTS.findall(setup) for word in names.split()]
    names = sorted({*filter(NAME.match, words), *KERNEL_SOURCE.findall(setup)})
    form = "${db:Status-Status} ${Package} ${Version} ${Architecture}\n"
    shown = subprocess.run(
        ["dpkg-query", "-W", "-f", form, *names],
        capture_output=True,
        text=True,
        check=False,  # some are not installed
    )
    for line in shown.stdout.splitlines():
        status, name, version, architecture = line.split()
        if status == "installed":
            purl = f"pkg:deb/debian/{name}@{version}?arch={architecture}"
            yield {"type": "application", "name": name, "version": version, "purl": purl}


def foreign_sources() -> Iterator[dict[str, object]]:
    """Yield the sources of others that are compiled, the guest's kernel among them."""
    for path in sorted((ROOT / "foreign").glob("*.list")):
        name, digest, *_ = path.read_text().splitlines()[-1].split()
        yield {
            "type": "application",
            "name": path.stem,
            "version": name,
            "purl": f"pkg:generic/{path.stem}?checksum=sha256:{digest}",
        }


def bill() -> dict[str, object]:
    """Return the whole document."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    now = int(os.environ.get("SOURCE_DATE_EPOCH") or datetime.now(UTC).timestamp())
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "application", **{k: project[k] for k in ("name", "version")}},
        },
        "components": [
            *python_packages((ROOT / "requirements.lock").read_text()),
            *foreign_sources(),
            *debian_packages((ROOT / "setup.sh").read_text()),
        ],
    }


if __name__ == "__main__":
    json.dump(bill(), sys.stdout, indent=1)
    print()
