"""The texts of the help: the first one, on one screen, and everything."""

from massgen_mcp.cli.command_line import Parser, describe_arguments
from massgen_mcp.cli.commands import GROUPS, load_verb

FIRST_HELP = """\
massgen: a team of AI models answers a hard question, compares and votes.

  massgen "Postgres or Redis?"    ask a team; without a question: a conversation
  massgen -m gpt-5,ollama/qwen3 "..."  choose the models; -c team.yaml: a team
  massgen start "..."             ask in the background; --dry-run: estimate
  massgen review                  have your changes reviewed by several models

look (without an ID: the newest run of this directory)
  runs  status  watch  wait       list runs, or see what one is doing
  result [--page]                 the answer, winner and votes, or a page
apply and steer
  apply [--dry-run | --undo]      apply a run's changes to your files, or undo
  answer  cancel  resume  mark    answer a run's question, stop it, continue it
set up
  doctor                          check your keys and models, with fixes
  init  validate  configs         make a team, check one, list ready-made ones
  install CLIENT                  add massgen to Claude Code, Codex, Cursor, ...
operate
  web  serve  stats  prune        runs in a browser, MCP server, figures

massgen help ask: the options of a question   massgen help VERB: of a verb
massgen help all: everything                  massgen --completion bash|zsh|fish
"""

