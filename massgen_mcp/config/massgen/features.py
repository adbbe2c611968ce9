"""What MassGen's files can ask for and we do not have, or do not need: data for `massgen.files`, in the users' words.

A feature that is built leaves its row; its keys then belong to `models`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

Section = Literal["config", "agent", "backend", "orchestrator", "coordination", "timeout_settings", "context_path"]


@dataclass(frozen=True, slots=True, eq=False)
class Feature:
    """A feature that is refused: one message for a file, wherever it asks for it."""

    name: str
    message: str
    """What is missing here, and the way out."""
    switches: Mapping[Section, str] = field(default_factory=dict[Section, str])
    """Keys that ask for it, separated by blanks. A key that is false, empty or null asks for nothing."""
    details: Mapping[Section, str] = field(default_factory=dict[Section, str])
    """Keys that say how, and mean nothing by themselves."""
    values: Mapping[Section, Mapping[str, str]] = field(default_factory=dict[Section, Mapping[str, str]])
    """Values of keys (by key, separated by blanks) that ask for it."""


@dataclass(frozen=True, slots=True)
class Needless:
    """Keys that are ignored, and why, by section."""

    why: str
    keys: Mapping[Section, str]


MEMORY = Feature(
    "memory",
    "massgen has no vector store for memories; remove this setting. For shared notes, use "
    "orchestrator.coordination.enable_memory_filesystem_mode; sessions keep earlier turns",
)
"""Asked for by a mapping of its own form, which `massgen.files` reads."""

FEATURES = (
    Feature(
        "code",
        "massgen doesn't discover code or run hooks; name each function under custom_tools, as FILE.py:FUNCTION",
        {
            "config": "hooks",
            "backend": "auto_discover_custom_tools enable_code_based_tools custom_tools_path "
            "shared_tools_directory hooks",
        },
        {"backend": "exclude_custom_tools direct_mcp_servers"},
    ),
    Feature(
        "media",
        "agents read and write only text; remove this setting, and create images, audio and documents with other tools",
        {
            "backend": "enable_image_generation enable_audio_generation enable_video_generation "
            "enable_file_generation enable_multimodal_tools upload_files",
            "orchestrator": "enable_multimodal_tools",
        },
        {
            "backend": "multimodal_config image_generation_backend video_generation_backend audio_generation_backend",
            "orchestrator": "multimodal_config image_generation_backend video_generation_backend "
            "audio_generation_backend",
        },
    ),
    Feature(
        "voting",
        "massgen doesn't score answers by checklists or strategies; set voting_sensitivity to lenient, balanced "
        "or strict, and put requirements for answers in system_message",
        {"coordination": "round_evaluator_before_checklist orchestrator_managed_round_evaluator evolving_criteria"},
        {
            "orchestrator": "voting_threshold checklist_require_gap_report gap_report_mode "
            "max_checklist_calls_per_round checklist_first_answer",
            "coordination": "checklist_criteria_preset checklist_criteria_inline criteria_mode "
            "pre_collab_voting_threshold bootstrap_max_per_agent_per_round bootstrap_max_total "
            "evolving_criteria_score_threshold evolving_criteria_max_evolutions evolving_criteria_min_high_score_count "
            "evolving_criteria_timeout round_evaluator_skip_synthesis round_evaluator_refine "
            "round_evaluator_transformation_pressure enable_evaluator_personas improvements",
        },
        {
            "orchestrator": {
                "voting_sensitivity": "roi roi_conservative roi_balanced roi_aggressive sequential adversarial "
                "consistency diversity reflective checklist checklist_scored checklist_gated"
            }
        },
    ),
    Feature(
        "rewriting",
        "massgen has no model that rewrites the question, invents personas or writes criteria before a run; remove "
        "this setting. State your requirements in the question and system_message; a team with a single model gets "
        "perspectives automatically (orchestrator.perspectives)",
        {
            "config": "enable_personas",
            "orchestrator": "dspy enable_personas",
            "coordination": "persona_generator enable_personas evaluation_criteria_generator prompt_improver",
        },
    ),
    Feature(
        "decomposition",
        "massgen doesn't split a question: every agent answers the whole question. Remove this setting, "
        "or start one run per part",
        {"agent": "subtask", "orchestrator": "presenter_agent"},
        {"coordination": "task_decomposer"},
        {"orchestrator": {"coordination_mode": "decomposition"}},
    ),
    Feature(
        "subagents",
        "agents can start nested runs, but can't start single agents; write nested: {max_depth: 1}, or remove this "
        "setting and list every agent under agents",
        {"agent": "main_agent subagent_agents", "coordination": "enable_subagents checkpoint_enabled"},
        {
            "orchestrator": "standalone_checkpoint",
            "coordination": "subagent_default_timeout subagent_min_timeout subagent_max_timeout "
            "subagent_max_concurrent subagent_round_timeouts subagent_runtime_mode subagent_runtime_fallback_mode "
            "subagent_host_launch_prefix subagent_orchestrator subagent_types background_subagents checkpoint_mode "
            "checkpoint_guidance checkpoint_gated_patterns standalone_checkpoint",
        },
    ),
    Feature(
        "broadcast",
        "agents share only their answers; remove this setting. To let agents ask a person, use "
        "broadcast: human or orchestrator.allow_questions",
        details={
            "coordination": "broadcast_sensitivity response_depth broadcast_timeout broadcast_wait_by_default "
            "max_broadcasts_per_agent"
        },
        values={"coordination": {"broadcast": "agents"}},
    ),
    MEMORY,
    Feature(
        "synthesis",
        "the winner writes the final answer; set final_answer_strategy to winner_present (to show the winner "
        "all answers) or winner_reuse",
        {"orchestrator": "skip_voting"},
        values={"orchestrator": {"final_answer_strategy": "synthesize"}},
    ),
    Feature(
        "permissions",
        "massgen doesn't enforce roles and rules, so it doesn't run an agent that needs them. Use these settings "
        "instead: permission: read on context_paths, exclude_tools: [write_file, edit_file, "
        "move_file, delete_file], commands.blocked. Then remove `permissions`",
        {
            "config": "permissions",
            "agent": "permissions",
            "backend": "permissions",
            "orchestrator": "permissions",
            "coordination": "permissions",
        },
    ),
    Feature(
        "read_before_delete",
        "an agent may delete files in its own copy without reading them; remove this setting, or remove the tool "
        "with exclude_tools: [delete_file]",
        {
            "config": "enforce_read_before_delete",
            "backend": "enforce_read_before_delete",
            "orchestrator": "enforce_read_before_delete",
            "coordination": "enforce_read_before_delete",
        },
    ),
    Feature(
        "protected_paths",
        "a context path is writable as a whole or not at all; list writable parts as separate paths",
        {"context_path": "protected_paths"},
    ),
    Feature(
        "context_paths",
        "all agents of a team share the same paths; list them under orchestrator.context_paths",
        {"backend": "context_paths"},
    ),
    Feature(
        "resuming",
        "a run continues from its own journal, not from a config: use massgen resume RUN, or control_run with "
        "action=resume. Remove this setting",
        {"coordination": "resume_from_log"},
    ),
    Feature(
        "old",
        "this format is from early versions of MassGen; use an `agents` list instead, in which each entry has an id "
        "and a backend. To limit the number of answers, set orchestrator.max_new_answers_per_agent",
        {"config": "models model_configs num_agents max_rounds consensus_threshold voting_enabled enable_voting"},
    ),
)

NEEDLESS = (
    Needless(
        "enable_nlip writes every message to the run's nlip.jsonl; NLIP has no other settings",
        {"agent": "nlip nlip_config", "orchestrator": "nlip_config"},
    ),
    Needless(
        "set display and log options when you start a run: massgen --plain, --no-logs, --automation",
        {"config": "ui display"},
    ),
    Needless(
        "give the question and session when you start a run",
        {"config": "prompt task session_id", "orchestrator": "interactive_mode max_turns"},
    ),
    Needless(
        "massgen works differently: first answers are independent, every later round starts from all current "
        "answers, and a vote applies only to the answers that its voter saw",
        {
            "orchestrator": "type fairness_enabled fairness_lead_cap_answers max_midstream_injections_per_round "
            "defer_peer_updates_until_restart allow_midstream_peer_updates_before_checklist_submit disable_injection "
            "defer_voting_until_all_answered",
            "coordination": "enable_quality_rethink_on_iteration enable_novelty_on_iteration novelty_injection "
            "fast_iteration_mode max_verifications_per_round max_internal_fix_loops skip_redundant_scaffolding",
        },
    ),
    Needless(
        "every agent has its own workspace, and massgen keeps a copy of it with every answer",
        {
            "backend": "use_two_tier_workspace write_mode",
            "coordination": "use_two_tier_workspace write_mode drift_conflict_policy enable_changedoc "
            "learning_capture_mode disable_final_only_round_capture_fallback load_previous_session_skills",
        },
    ),
    Needless(
        "each round starts with only what it needs, so nothing needs compression",
        {"coordination": "compression_target_ratio"},
    ),
    Needless(
        "agents choose the size of their plans, up to max_tasks_per_plan",
        {"coordination": "plan_depth plan_target_steps plan_target_chunks plan_thoroughness"},
    ),
    Needless(
        "use massgen watch and massgen result to view runs",
        {"coordination": "enable_execution_trace_analyzer auto_trace_analysis web_review"},
    ),
    Needless(
        "massgen manages calls, retries and pauses across all runs; see `limits`",
        {
            "config": "rate_limits rate_limiting",
            "backend": "enable_rate_limit rate_limit circuit_breaker max_retries stream websocket_mode "
            "concurrent_tool_execution max_concurrent_tools debug_delay_seconds debug_delay_after_n_tools",
        },
    ),
    Needless(
        "massgen doesn't use experimental API features",
        {"backend": "betas enable_strict_tool_use enable_programmatic_flow enable_tool_search tool_search_variant"},
    ),
)


def keys_of(table: Mapping[Section, str], section: Section) -> Iterator[str]:
    yield from table.get(section, "").split()
