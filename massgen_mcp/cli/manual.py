"""The texts of the help: the first one, on one screen, and everything."""

from massgen_mcp.cli.command_line import Parser, describe_arguments
from massgen_mcp.cli.commands import GROUPS, load_verb

FIRST_HELP = """\
massgen: several AI models answer your question, compare their answers and vote.

  massgen "Postgres or Redis?"    ask a team; without a question: a conversation
  massgen -m gpt-5,ollama/qwen3 "..."  choose the models; -c team.yaml: a team
  massgen start "..."             ask in the background; --dry-run: estimate
  massgen review                  let several models review your changes

look (without an ID: the newest run in this directory)
  runs  status  watch  wait       list runs, or see what one is doing
  result [--page]                 the answer, winner and votes, or a page
apply and steer
  apply [--dry-run | --undo]      apply a run's changes to your files, or undo
  answer  cancel  resume  mark    answer a run's question, stop it, continue it
set up
  doctor                          check your keys and models, suggest fixes
  init  validate  configs         make a team, check one, list ready-made ones
  install CLIENT                  add massgen to Claude Code, Codex, Cursor, ...
operate
  web  serve  stats  prune        runs in a browser, MCP server, figures

massgen help ask: options of a question    massgen help VERB: options of a verb
massgen help all: everything                  massgen --completion bash|zsh|fish
"""