OF_KIND = {
    "ask": "Ask a team of LLM agents; they answer, read each other and vote.",
    "start": "Ask in the background, and print the run's id. `massgen watch ID` follows it.",
    "batch": "Ask every question of a file; QUESTION is the FILE, with one JSON object a line.",
    "init": "Set up a config in a short dialogue at a terminal; then ask QUESTION, if there is one.",
}
OF_ASK = """
Without --config or a model the team is that of .massgen/config.yaml, else that of your own config.yaml, else the \
default team: of the keys that are set, or of a local model server. Where there is none, a short dialogue on \
a terminal sets one up. When standard output is no terminal, it has the answer and nothing else. A config that \
came with the directory and could do harm waits for your consent (see --trust). Without a QUESTION \
a conversation begins: several turns, kept as a session. A QUESTION that looks like a verb or a file goes after --.

examples:
  massgen "Is our retry policy sound?"
  massgen --config @examples/two_providers "Postgres or SQLite?"
  massgen --model openai/gpt-5,claude/claude-sonnet-4-5 "Review this plan"
  massgen --backend gemini --num-agents 3 "Name a better name"
  git diff | massgen --automation --output review.md -

output of --automation:
Ten to twenty lines, which begin with these words; nothing else is on standard output.
  LOG_DIR:         directory of this run, absolute; always the first line
  STATUS:          its status.json, rewritten at least every two seconds
  AGENTS:          the team, as agent_a (backend/model), ...
  QUESTION:        the question, shortened
  [Coordination    in progress: now the agents work
  TEAM:            where the team comes from; its hosts, keys by name, writable paths
  NOTE:            what of the config was ignored; a model that a gateway does not list
  WARNING:         something went wrong, the run went on
  WINNER:          the agent whose answer won
  OUTCOME:         how the winner was found, and how many voted
  DURATION:        seconds, such as 12.3s
  COST:            US dollars and tokens; what has no known price is said
  ANSWER_FILE:     the final answer, whole; not with --no-logs
  REPORT:          the run as a page to look at; not with --no-logs
  ANSWER_PREVIEW:  the answer, shortened
  OUTPUT_FILE:     where the whole answer was written as well, with --output
  APPLIED:         files of yours that the run changed; or NOT_APPLIED with the cause
  COMPLETED:       N agents, seconds in total; or FAILED, TIMED_OUT, CANCELLED with the cause
"""
EXIT_CODES = """
exit codes of a question (also start, batch, eval):
  0  success
  1  the command line or the config is wrong, or a key or your consent is missing; no model was asked
  2  the run failed
  3  the run reached its time limit; the best answer so far is shown
  4  interrupted; Ctrl-C once ends the run in good order, twice at once

exit codes of review: 0 nothing found, 1 findings, 2 unclear, 4 interrupted

exit codes of the other verbs:
  0    done; of wait, watch and result: the run is completed
  1    the run failed, was cancelled or ran out of time; or the request was refused, as apply with conflicts
  2    of wait, watch, result, apply and cancel: the run has not ended yet
  3    there is no such run (any more), or the beginning of the id fits several
  4    of wait, watch and result: the run needs an answer (or, interrupted, its keys) before it can go on
  5    the run store, the run's record or this program failed
  64   the command line is wrong
  130  stopped by Ctrl-C; runs go on
"""
SURROUNDINGS = """
environment:
  *_API_KEY         keys of the providers; `massgen configs` names those that each team needs
  MASSGEN_CONFIG_HOME  directory of your own config.yaml and keys.yaml
  MASSGEN_ALLOWED_KEYS  KEY@HOST ...: keys that may go to hosts that are not their own
  MASSGEN_MCP_HOME  the state directory; an absolute path
  MASSGEN_MCP_RUNNER_IDLE_SECONDS  how long a background process without runs stays (60)
  MASSGEN_MCP_MAX_RUNNING  maximum number of parallel runs, of all processes together (50)
  MASSGEN_MCP_MAX_QUEUED  runs that may wait (1000)
  MASSGEN_MCP_KEEP_RESULTS_DAYS  days after its end that a run is kept (7)
  MASSGEN_MCP_KEEP_WORKSPACES_HOURS  hours after its end that a run's workspaces are kept (24)
  MASSGEN_MCP_STORE  as --store: runs are kept in PostgreSQL, and `massgen worker` executes them
  MASSGEN_MCP_FILES  where files of these runs are: s3://..., gs://..., az://..., or a directory that all mount
  MASSGEN_MCP_GIT_HOSTS  from where workers may clone: HOST or HOST=TOKEN, with blanks between them
  MASSGEN_MCP_POOL  for whose workers runs are that are started here (default)
  MASSGEN_MCP_HTTP_TOKEN  the bearer token of --transport http
  MASSGEN_MCP_PEOPLE  as --people, or the text of such a file
  MASSGEN_MCP_WEBHOOKS, MASSGEN_MCP_WEBHOOK_SECRET  URLs notified when a run ends, and the secret that signs it
  MASSGEN_MCP_OAUTH_CLIENT_ID  for --oauth-introspection-url, and to sign in to --pages
  MASSGEN_MCP_OAUTH_CLIENT_SECRET  for the same
  NO_COLOR          no colours
  COLUMNS           width of this text

files:
  .massgen/config.yaml    team of this directory
  ~/.config/massgen/config.yaml  your own team (on Linux; elsewhere where the system keeps configs)
  .massgen/massgen_logs/  one directory per run: events, status, log, every answer, final/<agent>/answer.txt
  .massgen/sessions/      conversations
  ~/.local/state/massgen-mcp/  the state directory (Linux), private to you, with runs.sqlite3: which runs there are
"""


def format_manual() -> str:
    """Return all verbs with their arguments, the exit codes, the environment and the files."""
    lines = [
        load_verb("ask").make_parser().format_help(),
        "verbs; `massgen-mcp VERB` is the same, `massgen-mcp` alone is serve",
    ]
    for title, names in GROUPS.items():
        lines.append(f"\n{title}:")
        verbs = [load_verb(name) for name in names]
        lines += [f"  {verb.name:<14} {verb.help}" for verb in verbs]
    lines.append("\noptions of verbs; -h shows what they mean:")
    verbs = [load_verb(name) for names in GROUPS.values() for name in names]
    lines += [f"  {verb.name:<14} {describe_arguments(verb.make_parser())}" for verb in verbs if verb.name != "ask"]
    epilog = Parser({}, prog="massgen", epilog="\n".join([*lines[1:], EXIT_CODES, SURROUNDINGS]), add_help=False)
    return lines[0] + "\n" + epilog.format_help().partition("\n\n")[2]
