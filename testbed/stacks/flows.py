"""Flows of stacks, as flows of the programs that send and receive by them.

A scenario's file says `"kind": "stack", "stack": "quinn", "variant": "bbr"`; an experiment says
`quinn:bbr` where it takes a variant. Both become a flow of kind command, which is planned, run and
judged like any other, and whose programs know the stack that they are.
"""

from __future__ import annotations

import dataclasses

from testbed.errors import UsageError, quoted
from testbed.faults import Fault, collected, refusal, usage_error
from testbed.scenario.limits import MAX_NAME
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.stacks.stack import OF_STACK, UserStack, stack_of


def is_stack(variant: str | None) -> bool:
    """Return whether what stands in a variant's place is a stack and its control."""
    return variant is not None and OF_STACK in variant


def split(variant: str) -> tuple[UserStack, str]:
    """Return the stack and the control of `quinn:bbr`; raise if there is no such stack."""
    name, _, control = variant.rpartition(OF_STACK)
    return stack_of(name), control


def check_stack(variant: str) -> None:
    """Raise unless a stack is built and has the control, and tables can have its name."""
    if len(variant) > MAX_NAME:
        raise UsageError(
            f"{quoted(variant)}: at most {MAX_NAME} characters as a variant",
            "name the folder by a shorter path: from where you are, or by a link",
        )
    stack, control = split(variant)
    stack.programs(control)


def with_stacks(scenario: Scenario) -> Scenario:
    """Return the scenario with the programs of its stacks; raise for all flows without them."""
    if not any(_names_stack(flow) for flow in scenario.flows):
        return scenario
    faults, flows = list[Fault](), list[Flow]()
    for index, flow in enumerate(scenario.flows):
        flows.append(flow)
        with collected(faults, "flows", index):
            flows[-1] = _as_programs(flow)
    if faults:
        raise usage_error(faults)
    return dataclasses.replace(scenario, flows=tuple(flows))


def _names_stack(flow: Flow) -> bool:
    return flow.kind is FlowKind.STACK or (flow.kind is FlowKind.TCP and is_stack(flow.variant))


def _as_programs(flow: Flow) -> Flow:
    """Return a stack's flow as one of its programs; any other as it is."""
    if not _names_stack(flow):
        return flow
    if flow.kind is FlowKind.TCP:
        stack, control = split(flow.variant or "")
    elif flow.stack is None:
        raise refusal("stack", message="missing for a flow of kind stack", hint='"stack": "quinn"')
    else:
        stack = stack_of(flow.stack)
        control = flow.variant or next(iter(stack.description.variants))
    command = stack.programs(control)
    return dataclasses.replace(
        flow, kind=FlowKind.COMMAND, stack=None, variant=None, command=command
    )
