"""What benchmarks measure, and how they print it."""

from __future__ import annotations

import pytest

from benchmarks.harness import Cost, in_turns, markdown_lines, measured, one_more, print_costs


def test_cases_take_turns_and_the_least_of_each_number_counts() -> None:
    order, times_s = [], iter((3.0, 30.0, 1.0, 20.0))

    def case(name: str) -> Cost:
        order.append(name)
        return Cost(next(times_s), memory_mb=len(order))

    costs = in_turns({"a": lambda: case("a"), "b": lambda: case("b")}, 2)
    assert order == ["a", "b", "a", "b"]
    assert {name: each.wall_s for name, each in costs.items()} == {"a": 1.0, "b": 20.0}
    assert {name: each.memory_mb for name, each in costs.items()} == {"a": 1, "b": 2}


def test_a_call_is_measured_unless_it_says_its_time_itself() -> None:
    result, cost = measured(lambda: "done")
    assert result == "done"
    assert 0 <= cost.wall_s < 60
    assert measured(lambda: Cost(99.0))[1].wall_s == 99.0


def test_one_more_is_a_difference_by_their_number() -> None:
    assert one_more(Cost(1, 2, 3, 4), Cost(5, 12, 5, 24), 2) == Cost(2, 5, 1, 10)


def test_ratios_are_to_named_cases_of_the_same_run(capsys: pytest.CaptureFixture[str]) -> None:
    costs = {"guest": Cost(1, 1, 1), "ns-3": Cost(4, 0, 8)}
    print_costs(costs, ["ns-3"], {("guest", "ns-3"): 0.5}, lambda *_: "fast")
    guest, ns3 = capsys.readouterr().out.splitlines()
    assert guest.endswith(", fast; to ns-3: 0.25 (0.25 of the processor time), at most 0.5")
    assert "to " not in ns3


def test_a_table_in_markdown_has_a_line_for_each_row() -> None:
    assert markdown_lines(("a", "b"), [("1", "x\ny")]) == ["| a | b |", "|---|---|", "| 1 | x y |"]
