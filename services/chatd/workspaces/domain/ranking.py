"""Ranks templates for a query, and decides whether to recommend one."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Final

from chatd.workspaces.domain.templates import Template

LOOK_BACK: Final = timedelta(days=60)
HALF_LIFE_DAYS: Final = 14.0
#: Minimum affinity before one template is recommended.
RECOMMEND_SCORE_MIN: Final = math.log(3)
RECOMMEND_MARGIN: Final = math.log(3) - math.log(2)

USE_RECOMMENDED: Final = (
    "Use the recommended template, unless the user wants another: call create_workspace with its "
    "template_id, after read_template if it may have parameters."
)
ASK: Final = (
    "Several templates fit and none stands out: ask the user which one, naming two or three with "
    "what they are for."
)
BROADEN_QUERY: Final = "Nothing fits these words: call list_templates again without a query."
NONE: Final = (
    "There are no templates that you may use: go on without a workspace of your own, and tell the "
    "user that an administrator can add templates."
)


class Tier(IntEnum):
    """How well a template matches the query."""

    NO_MATCH = 0
    DESCRIPTION = 1
    CONTAINS = 2
    PREFIX = 3
    EXACT = 4


@dataclass(frozen=True, slots=True)
class TemplateUsage:
    """The use of a template by one user and by others.

    Attributes:
        live: Workspaces of it that the user has.
        deleted: Workspaces of it that the user deleted within the period that counts.
        last_used_at: When the user last used one.
        active_users: Users with a live workspace of it.
    """

    live: int = 0
    deleted: int = 0
    last_used_at: datetime | None = None
    active_users: int = 0


@dataclass(frozen=True, slots=True)
class Ranked:
    """A template with its rank."""

    template: Template
    usage: TemplateUsage
    tier: Tier
    affinity: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """Templates, best first, with a recommendation and the next step."""

    entries: tuple[Ranked, ...]
    recommended_id: str
    next_step: str


def rank(templates: Iterable[tuple[Template, TemplateUsage]], query: str, now: datetime) -> Ranking:
    """Return the matching templates, best first, with a recommendation if one is clearly better."""
    every = [
        Ranked(template, usage, tier_of(template, query), affinity_of(usage, now))
        for template, usage in templates
    ]
    fitting = [each for each in every if each.tier is not Tier.NO_MATCH or not query.strip()]
    ordered = tuple(
        sorted(fitting, key=lambda each: (-each.tier, -each.affinity, each.template.name))
    )
    if not every:
        return Ranking((), "", NONE)
    if not ordered:
        return Ranking((), "", BROADEN_QUERY)
    recommended = _standing_out(ordered)
    return Ranking(ordered, recommended, USE_RECOMMENDED if recommended else ASK)


def tier_of(template: Template, query: str) -> Tier:
    """Return how well a template matches the query; case, spaces, - and _ are ignored."""
    words = _plain(query)
    if not words:
        return Tier.NO_MATCH
    names = [_plain(template.name), _plain(template.display_name)]
    if words in names:
        return Tier.EXACT
    if any(name.startswith(words) for name in names):
        return Tier.PREFIX
    if any(words in name for name in names):
        return Tier.CONTAINS
    return Tier.DESCRIPTION if words in _plain(template.description) else Tier.NO_MATCH


def affinity_of(usage: TemplateUsage, now: datetime) -> float:
    """Return the affinity of a user to a template; it halves every two weeks."""
    own = 0.0
    if usage.last_used_at is not None and now - usage.last_used_at <= LOOK_BACK:
        days = max(0.0, (now - usage.last_used_at) / timedelta(days=1))
        own = 10 * (usage.live + 0.5 * usage.deleted) * 0.5 ** (days / HALF_LIFE_DAYS)
    return own + math.log(1 + usage.active_users)


def _standing_out(ordered: tuple[Ranked, ...]) -> str:
    best, *others = ordered
    if not others or best.tier > others[0].tier:
        return best.template.id
    leads = (
        best.affinity >= RECOMMEND_SCORE_MIN
        and best.affinity - others[0].affinity >= RECOMMEND_MARGIN
    )
    return best.template.id if leads else ""


def _plain(text: str) -> str:
    return "".join(each for each in text.casefold() if each not in " -_\t\n")
