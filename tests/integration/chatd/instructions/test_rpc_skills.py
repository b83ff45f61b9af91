"""Personal skills over a real socket and database: stored, listed, refused, deleted."""

from parley.api.chat.v1 import context_service_pb2 as api
from support.chatd.chats.served_chats import ServedChats

CONTENT = "---\nname: deploy\ndescription: {}\n---\nPush it."


def put(name: str = "deploy", description: str = "Mine.") -> api.SetSkillRequest:
    return api.SetSkillRequest(request_id="r", name=name, content=CONTENT.format(description))


async def test_a_skill_is_stored_replaced_listed_read_and_deleted_by_its_owner(
    served: ServedChats,
) -> None:
    await served.ann.ask(put())
    stored = (await served.ann.ask(put(description="Again."))).skill
    assert (stored.name, stored.description, stored.body) == ("deploy", "Again.", "Push it.")
    (listed,) = (await served.ann.ask(api.ListSkillsRequest())).items
    assert (listed.description, listed.body, listed.size_bytes) == ("Again.", "", 8)
    assert (await served.ann.ask(api.GetSkillRequest(name="deploy"))).skill == stored
    assert not (await served.bob.ask(api.ListSkillsRequest())).items
    hidden = await served.bob.refusal(api.GetSkillRequest(name="deploy"))
    assert hidden.reason == "RESOURCE_NOT_FOUND"
    gone = api.DeleteSkillRequest(request_id="r", name="deploy")
    await served.ann.ask(gone)
    assert (await served.ann.refusal(gone)).reason == "RESOURCE_NOT_FOUND"


async def test_a_skill_of_another_name_or_without_a_head_is_refused(served: ServedChats) -> None:
    assert (await served.ann.refusal(put(name="other"))).reason == "INVALID_REQUEST"
    plain = api.SetSkillRequest(request_id="r", name="deploy", content="Push it.")
    assert (await served.ann.refusal(plain)).reason == "INVALID_REQUEST"
