// Creates a chat with the generated client, sends a second message and folds the chat's stream.
//
// Usage: node fold.ts http://host:port api-key first-message second-message
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.d.ts";

declare const process: { argv: string[] };

type ChatEvent = components["schemas"]["ChatEvent"];
type Message = components["schemas"]["Message"];

const [, , baseUrl = "", key = "", first = "", second = ""] = process.argv;
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });

const created = await client.POST("/api/v1/chats", {
  params: { header: { "Idempotency-Key": "created-in-typescript" } },
  body: { content: [{ type: "text", text: first }] },
});
if (created.error) throw new Error(created.error.code);
const path = { chat_id: created.data.id };
const sent = await client.POST("/api/v1/chats/{chat_id}/messages", {
  params: { path },
  body: { content: [{ type: "text", text: second }] },
});
if (sent.error) throw new Error(sent.error.code);
const messages = await folded(path.chat_id);
const read = await client.GET("/api/v1/chats/{chat_id}", { params: { path } });
if (read.error) throw new Error(read.error.code);
const missing = await client.GET("/api/v1/chats/{chat_id}", {
  params: { path: { chat_id: "00000000-0000-4000-8000-000000000000" } },
});
console.log(
  JSON.stringify({
    status: read.data.status,
    messages: messages.map((message) => [message.role, textOf(message)]),
    problem: missing.error?.code,
  }),
);

/** Read the stream of a chat until both messages are answered, and return its messages. */
async function folded(chatId: string): Promise<Message[]> {
  const messages = new Map<number, Message>();
  for await (const event of events(chatId)) {
    switch (event.type) {
      case "history_reset":
        messages.clear();
        break;
      case "message":
        messages.set(event.message.id, event.message);
        break;
      case "status": {
        const answers = [...messages.values()].filter((each) => each.role === "assistant");
        if (event.status.status === "waiting" && answers.length === 2) return [...messages.values()];
        break;
      }
    }
  }
  throw new Error("the stream ended early");
}

/** Yield the events of a chat. */
async function* events(chatId: string): AsyncGenerator<ChatEvent> {
  const { data, error } = await client.GET("/api/v1/chats/{chat_id}/events", {
    params: { path: { chat_id: chatId } },
    parseAs: "stream",
  });
  if (error) throw new Error(error.code);
  if (!data) throw new Error("no body");
  let text = "";
  for await (const piece of data.pipeThrough(new TextDecoderStream())) {
    text += piece;
    const frames = text.split("\n\n");
    text = frames.pop() ?? "";
    for (const frame of frames) {
      const line = frame.split("\n").find((each) => each.startsWith("data: "));
      if (line) yield JSON.parse(line.slice("data: ".length)) as ChatEvent;
    }
  }
}

function textOf(message: Message): string {
  return message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}
