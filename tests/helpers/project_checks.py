"""What the tests of several projects check: their tables and their project.yml."""

from pathlib import Path

import srsly
from weasel.schemas import ProjectConfigSchema, validate
from weasel.util.config import substitute_project_variables
from weasel.util.validation import validate_project_commands

PROJECTS = Path(__file__).parents[2] / "project"


def table_rows(text):
    """The cells of each line of the tables in a Markdown text, headers and rules included."""
    return [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in text.splitlines()
        if line.startswith("| ")
    ]


def check_declarations(name):
    """`spacy project run` takes the file, and what commands need is in the repository or made by one."""
    folder = PROJECTS / name
    project = srsly.read_yaml(folder / "project.yml")
    assert not validate(ProjectConfigSchema, project)
    validate_project_commands(project)
    project = substitute_project_variables(project)
    commands = {command["name"]: command for command in project["commands"]}
    produced = {output for command in commands.values() for output in command.get("outputs", [])}
    fetched = {asset["dest"] for asset in project.get("assets", ()) if "url" in asset}
    if "fetch" in commands:
        assert fetched <= set(commands["fetch"]["outputs"])
    for command in commands.values():
        for path in command.get("deps", []):
            assert path in produced | fetched or (folder / path).exists(), f"{name}: {path}"
