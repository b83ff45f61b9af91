"""A program that offers a model a tool of its own: the program runs it, not the server.

    parley token issue shop --scope chat:read --scope chat:write --output shop.token
    python examples/client_tools.py --token-file shop.token unix:/path/chatd.sock "how many pens?"

The demo model calls the tool only if it is told to; without a provider key use the prompt
'call: look_up_stock {"product": "pens"}'.

A turn that calls the tool stops with the status requires_action until the program has answered
every call, or until the deadline of the action.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

from parley.client import (
    ActionRequired,
    ChatOptions,
    ChatStatus,
    ClientError,
    ClientTool,
    MessageCommitted,
    Parley,
    RequiredCall,
    Role,
    StatusChanged,
    ToolAnswer,
    connect,
)

STOCK = {"pens": 12, "books": 3}
LOOK_UP_STOCK = ClientTool(
    name="look_up_stock",
    description="Tells how many pieces of a product are in stock.",
    input_schema={
        "type": "object",
        "properties": {"product": {"type": "string", "enum": list(STOCK)}},
        "required": ["product"],
    },
)
AT_REST = (ChatStatus.WAITING, ChatStatus.ERROR)


def answer_to(call: RequiredCall) -> ToolAnswer:
    """Run the tool for one call."""
    product = call.arguments.get("product")
    if product not in STOCK:
        return ToolAnswer.to(call, f"Known products: {', '.join(STOCK)}.", is_error=True)
    return ToolAnswer.to(call, {"product": product, "pieces": STOCK[product]})


async def run_turn(parley: Parley, text: str) -> None:
    """Start a chat with the tool, answer its calls, and print what it says."""
    chat = await parley.create_chat(text, options=ChatOptions(client_tools=(LOOK_UP_STOCK,)))
    async with aclosing(parley.follow(chat.id)) as events:
        async for event in events:
            match event:
                case ActionRequired(calls=calls):
                    print(*(f"{call.tool_name} {call.args_json}" for call in calls), sep="\n")
                    await parley.manage.submit_tool_results(chat.id, *map(answer_to, calls))
                case MessageCommitted(message=message) if message.role is Role.ASSISTANT:
                    print(message.text, end="\n" if message.text else "")
                case StatusChanged(status=status) if status in AT_REST:
                    break
                case _:
                    pass
    # Raises why there is no answer, if there is none.
    await parley.answer(chat.id)


async def run(options: argparse.Namespace) -> int:
    """Connect, run one turn, and return the exit code."""
    try:
        token = options.token_file.read_text()
        async with connect(*options.addresses, token=token) as parley:
            await run_turn(parley, options.text)
    except (ClientError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="Offer a model a tool that this program runs.")
    parser.add_argument("addresses", nargs="+", metavar="ADDRESS", help="a chatd process")
    parser.add_argument("text", help="what to ask")
    parser.add_argument("--token-file", type=Path, required=True, help="holds a service token")
    return asyncio.run(run(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
