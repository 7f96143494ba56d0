"""`testbed schema`: the form of scenarios, for editors and validators."""

from __future__ import annotations

import argparse
import json
import sys


def print_schema(_options: argparse.Namespace) -> int:
    """Run `testbed schema`."""
    from testbed.own_files.json_schema import scenario_schema  # loads pydantic

    sys.stdout.write(json.dumps(scenario_schema(), indent=2, ensure_ascii=False) + "\n")
    return 0
