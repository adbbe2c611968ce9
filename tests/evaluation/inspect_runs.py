"""A program that has Inspect evaluate models, and prints of each log what tests ask for. Inspect takes seconds to
import, so one process does it for all of them.

python -m tests.evaluation.inspect_runs '[["massgen/path:team.yaml", 20]]'     # models, and how many items
"""

import json
import sys
from typing import Any

import inspect_ai
from inspect_ai.log import EvalLog, EvalSample


def main(runs: list[tuple[str, int]]) -> None:
    told: list[dict[str, Any]] = []
    for model, limit in runs:
        logs = inspect_ai.eval("massgen_mcp/items", model, limit=limit, display="none")  # pyright: ignore[reportUnknownMemberType]
        told.append(_told(logs[0]))
    print(json.dumps(told))


def _told(log: EvalLog) -> dict[str, Any]:
    samples = [_sample(one) for one in log.samples or ()]
    accuracy = log.results.scores[0].metrics["accuracy"].value if log.results else None
    error = log.error.message if log.error else None
    return {"status": log.status, "error": error, "accuracy": accuracy, "samples": samples}


def _sample(sample: EvalSample) -> dict[str, Any]:
    score = next(iter((sample.scores or {}).values()), None)
    usage = sample.output.usage
    return {
        "id": sample.id,
        "right": score is not None and score.value == "C",
        "usage": usage and usage.model_dump(),
        "massgen": (sample.output.metadata or {}).get("massgen"),
    }


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
