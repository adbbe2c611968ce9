"""What a person can do about an agent or a run that failed: the setting or the command that changes it. Pure."""

from typing import assert_never

from massgen_mcp.errors import DropReason, FailureReason

RUN_LIMIT = "Raise `timeout_settings: orchestrator_timeout_seconds` in the config."
"""Against the time limit of a run."""


def remedy(reason: FailureReason | DropReason) -> str:  # noqa: C901 - one case per reason, nothing else
    """One sentence."""
    match reason:
        case "auth":
            return "Set the right key; `massgen-mcp doctor` shows which variables are set."
        case "quota_exhausted":
            return "Add credit at the provider, or ask other models with --models."
        case "rate_limited":
            return "Wait, or ask fewer agents at once: `limits` in the config, or --num-agents."
        case "model_not_found":
            return "Correct `model` in the config or --models; `massgen-mcp doctor` lists what local servers have."
        case "unreachable":
            return "Start the server or correct `base_url`; `massgen-mcp doctor` tries the local ones."
        case "tools_unsupported":
            return "Ask another model with --models, or start the server with tool calls."
        case "context_too_small":
            return "Ask another model with --models, or start the server with a larger context."
        case "content_filter":
            return "Word the question differently, or ask other models with --models."
        case "timeout":
            return "Raise `timeout_settings` in the config."
        case "budget":
            return "Raise `budget: max_usd` in the config."
        case "bad_reply":
            return (
                "Correct `base_url` if it leads elsewhere than to the model's API, or ask other models with --models."
            )
        case "cut_off":
            return "`massgen-mcp result` shows what it had changed."
        case "no_quorum" | "no_answer" | "no_action":
            return "Ask other models with --models; `massgen-mcp result` shows what was written."
        case "sandbox_denied":
            return "`massgen-mcp doctor` says what this machine lacks for commands of agents."
        case "config_invalid" | "bad_request":
            return "Correct the config; `massgen --validate FILE` shows every error of it."
        case "runner_lost":
            return "Start a new run; `massgen-mcp doctor` looks for a cause on this machine."
        case "provider_error":
            return "Ask again later, or ask other models with --models."
        case "internal":
            return "`massgen-mcp doctor` looks for a cause on this machine; --debug tells more."
        case _:
            assert_never(reason)
