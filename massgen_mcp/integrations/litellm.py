"""MassGen as a provider of LiteLLM: registering it. Cheap to import; LiteLLM itself is loaded by registering only.

LiteLLM takes seconds to import and is an extra: `pip install 'massgen-mcp[litellm]'`.
"""

from importlib.util import find_spec

LITELLM_AVAILABLE = find_spec("litellm") is not None
"""Whether LiteLLM is installed beside this package."""

PROVIDER = "massgen"
"""What model strings begin with: `massgen/basic_multi`."""


def register_with_litellm() -> None:
    """Make `massgen/…` models known to LiteLLM in this process; once is enough, and again does nothing.

    Models: `massgen/EXAMPLE` (a config that ships with the package), `massgen/path:FILE`, `massgen/model:MODEL` (one
    agent), `massgen/default` (as `run` without a team) and `massgen/build` (`build_config` out of `optional_params`).
    Raises `ImportError` without LiteLLM.
    """
    if not LITELLM_AVAILABLE:
        raise ImportError("LiteLLM is not installed: pip install 'massgen-mcp[litellm]'")
    from massgen_mcp.integrations.litellm_provider import register

    register(PROVIDER)
