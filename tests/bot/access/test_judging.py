"""One gate before everything; a deny test for every way in."""

import pytest

from bot.access import Verdict
from bot.config.chat_sections import AccessSection
from features.contracts.chat import Address
from features.contracts.testing import FakeClock
from tests.bot.access.conftest import GROUP, OWNER, STRANGER, Gates, says, says_in_group

REFUSED = Verdict(admitted=False)


@pytest.mark.parametrize("mode", ["pairing", "allowlist"])
async def test_an_empty_list_is_nobody(gates: Gates, mode: str) -> None:
    """Elsewhere it once meant everybody."""
    access = await gates.open(AccessSection(mode="pairing" if mode == "pairing" else "allowlist"))

    for message in (says(), says("/start"), says_in_group(), says("x", kind="edit"), says("/new", kind="press"), says_in_group("/pair")):
        assert not (await access.judge(message)).admitted
    assert not access.admits(STRANGER, Address("telegram", "66"), False)
    assert not access.admits(STRANGER, GROUP, True)
    assert not access.is_owner(STRANGER)


async def test_the_configured_are_admitted_and_owners_are_owners(gates: Gates) -> None:
    """The counterpart of every denial below."""
    access = await gates.open(AccessSection(owners=(OWNER,), allow=("telegram:2",), groups=(str(GROUP),)))

    assert await access.judge(says(by=OWNER)) == Verdict(admitted=True, owner=True)
    assert await access.judge(says(by="telegram:2")) == Verdict(admitted=True, owner=False)
    assert await access.judge(says_in_group()) == Verdict(admitted=True, owner=False)
    assert await access.judge(says_in_group(by=OWNER)) == Verdict(admitted=True, owner=True)


async def test_the_terminal_and_the_page_are_the_owner_s(gates: Gates) -> None:
    """Whoever is there holds the machine or its token."""
    access = await gates.open(AccessSection())

    assert access.is_owner("web:owner")
    assert access.is_owner("console:anna")
    for other in ("web:guest", "web:owner2", "console:", "slack:web:owner", "telegram:console:anna", ""):
        assert not access.is_owner(other), other


@pytest.mark.parametrize("kind", ["message", "edit", "press"])
async def test_edits_and_buttons_pass_the_same_gate(gates: Gates, kind: str) -> None:
    """A second way in is the one that is forgotten."""
    access = await gates.open()

    assert not (await access.judge(says("/status", kind=kind))).admitted
    assert (await access.judge(says("/status", by=OWNER, kind=kind))).admitted


async def test_only_a_message_gets_a_reply(gates: Gates) -> None:
    """An old button must not hand out codes."""
    access = await gates.open()

    assert (await access.judge(says(kind="press"))).reply is None
    assert (await access.judge(says(kind="edit"))).reply is None
    assert (await access.judge(says())).reply is not None


async def test_a_name_admits_nobody(gates: Gates) -> None:
    """Everybody may call themselves like the owner."""
    access = await gates.open()

    assert not (await access.judge(says(name=OWNER))).admitted
    assert not (await access.judge(says(by="slack:1"))).admitted, "the same number on another platform is another person"
    assert not (await access.judge(says(by="telegram:11"))).admitted


async def test_the_anonymous_are_never_admitted(gates: Gates) -> None:
    """Not in an admitted group, not with an owner's id, not even in an open host."""
    for options in (
        AccessSection(owners=(OWNER,), groups=(str(GROUP),)),
        AccessSection(owners=(OWNER,), groups=(str(GROUP),), mode="open", confirm_open=True),
    ):
        access = await gates.open(options)
        assert not (await access.judge(says_in_group(by=OWNER, anonymous=True))).admitted
        verdict = await access.judge(says(by=OWNER, anonymous=True))
        assert (verdict.admitted, verdict.owner) == (False, False)


async def test_an_anonymous_admin_is_told_why_once(gates: Gates) -> None:
    """In an admitted group silence would look like a fault."""
    access = await gates.open(AccessSection(groups=(str(GROUP),)))

    assert "Remain anonymous" in str((await access.judge(says_in_group(anonymous=True))).reply)
    assert await access.judge(says_in_group(anonymous=True)) == REFUSED


