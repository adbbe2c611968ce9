# ruff: noqa: E501 - a row a line
"""How model families and servers behave, a row each; every reply holds the right answer, in its own way.

Forms of calls are those that the tool parsers of vLLM, SGLang, llama.cpp and LM Studio know, and what leaks where a
server has no parser or the wrong one. Played by whole teams against one server, without files.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any

from massgen_mcp.markers import materials
from tests.raw_double import Seen, reply, sse
from tests.wires.dialects import Chat

_NUMBERS = count(1)
"""So that no two answers are the same."""
RIGHT = "Six times seven is 42."
REASON = "clear and right"
Arguments = dict[str, Any]
Write = Callable[[str, Arguments], str]
"""How a model writes a call of this tool with these arguments as text."""
BAR, SEP, OPEN, CLOSE = "\uff5c", "\u2581", "<\uff5c", "\uff5c>"


class Asked:
    """What a model makes of a request."""

    def __init__(self, seen: Seen) -> None:
        self.body = seen.body
        self.messages: list[dict[str, Any]] = seen.body["messages"]
        self.offered = "tools" in seen.body
        self.last = str(self.messages[-1]["content"])
        self.said = sum(message["role"] == "assistant" for message in self.messages)

    @property
    def answers(self) -> dict[str, str]:
        """The answers that were shown last, by name."""
        for message in reversed(self.messages):
            found = {one.name: one.text for one in materials(str(message["content"])) if one.kind == "answer"}
            if found:
                return found
        return {}

    @property
    def presents(self) -> bool:
        return "Write the final answer" in str(self.messages)

    @property
    def votes(self) -> bool:
        return bool(self.answers) and not self.presents

    @property
    def choice(self) -> str:
        return min(self.answers, key=lambda name: (self.answers[name], name))

    @property
    def action(self) -> tuple[str, Arguments]:
        if self.votes:
            return "vote", {"agent_id": self.choice, "reason": REASON, "same_as": []}
        return "new_answer", {"content": f"{RIGHT} ({next(_NUMBERS)})"}


Respond = Callable[[Asked], bytes]


@dataclass(frozen=True)
class Behaviour:
    """`more`: so many replies more than 2N+1 it may take."""

    title: str
    respond: Respond
    more: int = 0


def say(text: str) -> bytes:
    return reply(Chat().text(text).stop("end").body())


def call(name: str, arguments: str) -> bytes:
    return reply(Chat().call(name, arguments).stop("calls").body())


def refuse(message: str, status: str = "400 Bad Request") -> bytes:
    error = {"message": message, "type": "BadRequestError", "param": None, "code": None}
    return reply(json.dumps({"error": error}).encode(), status=status, media_type="application/json")


def _js(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _keywords(arguments: Arguments) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in arguments.items())


def _tagged(opening: str, closing: str, arguments: Arguments) -> str:
    return "\n".join(
        opening.format(key) + "\n" + (value if isinstance(value, str) else _js(value)) + "\n" + closing
        for key, value in arguments.items()
    )


def _named(key: str, arguments: str) -> Write:
    return lambda name, given: _js({key: name, arguments: given})


_JSON = _named("name", "arguments")
_PARAMETERS = _named("name", "parameters")
_HARMONY = (
    "<|channel|>analysis<|message|>We need to decide.<|end|><|start|>assistant<|channel|>commentary to=functions."
)


def _yaml(name: str, arguments: Arguments) -> str:
    return "\n".join([f"name: {name}", "arguments:", *(f"  {key}: {_js(value)}" for key, value in arguments.items())])


def _dsml(name: str, arguments: Arguments) -> str:
    tag = f"{OPEN}DSML{BAR}"
    end = f"</{BAR}DSML{BAR}"
    given = "\n".join(
        f'{tag}parameter name="{key}" string="true">{value if isinstance(value, str) else _js(value)}{end}parameter>'
        for key, value in arguments.items()
    )
    return f'{tag}function_calls>\n{tag}invoke name="{name}">\n{given}\n{end}invoke>\n{end}function_calls>'


def _deepseek(inner: str) -> Write:
    begin, end = f"{OPEN}tool{SEP}calls{SEP}begin{CLOSE}", f"{OPEN}tool{SEP}calls{SEP}end{CLOSE}"
    one, over = f"{OPEN}tool{SEP}call{SEP}begin{CLOSE}", f"{OPEN}tool{SEP}call{SEP}end{CLOSE}"
    between = f"{OPEN}tool{SEP}sep{CLOSE}"
    return lambda name, given: begin + one + inner.format(name=name, sep=between, given=_js(given)) + over + end


def _invoke(prefix: str, name: str, arguments: Arguments) -> str:
    given = "\n".join(
        f'<{prefix}parameter name="{key}">{value if isinstance(value, str) else _js(value)}</{prefix}parameter>'
        for key, value in arguments.items()
    )
    return f'<{prefix}invoke name="{name}">\n{given}\n</{prefix}invoke>'


def _qwen(name: str, arguments: Arguments) -> str:
    return f"<function={name}>\n{_tagged('<parameter={}>', '</parameter>', arguments)}\n</function>"


def _glm(name: str, arguments: Arguments) -> str:
    pairs = "\n".join(
        f"<arg_key>{key}</arg_key>\n<arg_value>{value if isinstance(value, str) else _js(value)}</arg_value>"
        for key, value in arguments.items()
    )
    return f"<tool_call>{name}\n{pairs}\n</tool_call>"


def _cline(name: str, arguments: Arguments) -> str:
    texts = {key: value for key, value in arguments.items() if isinstance(value, str)}
    return f"<{name}>\n" + "\n".join(f"<{key}>{value}</{key}>" for key, value in texts.items()) + f"\n</{name}>"


def _gemma(quote: str) -> Write:
    def write(name: str, arguments: Arguments) -> str:
        given = ",".join(
            f"{key}:{quote}{value}{quote}" if isinstance(value, str) else f"{key}:{_js(value)}"
            for key, value in arguments.items()
        )
        return f"call:{name}{{{given}}}"

    return write


WRITTEN: Mapping[str, Write] = {
    "harmony": lambda n, a: f"{_HARMONY}{n} <|constrain|>json<|message|>{_js(a)}<|call|>",
    "harmony, the recipient in the role": (
        lambda n, a: f"<|start|>assistant to=functions.{n}<|channel|>commentary json<|message|>{_js(a)}<|call|>"
    ),
    "harmony, without its start": lambda n, a: f"<|channel|>commentary to=functions.{n} <|message|>{_js(a)}",
    "harmony, tokens taken off": lambda n, a: f"commentary to=functions.{n} json{_js(a)}",
    "harmony, run together": lambda n, a: f"analysisWe decide.assistantcommentary to=functions.{n} json{_js(a)}",
    "Qwen 3": lambda n, a: f"<think>\nLet me see.\n</think>\n\n<tool_call>\n{_JSON(n, a)}\n</tool_call>",
    "Qwen 3, no opening thought": lambda n, a: f"Let me see.\n</think>\n\n<tool_call>\n{_JSON(n, a)}\n</tool_call>",
    "Qwen 3 coder": lambda n, a: f"<tool_call>\n{_qwen(n, a)}\n</tool_call>",
    "Qwen 3 coder, bare": _qwen,
    "Hermes, not closed": lambda n, a: f"<tool_call>\n{_JSON(n, a)}",
    "Hermes, Python's quotes": lambda n, a: f"<tool_call>\n{ {'arguments': a, 'name': n} }\n</tool_call>",
    "Hermes, with a word before": lambda n, a: f"I am done.\n<tool_call>\n{_JSON(n, a)}\n</tool_call><|im_end|>",
    "Qwen-Agent": lambda n, a: f"✿FUNCTION✿: {n}\n✿ARGS✿: {_js(a)}",
    "DeepSeek V3": _deepseek("function{sep}{name}\n```json\n{given}\n```"),
    "DeepSeek V3.1": _deepseek("{name}{sep}{given}"),
    "DeepSeek V3.2": _dsml,
    "Llama 3 python_tag": lambda n, a: f"<|python_tag|>{_PARAMETERS(n, a)}<|eom_id|>",
    "Llama 3 python_tag call": lambda n, a: f"<|python_tag|>{n}.call({_keywords(a)})",
    "Llama 3 JSON": lambda n, a: _js({"type": "function", "name": n, "parameters": a}),
    "Llama 3 function tag": lambda n, a: f"<function={n}>{_js(a)}</function>",
    "Llama 4": lambda n, a: f"[{n}({_keywords(a)})]",
    "Llama 4, several lines": lambda n, a: f"[\n  {n}({_keywords(a)})\n]",
    "Mistral list": lambda n, a: f"[TOOL_CALLS][{_JSON(n, a)}]",
    "Mistral 11": lambda n, a: f"[TOOL_CALLS]{n}{_js(a)}",
    "Mistral 13": lambda n, a: f"[TOOL_CALLS]{n}[ARGS]{_js(a)}",
    "Mistral with an id": lambda n, a: f"[TOOL_CALLS]{n}[CALL_ID]a1b2c3d4e[ARGS]{_js(a)}</s>",
    "Magistral": lambda n, a: f"[THINK]Let me see.[/THINK][TOOL_CALLS]{n}[ARGS]{_js(a)}",
    "Gemma tool_code": lambda n, a: f"```tool_code\n{n}({_keywords(a)})\n```",
    "Gemma tool_code, printed": lambda n, a: f"```tool_code\nprint(default_api.{n}({_keywords(a)}))\n```",
    "FunctionGemma": lambda n, a: f"<start_function_call>{_gemma('<escape>')(n, a)}<end_function_call>",
    "Gemma 4": lambda n, a: f"<|tool_call>{_gemma('<|' + chr(34) + '|>')(n, a)}<tool_call|>",
    "GLM 4.5": _glm,
    "GLM 4.7, one line": lambda n, a: _glm(n, a).replace("\n", ""),
    "Kimi K2": (
        lambda n, a: (
            f"<|tool_calls_section_begin|><|tool_call_begin|>functions.{n}:0<|tool_call_argument_begin|>{_js(a)}"
            "<|tool_call_end|><|tool_calls_section_end|>"
        )
    ),
    "Phi 4": lambda n, a: f"<|tool_call|>[{_JSON(n, a)}]<|/tool_call|>",
    "Phi 4 mini": lambda n, a: f"functools[{_JSON(n, a)}]",
    "Granite": lambda n, a: f"<|tool_call|>[{_JSON(n, a)}]",
    "Granite 20B": lambda n, a: f"<function_call> {_JSON(n, a)}",
    "Claude's XML": lambda n, a: f"<function_calls>\n{_invoke('', n, a)}\n</function_calls>",
    "MiniMax": lambda n, a: f"<minimax:tool_call>\n{_invoke('', n, a)}\n</minimax:tool_call>",
    "Seed-OSS": lambda n, a: f"<seed:tool_call>\n{_qwen(n, a)}\n</seed:tool_call>",
    "Step 3": lambda n, a: (
        f"{OPEN}tool_calls_begin{CLOSE}{OPEN}tool_call_begin{CLOSE}function{OPEN}tool_sep{CLOSE}"
        f"{_invoke('steptml:', n, a)}{OPEN}tool_call_end{CLOSE}{OPEN}tool_calls_end{CLOSE}"
    ),
    "xLAM": lambda n, a: f"[{_JSON(n, a)}]",
    "Nemotron": lambda n, a: f"<TOOLCALL>[{_JSON(n, a)}]</TOOLCALL>",
    "Jamba": lambda n, a: f"<tool_calls>[{_JSON(n, a)}]</tool_calls>",
    "InternLM": lambda n, a: f"<|action_start|><|plugin|>\n{_PARAMETERS(n, a)}<|action_end|>",
    "LongCat": lambda n, a: f"<longcat_tool_call>{_JSON(n, a)}</longcat_tool_call>",
    "Cohere Command R": lambda n, a: f"Action: ```json\n[{_js({'tool_name': n, 'parameters': a})}]\n```",
    "Cohere Command R7B": lambda n, a: (
        "<|START_THINKING|>I know.<|END_THINKING|><|START_ACTION|>"
        f"[{_js({'tool_call_id': '0', 'tool_name': n, 'parameters': a})}]<|END_ACTION|>"
    ),
    "LFM 2": lambda n, a: f"<|tool_call_start|>[{n}({_keywords(a)})]<|tool_call_end|>",
    "Olmo 3": lambda n, a: f"<function_calls>\n{n}({_keywords(a)})\n</function_calls>",
    "Apertus": lambda n, a: f"<|tools_prefix|>[{_js({n: a})}]<|tools_suffix|>",
    "Functionary 2": lambda n, a: f"<|from|>assistant\n<|recipient|>{n}\n<|content|>{_js(a)}",
    "Functionary 3": lambda n, a: f">>>{n}\n{_js(a)}",
    "LM Studio": lambda n, a: f"[TOOL_REQUEST]{_JSON(n, a)}[END_TOOL_REQUEST]",
    "ReAct": lambda n, a: f"Thought: I know this.\nAction: {n}\nAction Input: {_js(a)}",
    "Cline": _cline,
    "a fence": lambda n, a: (
        f"Sure! Here is the call:\n\n```json\n{json.dumps({'name': n, 'arguments': a}, indent=2)}\n```"
    ),
    "a fence without a language": lambda n, a: f"```\n{_JSON(n, a)}\n```",
    "a fence around Python": lambda n, a: f"```python\n{n}({_keywords(a)})\n```",
    "a fence around YAML": lambda n, a: f"```yaml\n{_yaml(n, a)}\n```",
    "YAML": _yaml,
    "bare arguments": lambda _, a: _js(a),
    "bare arguments in a fence": lambda _, a: f"```json\n{_js(a)}\n```",
    "bare arguments, thoughts before": lambda _, a: f"<think>I know.</think>\n{_js(a)}",
    "tool and args": _named("tool", "args"),
    "action and action_input": _named("action", "action_input"),
    "a function object": lambda n, a: _js({"function": {"name": n, "arguments": _js(a)}}),
    "OpenAI's message": lambda n, a: _js({"tool_calls": [{"function": {"name": n, "arguments": a}}]}),
    "OpenAI's message, whole": lambda n, a: _js(
        {"tool_calls": [{"id": "c1", "type": "function", "function": {"name": n, "arguments": _js(a)}}]}
    ),
    "Anthropic's block": lambda n, a: _js({"type": "tool_use", "id": "t", "name": n, "input": a}),
    "NAME({})": lambda n, a: f"{n}({_js(a)})",
    "NAME{}": lambda n, a: f"{n}{_js(a)}",
    "functions.NAME({})": lambda n, a: f"functions.{n}({_js(a)})",
    "keyed by the name": lambda n, a: _js({n: a}),
    "Python dict": lambda n, a: str({"name": n, "arguments": a}),
    "a trailing comma": lambda n, a: _JSON(n, a)[:-2] + ",}}",
    "raw newlines in a text": lambda n, a: _JSON(n, a).replace("clear and", "clear\nand"),
    "another case": lambda n, a: _JSON(n.replace("_", " ").title().replace(" ", ""), a),
}


def writing(write: Write, *, presents: str = RIGHT) -> Respond:
    """Writes every call into its text."""
    return lambda asked: say(presents) if asked.presents else say(write(*asked.action))


# -- native calls that are nearly right -------------------------------------------------------------------------------

NAMES: Mapping[str, Callable[[str], str]] = {
    "functions.NAME": lambda name: f"functions.{name}",
    "default_api:NAME": lambda name: f"default_api:{name}",
    "default_api.NAME": lambda name: f"default_api.{name}",
    "hyphens": lambda name: name.replace("_", "-"),
    "CamelCase": lambda name: name.title().replace("_", ""),
    "camelCase": lambda name: name[0] + name.title().replace("_", "")[1:],
    "capitals": str.upper,
    "blanks": lambda name: f" {name}\n",
    "a channel behind": lambda name: f"{name}<|channel|>commentary",
    "a channel and JSON behind": lambda name: f"{name}<|channel|>json",
    "a number behind": lambda name: f"functions.{name}:0",
    "tools.NAME": lambda name: f"tools.{name}",
}
ARGUMENTS: Mapping[str, Callable[[str, Arguments], str]] = {
    "encoded twice": lambda _, a: _js(_js(a)),
    "encoded three times": lambda _, a: _js(_js(_js(a))),
    "a tag behind": lambda _, a: f"{_js(a)}</tool_call>",
    "an end token behind": lambda _, a: f"{_js(a)}<|call|>",
    "fenced": lambda _, a: f"```json\n{_js(a)}\n```",
    "a trailing comma": lambda _, a: f"{_js(a)[:-1]},}}",
    "Python's quotes": lambda _, a: str(a),
    "newlines between": lambda _, a: f"\n{json.dumps(a, indent=2)}\n",
    "escaped newlines outside of texts": lambda _, a: json.dumps(a, indent=2).replace("\n", "\\n"),
    "raw newlines in a text": lambda _, a: _js(a).replace("is 42", "is\n42").replace("clear and", "clear\nand"),
    "wrapped in arguments": lambda _, a: _js({"arguments": a}),
    "wrapped in input": lambda _, a: _js({"input": a}),
    "wrapped in parameters, as text": lambda _, a: _js({"parameters": _js(a)}),
    "wrapped with the name": lambda n, a: _js({"name": n, "arguments": a}),
    "wrapped in the name": lambda n, a: _js({n: a}),
    "an extra key": lambda _, a: _js({**a, "confidence": 0.9}),
    "two extra keys": lambda _, a: _js({**a, "thought": "well", "title": "x"}),
    "keys without quotes": lambda _, a: "{" + ", ".join(f"{key}: {_js(value)}" for key, value in a.items()) + "}",
}
VOTES: Mapping[str, Callable[[Arguments], Arguments]] = {
    "the choice alone": lambda a: {"agent_id": a["agent_id"]},
    "without same_as": lambda a: {"agent_id": a["agent_id"], "reason": REASON},
    "without a reason": lambda a: {"agent_id": a["agent_id"], "same_as": []},
    "an empty reason": lambda a: {**a, "reason": ""},
    "same_as as text": lambda a: {**a, "same_as": "none"},
    "same_as null": lambda a: {**a, "same_as": None},
    "a name with a blank": lambda a: {**a, "agent_id": a["agent_id"].replace("agent", "Agent ")},
    "a number": lambda a: {**a, "agent_id": int(a["agent_id"].removeprefix("agent"))},
    "a number as text": lambda a: {**a, "agent_id": a["agent_id"].removeprefix("agent")},
    "answer of NAME": lambda a: {**a, "agent_id": f"answer of {a['agent_id']}"},
    "angle brackets": lambda a: {**a, "agent_id": f"<{a['agent_id']}>"},
    "numbers in same_as": lambda a: {**a, "same_as": [7]},
}


def calling(
    name: Callable[[str], str] = str, arguments: Callable[[str, Arguments], str] = lambda _, given: _js(given)
) -> Respond:
    """Calls tools natively, with names and arguments written like this."""

    def respond(asked: Asked) -> bytes:
        tool, given = asked.action
        return say(RIGHT) if asked.presents else call(name(tool), arguments(tool, given))

    return respond


def voting(change: Callable[[Arguments], Arguments]) -> Respond:
    return calling(arguments=lambda tool, given: _js(change(given) if tool == "vote" else given))


# -- votes in words ---------------------------------------------------------------------------------------------------

WORDS: Mapping[str, str] = {
    "prose": "I compared all of them. I vote for {0}, since it is clear.",
    "a line": "vote: {0}\nIt is clear.",
    "bold": "**vote: {0}**\n\nIt is clear.",
    "a title": "**Vote:** {1}",
    "a title and a reason": "**Vote:** {1}\n\nIt is clear.",
    "a number": "vote: {2}",
    "a number and a reason": "vote: {2}\nIt is clear.",
    "NAME = ": "vote: NAME = {0}",
    "angle brackets": "vote: <{0}>",
    "angle brackets and a reason": "vote: <{0}>\nIt is clear.",
    "boxed": "All are right.\n\n\\boxed{{{0}}}",
    "boxed text": "$\\boxed{{\\text{{{0}}}}}$",
    "a heading": "### Vote: {0}\n\nIt is clear.",
    "the name alone": "{0}",
    "my final vote": "My final vote: [{0}]\nIt is clear.",
    "a bold name": "Vote: **{0}**\nIt is clear.",
    "code": "vote: `{0}`\nIt is clear.",
    "my vote goes to": "My vote goes to {0}: it is clear.",
}


def speaking(words: str) -> Respond:
    """Takes no tools and speaks prose; votes with these words."""

    def respond(asked: Asked) -> bytes:
        if asked.offered:
            return refuse("this model does not support tools")
        if not asked.votes:
            return say(RIGHT)
        name = asked.choice
        return say(words.format(name, name.replace("agent", "Agent "), name.removeprefix("agent")))

    return respond


# -- servers ----------------------------------------------------------------------------------------------------------


def strict(refused: Callable[[Asked], str | None], status: str = "400 Bad Request") -> Respond:
    """A good model behind a server that answers so where `refused` says it."""
    good = calling()

    def respond(asked: Asked) -> bytes:
        message = refused(asked)
        return good(asked) if message is None else refuse(message, status)

    return respond


def _roles(asked: Asked) -> list[str]:
    return [message["role"] for message in asked.messages]


def refuse_repeated_roles(asked: Asked) -> str | None:
    roles = [role for role in _roles(asked) if role != "system"]
    twice = any(one == other == "user" for one, other in pairwise(roles))
    return "After the optional system message, conversation roles must alternate user/assistant/..." if twice else None


def refuse_system(asked: Asked) -> str | None:
    return "System role not supported" if "system" in _roles(asked) else None


def refuse_system_in_other_words(asked: Asked) -> str | None:
    roles = _roles(asked)
    alternates = all(role == ("user", "assistant")[place % 2] for place, role in enumerate(roles))
    plain = "tool" not in roles
    return "Conversation roles must alternate user/assistant/user/assistant/..." if plain and not alternates else None


def refuse_field(name: str, message: str) -> Callable[[Asked], str | None]:
    return lambda asked: message if name in asked.body else None


def altering(change: Callable[[bytes], bytes]) -> Respond:
    """A good model whose server's stream is changed like this."""
    good = calling()

    def respond(asked: Asked) -> bytes:
        head, _, body = good(asked).partition(b"\r\n\r\n")
        return head + b"\r\n\r\n" + change(body)

    return respond