OF_VERB = {
    "ask": "Ask a team of LLM agents. They answer, read each other's answers and vote.",
    "start": "Ask in the background and print the run's ID. `massgen watch ID` follows it.",
    "batch": "Ask every question in a file. Instead of QUESTION, name a FILE with one JSON object per line.",
    "init": "Create a config by answering a few questions in a terminal, then ask QUESTION, if given.",
}
OF_ASK = """
Without --config or --model, massgen uses the first of these teams that it finds: the one in \
.massgen/config.yaml, the one in your own config.yaml, or the default team for your API keys or local model server. If \
it finds none, it asks you a few questions in a terminal to set one up. If standard output isn't a terminal, massgen \
writes only the answer to it. If a config in the directory asks for risky permissions, massgen waits for your consent \
(see --trust). Without a QUESTION, massgen starts a conversation and saves it as a session. Put -- before a QUESTION \
that looks like a verb or a file name.

examples:
  massgen "Is our retry policy sound?"
  massgen --config @examples/two_providers "Postgres or SQLite?"
  massgen --model openai/gpt-5,claude/claude-sonnet-4-5 "Review this plan"
  massgen --backend gemini --num-agents 3 "Suggest a better name"
  git diff | massgen --automation --output review.md -

output of --automation:
Standard output consists of ten to twenty lines, each starting with one of these words:
  LOG_DIR:         absolute path of the run's directory; always the first line
  STATUS:          the run's status.json, updated at least every two seconds
  AGENTS:          the team, as agent_a (backend/model), ...
  QUESTION:        the question, shortened
  [Coordination    in progress: the agents are working
  TEAM:            where the team comes from, its hosts, the names of its keys, and the paths it may change
  NOTE:            ignored parts of the config; models that a gateway doesn't list
  WARNING:         a problem that didn't stop the run
  WINNER:          the agent whose answer won
  OUTCOME:         how the winner was chosen, and how many agents voted
  DURATION:        seconds, such as 12.3s
  COST:            US dollars, tokens, and the number of calls without a known price
  ANSWER_FILE:     file with the full final answer; left out with --no-logs
  REPORT:          the run as an HTML page; left out with --no-logs
  ANSWER_PREVIEW:  the answer, shortened
  OUTPUT_FILE:     the file named with --output; it contains the full answer
  APPLIED:         number of your files that were changed; otherwise NOT_APPLIED with the reason
  COMPLETED:       number of agents and total seconds; otherwise FAILED, TIMED_OUT or CANCELLED with the reason
"""
EXIT_CODES = """
exit codes of a question (and of start, batch, eval):
  0  success
  1  the command line or config is wrong, or a key or your consent is missing; no model was called
  2  the run failed
  3  the run reached its time limit; massgen shows the best answer so far
  4  interrupted; press Ctrl-C once to end the run cleanly, twice to end it immediately

exit codes of review: 0 nothing found, 1 findings, 2 unclear, 4 interrupted

exit codes of the other verbs:
  0    done; for wait, watch and result: the run has completed
  1    the run failed, timed out or was cancelled; or massgen rejected the request (for example, conflicting changes)
  2    for wait, watch, result, apply and cancel: the run hasn't ended yet
  3    no run, or more than one, matches this ID
  4    for wait, watch and result: the run is waiting for an answer or, after an interruption, for its keys
  5    the run store or massgen itself failed, or the run's record is damaged
  64   the command line is wrong
  130  stopped by Ctrl-C; runs continue
"""
SURROUNDINGS = """
environment:
  *_API_KEY         provider keys; `massgen configs` shows which ones each team needs
  MASSGEN_CONFIG_HOME  directory for your own config.yaml and keys.yaml
  MASSGEN_ALLOWED_KEYS  KEY@HOST ...: allow sending a key to a host other than its provider's
  MASSGEN_MCP_HOME  state directory (absolute path)
  MASSGEN_MCP_RUNNER_IDLE_SECONDS  seconds until an idle background process exits (60)
  MASSGEN_MCP_MAX_RUNNING  maximum number of parallel runs across all processes (50)
  MASSGEN_MCP_MAX_QUEUED  maximum number of queued runs (1000)
  MASSGEN_MCP_KEEP_RESULTS_DAYS  days to keep a finished run (7)
  MASSGEN_MCP_KEEP_WORKSPACES_HOURS  hours to keep a finished run's workspaces (24)
  MASSGEN_MCP_STORE  like --store: store runs in PostgreSQL; `massgen worker` executes them
  MASSGEN_MCP_FILES  file storage for these runs: s3://..., gs://..., az://..., or a directory that all machines mount
  MASSGEN_MCP_GIT_HOSTS  git hosts that workers may clone from: HOST or HOST=TOKEN, separated by spaces
  MASSGEN_MCP_POOL  worker pool for runs that you start here (default)
  MASSGEN_MCP_HTTP_TOKEN  bearer token for --transport http
  MASSGEN_MCP_PEOPLE  the --people file, or its contents
  MASSGEN_MCP_WEBHOOKS, MASSGEN_MCP_WEBHOOK_SECRET  URLs to notify when a run ends, and the secret for signing
  MASSGEN_MCP_OAUTH_CLIENT_ID  client id for --oauth-introspection-url and for signing in to --pages
  MASSGEN_MCP_OAUTH_CLIENT_SECRET  its secret
  NO_COLOR          no colours
  COLUMNS           width of the help text

files:
  .massgen/config.yaml    this directory's team
  ~/.config/massgen/config.yaml  your own team (on Linux; other systems use their own config directory)
  .massgen/massgen_logs/  one directory per run: events, status, log, every answer, final/<agent>/answer.txt
  .massgen/sessions/      conversations
  ~/.local/state/massgen-mcp/  state directory (on Linux), private to you; runs.sqlite3 lists the runs
"""


def format_manual() -> str:
    """Return all verbs with their arguments, the exit codes, the environment and the files."""
    lines = [
        load_verb("ask").make_parser().format_help(),
        "verbs (`massgen-mcp VERB` does the same; `massgen-mcp` alone means serve)",
    ]
    for title, names in GROUPS.items():
        lines.append(f"\n{title}:")
        verbs = [load_verb(name) for name in names]
        lines += [f"  {verb.name:<14} {verb.help}" for verb in verbs]
    lines.append("\nverb options (`massgen VERB -h` explains them):")
    verbs = [load_verb(name) for names in GROUPS.values() for name in names]
    lines += [f"  {verb.name:<14} {describe_arguments(verb.make_parser())}" for verb in verbs if verb.name != "ask"]
    epilog = Parser({}, prog="massgen", epilog="\n".join([*lines[1:], EXIT_CODES, SURROUNDINGS]), add_help=False)
    return lines[0] + "\n" + epilog.format_help().partition("\n\n")[2]
