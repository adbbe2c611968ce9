"""Codex in a home of its own, with a plan for its model."""

from pathlib import Path

from tests.clients.model_apis import ModelApi
from tests.clients.places import Place, binary

MODEL = "gpt-5"


class Codex:
    """One user's Codex. `servers` is TOML: the tables of the MCP servers."""

    def __init__(self, place: Place, api: ModelApi, servers: str) -> None:
        self.program = binary("codex")
        settings = Path(place.environ["HOME"]) / ".codex"
        self.place = place.with_variables(CODEX_HOME=str(settings), DOUBLE_KEY="not-a-key")
        provider = f'name = "double"\nbase_url = "{api.url}/v1"\nwire_api = "responses"\nenv_key = "DOUBLE_KEY"'
        basics = f'model = "{MODEL}"\nmodel_provider = "double"\napproval_policy = "never"'
        place.write(".codex/config.toml", f"{basics}\n\n[model_providers.double]\n{provider}\n\n{servers}")

    def exec(self, prompt: str) -> str:
        """What `codex exec` prints."""
        return self.place.run(self.program, "exec", "--skip-git-repo-check", prompt)
