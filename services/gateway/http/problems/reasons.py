"""The table of problem codes: their meaning and remedy.

It is used for the page of a code, and for responses whose text another service wrote for programs
or models.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReasonText:
    """One kind of problem.

    Attributes:
        means: What happened.
        remedy: What to do about it.
    """

    means: str
    remedy: str

    @property
    def text(self) -> str:
        """The meaning and the remedy in one text."""
        return f"{self.means} {self.remedy}"


REQUEST_REASONS: Mapping[str, ReasonText] = {
    "INVALID_REQUEST": ReasonText(
        "Parts of the request cannot be accepted.",
        "Correct what `errors` lists: `pointer` is the place in the body as a JSON Pointer, "
        "`parameter` the name in the query, the path or the headers.",
    ),
    "BAD_REQUEST": ReasonText(
        "What was sent is not a request of HTTP/1.1, or its head can be read in more than one way.",
        "Correct what the detail names; a proxy in between may have changed the request.",
    ),
    "REQUEST_HEADER_FIELDS_TOO_LARGE": ReasonText(
        "The target and the headers of the request have too many bytes.",
        "Send fewer or shorter headers, such as fewer cookies.",
    ),
    "INVALID_CHUNKS": ReasonText(
        "The body has Transfer-Encoding: chunked, and is not in chunks.",
        "Send each chunk as its size in hexadecimal digits, a line end, so many bytes and a line "
        "end, and at last a chunk of size 0; or send the body with a Content-Length.",
    ),
    "INVALID_JSON": ReasonText(
        "The body is not one JSON document in UTF-8.",
        "Correct it at the `line` and `column` of the answer.",
    ),
    "INVALID_IDEMPOTENCY_KEY": ReasonText(
        "The header Idempotency-Key is not a key.",
        "Send 1 to 128 printable ASCII characters, such as a UUID.",
    ),
    "UNSUPPORTED_MEDIA_TYPE": ReasonText(
        "The body has a Content-Type that this path does not read.",
        "Send the Content-Type that the detail names.",
    ),
    "BODY_TOO_LARGE": ReasonText(
        "The body has more bytes than this path reads.",
        "Send less than `limit_bytes`; send files as files, with POST /api/v1/files.",
    ),
    "BODY_TOO_SLOW": ReasonText(
        "The body did not arrive in time.", "Send it again over a better connection, or less of it."
    ),
    "MESSAGE_TOO_LARGE": ReasonText(
        "What was sent or asked for is larger than one message between services.",
        "Send or ask for less at a time.",
    ),
    "TOO_MANY_UPLOADS": ReasonText(
        "Too many files are being uploaded at once.", "Wait for an upload to end, then try again."
    ),
    "RANGE_NOT_SATISFIABLE": ReasonText(
        "The header Range names bytes that the file does not have.",
        "Ask for a range within the size that Content-Range tells.",
    ),
    "METHOD_NOT_ALLOWED": ReasonText(
        "This path does not answer this method.", "Use one of the header Allow."
    ),
    "NO_SUCH_PATH": ReasonText("There is nothing at this path.", "See /docs for all routes."),
    "NOT_A_WEBSOCKET": ReasonText("This path is no WebSocket.", "Send a plain request."),
    "UPGRADE_REQUIRED": ReasonText(
        "This path is a WebSocket.", "Connect with a client for WebSockets, version 13."
    ),
    "BAD_FRAME": ReasonText(
        "A text frame of a terminal is no control message.",
        "Send input as binary frames, and text only as docs/terminals.md describes it.",
    ),
    "FRAME_TOO_LARGE": ReasonText(
        "A frame of a terminal has too many bytes.", "Send the input in smaller frames."
    ),
    "TOO_MANY_FRAMES": ReasonText(
        "More frames came in a second than a terminal takes.", "Send fewer and larger frames."
    ),
    "VIEW_ONLY": ReasonText(
        "This connection to the terminal only looks.", "Connect without view_only to write."
    ),
    "HTTP_VERSION_TOO_OLD": ReasonText(
        "Streams need HTTP/1.1.",
        "Use it; a proxy in between may have to be told so, such as nginx with "
        "proxy_http_version 1.1.",
    ),
    "HOST_NOT_ALLOWED": ReasonText(
        "The request names a host that is not served here.",
        "Use the public URL, or add the name to GATEWAY_ALLOWED_HOSTS.",
    ),
    "CROSS_SITE_REQUEST": ReasonText(
        "A page of another site sent this request with the session of this one.",
        "Call the API with an API key instead of the session cookie.",
    ),
    "SERVER_BUSY": ReasonText(
        "There are as many connections or requests open as this server takes.",
        "Try again after the time in Retry-After; if it lasts, the operator finds the bounds in "
        "docs/gateway.md.",
    ),
    "TOO_MANY_CONNECTIONS": ReasonText(
        "There are as many connections from this address as one address may have.",
        "Close some, or keep connections and use them again. Behind a reverse proxy, the operator "
        "names it in GATEWAY_TRUSTED_PROXIES.",
    ),
    "TOO_MANY_REQUESTS": ReasonText(
        "You, or your address, have as many requests and streams open as may be.",
        "Close some, then try again after the time in Retry-After.",
    ),
    "TOO_MANY_LONG_RUNNING_REQUESTS": ReasonText(
        "You have as many requests open that wait, watch or transfer files as may be.",
        "End some, then try again after the time in Retry-After.",
    ),
    "CLIENT_CLOSED_REQUEST": ReasonText(
        "The client closed the connection.", "Send the request again."
    ),
    "REQUEST_ID_REUSED": ReasonText(
        "The Idempotency-Key was used before, with another request.",
        "Choose a new key for each request; repeat one only with the same body.",
    ),
}
SIGN_IN_REASONS: Mapping[str, ReasonText] = {
    "UNAUTHENTICATED": ReasonText(
        "The request is not signed in, or its sign-in has ended.",
        "Send `Authorization: Bearer` with an API key, or open a new login link.",
    ),
    "INVALID_API_KEY": ReasonText(
        "The API key is not known.", "Check it, or have a new one issued."
    ),
    "LOGIN_LINK_INVALID": ReasonText(
        "The login link was used before, is older than a day, or is from an earlier start.",
        "Use the newest link that `parley up` printed, or start Parley again for a new one.",
    ),
    "FORBIDDEN": ReasonText(
        "You are signed in and may not do this.", "Ask an administrator to do it, or for the role."
    ),
    "ROLE_NOT_ALLOWED": ReasonText(
        "Your role may not do this.", "Ask an administrator for the role."
    ),
    "SCOPE_MISSING": ReasonText(
        "The service token lacks the scope that this method needs.",
        "Issue a token with the scope; /docs names it for each route.",
    ),
    "CALLER_NOT_ALLOWED": ReasonText(
        "This service may not call the method.", "Call it through the gateway."
    ),
    "METHOD_UNDECLARED": ReasonText(
        "The method does not say who may call it.", "Report it as an error of Parley."
    ),
    "PEER_MISMATCH": ReasonText(
        "The token does not belong to the process that sent it.",
        "Each service sends tokens of its own.",
    ),
    "TOKEN_MISSING": ReasonText("The call has no service token.", "Send one as a bearer token."),
    "TOKEN_MALFORMED": ReasonText(
        "The service token cannot be read.", "Send it whole and unchanged."
    ),
    "TOKEN_ALGORITHM": ReasonText(
        "The service token is signed with another algorithm.", "Sign tokens with EdDSA."
    ),
    "TOKEN_KEY_UNKNOWN": ReasonText(
        "The service token is signed with a key that is not trusted here.",
        "Add the key to the trust file.",
    ),
    "TOKEN_SIGNATURE": ReasonText(
        "The signature of the service token is wrong.", "Issue a new one."
    ),
    "TOKEN_ISSUER": ReasonText(
        "The service token names another issuer than its key belongs to.", "Issue a new one."
    ),
    "TOKEN_AUDIENCE": ReasonText(
        "The service token is for another service.", "Issue one for the service that is called."
    ),
    "TOKEN_EXPIRED": ReasonText("The service token has expired.", "Issue a new one."),
    "TOKEN_NOT_YET_VALID": ReasonText(
        "The service token is not valid yet.", "Compare the clocks of both machines."
    ),
    "TOKEN_REVOKED": ReasonText("The service token was revoked.", "Issue a new one."),
    "REVOCATIONS_UNKNOWN": ReasonText(
        "Which tokens are revoked cannot be found out now.", "Try again shortly."
    ),
}
SERVER_REASONS: Mapping[str, ReasonText] = {
    "INTERNAL": ReasonText(
        "Something failed that should not.",
        "Try again; if it stays, the operator finds it in the logs by `trace_id`.",
    ),
    "UNIMPLEMENTED": ReasonText("This is not served yet.", "Use a newer version of Parley."),
    "DRAINING": ReasonText("This process is stopping.", "Try again; another process answers."),
    "NOT_READY": ReasonText(
        "This process cannot do its work now.", "See `checks` for what is missing."
    ),
    "STORE_UNAVAILABLE": ReasonText("The database cannot be reached.", "Try again shortly."),
    "STORE_BUSY": ReasonText(
        "Other requests held what this one changes for too long; nothing was changed.",
        "Try again.",
    ),
    "UPSTREAM_UNAVAILABLE": ReasonText(
        "A service behind this one does not answer.", "Try again shortly."
    ),
    "UNAVAILABLE": ReasonText("A service behind this one does not answer.", "Try again shortly."),
    "DEADLINE_EXCEEDED": ReasonText("A service behind this one took too long.", "Try again."),
    "SERVICE_UNKNOWN": ReasonText(
        "No service with this name is configured.", "Check the settings of this process."
    ),
    "CANCELLED": ReasonText("The call was cancelled.", "Send it again if it is still wanted."),
}
IDENTITY_REASONS: Mapping[str, ReasonText] = {
    "USER_NOT_FOUND": ReasonText(
        "There is no such user, or you may not see them.", "List the users to see their ids."
    ),
    "USER_DELETED": ReasonText("The user was deleted for good.", "Delete what is stored of them."),
    "USER_DEACTIVATED": ReasonText("The user is deactivated.", "Reactivate them first."),
    "USER_STILL_ACTIVE": ReasonText("The user is active.", "Deactivate them before deleting them."),
    "LAST_OWNER": ReasonText("No active owner would be left.", "Make another user an owner first."),
    "LOGIN_TAKEN": ReasonText("Another user has this login.", "Choose another one."),
    "GROUP_NOT_FOUND": ReasonText(
        "There is no such group, or you may not see it.", "List the groups to see their ids."
    ),
    "TOO_MANY_GROUPS": ReasonText(
        "The user belongs to as many groups as one may.", "Take them out of one first."
    ),
    "ROLE_EXCEEDS_CALLER": ReasonText(
        "The role asked for is higher than your own.", "Ask a user who has the role."
    ),
    "UNKNOWN_SCOPE": ReasonText("No method needs this scope.", "Choose scopes that /docs lists."),
    "TOKEN_NOT_FOUND": ReasonText(
        "There is no such service token.", "List the service tokens to see their ids."
    ),
    "TOKEN_FOR_ANOTHER_USER": ReasonText(
        "Service tokens are issued for oneself only.", "Let the user issue the token."
    ),
    "TOKEN_ALREADY_ISSUED": ReasonText(
        "This request issued a token before, and its text cannot be told again.",
        "Revoke that token and ask with a new Idempotency-Key.",
    ),
    "TOO_MANY_TOKENS": ReasonText(
        "Too many service tokens are in force.", "Revoke some, or wait until some expire."
    ),
}
CHAT_REASONS: Mapping[str, ReasonText] = {
    "CHAT_NOT_FOUND": ReasonText(
        "There is no such chat, or you may not see it.", "List your chats to see their ids."
    ),
    "CHAT_READ_ONLY": ReasonText(
        "The chat is shared with you for reading only.", "Ask its owner to write in it."
    ),
    "UNKNOWN_ID": ReasonText(
        "The request names something that does not exist, or that you may not use.",
        "Correct the ids that `errors` lists; `resource` says what they should name.",
    ),
    "CHECK_UNAVAILABLE": ReasonText(
        "Whether the request names something that exists cannot be checked now; nothing was "
        "changed.",
        "Try again.",
    ),
    "MESSAGE_NOT_FOUND": ReasonText(
        "There is no such message in the chat.", "Read the messages of the chat again."
    ),
    "QUEUED_MESSAGE_NOT_FOUND": ReasonText(
        "No such message is queued; it may have been sent or removed meanwhile.",
        "Read the queue of the chat again.",
    ),
    "FILE_NOT_FOUND": ReasonText(
        "There is no such file, or you may not see it.", "Upload it with POST /api/v1/files first."
    ),
    "MODEL_NOT_FOUND": ReasonText(
        "There is no such model, or it is switched off.", "Choose one of GET /api/v1/models."
    ),
    "RESOURCE_NOT_FOUND": ReasonText(
        "There is no such thing, or you may not see it; `resource` says what kind.",
        "List the things of this kind to see their ids.",
    ),
    "NO_MODEL": ReasonText("No model is configured.", "An administrator has to add a provider."),
    "TRANSITION_NOT_ALLOWED": ReasonText(
        "The chat is in a status in which this is not possible.",
        "Wait until its status changes, or interrupt it, then try again.",
    ),
    "CHAT_ARCHIVED": ReasonText("The chat is archived.", "Unarchive it first."),
    "INVALID_STATE": ReasonText(
        "What is stored of the chat contradicts itself.",
        "Repair it with POST /api/v1/chats/{chat_id}/reconcile.",
    ),
    "VERSION_CONFLICT": ReasonText(
        "It was changed since it was read.", "Read it again and decide anew."
    ),
    "QUEUE_FULL": ReasonText(
        "As many messages are queued as may be.",
        "Wait for a turn to end, or remove a queued message.",
    ),
    "NOT_EDITABLE": ReasonText("Only messages of a user can be edited.", "Edit one of those."),
    "NOTHING_TO_COMPACT": ReasonText(
        "There are no new messages since the last summary.", "Send a message first."
    ),
    "BAD_TOOL_RESULT": ReasonText(
        "A tool result is a duplicate, unexpected, missing or not JSON.",
        "Send exactly one JSON result for each call in `required_action` of the chat.",
    ),
    "TOO_MANY_FILES": ReasonText("The chat holds as many files as it may.", "Start another chat."),
    "FILE_TOO_LARGE": ReasonText(
        "The file has more bytes than are allowed.", "Use a smaller one, or parts of it."
    ),
    "MEDIA_TYPE_REFUSED": ReasonText(
        "The file is of a type that is not accepted, or not of the type that was declared.",
        "Send it with the type of its bytes, or convert it to an accepted one.",
    ),
    "USAGE_LIMIT": ReasonText(
        "The spending limit is reached.",
        "Wait until `resets_at`, or ask an administrator to raise the limit.",
    ),
    "GROUPS_UNAVAILABLE": ReasonText(
        "The spending limit depends on groups that cannot be read now.", "Try again."
    ),
    "KEY_NEEDED": ReasonText(
        "The change would send stored keys of the provider to another host.",
        "Store a key for the new host in the same step, or remove the stored keys first.",
    ),
    "NAME_TAKEN": ReasonText("Another one has this name.", "Choose another name."),
    "RESYNC": ReasonText(
        "The stream cannot go on from this cursor.",
        "Read the chat again and open the stream without a cursor.",
    ),
}
