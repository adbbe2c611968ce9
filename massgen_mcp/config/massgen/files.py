"""MassGen's own spelling of a config: what has a meaning here is taken over, the rest is ignored or refused, once for
a file.

Must not know what a valid value is; that is for `models`. Which keys are ignored or refused stands in
`massgen.features`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from massgen_mcp.config.diagnostics import Problem, show_place
from massgen_mcp.config.massgen import backends as massgen_backends
from massgen_mcp.config.massgen import commands as massgen_commands
from massgen_mcp.config.massgen.features import FEATURES, MEMORY, NEEDLESS, Feature, Section, keys_of
from massgen_mcp.config.massgen.remarks import Remarks
from massgen_mcp.config.models.orchestrator import TimeoutSettings
from massgen_mcp.config.yaml_reader import Place, Plain

GRACE_SECONDS = 120
"""MassGen's default between a round's limit and its end."""
_SECTION_PLACES: Mapping[Section, Place] = {
    "orchestrator": ("orchestrator",),
    "coordination": ("orchestrator", "coordination"),
    "timeout_settings": ("timeout_settings",),
}
_SWITCHED_INSIDE = frozenset({"persona_generator", "evaluation_criteria_generator", "prompt_improver", "dspy"})
_NOT_SWITCHED_ON = "part of a feature that this config doesn't enable"
_OF_THE_TEAM = "voting_sensitivity applies to the whole team; move it to orchestrator"
_SHARED_OUT = "massgen divides this among the agents and limits max_new_answers_per_agent to each agent's share"
_SANDBOXED = "MCP servers always run in the sandbox"
_NO_MEMORY_SETTINGS = "massgen saves and loads a session's turns automatically, so this needs no settings"
MAX_NOTE = 2_000


@dataclass(slots=True)
class Taken(Remarks):
    """Data in our spelling, and what is to be said of the rest."""

    data: dict[str, Plain] = field(default_factory=dict[str, Plain])
    asked: list[tuple[Feature, Place]] = field(default_factory=list[tuple[Feature, Place]])
    """Features that are asked for."""
    details: list[tuple[Feature, Place]] = field(default_factory=list[tuple[Feature, Place]])

    def list_refusals(self, written: Callable[[Place], Place]) -> Iterator[Problem]:
        """One problem for each feature, at the first place that asks for it."""
        for feature in dict.fromkeys(feature for feature, _ in self.asked):
            places = [place for one, place in (*self.asked, *self.details) if one is feature]
            others = _places_text([written(place) for place in places[1:]])
            yield Problem(written(places[0]), feature.message + (f" (also {others})" if others else ""))

    def note(self, written: Callable[[Place], Place]) -> str | None:
        """What was ignored and why, on one line; None if nothing was."""
        asked = {feature.name for feature, _ in self.asked}
        idle = [(_NOT_SWITCHED_ON, place) for feature, place in self.details if feature.name not in asked]
        by_reason: dict[str, list[Place]] = {}
        for why, place in (*self.ignored, *idle):
            by_reason.setdefault(why, []).append(written(place))
        ignored = "; ".join(f"{_places_text(places)} ({why})" for why, places in by_reason.items())
        return f"ignored: {ignored}"[:MAX_NOTE] if ignored else None


def take(data: Mapping[str, Plain]) -> Taken:
    """Bring a config whose agents stand under `agents` to our spelling; the input is left as it is."""
    taken = Taken(data=dict(data))
    _sift(taken.data, "config", (), taken)
    _take_memory(taken.data, (), taken)
    for section, place in _SECTION_PLACES.items():
        if (part := _own_copy(taken.data, place)) is not None:
            _sift(part, section, place, taken)
    agents = taken.data.get("agents")
    if isinstance(agents, list):
        taken.data["agents"] = [_agent_in_file(agent, ("agents", number), taken) for number, agent in enumerate(agents)]
    _take_timeouts(taken)
    _take_orchestrator(taken)
    order = {place: number for number, place in enumerate(_places(dict(data), ()))}
    for found in (taken.ignored, taken.asked, taken.details):
        found.sort(key=lambda one: order.get(one[1], 0))
    return taken


def _places(value: Plain, place: Place) -> Iterator[Place]:
    """Every place of the data, in the order of the file."""
    yield place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _places(item, (*place, key))


def _own_copy(data: dict[str, Plain], place: Place) -> dict[str, Plain] | None:
    """The mapping at `place`, as a copy that may be changed and stands in its place; None if none is there."""
    part = data
    for key in place:
        value = part.get(str(key))
        if not isinstance(value, dict):
            return None
        own = dict(value)
        part[str(key)] = own
        part = own
    return part


# -- what is ignored or refused ---------------------------------------------------------------------------------------


def _sift(part: dict[str, Plain], section: Section, place: Place, taken: Taken) -> None:
    """Take out of `part` what is ignored or refused in such a section."""
    for feature in FEATURES:
        asked = [key for key in keys_of(feature.switches, section) if key in part]
        asked += [
            key for key, values in feature.values.get(section, {}).items() if part.get(key) in tuple(values.split())
        ]
        for key in asked:
            if _is_on(key, part.pop(key)):
                taken.asked.append((feature, (*place, key)))
        for key in keys_of(feature.details, section):
            if part.get(key) is not None:
                taken.details.append((feature, (*place, key)))
            part.pop(key, None)
    for needless in NEEDLESS:
        for key in keys_of(needless.keys, section):
            if part.get(key) is not None:
                taken.ignore(needless.why, (*place, key))
            part.pop(key, None)


def _is_on(key: str, value: Plain) -> bool:
    """Whether a switch asks for its feature; many files write out what they do not want."""
    if isinstance(value, dict) and (key in _SWITCHED_INSIDE or "enabled" in value):
        return value.get("enabled") is True
    return bool(value)


def _take_memory(part: dict[str, Plain], place: Place, taken: Taken) -> None:
    memory = part.get("memory")
    if "memory" not in part or not isinstance(memory, dict | None):
        return
    del part["memory"]
    if memory is None or memory.get("enabled") is False:
        return
    persistent = memory.get("persistent_memory")
    if persistent is not None and _is_on("", persistent):
        taken.asked.append((MEMORY, (*place, "memory", "persistent_memory")))
    else:
        taken.ignore(_NO_MEMORY_SETTINGS, (*place, "memory"))


# -- what is taken over -----------------------------------------------------------------------------------------------


def _agent_in_file(agent: Plain, place: Place, taken: Taken) -> Plain:
    if not isinstance(agent, dict):
        return agent
    plain = dict(agent)
    _sift(plain, "agent", place, taken)
    _take_memory(plain, place, taken)
    if plain.get("voting_sensitivity") is not None:
        taken.ignore(_OF_THE_TEAM, (*place, "voting_sensitivity"))
    plain.pop("voting_sensitivity", None)
    if isinstance(text := plain.get("append_system_prompt"), str):
        del plain["append_system_prompt"]
        _add_instructions(plain, text, place, taken)
    if isinstance(backend := plain.get("backend"), dict):
        plain["backend"] = settings = dict(backend)
        instructions = massgen_backends.take(settings, (*place, "backend"), taken)
        _take_commands(plain, settings, place, taken)
        _sift(settings, "backend", (*place, "backend"), taken)
        _take_security(settings, (*place, "backend", "mcp_servers"), taken)
        if instructions is not None:
            _add_instructions(plain, instructions, place, taken)
    return plain


def _take_security(backend: dict[str, Plain], place: Place, taken: Taken) -> None:
    """MassGen judges the commands of MCP servers by it; here the sandbox confines them."""
    servers = backend.get("mcp_servers")
    if not isinstance(servers, dict | list):
        return
    places = [*servers] if isinstance(servers, dict) else [*range(len(servers))]
    kept: list[Plain] = []
    for key, server in zip(places, servers.values() if isinstance(servers, dict) else servers, strict=True):
        if isinstance(server, dict) and "security" in server:
            taken.ignore(_SANDBOXED, (*place, key, "security"))
            server = {name: value for name, value in server.items() if name != "security"}  # noqa: PLW2901
        kept.append(server)
    backend["mcp_servers"] = dict(zip(servers, kept, strict=True)) if isinstance(servers, dict) else kept


def _add_instructions(agent: dict[str, Plain], text: str, place: Place, taken: Taken) -> None:
    own = agent.get("system_message")
    if own is None or isinstance(own, str):
        agent["system_message"] = "\n\n".join(filter(None, (own, text)))
        taken.moved[(*place, "system_message")] = (*place, "system_message" if own else "backend")


def _take_commands(agent: dict[str, Plain], backend: dict[str, Plain], place: Place, taken: Taken) -> None:
    commands = massgen_commands.take(backend, (*place, "backend"), taken)
    if commands is None:
        return
    if "commands" in agent:
        taken.refuse((*place, "commands"), "write `commands` or MassGen's own keys for commands, not both")
    agent["commands"] = commands


def _take_timeouts(taken: Taken) -> None:
    """MassGen's limits of rounds are followed by a time of grace; ours are hard."""
    part = taken.data.get("timeout_settings")
    if not isinstance(part, dict):
        return
    place: Place = ("timeout_settings",)
    grace = _take_grace(part, (*place, "round_timeout_grace_seconds"), taken)
    names = (
        ("initial_round_timeout_seconds", "first_round_timeout_seconds"),
        ("subsequent_round_timeout_seconds", "round_timeout_seconds"),
    )
    later = part.get("subsequent_round_timeout_seconds")
    if _is_number(later) and part.get("initial_round_timeout_seconds") is None:
        usual = TimeoutSettings.model_fields["round_timeout_seconds"].default
        part.setdefault("first_round_timeout_seconds", part.get("round_timeout_seconds", usual))
    for written, ours in names:
        value = part.pop(written, None)
        if value is None:
            continue
        if ours in part:
            taken.refuse((*place, written), f"write '{written}' or '{ours}', not both")
            continue
        part[ours] = value + grace if _is_number(value) and value > 0 else value
        taken.moved[(*place, ours)] = (*place, written)


