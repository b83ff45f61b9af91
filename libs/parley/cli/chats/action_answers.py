"""Answers to actions: from the options of a command, or asked for on the terminal."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from parley.cli.api.client import Api, ApiRefused
from parley.cli.api.retries import post
from parley.cli.chats.actions import (
    CLIENT_TOOL,
    Action,
    action_lines,
    action_path,
    form_of,
    open_actions,
    question_lines,
    questions_of,
    required_fields_of,
)
from parley.cli.chats.turn_output import Patience, read_chat
from parley.cli.errors import ConfigurationProblem
from parley.cli.text import sanitized

ENDED = "ACTION_ENDED"
#: What a running call asks.
RUNNING_CALL = ("login", "elicitation")
#: An approval is for a call that somebody has seen.
ANSWERED_IN_ADVANCE = ("question", "plan")
Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GivenOptions:
    """The answer that the options of a command give.

    Attributes:
        decision: "accept" or "refuse"; empty for none.
        plan: The plan as the person edited it; empty for as it was proposed.
        options: Numbers or labels of options, one entry for each question.
        text: The answer to a question in own words.
        is_remembered: Whether the approval holds for the same call of the chat from now on.
        fields: The fields of a form, each as NAME=VALUE.
    """

    decision: str = ""
    remark: str = ""
    plan: str = ""
    options: tuple[str, ...] = ()
    text: str = ""
    is_remembered: bool = False
    fields: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no option was given."""
        return self == GivenOptions()

    def body(self, action: Action) -> Body:
        """Return the answer to an action.

        Raises:
            ConfigurationProblem: The options do not fit it.
        """
        if action.get("kind") == "question":
            return self._answers(action)
        if self.options or self.text:
            raise ConfigurationProblem(
                f"--option and --text are for questions, and this is of kind {action.get('kind')}: "
                f"give {how_to_answer(action)}"
            )
        if self.fields and (action.get("kind") not in RUNNING_CALL or self.decision == "refuse"):
            raise ConfigurationProblem(
                f"--field is for a form that is accepted: give {how_to_answer(action)}"
            )
        decision = self.decision or ("accept" if self.plan or self.fields else "")
        if not decision:
            raise ConfigurationProblem(f"the decision is missing: give {how_to_answer(action)}")
        if self.plan and action.get("kind") != "plan":
            raise ConfigurationProblem("--plan is for plans: leave it out")
        if self.plan and decision == "refuse":
            raise ConfigurationProblem("--plan and --refuse contradict: leave one out")
        body: Body = {"decision": decision}
        body |= {"remark": self.remark} if self.remark else {}
        body |= {"remember": True} if self.is_remembered else {}
        body |= {"content": _content(action, self.fields)} if self.fields else {}
        return body | ({"plan": self.plan} if self.plan else {})

    def _answers(self, action: Action) -> Body:
        questions = questions_of(action)
        if self.decision or self.plan:
            raise ConfigurationProblem(
                f"--accept, --refuse and --plan are not for questions: give {how_to_answer(action)}"
            )
        remark = {"remark": self.remark} if self.remark else {}
        if not self.options:
            said = self.text or self.remark
            if not said:
                raise ConfigurationProblem(f"the answer is missing: give {how_to_answer(action)}")
            if self.text and len(questions) == 1:
                return {"answers": [{"text": self.text}], **remark}
            return {"remark": said}
        if len(self.options) != len(questions):
            raise ConfigurationProblem(
                f"{len(questions)} questions are asked and {len(self.options)} options are given: "
                "give --option once for each question, in their order"
            )
        answers: list[Body] = [
            {"selected": _selected(question, wanted)}
            for question, wanted in zip(questions, self.options, strict=True)
        ]
        if self.text and len(questions) == 1:
            answers[0]["text"] = self.text
        elif self.text:
            remark = {"remark": self.text}
        return {"answers": answers, **remark}


