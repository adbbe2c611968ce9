"""What a run may be that is started inside another one: it reaches, spends and takes no more than that. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.config.adjusted import rechecked, without_caller, without_scripts
from massgen_mcp.config.diagnostics import on_one_line
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.orchestrator import ContextPath
from massgen_mcp.errors import MassgenError
from massgen_mcp.request.reach import Reach, reach_of, scripts_may_run

SETS = "sets: "


@dataclass(frozen=True, slots=True)
class NestedRunLimits:
    """What a nested run may spend and take, at most."""

    usd: float
    tokens: int
    seconds: float


def nested_config(
    outer: Config, own: Config | None, bounds: NestedRunLimits, environ: Mapping[str, str], granted: Sequence[Path] = ()
) -> Config:
    """The config of a run that is started inside a run of config `outer`: `own`, or a team like that one, within the
    bounds. Its agents may read what those of the outer run may, and what `own` names below `granted`; they write
    nothing of the user's, and ask nobody.

    Raises `MassgenError` nesting_refused for what the outer run may not do itself, config_invalid.
    """
    config = outer if own is None else own
    root = Path("/")
    if reach_of(config, environ, root).scripts and not (scripts_may_run(outer) or outer.orchestrator.commands.enabled):
        config = without_scripts(config)
    config = config.model_copy(
        update={
            "orchestrator": config.orchestrator.model_copy(update={"context_paths": _read_by_both(outer, own)}),
            "budget": config.budget.model_copy(
                update={
                    "max_usd": min(config.budget.max_usd, bounds.usd),
                    "max_tokens": min(config.budget.max_tokens, bounds.tokens),
                }
            ),
            "timeout_settings": config.timeout_settings.model_copy(
                update={
                    "orchestrator_timeout_seconds": min(
                        config.timeout_settings.orchestrator_timeout_seconds, bounds.seconds
                    )
                }
            ),
            "limits": {**config.limits, **outer.limits},
        }
    )
    config = rechecked(without_caller(config))
    beyond = _beyond(reach_of(outer, environ, root), reach_of(config, environ, root), granted, of_itself=own is None)
    if beyond:
        raise MassgenError(
            "nesting_refused",
            f"a run inside another one reaches no more than that one does; this team also asks for {'; '.join(beyond)}",
        )
    return config


def _read_by_both(outer: Config, own: Config | None) -> tuple[ContextPath, ...]:
    paths = [path.path for config in (outer, own) if config is not None for path in config.orchestrator.context_paths]
    files = (outer if own is None else own).orchestrator.enable_filesystem
    return tuple(ContextPath(path=path) for path in dict.fromkeys(paths)) if files else ()


def _beyond(outer: Reach, inner: Reach, granted: Sequence[Path], *, of_itself: bool) -> list[str]:
    """What the inner run reaches and the outer one does not, in the words of `Reach.demands`. A setting of another team
    is never the same one, whatever it is called.
    """
    may_read = (*outer.reads, *granted)
    readable = {
        f"reads: {on_one_line(path)}" for path in inner.reads if any(path.is_relative_to(one) for one in may_read)
    }
    within = readable | {line for line in outer.demands() if of_itself or not line.startswith(SETS)}
    within |= {*inner.spared()}
    return [line for line in inner.demands() if line not in within and line not in inner.amounts()]