def _take_grace(part: dict[str, Plain], place: Place, taken: Taken) -> float:
    grace = part.pop("round_timeout_grace_seconds", None)
    if not _is_number(grace) or grace < 0:
        if grace is not None:
            taken.refuse(place, "expected a number of seconds")
        return GRACE_SECONDS
    if part.get("initial_round_timeout_seconds") is None and part.get("subsequent_round_timeout_seconds") is None:
        taken.ignore(_NOT_SWITCHED_ON, place)
    return grace


def _take_orchestrator(taken: Taken) -> None:
    part = taken.data.get("orchestrator")
    if not isinstance(part, dict):
        return
    place: Place = ("orchestrator",)
    _take_answers_of_all(part, place, taken)
    if part.get("coordination_mode") in (None, "voting"):
        part.pop("coordination_mode", None)
    if part.pop("skip_final_presentation", False) is True:
        part["final_answer_strategy"] = "winner_reuse"
        taken.moved[(*place, "final_answer_strategy")] = (*place, "skip_final_presentation")
    for key in ("use_skills", "skills_directory"):
        if key in part and isinstance(coordination := part.setdefault("coordination", {}), dict):
            coordination.setdefault(key, part.pop(key))
            taken.moved[(*place, "coordination", key)] = (*place, key)
    coordination = part.get("coordination")
    if isinstance(coordination, dict) and coordination.get("broadcast", "") in (None, False, "human"):
        part.update({"allow_questions": True} if coordination.pop("broadcast") == "human" else {})
    if isinstance(paths := part.get("context_paths"), list):
        part["context_paths"] = [
            _context_path(one, (*place, "context_paths", at), taken) for at, one in enumerate(paths)
        ]


