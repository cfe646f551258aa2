"""The role table: every queue has a role, and `all` has every queue."""

import pytest

from sennit.workers.roles import ROLES, UnknownRole, role_named
from sennit.workflows.messages import queues


def test_each_role_polls_its_own_queues() -> None:
    polled = {name: role.queues for name, role in ROLES.items() if name != "all"}
    assert polled == {
        "workflow": (queues.WORKFLOW,),
        "llm": tuple(queues.llm_queue(model) for model in queues.PROVIDERS),
        "tools": (queues.TOOLS,),
        "sandbox": (queues.SANDBOX,),
    }


def test_all_serves_every_queue_of_the_other_roles_once() -> None:
    others = [binding for name, role in ROLES.items() if name != "all" for binding in role.bindings]
    assert sorted(others, key=str) == sorted(role_named("all").bindings, key=str)
    assert len(set(role_named("all").queues)) == len(others)


def test_a_role_knows_what_it_serves() -> None:
    assert role_named("workflow").serves("workflows")
    assert not role_named("workflow").serves("tools", "llm")


def test_a_role_may_go_without_a_kind_of_queue() -> None:
    assert queues.SANDBOX not in role_named("all").without("sandbox").queues
    assert role_named("tools").without("sandbox") == role_named("tools")


@pytest.mark.parametrize("name", ["worker", ""])
def test_a_role_that_is_not_there_is_refused_with_those_that_are(name: str) -> None:
    with pytest.raises(UnknownRole) as caught:
        role_named(name)
    assert "is unknown" in str(caught.value)
    assert "all, workflow, llm, tools, sandbox" in str(caught.value)
