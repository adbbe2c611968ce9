"""Writes docs/massgen-configs.md from the code."""

from collections.abc import Iterable, Iterator, Mapping

from docs.markdown import WRITTEN, code
from massgen_mcp.config.massgen.backends import SYSTEM_KEYS, TO_THE_PROVIDER, VERBOSE_TYPES
from massgen_mcp.config.massgen.commands import MEANINGS
from massgen_mcp.config.massgen.commands import REFUSED as COMMANDS_REFUSED
from massgen_mcp.config.massgen.features import FEATURES, Section, keys_of
from massgen_mcp.config.massgen.files import GRACE_SECONDS


def _shown(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


HEAD = f"""\
# Configs of MassGen

{WRITTEN}
A config that was written for MassGen loads here unchanged, unless it needs a feature that we do not have. Such a
feature is refused, with one message that says what to do instead. An unknown key is an error that names the nearest
known one. `massgen validate FILE` shows all of this for a file.

Keys that are not needed here are ignored: those about how a run is shown and logged, rounds, plans and
retries, for instance. A note says which and why: the line `NOTE:` of `massgen`, `ignored` of `start_run`, the
logger `massgen_mcp.api` in Python.

## Taken over

| MassGen's key | what it means here |
|---|---|
"""
GRACE = "round_timeout_grace_seconds"
TAKEN = (
    ("`agent:` in place of `agents:`, no `id`", "a team of one; `agent1`, `agent2`, ..."),
    ("`max_tokens`, `max_completion_tokens`", "`max_output_tokens`"),
    ("`reasoning: {effort: high}`, `reasoning: high`", "`reasoning_effort: high`"),
    ("`text: {verbosity: low}`", f"`verbosity: low` ({_shown(VERBOSE_TYPES)}; ignored elsewhere)"),
    (_shown(TO_THE_PROVIDER), "fields of `extra_body`"),
    (f"{_shown(SYSTEM_KEYS)} of a backend", "the agent's `system_message`, after its own"),
    ("`api_key: ${NAME}`", "`api_key_env: NAME`"),
    ("`api_key: EMPTY` (`none`, `lm-studio`, ...) of a server of one's own", "no key"),
    (
        "`cwd`, `snapshot_storage`, `agent_temporary_workspace`",
        "every run has a tree of its own; a place outside of it is refused",
    ),
    ("`custom_tools`", "[functions as tools](commands.md#functions-as-tools)"),
    ("`type: codex`, `copilot`, `gemini_cli`", "`type: acp` with that [preset](acp.md)"),
    ("keys of `claude_code` and of `ag2`", "see [Claude Code](claude-code.md) and [AG2](ag2.md)"),
    (
        "`initial_round_timeout_seconds`, `subsequent_round_timeout_seconds`",
        f"`first_round_timeout_seconds`, `round_timeout_seconds`, with `{GRACE}` ({GRACE_SECONDS}) added",
    ),
    ("`max_new_answers_global: N`", "shared out: `max_new_answers_per_agent`"),
    ("`skip_final_presentation: true`", "`final_answer_strategy: winner_reuse`"),
    (
        "`use_skills`, `skills_directory` of the orchestrator",
        "those of its `coordination`; the default directory need not exist",
    ),
    ("`broadcast: human`", "`allow_questions: true`"),
    ("a context path that is only text", "a path that may be read"),
    *MEANINGS,
)
REFUSED = """
## Refused

The message says what to do instead. A key that is false, empty, null or `{enabled: false}` asks for nothing. Further
keys of a feature are ignored, with a note, where nothing asks for it.

"""


def page() -> str:
    refused = ["| feature | keys that ask for it |", "| --- | --- |"]
    for feature in FEATURES:
        asking = [_keys(feature.switches), *_values(feature.values)]
        told = ", ".join(filter(None, asking)) or "`memory.persistent_memory`"
        refused.append(f"| {feature.name} | {told} |")
    refused.append(f"| commands | {code(*COMMANDS_REFUSED)} |")
    taken = [f"| {written} | {meaning} |" for written, meaning in TAKEN]
    parts = (HEAD, *_lines(taken), REFUSED, *_lines(refused))
    return "".join(parts)


def _lines(lines: list[str]) -> Iterator[str]:
    return (f"{line}\n" for line in lines)


def _keys(table: Mapping[Section, str]) -> str:
    return ", ".join(dict.fromkeys(f"`{key}`" for section in table for key in keys_of(table, section)))


def _values(table: Mapping[Section, Mapping[str, str]]) -> Iterator[str]:
    for values in table.values():
        for key, names in values.items():
            yield f"`{key}`: " + ", ".join(f"`{name}`" for name in names.split())
