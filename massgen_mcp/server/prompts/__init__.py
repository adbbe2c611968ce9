"""The prompts that clients offer to people, as slash commands for instance. Each is a file beside this one.

A file has `title`, `description`, `text` and `arguments`. In the text `{name}` stands for what an argument brings: its
`given`, in which `{value}` is what the person wrote, or its `missing`.
"""

import re
import tomllib
from pathlib import Path

from mcp.server.mcpserver.prompts import Prompt
from mcp.server.mcpserver.prompts.base import PromptArgument
from pydantic import BaseModel

from massgen_mcp.server.app import MassgenServer

SUFFIX = ".toml"
_PLACE = re.compile(r"\{(\w+)\}")


class Argument(BaseModel, frozen=True, extra="forbid"):
    name: str
    description: str
    required: bool = False
    given: str = "{value}"
    missing: str = ""

    def brings(self, value: str | None) -> str:
        return self.given.replace("{value}", value) if value else self.missing


class PromptFile(BaseModel, frozen=True, extra="forbid"):
    title: str
    description: str
    text: str
    arguments: list[Argument] = []

    async def write(self, **values: str) -> str:
        """Return the text. What a person wrote is put in as it is, braces and all."""
        brought = {argument.name: argument.brings(values.get(argument.name)) for argument in self.arguments}
        return _PLACE.sub(lambda place: brought.get(place[1], place[0]), self.text)


def add_prompts(server: MassgenServer) -> None:
    """Register every prompt on `server`."""
    for path in sorted(Path(__file__).parent.glob(f"*{SUFFIX}")):
        file = PromptFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
        server.add_prompt(
            Prompt(
                name=path.name.removesuffix(SUFFIX),
                title=file.title,
                description=file.description,
                arguments=[
                    PromptArgument(name=one.name, description=one.description, required=one.required)
                    for one in file.arguments
                ],
                fn=file.write,
                context_kwarg=None,
            )
        )
