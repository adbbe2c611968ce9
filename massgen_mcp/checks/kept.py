"""What checks said of the unchanged files when they ran last, kept in the state directory for whoever asks next: a run
after a dry run does not run them twice. One small file for the checks of a directory.
"""

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from massgen_mcp.events.parts import CheckOutcome
from massgen_mcp.home import write_durably
from massgen_mcp.redaction import Redactor

USED_SECONDS = 3_600.0
"""So long an outcome stands for the same files: what a check finds outside of them may have changed since."""
KEPT_SECONDS = 30 * 86_400.0
"""So long a file is kept that nobody has written since."""


class KeptOutcomes(BaseModel):
    """Of one state of the files, in one environment; both are digests."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tree: str
    environment: str
    at: float
    """When the last of them ended, in seconds since the epoch."""
    outcomes: tuple[CheckOutcome, ...]


def kept_in(file: Path) -> KeptOutcomes | None:
    """What was kept last; None where nothing can be read. Blocks."""
    try:
        return KeptOutcomes.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None


@dataclass(frozen=True, slots=True)
class BaseOutcomes:
    """Those of the base of a run or a trial. Blocks; a file that cannot be written is done without."""

    file: Path
    tree: str
    environment: str
    redactor: Redactor

    def known(self, command: str) -> CheckOutcome | None:
        """What need not be found out again. What failed for the environment is: a person may have mended that."""
        kept = kept_in(self.file)
        if kept is None or (kept.tree, kept.environment) != (self.tree, self.environment):
            return None
        if not 0 <= time.time() - kept.at < USED_SECONDS:
            return None
        found = (outcome for outcome in kept.outcomes if outcome.command == command)
        return next((one for one in found if one.result != "not_run" and one.obstacle is None), None)

    def note(self, outcome: CheckOutcome) -> None:
        """Keep one more, and drop those of another state of the files or the environment."""
        kept = kept_in(self.file)
        same = kept is not None and (kept.tree, kept.environment) == (self.tree, self.environment)
        others = [one for one in kept.outcomes if one.command != outcome.command] if kept is not None and same else []
        clean = CheckOutcome.model_validate(self.redactor.value(outcome.model_dump(mode="json")))
        made = KeptOutcomes(tree=self.tree, environment=self.environment, at=time.time(), outcomes=(*others, clean))
        with suppress(OSError):
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_durably(self.file, made.model_dump_json().encode())
            for other in self.file.parent.glob("*.json"):
                if other.stat().st_mtime < time.time() - KEPT_SECONDS:
                    other.unlink()