class Person:
    """Answers what a chat waits for: asks on the terminal, or prints how to answer elsewhere.

    Args:
        api: The server.
        patience: How long requests are repeated.
        new_key: Returns a new idempotency key.
        hint: Returns a command line of this program.
        is_terminal: Whether somebody can be asked here.
        given: Answers to questions and plans that were given beforehand, in their order.
    """

    def __init__(
        self,
        api: Api,
        patience: Patience,
        *,
        new_key: Callable[[], str],
        hint: Callable[[str], str],
        is_terminal: bool,
        given: tuple[str, ...] = (),
    ) -> None:
        self._api = api
        self._patience = patience
        self._new_key = new_key
        self._hint = hint
        self._is_terminal = is_terminal
        self._given = list(given)
        self._told: set[str] = set()

    def answer(self, chat_id: str) -> bool:
        """Answer what a chat waits for; return False if only a program can."""
        actions = open_actions(read_chat(self._api, chat_id, self._patience))
        if any(action.get("kind") == CLIENT_TOOL for action in actions):
            return False
        for action in actions:
            if self._given and action.get("kind") in ANSWERED_IN_ADVANCE:
                self._send_given(action)
            elif self._is_terminal:
                self._send(action, ask(action))
            else:
                self._tell(action)
        return True

    def _send_given(self, action: Action) -> None:
        words = self._given[0]
        for line in (*action_lines(action), f"Answered: {words}"):
            click.echo(sanitized(line), err=True)
        try:
            body = answer_in_words(action, words)
        except ConfigurationProblem as problem:
            raise ConfigurationProblem(
                *problem.problems, f"the chat waits; answer with: {self._how(action)}"
            ) from problem
        if self._send(action, body):
            del self._given[0]

    def _send(self, action: Action, body: Body) -> bool:
        """Send an answer; return False if the action had ended by then."""
        try:
            send_answer(self._api, action, body, self._patience, key=self._new_key())
        except ApiRefused as error:
            if error.code != ENDED:
                raise
            click.echo(sanitized(error.message), err=True)
            return False
        return True

    def _tell(self, action: Action) -> None:
        action_id = str(action.get("id"))
        if action_id in self._told:
            return
        self._told.add(action_id)
        for line in action_lines(action):
            click.echo(sanitized(line), err=True)
        click.echo(f"Waiting. Answer with: {self._how(action)}", err=True)

    def _how(self, action: Action) -> str:
        command = self._hint(f"answer {action.get('chat_id')} {action.get('id')}")
        return f"{command} {how_to_answer(action)}"


def send_answer(api: Api, action: Action, body: Body, patience: Patience, *, key: str) -> Any:
    """Send an answer; return the action and its chat after it.

    The digest binds a permission to the arguments that were shown.

    Raises:
        ApiRefused: It has ended, or the answer does not fit.
    """
    digest = action.get("arguments_digest")
    if digest and "decision" in body:
        body = {**body, "arguments_digest": digest}
    return post(
        api,
        f"{action_path(str(action.get('chat_id')), str(action.get('id')))}/answer",
        body,
        key=key,
        needs="chat",
        deadline=patience.deadline,
        pause=patience.pause,
        late="the answer could not be sent in time",
    )


def how_to_answer(action: Action) -> str:
    """Return the options that answer an action."""
    match action.get("kind"):
        case "question":
            count = len(questions_of(action))
            return " ".join(["--option N"] * count) + ", or --text TEXT"
        case "plan":
            return "--accept, --plan FILE, or --refuse --remark TEXT"
        case "elicitation" if names := list(form_of(action)):
            return " ".join(f"--field {name}=VALUE" for name in names) + ", or --refuse"
        case _:
            return "--accept or --refuse"


def answer_in_words(action: Action, words: str) -> Body:
    """Return the answer that words are: an option or own words to a question, else a decision.

    The decision is `accept` or `refuse`; anything else refuses and is the remark.

    Raises:
        ConfigurationProblem: It is a number that no option has.
    """
    if action.get("kind") == "question":
        try:
            return GivenOptions(options=(words,)).body(action)
        except ConfigurationProblem:
            # A number that is none of the options is a mistake rather than own words.
            if words.isdecimal() and len(questions_of(action)) == 1:
                raise
            return GivenOptions(text=words).body(action)
    if words in ("accept", "refuse"):
        return {"decision": words}
    return {"decision": "refuse", "remark": words}


