"""Who may start how many of the runs that wait: fair between sets of credentials, first come first served within one.

Pure. A free place goes to the credentials with the fewest running runs; among equals to those that were served longest
ago, then to the run that waits longest.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """The queue of one set of credentials. `served`: when its last run was started; `head`: its oldest run's number."""

    fingerprint: str
    queued: int
    head: int
    running: int
    served: float


def allocate(room: int, queues: Iterable[QueueDepth]) -> dict[str, int]:
    """How many runs each fingerprint may start now, at most `room` together."""
    turns: dict[str, int] = {}
    waiting = {queue.fingerprint: queue for queue in queues if queue.queued}
    for _ in range(room):
        if not waiting:
            break
        chosen = min(waiting.values(), key=lambda queue: (queue.running, queue.served, queue.head))
        turns[chosen.fingerprint] = turns.get(chosen.fingerprint, 0) + 1
        if chosen.queued == 1:
            del waiting[chosen.fingerprint]
        else:
            waiting[chosen.fingerprint] = replace(chosen, queued=chosen.queued - 1, running=chosen.running + 1)
    return turns
