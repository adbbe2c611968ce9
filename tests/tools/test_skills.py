"""Skills: which are found, what the system prompt says of them, and what an agent can read."""

import json
from pathlib import Path

import pytest

from massgen_mcp.errors import MassgenError
from massgen_mcp.tools.base import Tool, ToolResult
from massgen_mcp.tools.skills import MAX_FILE_BYTES, Skill, builtin_skills, discover_skills, skill_tools, skills_note


def put(directory: Path, name: str, description: str = "does it", text: str = "Do it.\n") -> Path:
    """A skill in `directory`, named as its last part."""
    directory.mkdir(parents=True)
    (directory / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\n{text}")
    return directory


def reader(skills: tuple[Skill, ...]) -> Tool:
    (tool,) = skill_tools(skills)
    return tool


def names(skills: tuple[Skill, ...]) -> list[str]:
    return [skill.name for skill in skills]


def test_skills_are_found_one_and_two_levels_deep(tmp_path: Path) -> None:
    put(tmp_path / "pdf", "pdf")
    put(tmp_path / "office" / "sheets", "sheets")
    put(tmp_path / "a" / "b" / "too-deep", "too-deep")
    put(tmp_path / "pdf" / "part", "part-of-another")
    (tmp_path / "README.md").write_text("not a skill")
    notes: list[str] = []

    assert names(discover_skills([tmp_path], notes=notes)) == ["sheets", "pdf"]
    assert notes == []


def test_of_two_skills_with_one_name_the_first_is_taken(tmp_path: Path) -> None:
    put(tmp_path / "one" / "x", "same", "first")
    put(tmp_path / "two" / "x", "same", "second")
    notes: list[str] = []

    found = discover_skills([tmp_path / "one", tmp_path / "two"], notes=notes)

    assert [skill.description for skill in found] == ["first"]
    assert notes == ["skill 'x' is left out: there is one named same already"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"no front matter", "does not begin with front matter"),
        (b"---\nname: x\ndescription: y\n", "does not begin with front matter"),
        (b"---\n---\n", "needs a name and a description"),
        (b"---\n- name\n---\n", "needs a name and a description"),
        (b"---\nname: x\n---\n", "needs a name and a description"),
        (b"---\nname: 7\ndescription: y\n---\n", "needs a name and a description"),
        (b"---\nname: x\ndescription: ' '\n---\n", "needs a name and a description"),
        (b"---\nname: ../x\ndescription: y\n---\n", "the name '../x' is not usable"),
        (b"---\nname: Big Name\ndescription: y\n---\n", "is not usable"),
        (b"---\nname: &a x\ndescription: *a\n---\n", "SKILL.md:2: anchors"),
        (b"---\nname: x\ndescription: a: b\n---\n", "SKILL.md:3: not valid YAML"),
        (b"---\nname: x\nname: y\ndescription: z\n---\n", "SKILL.md:3: duplicate key"),
        (b"---\nname: !!python/name:os.system x\n---\n", "SKILL.md:2: tags"),
        (b"---\nname: \xff\n---\n", "is not a text file"),
        (b"---\nname: x\ndescription: y\n---\n" + b"x" * MAX_FILE_BYTES, "is larger than"),
    ],
)
def test_a_malformed_skill_is_left_out_with_a_note_and_the_others_stay(
    tmp_path: Path, content: bytes, why: str
) -> None:
    put(tmp_path / "good", "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "SKILL.md").write_bytes(content)
    notes: list[str] = []

    assert names(discover_skills([tmp_path], notes=notes)) == ["good"]
    assert len(notes) == 1
    assert notes[0].startswith("skill 'bad' is left out: ")
    assert why in notes[0]


def test_front_matter_of_other_editors_and_with_other_keys_is_read(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "SKILL.md").write_bytes(
        b"\xef\xbb\xbf---\r\nname: x\r\nlicense: MIT\r\nmetadata:\r\n  version: 1\r\n"
        b"description: >\r\n  two\r\n  lines\r\n---\r\nText"
    )

    assert [skill.description.strip() for skill in discover_skills([tmp_path])] == ["two lines"]


def test_links_are_not_followed_and_missing_directories_are_noted(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside" / "x", "outside")
    skills = tmp_path / "skills"
    put(skills / "good", "good")
    (skills / "link").symlink_to(outside)
    (skills / "half").mkdir()
    (skills / "half" / "SKILL.md").symlink_to(outside / "SKILL.md")
    notes: list[str] = []

    assert names(discover_skills([tmp_path / "nothing", skills], notes=notes)) == ["good"]
    assert len(notes) == 3
    assert notes[0] == "'nothing': cannot be opened (FileNotFoundError)"
    assert not any(str(tmp_path) in note for note in notes)


def test_the_given_directory_itself_may_be_a_link(tmp_path: Path) -> None:
    put(tmp_path / "skills" / "good", "good")
    (tmp_path / "link").symlink_to(tmp_path / "skills")

    assert names(discover_skills([tmp_path / "link"])) == ["good"]


def test_the_note_has_one_short_line_for_each_of_fifty_skills(tmp_path: Path) -> None:
    long = Skill("long", "word " * 100, tmp_path, "long")
    odd = Skill("odd", "one\n- two\x1b[0m\u2028three", tmp_path, "odd")
    many = tuple(Skill(f"s{number}", "d", tmp_path, f"s{number}") for number in range(60))

    lines = skills_note((long, odd, *many)).splitlines()

    assert len(lines) == 51
    assert lines[1].startswith("- long: word word")
    assert lines[1].endswith("…")
    assert len(lines[1]) == len("- long: ") + 200
    assert lines[2] == "- odd: one - two[0m three"


def test_without_skills_there_is_neither_note_nor_tool() -> None:
    assert skills_note(()) == ""
    assert skill_tools(()) == ()


async def test_a_skill_and_its_other_files_are_read(tmp_path: Path) -> None:
    folder = put(tmp_path / "group" / "pdf", "pdf")
    (folder / "notes").mkdir()
    (folder / "notes" / "forms.md").write_text("Forms.\n")
    tool = reader(discover_skills([tmp_path]))

    assert await tool.run({"name": "pdf"}) == ToolResult((folder / "SKILL.md").read_text())
    assert await tool.run({"name": "pdf", "file": "notes/forms.md"}) == ToolResult("Forms.\n")
    assert len(json.dumps([tool.spec.name, tool.spec.description, tool.spec.parameters])) < 230
    assert not tool.side_effects


@pytest.mark.parametrize(
    ("name", "file", "answer"),
    [
        ("pfd", "SKILL.md", "no skill 'pfd'; there is pdf"),
        ("zzz", "SKILL.md", "no skill 'zzz'; there is other, pdf"),
        ("pdf", "form.md", "pdf has no file 'form.md'; there is SKILL.md, large.txt, picture.png"),
        ("pdf", "../other/SKILL.md", "'..' is refused"),
        ("pdf", "/etc/passwd", "absolute paths are refused"),
        ("pdf", "link.md", "symbolic link"),
        ("pdf", "picture.png", "is not a text file"),
        ("pdf", "large.txt", "is larger than 262144 bytes"),
        ("pdf", ".", "is a directory"),
        ("pdf", "a\ud800", "not valid UTF-8"),
    ],
)
async def test_what_is_not_a_file_of_the_skill_is_refused(tmp_path: Path, name: str, file: str, answer: str) -> None:
    folder = put(tmp_path / "skills" / "pdf", "pdf")
    put(tmp_path / "skills" / "other", "other")
    (tmp_path / "secret").write_text("secret")
    (folder / "link.md").symlink_to(tmp_path / "secret")
    (folder / "picture.png").write_bytes(b"\x89PNG\xff")
    (folder / "large.txt").write_bytes(b"x" * (MAX_FILE_BYTES + 1))

    result = await reader(discover_skills([tmp_path / "skills"])).run({"name": name, "file": file})

    assert result.is_error
    assert answer in result.text
    assert str(tmp_path) not in result.text


async def test_a_skill_directory_that_is_gone_is_a_refusal(tmp_path: Path) -> None:
    put(tmp_path / "skills" / "pdf", "pdf")
    tool = reader(discover_skills([tmp_path / "skills"]))
    (tmp_path / "skills").rename(tmp_path / "moved")

    assert (await tool.run({"name": "pdf"})).is_error


async def test_the_built_in_skill_is_found_and_read() -> None:
    skills = builtin_skills(["file_search", "file_search"])

    assert names(skills) == ["file_search"]
    assert "search_files" in (await reader(skills).run({"name": "file_search"})).text
    assert len(skills[0].description) <= 200


def test_an_unknown_built_in_skill_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(MassgenError, match="'file_serch'; did you mean file_search") as caught:
        builtin_skills(["file_serch"])

    assert caught.value.code == "config_invalid"


def test_every_skill_that_ships_is_sound() -> None:
    notes: list[str] = []
    package = builtin_skills(["file_search"])[0].base

    found = discover_skills([package], notes=notes)

    assert notes == []
    assert sorted(path.name for path in package.iterdir()) == sorted(names(found))
