"""A Mininet Topo as a graph: found by its name, built, and its nodes and links converted.

What Mininet itself would do with a Topo and its default classes is done, or refused with the
reason; what has no effect here is left out, and that is said. Mininet puts htb and netem on the
interface at each end of a link, both with the link's options: each end's are of the direction that
leaves there. netem's limit is its queue's; here packets that wait for their delay do not count in
it.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from testbed.errors import UsageError, nearest, quoted
from testbed.faults import Fault, collected, refusal
from testbed.own_files.python_file import PYTHON_SUFFIX, error_in_file, import_file
from testbed.scenario.losses import GilbertElliott
from testbed.scenario.network import MAX_NODES, Direction, Graph, Link, Node, NodeKind, Port, Queue

if TYPE_CHECKING:
    from mininet.topo import Topo  # loaded where it is needed: it takes a tenth of a start

TOPO_FORMS = "FILE.py:CLASS,arg=…, MODULE:CLASS,arg=…, or one of mn's: tree,depth=2,fanout=2"
MININET_TOPOS: Mapping[str, tuple[str, str]] = {  # as in Mininet's own `mn`
    "minimal": ("mininet.topo", "MinimalTopo"),
    "linear": ("mininet.topo", "LinearTopo"),
    "reversed": ("mininet.topo", "SingleSwitchReversedTopo"),
    "single": ("mininet.topo", "SingleSwitchTopo"),
    "tree": ("mininet.topolib", "TreeTopo"),
    "torus": ("mininet.topolib", "TorusTopo"),
}
MAX_TOPO_NODES = 10_000  # that are built, before the plan counts them
PYTHON_CONSTANTS = {"True": True, "False": False, "None": None}

TOPO_LINKS = ("network", "links")

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Settings:
    """`1,depth=2`: positional and named values."""

    positional: tuple[Value, ...]
    named: Mapping[str, Value]


@dataclass(frozen=True)
class TopoName:
    """Where a Topo class is, what it is called, and what its `build` is given."""

    text: str
    source: str  # a file or a module
    class_name: str  # empty: the only one
    settings: Settings

    @property
    def word(self) -> str:
        """A word for the Topo, for the name of an experiment."""
        if self.source in MININET_TOPOS:
            return self.source
        return Path(self.source).stem if self.is_file else self.source.rpartition(".")[2]

    @property
    def is_file(self) -> bool:
        """Whether the class is in a file, not in a module."""
        return self.source.endswith(PYTHON_SUFFIX)


def parse_topo_name(text: str) -> TopoName:
    """Return where a Topo class is and its arguments, from the command line's words."""
    head, *settings = text.split(",")
    source, colon, class_name = head.rpartition(":")
    if not colon:
        source, class_name = head, ""
    if not source:
        raise UsageError(f"{quoted(text)} does not name a Topo", TOPO_FORMS)
    return TopoName(text, source, class_name, split_settings(settings))


def split_settings(texts: list[str]) -> Settings:
    """Return words as numbers, True, False or None where they look so; else as texts."""
    named = dict(word.split("=", 1) for word in texts if "=" in word)
    return Settings(
        tuple(_value(word) for word in texts if "=" not in word),
        {key: _value(text) for key, text in named.items()},
    )


def _value(text: str) -> Value:
    if text in PYTHON_CONSTANTS:
        return PYTHON_CONSTANTS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def build_topo(name: TopoName, folder: Path) -> Topo:
    """Load the Topo's class and build it; a file's path is relative to the folder."""
    if name.is_file:
        path = folder / name.source
        if not path.is_file():
            raise UsageError(
                f"{path}: {'not a file' if path.exists() else 'no such file'}", TOPO_FORMS
            )
        return _instantiate(path, _find_class(import_file(path), name, str(path)), name)
    module, class_name = MININET_TOPOS.get(name.source, (name.source, name.class_name))
    if name.source not in MININET_TOPOS and not class_name:
        raise UsageError(
            f"no Topo is called {quoted(name.source)}", nearest(name.source, MININET_TOPOS)
        )
    members = _import(module)
    known = TopoName(name.text, module, class_name, name.settings)
    return _instantiate(
        Path(members.__file__ or module), _find_class(members, known, module), known
    )


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"{name}: {error}", TOPO_FORMS) from error
    except (Exception, SystemExit) as error:
        raise UsageError(f"{name}: {type(error).__name__}: {error}", TOPO_FORMS) from error


