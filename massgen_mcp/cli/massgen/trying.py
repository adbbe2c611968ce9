"""Before a person's run asks a model, the checks are tried on the files as they are. If one says nothing of them, the
person is asked whether to go on.
"""

from collections.abc import Callable

from massgen_mcp.cli.asking import confirm
from massgen_mcp.request.team import Team

SECONDS = 600.0
"""For all checks together; what has not run then runs in the run."""


async def agreed_to_checks(team: Team, say: Callable[[str], None]) -> bool:
    """Whether the run may begin. `say` is for what a person should read."""
    config = team.config
    if not config.orchestrator.checks:
        return True
    from massgen_mcp.runs.host.setting_up import try_checks

    say("Trying the checks on your files as they are; no model is asked yet.")
    tried = await try_checks(config, team.environ, seconds=SECONDS)
    for one in tried:
        say(f"Check {one}")
    void = [one for one in tried if one.state == "void"]
    if not void:
        return True
    say(f"{len(void)} of {len(tried)} checks would say nothing of the answers' files in this environment.")
    try:
        return confirm("Begin all the same", default=False)
    except KeyboardInterrupt:
        return False
