"""Skills (folders with a SKILL.md) and prompt templates: finding, checking, offering and calling them.

Owns what people decided about those in a place's own folder. A model is told names and descriptions; it reads a skill when it needs one.
Borders: the host's are anybody's; a place's are that place's, used after consent to their very content, and no link in them is followed.
Failure: one that is broken is left out and named, and nothing else suffers.
"""

from features.skills.consents import SKILL_MIGRATIONS
from features.skills.records import Skill, Template
from features.skills.skill_catalog import PlaceSkills, SkillCatalog
from features.skills.skill_shelf import Invocation, SkillShelf

__all__ = ["SKILL_MIGRATIONS", "Invocation", "PlaceSkills", "Skill", "SkillCatalog", "SkillShelf", "Template"]