def _find_class(module: ModuleType, name: TopoName, where: str) -> Callable[..., object]:
    """Return the class of that name, or of the file's `topos`; without a name the only one."""
    from mininet.topo import Topo

    known: dict[str, Callable[..., object]] = {
        key: value
        for key, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, Topo)
        and value.__module__ == module.__name__
    }
    known |= {key: value for key, value in getattr(module, "topos", {}).items() if callable(value)}
    if name.class_name in known:
        return known[name.class_name]
    if not known:
        raise UsageError(f"{where}: defines no Topo", TOPO_FORMS)
    if not name.class_name and len({id(each) for each in known.values()}) == 1:
        return next(iter(known.values()))
    if not name.class_name:
        raise UsageError(
            f"{where}: defines {', '.join(known)}", f"name one: {where}:{next(iter(known))}"
        )
    raise UsageError(
        f"{where}: has no Topo {quoted(name.class_name)}", nearest(name.class_name, known)
    )


def _instantiate(path: Path, make: Callable[..., object], name: TopoName) -> Topo:
    from mininet.topo import Topo

    try:
        with _limited_nodes(name):
            topo = make(*name.settings.positional, **name.settings.named)
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(
            error_in_file(path, error).message,
            f"--topo {name.text}: the arguments of its build() follow the name: "
            "tree,2,2 or tree,depth=2,fanout=2",
        ) from error
    if not isinstance(topo, Topo):
        raise UsageError(
            f"{path}: {name.class_name} makes a {type(topo).__name__}, not a Topo", TOPO_FORMS
        )
    return topo


@contextlib.contextmanager
def _limited_nodes(name: TopoName) -> Iterator[None]:
    """Refuse a Topo that would take all of the time and memory: `tree,2,2147483648`."""
    from mininet.topo import Topo

    add_node, count = Topo.addNode, itertools.count(1)

    def add_one(topo: Topo, *positional: object, **named: object) -> object:
        if next(count) > MAX_TOPO_NODES:
            raise UsageError(
                f"--topo {name.text}: more than {MAX_TOPO_NODES} nodes",
                f"a smaller one: a guest's memory has room for {MAX_NODES}",
            )
        return add_node(topo, *positional, **named)

    Topo.addNode = add_one
    try:
        yield
    finally:
        Topo.addNode = add_node


SHAPING = ("bw", "delay", "jitter", "loss", "max_queue_size")
# of the link itself: who it joins, and how its interfaces are called
PLACES = (
    *("node1", "node2", "port1", "port2", "intfName1", "intfName2", "addr1", "addr2"),
    *("params1", "params2", "key", "cls", "cls1", "cls2", "intf", "fast", "ip", "mac", "up"),
)
WITHOUT_EFFECT = (
    "use_htb",
    "txo",
    "rxo",
    "disable_gro",
)  # links keep to rates, offloads are off
REFUSED = {
    "use_hfsc": "a link keeps to its rate itself",
    "use_tbf": "a link keeps to its rate itself",
    "latency_ms": "a tbf's; max_queue_size is the queue's limit",
    "enable_red": 'Mininet\'s has probability 1, of which tc makes 0: a scenario has `"queue"`',
    "enable_ecn": 'Mininet\'s has probability 1, of which tc makes 0: a scenario has `"queue"`',
    "speedup": "a link has one rate",
    "gro": "a queue would count packets of 64 KB",
}
KNOWN_OPTIONS = (*SHAPING, *PLACES, *WITHOUT_EFFECT, *REFUSED)
LINK_CLASSES = ("Link", "TCLink", "TCULink")
_TIME = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(s|secs?|ms|msecs?|us|usecs?)")
_MS = {"s": 1e3, "m": 1.0, "u": 1e-3}  # by the unit's first letter

LinkOptions = dict[str, Any]


def parse_link_options(text: str) -> LinkOptions:
    """Return the options in `bw=10,delay=5ms`, with or without `tc,` before them."""
    texts = text.split(",") if text else []
    options = split_settings([word for word in texts if word != "tc"])
    if options.positional or any(
        key not in (*SHAPING, *WITHOUT_EFFECT, *REFUSED) for key in options.named
    ):
        fault = f"not options of a TCLink: --link {text}"
        raise refusal(*TOPO_LINKS, message=fault, hint="--link bw=10,delay=5ms")
    return {**options.named}


def link_directions(where: str, options: LinkOptions) -> tuple[Direction, Direction]:
    """Return the forward and the reverse direction, by the options of both ends."""
    _check_class(where, options)
    ends = ({**options, **(options.get(f"params{end}") or {})} for end in (1, 2))
    forward, reverse = (_direction(where, each) for each in ends)
    return forward, reverse