def ask(action: Action) -> Body:
    """Ask a person on the terminal and return the answer.

    Raises:
        click.Abort: The person gave up.
    """
    if action.get("kind") == "question":
        return {"answers": [_asked_question(question) for question in questions_of(action)]}
    for line in action_lines(action):
        click.echo(sanitized(line), err=True)
    if action.get("kind") == "plan":
        return _asked_plan(action)
    if action.get("kind") in RUNNING_CALL:
        return _asked_form(action)
    is_approval = action.get("kind") == "approval"
    asked = "Allow it? (a: always, in this chat)" if is_approval else "Allow it?"
    match _chosen_letter(asked, *("yan" if is_approval else "yn")):
        case "y":
            return {"decision": "accept"}
        case "a":
            return {"decision": "accept", "remember": True}
        case _:
            return _refused()


def _asked_question(question: Mapping[str, Any]) -> Body:
    for line in question_lines(question):
        click.echo(sanitized(line), err=True)
    options = question.get("options") or ()
    while True:
        said = str(click.prompt(f"Number 1-{len(options)}, or your own words", err=True)).strip()
        if said in map(str, range(1, len(options) + 1)):
            return {"selected": [str(options[int(said) - 1].get("label"))]}
        try:
            return {"selected": _selected(question, said)}
        except ConfigurationProblem:
            if not said.isdecimal():
                return {"text": said}
            click.echo(f"There is no option {said}.", err=True)


def _asked_plan(action: Action) -> Body:
    while True:
        match _chosen_letter("Accept it? (e: edit it first)", "y", "e", "n"):
            case "y":
                return {"decision": "accept"}
            case "n":
                return _refused()
            case _:
                edited = click.edit(str(action["args"]["plan"]), extension=".md")
                if edited is not None and edited.strip():
                    return {"decision": "accept", "plan": edited}
                click.echo("It was not saved.", err=True)


def _asked_form(action: Action) -> Body:
    form = form_of(action)
    if _chosen_letter("Answer it?" if form else "Is it done?", "y", "n") == "n":
        return {"decision": "refuse"}
    required = required_fields_of(action)
    said = {name: _asked_field(name, is_required=name in required) for name in form}
    given = tuple(f"{name}={value}" for name, value in said.items() if value)
    return {"decision": "accept", **({"content": _content(action, given)} if form else {})}


def _asked_field(name: str, *, is_required: bool) -> str:
    if is_required:
        return str(click.prompt(sanitized(name), err=True))
    return str(click.prompt(sanitized(name), default="", show_default=False, err=True))


def _content(action: Action, fields: tuple[str, ...]) -> dict[str, Any]:
    """Return the content of a form: text as it is, everything else as JSON.

    Raises:
        ConfigurationProblem: A field has no name, or is no value of its type.
    """
    form = form_of(action)
    content: dict[str, Any] = {}
    for field in fields:
        name, separator, said = field.partition("=")
        if not separator or name not in form:
            listed = ", ".join(form) or "none"
            raise ConfigurationProblem(
                sanitized(f"{field!r} is no field of the form ({listed}): give --field NAME=VALUE")
            )
        if form[name].get("type", "string") == "string":
            content[name] = said
            continue
        try:
            content[name] = json.loads(said)
        except ValueError:
            kind = form[name].get("type")
            raise ConfigurationProblem(sanitized(f"{name} is no {kind}: {said!r}")) from None
    return content


def _refused() -> Body:
    remark = str(click.prompt("What should change?", default="", show_default=False, err=True))
    return {"decision": "refuse", **({"remark": remark} if remark.strip() else {})}


def _chosen_letter(question: str, *letters: str) -> str:
    return str(click.prompt(question, type=click.Choice(letters), err=True))


def _selected(question: Mapping[str, Any], wanted: str) -> list[str]:
    """Return the labels of options that are named by number or label.

    Raises:
        ConfigurationProblem: There is no such option.
    """
    labels = [str(option.get("label")) for option in question.get("options") or ()]
    if wanted in labels and not wanted.isdecimal():
        return [wanted]
    pieces = wanted.split(",") if question.get("multiple") else [wanted]
    return [_label(labels, piece.strip()) for piece in pieces]


def _label(labels: list[str], wanted: str) -> str:
    found = {
        label
        for number, label in enumerate(labels, start=1)
        if wanted.casefold() in (label.casefold(), str(number))
    }
    if len(found) == 1:
        return found.pop()
    listed = ", ".join(f"{number} {label}" for number, label in enumerate(labels, start=1))
    problem = "fits several of" if found else "is none of"
    advice = "give the number of another, or --text" if found else "own words go into --text"
    raise ConfigurationProblem(sanitized(f"{wanted!r} {problem} the options ({listed}): {advice}"))
