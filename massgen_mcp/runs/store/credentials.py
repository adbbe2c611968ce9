"""Whose keys may a run use? A keyed fingerprint of the credentials in an environment; the values stay where they are.

A runner only takes runs that were started under the same credentials, so one client's keys never pay for another's run.
"""

import hashlib
import hmac
from collections.abc import Iterable, Mapping

from massgen_mcp.config.access import agent_clis, members
from massgen_mcp.config.access.prices import PRICE_AS_VARIABLE
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.providers.catalog import credential_variables
from massgen_mcp.home import WEBHOOK_SECRET_VARIABLE, WEBHOOKS_VARIABLE, Home


def variables_of(config: Config) -> tuple[str, ...]:
    """Names of the variables that decide who pays and at whose prices: every known provider's, those that this config
    names itself, and `MASSGEN_PRICE_AS`.
    """
    named = {name for agent in config.agents for name in members.variables(agent.backend)}
    named.update(config.server_variables)
    return tuple(sorted(named.union(credential_variables(), agent_clis.CREDENTIAL_VARIABLES, (PRICE_AS_VARIABLE,))))


def identity(config: Config, environ: Mapping[str, str], home: Home) -> str:
    """The fingerprint under which a run of this config is executed: runs of an operator who is told of their ends go to
    a runner that tells him. Raises `MassgenError` disk_full or store_unavailable.
    """
    webhooks = [name for name in (WEBHOOKS_VARIABLE, WEBHOOK_SECRET_VARIABLE) if environ.get(name)]
    return fingerprint((*variables_of(config), *webhooks), environ, home.secret("fingerprint"))


def fingerprint(names: Iterable[str], environ: Mapping[str, str], secret: bytes) -> str:
    """32 hexadecimal digits; equal for equal values of the same variables, and useless without `secret`."""
    digest = hmac.new(secret, digestmod=hashlib.sha256)
    for name in sorted(names):
        for part in (name, environ.get(name, "")):
            data = part.encode("utf-8", "surrogateescape")
            digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:32]