def _check_class(where: str, options: LinkOptions) -> None:
    name = getattr(options.get("cls"), "__name__", None)
    if options.get("cls") is not None and name not in LINK_CLASSES:
        raise UsageError(
            f"{where}: links of class {quoted(str(name))} are not known here",
            "a Link or a TCLink can be emulated",
        )


def _direction(where: str, options: LinkOptions) -> Direction:
    for key, value in options.items():
        if key not in KNOWN_OPTIONS:
            raise UsageError(f"{where}: unknown option {quoted(key)}", nearest(key, SHAPING))
        if key in REFUSED and value:
            raise UsageError(f"{where}: {key}={value!r}: {REFUSED[key]}", "leave it out")
    rate, limit = _number(where, options, "bw"), _number(where, options, "max_queue_size")
    if limit is not None and rate is None:
        raise UsageError(f"{where}: max_queue_size without bw: nothing would queue", "give it a bw")
    return Direction(
        rate,
        _time_ms(where, options, "delay"),
        None if limit is None else Queue("pfifo", limit_packets=round(limit)),
        _time_ms(where, options, "jitter"),
        _loss(where, options),
    )


def _number(where: str, options: LinkOptions, key: str) -> float | None:
    value = options.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{where}: {key}={value!r} is not a number", f"like {key}=10")
    return float(value)


def _time_ms(where: str, options: LinkOptions, key: str) -> float:
    """Return a time that has its unit; without one, versions of tc differ in what it means."""
    value = options.get(key)
    if value is None:
        return 0.0
    match = _TIME.fullmatch(str(value).strip().lower())
    if match is None:
        raise UsageError(f"{where}: {key}={value!r} is not a time", f"with its unit: {key}='5ms'")
    return round(float(match[1]) * _MS[match[2][0]], 6)


def _loss(where: str, options: LinkOptions) -> GilbertElliott | None:
    """Return a loss of this percentage of packets, each by itself: a bad state lasts for one."""
    percent = _number(where, options, "loss")
    if not percent:
        return None
    if not 0 < percent < 100:
        raise UsageError(f"{where}: loss={percent:g} is not a percentage below 100", "like loss=1")
    chance = round(percent / 100, 9)
    return GilbertElliott(to_bad=chance, to_good=round(1 - chance, 9))


FIRST_ADDRESS = IPv4Address("10.0.0.0")  # Mininet's ipBase: hosts have numbers in it, from 1
PREFIX = "/8"
PLAIN_HOSTS = ("Node", "Host")
BRIDGES = ("LinuxBridge", "OVSBridge")
OF_CONTROLLERS = ("dpid", "listenPort", "protocols", "opts", "datapath", "failMode", "batch")
SILENT = ("cls", "ip", "defaultRoute", "routes", "isSwitch", "inNamespace", *OF_CONTROLLERS)
WHY_LEFT_OUT = {
    "cpu": "Mininet's own Host has no limit either",
    "mac": "hardware addresses are numbered",
}
_PORT = re.compile(r".*-eth(\d+)")


@dataclass(frozen=True)
class TopoGraph:
    """The graph, a word for it, and what of the Topo is not in it."""

    word: str
    graph: Graph
    left_out: tuple[str, ...]
    faults: tuple[Fault, ...]


def topo_graph(text: str, link: str = "", folder: Path = Path()) -> TopoGraph:
    """Return the network of a Topo by its name; `link` has options for all its links."""
    name = parse_topo_name(text)
    topo = build_topo(name, folder)
    faults, options = list[Fault](), LinkOptions()
    with collected(faults):
        options = parse_link_options(link)
    try:
        graph = _graph(topo, options)
    except UsageError as error:
        raise UsageError(f"{text}: {error.message}", error.hint) from error
    if not (faults or any(each.rate_mbit for link in graph.links for each in link.directions)):
        hint = "--link bw=10,delay=5ms gives one to all"
        faults = [Fault(TOPO_LINKS, "no link has a bw: nothing would ever queue", hint)]
    return TopoGraph(name.word, graph, tuple(_left_out(topo)), tuple(faults))


def _graph(topo: Topo, defaults: Mapping[str, Any]) -> Graph:
    links = topo.links(sort=True, withInfo=True)
    addresses = _addresses(topo, links)
    gateways = _gateways(topo)
    nodes = [Node(name, _kind(topo, name, gateways)) for name in topo.hosts()]
    nodes += [Node(name, _switch(topo, name)) for name in topo.switches()]
    made = (
        _graph_link(one, other, {**defaults, **options}, addresses) for one, other, options in links
    )
    return Graph(tuple(nodes), tuple(made))


