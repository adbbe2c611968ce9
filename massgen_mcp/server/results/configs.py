"""`list_configs`: what can be run now comes first, with its models and what it will cost; then what is missing."""

import re
from collections.abc import Mapping

from massgen_mcp.config.examples import Example, example_path, list_examples
from massgen_mcp.config.loader import EXAMPLE_PREFIX, load_config, missing_parts
from massgen_mcp.config.models.config import Config
from massgen_mcp.money.estimate import estimate
from massgen_mcp.server.results.reply import ResultPart, ToolReply, lines, listed
from massgen_mcp.server.results.words import team_of, team_text
from massgen_mcp.threads import in_thread

TO_COPY_FROM = "providers/"
"""Configs in this folder are lists to copy from, not teams."""
NEXT_STEP = "Call start_run with team=NAME. To see a team in detail, call list_configs with name=NAME."


class ConfigLine(ResultPart):
    use: str | None = None
    """Its purpose in a few words; only where nothing is missing."""
    models: str | None = None
    """Only where nothing is missing."""
    missing: list[str] | None = None
    """What it needs and has not: variables of keys, programs."""
    usd: str | None = None
    """From a brief run to a long one, one number where they cost the same; absent where no price is known."""

    def text(self) -> str:
        missing = f"missing {', '.join(self.missing)}" if self.missing else None
        return "; ".join(filter(None, (self.use, self.models, missing, f"${self.usd}" if self.usd else None)))


class ConfigList(ToolReply):
    configs: dict[str, ConfigLine]
    """By name, those that can be run now. With `name` only that one."""
    more: list[str] | None = None
    """Names of further ones that can be run now."""
    unusable: list[str] | None = None
    """Names of those that lack a key or a program; with `name` one of them says which."""
    copy_from: list[str] | None = None
    """Lists of providers; nobody runs them as they are."""
    description: str | None = None
    """From here on only of one that was asked for."""
    team: dict[str, str] | None = None
    """Each agent's id, and its model as provider/model."""
    yaml: str | None = None
    """The whole file."""
    next_step: str
    """What to call next."""

    def text(self) -> str:
        return lines(
            *(f"{name}: {line.text()}" for name, line in self.configs.items()),
            f"more: {', '.join(self.more)}" if self.more else None,
            f"unusable: {', '.join(self.unusable)}" if self.unusable else None,
            f"copy_from: {', '.join(self.copy_from)}" if self.copy_from else None,
            self.description,
            f"team: {team_text(self.team)}" if self.team else None,
            self.yaml,
            self.next_step,
        )


@in_thread
def config_list(name: str | None, environ: Mapping[str, str], *, in_full: bool = False) -> ConfigList:
    """All packaged configs; with `name` only that one, whole. `in_full` describes every team, also those that lack a
    key or a program. Raises `MassgenError` config_not_found.
    """
    if name is not None:
        return _one(name, environ)
    examples = list_examples()
    teams = [example for example in examples if not example.name.startswith(TO_COPY_FROM)]
    found = {
        example.name: _config_line(load_config(example.path, environ=environ), environ, example) for example in teams
    }
    apart = [example.name for example in examples if example not in teams]
    if in_full:
        return ConfigList(configs=found, copy_from=apart, next_step=NEXT_STEP)
    usable = sorted((name for name, line in found.items() if not line.missing), key=lambda name: name.count("/"))
    return ConfigList(
        configs={name: found[name] for name in usable[:DESCRIBED]},
        more=usable[DESCRIBED:] or None,
        unusable=[name for name, line in found.items() if line.missing] or None,
        copy_from=apart,
        next_step=NEXT_STEP,
    )


def _one(name: str, environ: Mapping[str, str]) -> ConfigList:
    path = example_path(name.removeprefix(EXAMPLE_PREFIX))
    example = next(example for example in list_examples() if example.path == path)
    config = load_config(example.path, environ=environ)
    line = _config_line(config, environ, example)
    return ConfigList(
        configs={example.name: line.model_copy(update={"models": _counted_models(config)})},
        description=example.description,
        team=team_of(config),
        yaml=path.read_text(encoding="utf-8"),
        next_step=f"Call start_run with team={example.name}.",
    )


def _config_line(config: Config, environ: Mapping[str, str], example: Example) -> ConfigLine:
    missing = missing_parts(config, environ)
    usd = estimate(config, "", environ).usd
    return ConfigLine(
        use=None if missing else shorten_purpose(example.description),
        models=None if missing else _counted_models(config),
        missing=missing or None,
        usd="-".join(dict.fromkeys(f"{amount:.2g}" for amount in usd)) if usd is not None else None,
    )


USE_WORDS = 5
DESCRIBED = 14
"""Usable teams are described, those in no folder first; the others are named."""


def shorten_purpose(description: str) -> str:
    """Return the first words of a config's first line, within its first clause."""
    clause = re.split(r"[:.;,(]", description, maxsplit=1)[0]
    return " ".join(clause.split()[:USE_WORDS])


def _counted_models(config: Config) -> str:
    models = [agent.backend.model for agent in config.agents]
    counts = {model: models.count(model) for model in models}
    return listed(*(model if count == 1 else f"{count} {model}" for model, count in counts.items()))
