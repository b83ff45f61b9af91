"""An internal caller: asks chatd one thing over gRPC and prints the answer as it is written.

    parley token issue nightly --scope chat:read --scope chat:write --output nightly.token
    python examples/internal_caller.py --token-file nightly.token unix:/path/chatd.sock "hello"

Name every chatd process. A tls: address also needs --tls with the directory of a certificate.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

from parley.client import (
    ChatStatus,
    ClientError,
    HistoryReset,
    MessageCommitted,
    Parley,
    PartStreamed,
    PreviewReset,
    Resync,
    Role,
    StatusChanged,
    Text,
    connect,
)
from parley.identity import CertificateUnreadable
from parley.rpc import RpcError, TlsFiles

AT_REST = (ChatStatus.WAITING, ChatStatus.ERROR, ChatStatus.REQUIRES_ACTION)


async def tell(parley: Parley, text: str) -> None:
    """Start a chat with `text` and print what it answers, each text once, as it is written.

    Pieces that stream are a preview of the message that is stored after them. So of a stored
    message only that is printed which was not shown yet.
    """
    chat = await parley.create_chat(text)
    print(f"chat {chat.id}", file=sys.stderr)
    shown = ""
    async with aclosing(parley.follow(chat.id)) as events:
        async for event in events:
            match event:
                case PartStreamed(part=Text(piece)):
                    shown += piece
                    print(piece, end="", flush=True)
                case PreviewReset() | HistoryReset() | Resync() if shown:
                    shown = ""
                    print("\n(once more)")
                case MessageCommitted(message=message) if message.role is Role.ASSISTANT:
                    print(rest_of(message.text, shown))
                    shown = ""
                case StatusChanged(status=status) if status in AT_REST:
                    break
                case _:
                    pass
    # Raises why there is no answer, if there is none.
    await parley.answer(chat.id)


def rest_of(stored: str, shown: str) -> str:
    """Return what of a stored text was not shown, or all of it if another one was shown."""
    return stored.removeprefix(shown) if stored.startswith(shown) else f"\n{stored}"


async def run(options: argparse.Namespace) -> int:
    """Connect, ask, and return the exit code."""
    tls = None if options.tls is None else TlsFiles(options.tls)
    try:
        token = options.token_file.read_text()
        async with connect(*options.addresses, token=token, tls=tls) as parley:
            await tell(parley, options.text)
    except (RpcError, CertificateUnreadable, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except ClientError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="Ask chatd one thing over gRPC.")
    parser.add_argument("addresses", nargs="+", metavar="ADDRESS", help="a chatd process")
    parser.add_argument("text", help="what to ask")
    parser.add_argument("--token-file", type=Path, required=True, help="holds a service token")
    parser.add_argument("--tls", type=Path, help="holds ca.pem, certificate.pem and key.pem")
    return asyncio.run(run(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
