"""The language in which lists of chats are searched."""

import pytest

from chatd.chats.rpc.search import searched
from chatd.chats.store.listing import Filter
from chatd.primitives.domain.errors import InvalidRequest


@pytest.mark.parametrize("query", ['title:"red pens', 'archived:true title:"', 'title:"a""'])
def test_a_quote_that_is_not_closed_is_told(query: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        searched(query, Filter())

    assert refused.value.faults == (
        ("query", 'has a quote that is not closed; end the value with "'),
    )
