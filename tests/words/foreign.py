"""Names in backticks that our code doesn't have, because they belong to another program or stand for an example."""

from collections.abc import Mapping

FOREIGN: Mapping[str, tuple[str, ...]] = {
    "openai": ("APIError", "APIStatusError", "max_messages", "steered"),
    "Python": ("parse_args", "Path.home", "clock_getcpuclockid", "RECORD"),
    "pytest": ("RERUN",),
    "C and Linux": ("ENOENT", "openat2"),
    "shells, and the variables of other programs": ("BUILD", "PYTHONPATH", "TEST_RUNNER", "fg", "pipx"),
    "OpenTelemetry": ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_RESOURCE_ATTRIBUTES"),
    "systemd": ("EnvironmentFile", "LoadCredential", "RuntimeDirectory"),
    "Ollama": ("ChatRequest", "OLLAMA_NUM_PARALLEL"),
    "SGLang": ("ModelCard",),
    "LiteLLM": ("MidStreamFallbackError",),
    "Inspect": ("output.metadata.massgen",),
    "LangChain, Strands and other frameworks": (
        "client_session_timeout_seconds",
        "create_agent",
        "get_tools",
    ),
    "programs that we are compared with": ("DISABLED_TOOLS", "Workflow", "clink"),
    "HTTP": ("Host",),
    "fields of providers' replies": ("usage.cost", "usage.cost_in_usd_ticks"),
    "MassGen": ("ExecutionResult", "massgen.agent_config"),
    "examples of names": (
        "CMakeLists.txt",
        "YOUR_API_KEY",
        "YOUR_API_KEY_HERE",
        "a2b1",
        "agent2",
        "agents.agent_b",
        "camelCase",
        "snake_case",
        "tests/helpers.py",
        "tests/helpers/__init__.py",
    ),
    "prefixes of our names": ("losing_",),
}
"""By their owner."""
