"""What an agent does that runs MassGen itself: start it in automation mode, watch `status.json`, read the answer.

python examples/nested_run.py @examples/scripted "Should we rewrite it or refactor it?"
"""

import json
import subprocess
import sys
import time
from pathlib import Path

POLL_SECONDS = 0.1


def main(config: str, question: str) -> int:
    command = ["massgen", "--automation", "--config", config, question]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout
        log_dir = Path(run.stdout.readline().removeprefix("LOG_DIR: ").strip())
        winner = follow(log_dir / "status.json")
        if winner:
            print((log_dir / "final" / winner / "answer.txt").read_text())
        run.stdout.read()
    return run.returncode


def follow(status_file: Path) -> str | None:
    """Tell every change of the run until it has ended; returns the winner."""
    told = ""
    while True:
        if status_file.exists():
            status = json.loads(status_file.read_text())
            agents = ", ".join(f"{name} {agent['status']}" for name, agent in status["agents"].items())
            line = f"{status['coordination']['completion_percentage']} %: {agents}"
            if line != told:
                told = line
                print(line)
            if status["coordination"]["completion_percentage"] == 100:
                return status["results"]["winner"]
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
