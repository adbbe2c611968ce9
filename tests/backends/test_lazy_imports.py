"""A provider's SDK takes a second to import; whoever does not talk to it does not pay. Nor does an event loop wait for
the HTTP client: backends are made on it.
"""

import subprocess
import sys

SCRIPT = """
import sys
from massgen_mcp.backends.registry import make_backend
from massgen_mcp.config.models.ag2 import Ag2AgentConfig, Ag2BackendConfig, Ag2ModelConfig
from massgen_mcp.config.models.backends import ClaudeCodeBackendConfig
from massgen_mcp.config.models.http_backends import AzureBackendConfig, LocalBackendConfig, ProviderBackendConfig
from massgen_mcp.config.models.backends import ScriptedBackendConfig
make_backend(ScriptedBackendConfig(type="scripted"), {})
keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "XAI_API_KEY"), "k")
for kind in ("openai", "chatcompletion", "claude", "gemini", "grok"):
    make_backend(ProviderBackendConfig(type=kind, model="m"), keys)
make_backend(LocalBackendConfig(type="vllm"), {})
make_backend(AzureBackendConfig(type="azure_openai", model="m", endpoint="http://127.0.0.1:1"), {})
print("httpx2" in sys.modules)
make_backend(ClaudeCodeBackendConfig(type="claude_code"), {"ANTHROPIC_API_KEY": "k"})
agent = Ag2AgentConfig(llm_config=Ag2ModelConfig(model="m"))
make_backend(Ag2BackendConfig(type="ag2", agent_config=agent), {"OPENAI_API_KEY": "k"})
print(sorted({"openai", "anthropic", "google.genai", "claude_agent_sdk", "mcp", "ag2", "httpx"} & set(sys.modules)))
"""


def test_making_a_backend_imports_no_sdk_and_for_a_wire_no_http_client() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    http_was_imported, sdks = done.stdout.splitlines()
    assert http_was_imported == "False"
    assert sdks == "[]"
