"""What a bundle says of itself: `bundle.json`, the first file that a reader looks at."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testbed.errors import TestbedError, short
from testbed.indented import indented
from testbed.machine import json_files

BUNDLE_FORMAT = 1
BUNDLED_PIECE_BYTES = 1 << 20  # of a file, which is not read whole
BUNDLE_MANIFEST = "bundle.json"
BUNDLE_CRATE = "ro-crate-metadata.json"
BUNDLE_PAGE = "ro-crate-preview.html"
BUNDLE_CITATION = "CITATION.cff"
BUNDLE_APPENDIX = "appendix.tex"
CLAIMS = "claims.json"
BUNDLED_RESULTS = "results"  # the results folders, as `testbed run` made them
PROGRAM_FILES = "files"  # of command flows, each in a folder that is named by its hash


@dataclass(frozen=True)
class BundledFile:
    """A file of the bundle."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class BundledKernel:
    """A kernel, by what it was built from and by what came of it."""

    version: str
    """The kernel's version, the source package's and the compiler's."""
    image_sha256: str
    config_sha256: str
    sources: Mapping[str, str]
    """What our part of it is: name → sha256; empty for one of the user's own."""


@dataclass(frozen=True)
class BundleManifest:
    """What is in a bundle, what made it, and where."""

    title: str
    authors: tuple[str, ...]
    licence: str
    testbed: str
    """The version of the testbed."""
    code: Mapping[str, str]
    """The behaviour of its code, or the hash of each part of it that sends packets."""
    made_s: float
    """When the bundle was made: seconds since 1970."""
    has_captures: bool
    machine: Mapping[str, str]
    """The machine on which it was made."""
    kernels: Mapping[str, BundledKernel]
    versions: Mapping[str, str]
    """Programs and libraries that made packets, numbers or figures."""
    commands: tuple[str, ...]
    """The commands that made the results."""
    program_files: Mapping[str, Mapping[str, str]]
    """Trial → flow/name → the file of a command flow, where it is in the bundle."""
    tables: tuple[str, ...]
    """The tables that follow from the trials alone: they can be made again."""
    figures: tuple[str, ...]
    """The same of figures."""
    files: Mapping[str, BundledFile]
    """Every other file."""
    format: int = BUNDLE_FORMAT

    def to_json(self) -> str:
        """Return the manifest as JSON."""
        return indented(self, 1) + "\n"


@functools.cache
def _adapter() -> Any:
    from pydantic import TypeAdapter  # slow to load

    return TypeAdapter(BundleManifest)


def read_manifest(text: bytes, where: str) -> BundleManifest:
    """Read a manifest that anybody may have written."""
    try:
        data = json_files.parse(text)
        number = data["format"]
        if type(number) is not int:
            raise ValueError("format: not a number")
        if number > BUNDLE_FORMAT:
            raise TestbedError(
                f"{where}: of a newer version (format {number}, not {BUNDLE_FORMAT})",
                "install a newer testbed",
            )
        read: BundleManifest = _adapter().validate_python(data)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise TestbedError(
            f"{where}: {BUNDLE_MANIFEST}: damaged: {short(error)}", DAMAGED_HINT
        ) from error
    return read


DAMAGED_HINT = "get it again; `testbed bundle` makes one"


def fingerprint(text: bytes) -> str:
    """Return the hash by which a bundle is known: of its manifest, which has all other hashes."""
    return hashlib.sha256(text).hexdigest()
