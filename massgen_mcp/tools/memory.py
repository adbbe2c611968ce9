"""What agents note for themselves and each other: short-term memories all see, long-term ones are loaded by name.

The board holds what the team of one run shares; each memory also stands as a file in its owner's workspace, through the
guard.
"""

import re
import threading
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Literal, cast, get_args

from massgen_mcp.errors import MassgenError
from massgen_mcp.markers import marked
from massgen_mcp.nearest import nearest
from massgen_mcp.tools.base import Arguments, Tool, ToolRefused, WellFormedText, tool_spec
from massgen_mcp.tools.files import file_tool
from massgen_mcp.workspace.directory import Workspace
from massgen_mcp.workspace.guard import PathMissing, PathRefused, safe_id, shown

Tier = Literal["short_term", "long_term"]

MAX_CHARACTERS: dict[Tier, int] = {"short_term": 4_000, "long_term": 50_000}
MAX_MEMORIES = 50
"""Of one agent."""
MAX_DESCRIPTION = 200
MAX_TEXT = 20_000
"""Of what `MemoryBoard.text` shows, in characters."""

_MAX_FILE_BYTES = 4 * MAX_CHARACTERS["long_term"] + 2_000
_ROOM_FOR_NOTES = 1_000
_HEADER = re.compile(r"(?:---\ndescription: (.*)\n---\n)?")
_SHORT = "Memories of the team:"
_LONG = "More memories, read them with `load_memory`:"


class SaveMemory(Arguments):
    name: str
    content: WellFormedText
    tier: Tier = "short_term"
    description: WellFormedText = ""


class NamedMemory(Arguments):
    name: str


@dataclass(frozen=True, slots=True)
class Memory:
    name: str
    tier: Tier
    content: str
    description: str
    owner: str

    @property
    def path(self) -> str:
        return f"memory/{self.tier}/{self.name}.md"


