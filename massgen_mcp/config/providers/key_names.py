"""Names of environment variables that hold keys of models.

It imports no config, so that a command can take the keys out of what it prints before anything else is loaded.
"""

import re

from massgen_mcp.config.providers.catalog import PROVIDERS

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
