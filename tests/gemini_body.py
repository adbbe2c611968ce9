"""Which requests Gemini's own API allows: what is used here of its reference, written down by hand.

Its SDK is no dependency, not of the tests either. Unknown fields are refused, as the API does.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Text(_Strict):
    text: str


class _FunctionCall(_Strict):
    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$")]
    args: dict[str, Any]
    id: str | None = None


class _Answer(_Strict):
    output: str | None = None
    error: str | None = None


class _FunctionResponse(_Strict):
    name: str
    response: _Answer
    id: str | None = None


class _Part(_Strict):
    """Exactly one kind of data, perhaps signed."""

    text: str | None = None
    thought: bool = False
    thoughtSignature: str | None = None  # noqa: N815 - the API's names
    functionCall: _FunctionCall | None = None  # noqa: N815
    functionResponse: _FunctionResponse | None = None  # noqa: N815
    executableCode: dict[str, Any] | None = None  # noqa: N815
    codeExecutionResult: dict[str, Any] | None = None  # noqa: N815
    toolCall: dict[str, Any] | None = None  # noqa: N815
    toolResponse: dict[str, Any] | None = None  # noqa: N815

    @model_validator(mode="after")
    def _one_kind(self) -> "_Part":
        data = self.model_dump(exclude_none=True, exclude={"thought", "thoughtSignature"})
        assert len(data) == 1, f"a part holds {sorted(data)}"
        return self


class _Content(_Strict):
    role: Literal["user", "model"]
    parts: Annotated[list[_Part], Field(min_length=1)]


class _Instruction(_Strict):
    parts: Annotated[list[_Text], Field(min_length=1)]


class _Thinking(_Strict):
    includeThoughts: bool = False  # noqa: N815
    thinkingBudget: int | None = None  # noqa: N815
    thinkingLevel: Literal["minimal", "low", "medium", "high"] | None = None  # noqa: N815

    @model_validator(mode="after")
    def _one_way(self) -> "_Thinking":
        assert self.thinkingBudget is None or self.thinkingLevel is None
        assert not (self.includeThoughts and self.thinkingBudget == 0)
        return self


class _Generation(_Strict):
    temperature: float | None = None
    topP: float | None = None  # noqa: N815
    maxOutputTokens: int | None = None  # noqa: N815
    thinkingConfig: _Thinking | None = None  # noqa: N815


class _Declaration(_Strict):
    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$")]
    description: str
    parametersJsonSchema: dict[str, Any]  # noqa: N815


class _Nothing(_Strict):
    pass


class _Tool(_Strict):
    functionDeclarations: Annotated[list[_Declaration], Field(min_length=1)] | None = None  # noqa: N815
    googleSearch: _Nothing | None = None  # noqa: N815
    codeExecution: _Nothing | None = None  # noqa: N815


class _Calling(_Strict):
    mode: Literal["AUTO", "ANY", "VALIDATED"]


class _ToolConfig(_Strict):
    functionCallingConfig: _Calling  # noqa: N815
    includeServerSideToolInvocations: bool = False  # noqa: N815


class _Request(_Strict):
    systemInstruction: _Instruction | None = None  # noqa: N815
    contents: Annotated[list[_Content], Field(min_length=1)]
    generationConfig: _Generation  # noqa: N815
    tools: list[_Tool] = []
    toolConfig: _ToolConfig | None = None  # noqa: N815
    serviceTier: str | None = None  # noqa: N815

    @model_validator(mode="after")
    def _tools_fit(self) -> "_Request":
        declared = any(tool.functionDeclarations for tool in self.tools)
        own = any(tool.googleSearch or tool.codeExecution for tool in self.tools)
        assert declared == (self.toolConfig is not None), "a config of calls goes with declared functions"
        if self.toolConfig is not None:
            assert self.toolConfig.includeServerSideToolInvocations == own
            assert (self.toolConfig.functionCallingConfig.mode != "AUTO") or not own
        return self


def check(body: dict[str, Any]) -> None:
    """Fail unless the API takes this body: also every call is answered in the next turn, in order, by name and id."""
    contents = _Request.model_validate(body).contents
    assert contents[0].role == "user"
    for turn, following in zip(contents, [*contents[1:], None], strict=True):
        called = [(part.functionCall.name, part.functionCall.id) for part in turn.parts if part.functionCall]
        answers = [part.functionResponse for part in (following.parts if following else ()) if part.functionResponse]
        assert called == [(answer.name, answer.id) for answer in answers], f"calls {called}, results {answers}"
        ids = [call_id for _, call_id in called if call_id is not None]
        assert len(ids) == len(set(ids)), f"one id for two calls: {ids}"
