"""What a config takes from the environment: keys, addresses that keys go to, and what stands in `${NAME}`. Keys and
addresses are checked when they are read.

An error names the variable and never its value.
"""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, urlsplit

from massgen_mcp.config.providers.catalog import PROVIDERS
from massgen_mcp.errors import MassgenError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET = re.compile(r"(API|SECRET|ACCESS|AUTH|PRIVATE)[_-]?KEY$|TOKEN$|SECRET$|PASSWORD$|PASSWD$", re.IGNORECASE)
_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie"})

REMEDY = "Set it to the key alone"

_PLACEHOLDER = re.compile(r"<.*>|.*\.\.\.|your[-_ ].*|.*[-_ ](?:here|goes[-_ ]here)|changeme|todo", re.IGNORECASE)
"""What documents write in the place of a key."""
_SECRET_PARAMETER = re.compile(
    r"key|token|secret|passw|pwd|auth|credential|signature|^sig$|^code$|^jwt$", re.IGNORECASE
)


def read_key(environ: Mapping[str, str], variable: str) -> str | None:
    """The key in this variable; None where there is none. White space around it, such as the line break at the end of a
    file, is no part of it.

    Raises `MassgenError` config_invalid for a value that is no key: it would be refused or, worse, be quoted by the
    library that cannot send it.
    """
    if fault := key_fault(environ, variable):
        raise MassgenError("config_invalid", f"{variable} doesn't contain a usable key: {fault}. {REMEDY}")
    return environ.get(variable, "").strip() or None


def key_fault(environ: Mapping[str, str], variable: str) -> str | None:
    """Why what is in this variable cannot be a key, without its value; None where it can, or where nothing is."""
    value = environ.get(variable, "").strip()
    if "\n" in value or "\r" in value:
        return "it contains a line break"
    if any(character.isspace() for character in value):
        return "it contains white space"
    if not (value.isascii() and value.isprintable()):
        return "it contains a character that isn't printable ASCII"
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'`":
        return "it has quotation marks around it"
    if _PLACEHOLDER.fullmatch(value):
        return "it is a placeholder"
    return None


def is_set(environ: Mapping[str, str], variable: str) -> bool:
    """Whether somebody has put something into this variable, be it a key or not."""
    return bool(environ.get(variable, "").strip())


def check_address(environ: Mapping[str, str], variable: str) -> None:
    """Raises `MassgenError` config_invalid if what is in this variable is no address, or holds credentials."""
    address = environ.get(variable, "").strip()
    if holds_credentials(address):
        raise MassgenError(
            "config_invalid",
            f"{variable}: an address must not contain a user name, password or key, since massgen shows and "
            "stores addresses. Put the key in its own variable, and a password for an HTTP proxy in "
            "HTTPS_PROXY",
        )
    if address and not re.fullmatch(r"https?://[^\s/?#]+(/[^\s?#]*)?", address):
        raise MassgenError(
            "config_invalid",
            f"{variable} isn't a valid address; expected http:// or https:// without ? or #, such as "
            "https://host:8000/v1",
        )


def holds_credentials(address: str) -> bool:
    """Whether an address has a user name or password in it (an `@`, wherever parsers see its host end), or a parameter
    that is called like a secret.
    """
    try:
        parts = urlsplit(address)
        parameters = [*parse_qsl(parts.query, keep_blank_values=True), *parse_qsl(parts.fragment)]
    except ValueError:
        return "@" in address
    return "@" in address or any(_SECRET_PARAMETER.search(name) for name, _ in parameters)


def called_a_secret(name: str) -> bool:
    """Whether a variable or a header of this name commonly holds a secret."""
    return bool(_SECRET.search(name)) or name.casefold() in _HEADERS


def variables_in(values: Iterable[str]) -> tuple[str, ...]:
    """The names of all variables, in their order and without repetitions."""
    return tuple(dict.fromkeys(name for value in values for name in _VARIABLE.findall(value)))


def filled(values: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The values with what stands in the variables. Raises `KeyError` with the name of one that is not set."""
    return {name: _VARIABLE.sub(lambda match: environ[match[1]], value) for name, value in values.items()}


# -- names of variables that hold keys of models ----------------------------------------------------------------------

_FURTHER_KEYS = {"CLAUDE_CODE_OAUTH_TOKEN": "claude", "ANTHROPIC_AUTH_TOKEN": "claude"}
"""Variables of a provider that the table of providers lacks, with the provider's row."""

KEY_VARIABLES = frozenset({name for row in PROVIDERS for name in row.key_variables} | _FURTHER_KEYS.keys())
"""The variables of all known providers."""

_KEY_LIKE = re.compile(r"(?:.*_)?(?:APIKEY|KEY|TOKEN)_?\d*")
_NO_MODEL = re.compile(
    r"(?:AWS|GITHUB|GH|GITLAB|BITBUCKET|CI|ACTIONS|RUNNER|JENKINS|BUILDKITE|CIRCLE|SSH|GPG|GNUPG|NPM|NODE_AUTH|YARN"
    r"|PYPI|TWINE|UV|POETRY|PIP|CARGO|RUBYGEMS|DOCKER|KUBE\w*|HELM|VAULT|CONSUL|NOMAD|TF|TERRAFORM|PULUMI|ARM"
    r"|AZURE_(?:CLIENT|STORAGE|DEVOPS|TENANT|SUBSCRIPTION|AD)|GOOGLE_(?:APPLICATION|CLIENT|OAUTH)|GCP|GCLOUD|CLOUDSDK"
    r"|FIREBASE|SUPABASE|CLOUDFLARE|CF|DIGITALOCEAN|HEROKU|NETLIFY|VERCEL|FLY|LINODE|HCLOUD|STRIPE|PAYPAL|TWILIO"
    r"|SENDGRID|MAILGUN|SLACK|DISCORD|TELEGRAM|JIRA|ATLASSIAN|LINEAR|NOTION|SENTRY|DATADOG|DD|NEW_RELIC|SNYK|SONAR"
    r"|CODECOV|DATABASE|DB|PG\w*|POSTGRES\w*|MYSQL|MONGO\w*|REDIS|MASSGEN_MCP)_.*"
    r"|.*(?:SECRET|PASSWORD|PASSWD|PASSPHRASE|PRIVATE|CREDENTIAL|ACCESS_KEY|SIGNING|ENCRYPTION|MASTER_KEY|DEPLOY"
    r"|WEBHOOK|COOKIE|SESSION|JWT|REFRESH).*"
)


def is_model_key(variable: str) -> bool:
    """Check by its name whether a variable holds the key of a model: the providers' own variables, and names that end
    in KEY or TOKEN and belong to no other service."""
    if find_key_owners(variable):
        return True
    return _KEY_LIKE.fullmatch(variable) is not None and _NO_MODEL.fullmatch(variable) is None


def find_key_owners(variable: str) -> frozenset[str]:
    """Return the rows of the table of providers whose key this is."""
    rows = [row.type for row in PROVIDERS if variable in row.key_variables]
    return frozenset([*rows, *([_FURTHER_KEYS[variable]] if variable in _FURTHER_KEYS else ())])