class MemoryBoard:
    """The memories of a team in one run, the latest last. Files follow it: what is refused there changes nothing here.

    May be used from several threads. `save`, `remove` and `restore` block on files.
    """

    def __init__(self) -> None:
        self._memories: dict[str, Memory] = {}
        self._changing = threading.Lock()

    def save(self, agent: str, workspace: Workspace, wanted: SaveMemory) -> str:
        """Keep a memory, or put it in place of the agent's earlier one. Raises `ToolRefused` or `PathRefused`."""
        with self._changing:
            memory = self._wished_memory(agent, wanted)
            _write_memory(workspace, memory)
            earlier = self._memories.get(memory.name)
            if earlier is not None and earlier.tier != memory.tier:
                _delete(workspace, earlier)
            self._keep(memory)
        return f"saved {memory.name}"

    def remove(self, agent: str, workspace: Workspace, name: str) -> str:
        """Forget one of the agent's own memories. Raises `ToolRefused` or `PathRefused`."""
        with self._changing:
            memory = self._found(name)
            if memory.owner != agent:
                raise ToolRefused(f"{name} belongs to another expert")
            _delete(workspace, memory)
            self._memories = {key: kept for key, kept in self._memories.items() if key != name}
        return f"removed {name}"

    def load(self, name: str) -> str:
        """The content of anyone's memory. Raises `ToolRefused`."""
        return self._found(name).content

    def restore(self, agent: str, workspace: Workspace) -> tuple[str, ...]:
        """Take in the memories an earlier run or turn left in a workspace; says in notes what could not be."""
        notes: list[str] = []
        for tier in get_args(Tier):
            try:
                entries = workspace.root.list_dir(f"memory/{tier}", 4 * MAX_MEMORIES).entries
            except PathMissing:
                continue
            except PathRefused as refused:
                notes.append(str(refused))
                continue
            for entry in entries:
                try:
                    with self._changing:
                        self._take_in(agent, workspace, tier, entry.path)
                except (PathRefused, ToolRefused) as refused:
                    notes.append(f"{shown(entry.path)}: {refused}")
        return tuple(notes)

    def text(self, nonce: str) -> str:
        """The team's memories for a prompt, by name and without owners; "" when there is none. `nonce`: of the markers.

        At most `MAX_TEXT` characters: the oldest are left out and named.
        """
        memories = self._memories
        blocks: dict[str, str] = {}
        room = MAX_TEXT - _ROOM_FOR_NOTES
        for memory in reversed(memories.values()):
            block = _marked_memory(memory, nonce)
            room -= len(block) + 2
            if room < 0:
                break
            blocks[memory.name] = block
        parts: list[str] = []
        for tier, heading, gap in (("short_term", _SHORT, "\n\n"), ("long_term", _LONG, "\n")):
            if names := sorted(name for name in blocks if memories[name].tier == tier):
                listed = gap.join(blocks[name] for name in names)
                parts.append(heading + gap + (listed if tier == "short_term" else marked("memories", listed, nonce)))
        if left_out := sorted(memories.keys() - blocks.keys()):
            more = f" and {len(left_out) - 10} more" if len(left_out) > 10 else ""
            parts.append(f"[older, not shown, `load_memory` reads them: {', '.join(left_out[:10])}{more}]")
        return "\n\n".join(parts)

    def _take_in(self, agent: str, workspace: Workspace, tier: Tier, path: str) -> None:
        name = path.rpartition("/")[2].removesuffix(".md")
        if not path.endswith(".md"):
            raise ToolRefused("is no .md file")
        if name in self._memories:
            raise ToolRefused("there is a memory of that name already")
        text = workspace.root.read_bytes(path, _MAX_FILE_BYTES).decode(errors="replace")
        header = cast("re.Match[str]", _HEADER.match(text))
        found = SaveMemory(name=name, tier=tier, description=header[1] or "", content=text[header.end() :])
        self._keep(self._wished_memory(agent, found))

    def _wished_memory(self, agent: str, wanted: SaveMemory) -> Memory:
        """The memory that the wish amounts to. Raises `ToolRefused`."""
        try:
            name = safe_id(wanted.name, "the name")
        except MassgenError as error:
            raise ToolRefused(str(error)) from error
        limit = MAX_CHARACTERS[wanted.tier]
        if not wanted.content.strip():
            raise ToolRefused("'content' is empty")
        if len(wanted.content) > limit:
            hint = "; shorten it, or save it as long_term" if wanted.tier == "short_term" else ""
            raise ToolRefused(f"'content' has {len(wanted.content)} characters, {wanted.tier} takes {limit}{hint}")
        earlier = self._memories.get(name)
        if earlier is not None and earlier.owner != agent:
            raise ToolRefused(f"another expert has a memory of that name; {_free(name, self._memories)} is free")
        if earlier is None and sum(memory.owner == agent for memory in self._memories.values()) >= MAX_MEMORIES:
            raise ToolRefused(f"you have {MAX_MEMORIES} memories, the most there can be; remove_memory one first")
        description = " ".join(wanted.description.split())[:MAX_DESCRIPTION]
        return Memory(name, wanted.tier, wanted.content, description, agent)

    def _keep(self, memory: Memory) -> None:
        """Put it last. The mapping is replaced, never changed, so that readers need no lock."""
        others = {name: kept for name, kept in self._memories.items() if name != memory.name}
        self._memories = {**others, memory.name: memory}

    def _found(self, name: str) -> Memory:
        memories = self._memories
        if name in memories:
            return memories[name]
        hint = nearest(name, memories) or ", ".join(sorted(memories)[:20]) or "none yet"
        raise ToolRefused(f"no memory {name[:64]!a}; there is {hint}")


def memory_tools(workspace: Workspace, board: MemoryBoard, *, agent: str) -> tuple[Tool, ...]:
    """The three tools of one agent; `agent` is who owns what they save, on the board that the team shares."""
    save = tool_spec("save_memory", "Save a note: short_term is shown to all, long_term is loaded by name.", SaveMemory)
    load = tool_spec("load_memory", "Read a memory.", NamedMemory)
    remove = tool_spec("remove_memory", "Remove one of your own memories.", NamedMemory)
    return (
        file_tool(workspace, save, SaveMemory, lambda own, wanted: board.save(agent, own, wanted)),
        file_tool(workspace, load, NamedMemory, lambda _, wanted: board.load(wanted.name), foreign=True),
        file_tool(workspace, remove, NamedMemory, lambda own, wanted: board.remove(agent, own, wanted.name)),
    )


def _marked_memory(memory: Memory, nonce: str) -> str:
    if memory.tier == "long_term":
        return f"- {memory.name}: {memory.description}" if memory.description else f"- {memory.name}"
    return marked("memory", memory.content, nonce, name=memory.name)


def _free(name: str, taken: Container[str]) -> str:
    return next(free for number in count(2) if (free := f"{name[:60]}-{number}") not in taken)


def _write_memory(workspace: Workspace, memory: Memory) -> None:
    place = workspace.resolve_writable(memory.path)
    place.root.write_bytes(place.rel, f"---\ndescription: {memory.description}\n---\n{memory.content}".encode())


def _delete(workspace: Workspace, memory: Memory) -> None:
    with suppress(PathMissing):
        workspace.root.delete(memory.path)