async def test_a_group_must_be_admitted_whoever_speaks_in_it(gates: Gates) -> None:
    """What is answered there is read by everybody in it."""
    access = await gates.open(AccessSection(owners=(OWNER,), allow=("telegram:2",)))

    assert not (await access.judge(says_in_group(by="telegram:2"))).admitted
    first = await access.judge(says_in_group(by=OWNER))
    assert not first.admitted
    assert "Send `/pair` here" in str(first.reply)
    assert (await access.judge(says_in_group(by=OWNER))).reply is None
    assert not access.admits(OWNER, GROUP, True)


async def test_a_group_that_is_not_admitted_hears_nothing_and_owners_hear_once(gates: Gates) -> None:
    """Anybody can put the bot into any group; it must not speak there."""
    access = await gates.open()
    verdicts = [await access.judge(says_in_group(by=f"telegram:{number}")) for number in range(60, 70)]

    assert [verdict.reply for verdict in verdicts] == [None] * 10
    assert "`telegram:-100`" in str(verdicts[0].tell_owners)
    assert [verdict.tell_owners for verdict in verdicts[1:]] == [None] * 9


async def test_talk_among_people_is_left_alone(gates: Gates) -> None:
    """Neither answered nor recorded, admitted group or not."""
    for options in (AccessSection(groups=(str(GROUP),)), AccessSection(), AccessSection(group_trigger="always")):
        access = await gates.open(options)
        assert await access.judge(says_in_group(addressed=False)) == REFUSED
        assert access.attempts() == []


async def test_a_group_may_be_answered_always(gates: Gates) -> None:
    """Where it was asked for, in admitted groups."""
    access = await gates.open(AccessSection(groups=(str(GROUP),), group_trigger="always"))

    assert (await access.judge(says_in_group(addressed=False))).admitted
    assert not (await access.judge(says_in_group(addressed=False, anonymous=True))).admitted


async def test_a_topic_belongs_to_its_group(gates: Gates) -> None:
    """The place is what is admitted."""
    access = await gates.open(AccessSection(groups=(str(GROUP),)))
    topic = Address(GROUP.channel, GROUP.chat, "7")

    assert (await access.judge(says_in_group(group=topic))).admitted
    assert not (await access.judge(says_in_group(group=Address("telegram", "-1001")))).admitted


async def test_an_open_host_lets_people_in_as_guests(gates: Gates) -> None:
    """Open is for talking, not for owning."""
    access = await gates.open(AccessSection(mode="open", confirm_open=True, owners=(OWNER,)))

    assert await access.judge(says()) == Verdict(admitted=True, owner=False)
    assert await access.judge(says_in_group()) == Verdict(admitted=True, owner=False)


async def test_in_allowlist_mode_a_stranger_gets_their_id_and_no_code(gates: Gates) -> None:
    """Once; it is what they have to give the owner."""
    access = await gates.open(AccessSection(mode="allowlist", owners=(OWNER,)))
    first, second = await access.judge(says()), await access.judge(says("/start"))

    assert "your id is `telegram:66`" in str(first.reply)
    assert "/pair" not in str(first.reply)
    assert "I did not let them in" in str(first.tell_owners)
    assert second == REFUSED


async def test_a_stranger_s_name_cannot_act_in_a_notice(gates: Gates) -> None:
    """It is their own choice, and owners read it as the bot's words."""
    access = await gates.open()
    verdict = await access.judge(says(name="*[x](http://evil.example)* @admin `rm`\n" + "y" * 200))

    notice = str(verdict.tell_owners)
    assert notice.startswith("Somebody new wrote to me: x http evil example admin rm yyy")
    assert not set("*[]()@\n") & set(notice.partition(" (`telegram:66`)")[0])
    assert len(notice) < 250


async def test_owners_are_not_flooded_by_a_crowd(gates: Gates, clock: FakeClock) -> None:
    """Ten notices an hour; the audit keeps the rest."""
    access = await gates.open()
    told = [(await access.judge(says(by=f"telegram:{number}"))).tell_owners for number in range(100, 140)]
    assert sum(notice is not None for notice in told) == 10
    assert len(access.attempts()) == 40

    await clock.advance(3600)
    assert (await access.judge(says(by="telegram:200"))).tell_owners
