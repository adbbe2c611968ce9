"""The comparison of the five hosts in a short form, and a twin of one of them with a policy of its own."""

import pytest

from tests.harness import TempHome, home
from tests.needs import needs
from tests.soak.host_faults import FAULTS_OF_HOSTS, HostFault, find_differences, staged
from tests.soak.hosts import HOSTS
from tests.soak.kills import twin_of

__all__ = ["home"]

pytestmark = [pytest.mark.long, pytest.mark.uncounted, needs("postgres")]

CHOSEN = ("none", "missing key", "SIGTERM", "full disk", "cancel")


def choose(name: str) -> HostFault:
    (fault,) = [fault for fault in FAULTS_OF_HOSTS if fault.name == name]
    return fault


def test_all_hosts_end_a_run_alike_or_as_documented(home: TempHome) -> None:
    with staged(home) as stage:
        for fault in map(choose, CHOSEN):
            seen = [stage.observe(host, fault) for host in HOSTS]
            assert [*find_differences(fault, seen)] == [], fault.name


def test_a_host_with_a_policy_of_its_own_is_caught(home: TempHome) -> None:
    with staged(twin_of(home, "clinging_runner")) as stage:
        seen = [stage.observe("runner", choose("SIGTERM"))]
    assert [*find_differences(choose("SIGTERM"), seen)] == [
        "runner ended with 'failed runner_lost' and not 'completed, resumed'"
    ]