def _take_answers_of_all(part: dict[str, Plain], place: Place, taken: Taken) -> None:
    """A limit for the whole team becomes one for each agent, so that it holds whoever is quick."""
    agents, total = taken.data.get("agents"), part.get("max_new_answers_global")
    if total is None:
        part.pop("max_new_answers_global", None)
    elif isinstance(total, int) and not isinstance(total, bool) and total > 0 and isinstance(agents, list):
        del part["max_new_answers_global"]
        share, own = max(1, total // max(1, len(agents))), part.get("max_new_answers_per_agent")
        if own is None or (isinstance(own, int) and own > share):
            part["max_new_answers_per_agent"] = share
        taken.ignore(_SHARED_OUT, (*place, "max_new_answers_global"))


def _context_path(entry: Plain, place: Place, taken: Taken) -> Plain:
    if isinstance(entry, str):
        return {"path": entry}
    if not isinstance(entry, dict):
        return entry
    plain = dict(entry)
    _sift(plain, "context_path", place, taken)
    return plain


def _is_number(value: Plain) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _places_text(places: list[Place]) -> str:
    """`agents[].backend.cwd` for the same key of several agents."""
    shown = [tuple("" if isinstance(part, int) else part for part in place) for place in places]
    counted = {one: shown.count(one) for one in shown}
    names = (
        show_place(place)
        if counted[one] == 1
        else ".".join(part for part in one if part).replace("agents.", "agents[].", 1)
        for one, place in zip(shown, places, strict=True)
    )
    return ", ".join(dict.fromkeys(names))