def without_stream(asked: Asked) -> bytes:
    """Ignores that the reply is to be streamed."""
    tool, given = asked.action
    function = {"name": tool, "arguments": _js(given)}
    message: dict[str, Any] = {"role": "assistant", "content": RIGHT if asked.presents else None}
    if not asked.presents:
        message["tool_calls"] = [{"id": "c1", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "stop" if asked.presents else "tool_calls"}
    body = {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": {"prompt_tokens": 9}}
    return reply(json.dumps(body, indent=1).encode(), media_type="application/json")


def _chunk(delta: dict[str, Any], finish: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish, **more}],
    }


def with_parts(asked: Asked) -> bytes:
    """Mistral's reasoning models: content is a list of parts."""
    thought = {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Let me see."}]}]}
    if asked.presents:
        return reply(sse(_chunk(thought), _chunk({"content": [{"type": "text", "text": RIGHT}]}, "stop"), "[DONE]"))
    tool, given = asked.action
    fragment = {"index": 0, "id": "c1", "function": {"name": tool, "arguments": _js(given)}}
    return reply(sse(_chunk(thought), _chunk({"tool_calls": [fragment]}, "tool_calls"), "[DONE]"))


def with_object(asked: Asked) -> bytes:
    """Arguments are an object, not text."""
    if asked.presents:
        return say(RIGHT)
    tool, given = asked.action
    fragment = {"index": 0, "id": "c1", "function": {"name": tool, "arguments": given}}
    return reply(sse(_chunk({"tool_calls": [fragment]}, "tool_calls"), "[DONE]"))


def twice(asked: Asked) -> bytes:
    if asked.presents:
        return say(RIGHT)
    tool, given = asked.action
    chat = Chat().call(tool, _js(given)).call(tool, _js(given), call_id="call_2", place=1)
    return reply(chat.stop("calls").body())


def beside_text(asked: Asked) -> bytes:
    if asked.presents:
        return say(RIGHT)
    tool, given = asked.action
    return reply(Chat().text("I am done.").call(tool, _js(given)).stop("calls").body())


def repeating(asked: Asked) -> bytes:
    """Takes no tools, and says the same sentence whatever it is asked."""
    return refuse("this model does not support tools") if asked.offered else say(RIGHT)


def obeying_schemas(asked: Asked) -> bytes:
    """Takes no tools; its server holds it to a schema, without which it cannot vote."""
    if asked.offered:
        return refuse("this model does not support tools")
    if (form := asked.body.get("response_format")) is None:
        return say(RIGHT)
    properties = form["json_schema"]["schema"]["properties"]
    assert list(properties) == ["agent_id", "reason"], properties
    return say(_js({"agent_id": asked.choice, "reason": REASON}))


def once(first: bytes) -> Respond:
    """A good model whose first reply of each round is this."""
    good, seen = calling(), set[str]()

    def respond(asked: Asked) -> bytes:
        key = json.dumps(asked.messages[:3], sort_keys=True) + str(asked.votes)
        if not asked.said and not asked.presents and key not in seen and not seen.add(key):
            return first
        return good(asked)

    return respond


def unreadable_once(asked: Asked) -> bytes:
    return calling()(asked) if asked.said or asked.presents else call(asked.action[0], '{"content": "half')


def wrong_tool_first(name: str) -> Respond:
    return lambda asked: calling()(asked) if asked.said or asked.presents else call(name, "{}")


def text_at_last(asked: Asked) -> bytes:
    """Its native calls are never readable; told to write, it writes."""
    if asked.presents:
        return say(RIGHT)
    return say(_JSON(*asked.action)) if not asked.offered else call(asked.action[0], '{"content": "half')


def _rows() -> list[Behaviour]:
    rows = [Behaviour(f"writes: {title}", writing(write)) for title, write in WRITTEN.items()]
    rows += [Behaviour(f"name: {title}", calling(name)) for title, name in NAMES.items()]
    rows += [Behaviour(f"arguments: {title}", calling(arguments=given)) for title, given in ARGUMENTS.items()]
    rows += [Behaviour(f"votes: {title}", voting(change)) for title, change in VOTES.items()]
    rows += [Behaviour(f"says: {title}", speaking(words)) for title, words in WORDS.items()]
    litellm = (
        "litellm.UnsupportedParamsError: ollama does not support parameters: ['tools'], for model=m. To drop these"
    )
    rows += [
        Behaviour("calls tools as it should", calling()),
        Behaviour("text beside the call", beside_text),
        Behaviour("the same call twice", twice),
        Behaviour("arguments are an object", with_object),
        Behaviour("content is a list of parts", with_parts),
        Behaviour("broken JSON once", unreadable_once, more=6),
        Behaviour("a tool that is not there, once", wrong_tool_first("get_weather"), more=6),
        Behaviour("calls that can never be read, until it may write", text_at_last, more=18),
        Behaviour("tools refused by LiteLLM", lambda a: refuse(litellm) if a.offered else writing(_JSON)(a)),
        Behaviour("tools refused, JSON as told", lambda a: refuse("x does not support tools") if a.offered else writing(_JSON)(a)),
        Behaviour("tools refused, always the same sentence", repeating),
        Behaviour("tools refused, held to a schema", obeying_schemas),
        Behaviour("roles must alternate", strict(refuse_repeated_roles)),
        Behaviour("roles must alternate, told with 500", strict(refuse_repeated_roles, "500 Internal Server Error")),
        Behaviour("no system role", strict(refuse_system)),
        Behaviour("no system role, told as roles that alternate", strict(refuse_system_in_other_words)),
        Behaviour("stream_options refused", strict(refuse_field("stream_options", "Unknown parameter: 'stream_options'."))),
        Behaviour(
            "stream_options refused by pydantic",
            strict(refuse_field("stream_options", "[{'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted'}]"), "422 No"),
        ),
        Behaviour("stream ignored", without_stream),
        Behaviour("finish_reason null", altering(lambda body: body.replace(b'"tool_calls"}', b"null}").replace(b'"stop"', b"null"))),
        Behaviour("finish_reason as a word in each chunk", altering(lambda body: body.replace(b'"finish_reason": null', b'"finish_reason": "null"'))),
        Behaviour("keep-alives with a space", altering(lambda body: b"data: \n\n" + body.replace(b"\n\ndata", b"\n\ndata: \n\ndata", 1))),
        Behaviour("keep-alives without a space", altering(lambda body: b"data:\n\n" + body)),
        Behaviour("comments", altering(lambda body: b": ping\n\n" + body)),
        Behaviour("a blank after DONE", altering(lambda body: body.replace(b"data: [DONE]", b"data:  [DONE] "))),
        Behaviour("events that are cut", altering(lambda body: body.replace(b'"delta"', b'"del\n\ndata: ta"', 1))),
        Behaviour("CRLF", altering(lambda body: body.replace(b"\n", b"\r\n"))),
        Behaviour("an error as a line, once", once(reply(b'error: {"code":500,"message":"slot unavailable"}\n\n'))),
        Behaviour("an error in the stream, once", once(reply(sse({"error": {"message": "Overloaded", "code": 500}})))),
        Behaviour("the reply contains an error, once", once(reply(sse(_chunk({}, "error", error={"message": "x", "code": 502}))))),
        Behaviour("finish_reason error, once", once(reply(sse(_chunk({"content": "x"}, "error"), "[DONE]")))),
        Behaviour("429, once", once(refuse("slow down", "429 No"))),
        Behaviour("an empty reply, once", once(reply(sse(_chunk({"content": ""}), "[DONE]")))),
        Behaviour(
            "Ollama's parser fails, until no tools are sent",
            lambda a: refuse("error parsing tool call: raw='{', err=unexpected end", "500 No") if a.offered else writing(_JSON)(a),
        ),
        Behaviour("the final answer between harmony's marks", writing(_JSON, presents=f"<|channel|>final<|message|>{RIGHT}<|return|>")),
        Behaviour("the final answer as harmony's words", writing(_JSON, presents=f"analysisSo.assistantfinal{RIGHT}")),
        Behaviour("the final answer with an end token", writing(_JSON, presents=f"{RIGHT}<|im_end|>")),
        Behaviour("the final answer as a call", writing(_JSON, presents=_JSON("new_answer", {"content": RIGHT}))),
        Behaviour("the final answer as bare arguments", writing(_JSON, presents=_js({"content": RIGHT}))),
        Behaviour("the final answer between Cohere's marks", writing(_JSON, presents=f"<|START_RESPONSE|>{RIGHT}<|END_RESPONSE|>")),
    ]  # fmt: skip
    return rows


ROWS = _rows()


# -- what must stay an answer -----------------------------------------------------------------------------------------

GIVEN_BY_CALL: tuple[str, ...] = (
    '{"content": "Six times seven is 42."}',
    '{"name": "new_answer", "arguments": {"content": "42"}}',
    '{"agent_id": "agent1", "reason": "best"}',
    "vote: agent1",
    "<tool_call>\n" + '{"name": "vote", "arguments": {"agent_id": "agent1"}}' + "\n</tool_call>",
    "[TOOL_CALLS]new_answer[ARGS]" + '{"content": "x"}',
    "<|channel|>commentary to=functions.vote <|message|>" + '{"agent_id": "agent1"}' + "<|call|>",
    "```json\n" + '{"content": "42"}' + "\n```",
    "new_answer(content='42')",
    '{"arguments": {"content": "42"}}',
    '"42"',
    "\\boxed{42}",
    "Another answer holds `" + '{"name": "vote", "arguments": {"agent_id": "agent1"}}' + "`, which I do not follow.",
)
"""A call's own text is the answer, whatever it looks like."""
WRITTEN_AS_TEXT: tuple[str, ...] = (
    "Six times seven is 42.",
    '{"result": 42}',
    '{"name": "Alice", "age": 7}',
    '[{"name": "get_weather", "arguments": {"city": "Paris"}}]',
    '```json\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n```',
    'A model calls a tool so:\n\n{"name": "get_weather", "arguments": {"city": "Paris"}}',
    'OpenAI\'s message has {"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]} in it.',
    "To submit, one calls `new_answer` with the whole text; to choose, one calls `vote`.",
    'The call {"name": "new_answer", "arguments": {"content": "42"}} ends a turn. Nothing may follow it.',
    'So:\n```json\n{"name": "new_answer", "arguments": {"content": "42"}}\n```\n\nThat is how an answer is sent.',
    "def vote(agent_id: str) -> None:\n    print(agent_id)\n",
    "```python\ndef new_answer(content):\n    return content\n\nprint(new_answer('42'))\nprint('done')\n```",
    "vote {\n  color: red;\n}",
    ".new_answer { content: 'x' }",
    "<html><body><button>vote</button></body></html>",
    "<form action='/vote'><input name='agent_id'></form>",
    "| name | vote |\n|---|---|\n| a | 1 |",
    "\\boxed{42}",
    "The final answer is $\\boxed{42}$.",
    "1. Read.\n2. Vote.\n3. Count.",
    "> I vote for agent1\n\nis what one of them wrote.",
    "name: config\narguments:\n  - a\n  - b\n",
    "name: deploy\nsteps:\n  - run: make\n",
    "[TODO] write the tests\n[DONE] write the code",
    "[INFO] server started",
    "The token <|im_start|> begins a message and <|im_end|> ends it, as in ChatML templates.",
    "Mistral writes [TOOL_CALLS] before a call, and [ARGS] before its arguments; both are special tokens of its tokenizer.",
    "Use `<tool_call>` tags around the JSON of a call, and close them with `</tool_call>` in Hermes templates.",
    "SELECT name, vote FROM ballots WHERE agent_id = 'agent1';",
    "{{ template.name }} is replaced by the name.",
    "{'a': 1, 'b': [2, 3]}",
    "[1, 2, 3]",
    "{}",
    "[]",
    '{"agent": "agent1", "why": "it is best"}',
    '{"text": "Six times seven is 42."}',
    '{"content": "42", "sources": []}',
    "Action: none is needed; the number is 42.",
    "function f(x) { return x * 7 }",
    "call me(maybe)",
    "Thought: it is 42.\nFinal Answer: 42",
    "x = 6 * 7  # 42\nassert x == 42",
    "curl -d '" + '{"name": "new_answer"}' + "' https://example.com/api",
    "- vote: a word\n- answer: another word",
    "analysis of the votes: all agree.",
    "commentary: it is 42.",
    "<answer>42</answer>",
    "<vote>",
    "Best of all: {answer} in {place}.",
    "```\nplain block\n```",
)
"""Whole answers in plain text, of a model that takes no tools."""