def _kind(topo: Topo, name: str, gateways: Set[str]) -> NodeKind:
    """Return router if the class forwards, or if a host's default route leads there; else host."""
    info = topo.nodeInfo(name)
    if not info.get("inNamespace", True):
        raise UsageError(f"{name} would be in the machine's own network", "leave it out")
    kind = getattr(info.get("cls"), "func", info.get("cls"))  # a functools.partial's
    if kind is None or kind.__name__ in PLAIN_HOSTS:
        return NodeKind.ROUTER if name in gateways else NodeKind.HOST
    if not kind.__module__.startswith("mininet.no") and _forwards(kind):
        return NodeKind.ROUTER
    raise UsageError(
        f"{name}: what its class {kind.__name__} does when it starts is not emulated",
        "hosts are of Mininet's Host, or of a class that only sets ip_forward: a router",
    )


def _forwards(kind: type) -> bool:
    """Return whether a class switches on forwarding, as Mininet's example of a router does."""
    classes = [each for each in kind.__mro__ if not each.__module__.startswith("mininet.no")]
    try:
        return any(
            "ip_forward" in inspect.getsource(each) for each in classes if each is not object
        )
    except (OSError, TypeError):
        return False


def _gateways(topo: Topo) -> Set[str]:
    """Return the hosts that are the gateway of another host's default route."""
    host_infos = [(name, topo.nodeInfo(name)) for name in topo.hosts()]
    routes = [str(info.get("defaultRoute", "")) for _, info in host_infos]
    wanted = {route.removeprefix("via ").strip() for route in routes if route}
    for one, other, info in topo.links(withInfo=True):
        host_infos += [(one, info.get("params1") or {}), (other, info.get("params2") or {})]
    return {
        name for name, info in host_infos if str(info.get("ip", "")).partition("/")[0] in wanted
    }


def _switch(topo: Topo, name: str) -> NodeKind:
    kind = topo.nodeInfo(name).get("cls")
    called = getattr(getattr(kind, "func", kind), "__name__", None)
    if called not in (None, *BRIDGES):
        raise UsageError(
            f"{name}: a switch of class {quoted(str(called))}: switches are Linux bridges, which "
            "learn by themselves and have no controller",
            "leave its cls out",
        )
    return NodeKind.SWITCH


Place = tuple[str, int]  # a node, and its port's number


def _addresses(topo: Topo, links: list[tuple[str, str, Any]]) -> dict[Place, str]:
    """Return the addresses of hosts' interfaces.

    The link may give one; the first interface has the host's, or the next number.
    """
    numbers = {name: number for number, name in enumerate(topo.hosts(), start=1)}
    ports: dict[str, list[tuple[int, str]]] = {}
    for one, other, info in links:
        for node, end in ((one, 1), (other, 2)):
            ip_text = str((info.get(f"params{end}") or {}).get("ip") or "")
            ports.setdefault(node, []).append((info[f"port{end}"], ip_text))
    addresses = {}
    for name, interfaces in ports.items():
        if name not in numbers:
            continue
        (first, ip_text), *others = sorted(interfaces)
        given = topo.nodeInfo(name).get("ip")
        addresses[(name, first)] = str(given or ip_text or FIRST_ADDRESS + numbers[name])
        addresses |= {(name, port): address for port, address in others if address}
    return {place: ip if "/" in ip else ip + PREFIX for place, ip in addresses.items()}


def _graph_link(one: str, other: str, options: dict[str, Any], addresses: dict[Place, str]) -> Link:
    forward, reverse = link_directions(f"link {one}-{other}", options)
    ports = (
        Port(_interface_number(options, end), addresses.get((node, options[f"port{end}"])))
        for node, end in ((one, 1), (other, 2))
    )
    return Link((one, other), forward, None if reverse == forward else reverse, ports=tuple(ports))


def _interface_number(options: Mapping[str, Any], end: int) -> int:
    """Return the number in the interface's name, which may be given, or that of its port."""
    named = _PORT.fullmatch(str(options.get(f"intfName{end}") or ""))
    return int(named[1]) if named else int(options[f"port{end}"])


def _left_out(topo: Topo) -> Iterator[str]:
    """Yield a sentence on each parameter of nodes that has no effect here."""
    omitted: dict[str, list[str]] = {}
    for name in (*topo.hosts(), *topo.switches()):
        for key in topo.nodeInfo(name):
            if key not in SILENT:
                omitted.setdefault(key, []).append(name)
    for key, names in omitted.items():
        yield f"{key} of {', '.join(names)} is left out: {WHY_LEFT_OUT.get(key, 'not known here')}"
