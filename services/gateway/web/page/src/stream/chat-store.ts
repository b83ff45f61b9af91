/**
 * A chat that is open in this tab: its newest page is read, then its stream is followed from there.
 * A hidden tab holds no connection; it continues after its last event when it is shown again.
 */
import { useEffect, useState, useSyncExternalStore } from "react";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import type { ChatEvent, ListMessagesResponse, Message, QueuedMessage } from "../api/types.ts";
import { onStored } from "../outbox/outbox.ts";
import { frames } from "../ui/frames.ts";
import { createStore, type Store } from "../ui/stores/store.ts";
import {
  afterGap,
  applyAll,
  type ChatState,
  EMPTY,
  settle,
  upserted,
  withAround,
  withGapFilled,
  withOlder,
} from "./chat-state.ts";
import { connect, type Connection, type Link } from "./connection.ts";
import { lastWords, liveLine } from "./live-line.ts";
import { ProcessOutputs } from "./process-outputs.ts";

const PAGE = 50;
const HIDDEN_MS = 3_000;
const SETTLED_MS = 150;
const LINE_MS = 400;

interface Bounds {
  before_id?: number;
  after_id?: number;
  around_id?: number;
}

export interface ChatView {
  chat: ChatState;
  /** Whether the newest page was read. */
  isLoaded: boolean;
  link: Link;
  /** Whether the link broke while something ran. */
  isInterrupted: boolean;
  problem: unknown;
}

const BEGUN: ChatView = {
  chat: EMPTY,
  isLoaded: false,
  link: "connecting",
  isInterrupted: false,
  problem: null,
};

export class ChatStore {
  readonly view: Store<ChatView> = createStore(BEGUN);
  readonly chatId: string;
  /** Processes whose output is shown, which the same stream tells. */
  readonly outputs = new ProcessOutputs(() => this.#reopen());
  #connection: Connection | null = null;
  #cursor: string | null = null;
  /** Where the stream begins without a cursor. */
  #begin = "";
  #pending: ChatEvent[] = [];
  /** Of all queued messages that the server told of. */
  readonly #queuedIds = new Set<string>();
  #scheduled = false;
  #isClosed = false;
  #loading: Promise<void> | null = null;
  #filling: Promise<void> | null = null;
  #settling = 0;
  #hiding = 0;
  #reopening = 0;
  #telling = 0;

  constructor(chatId: string) {
    this.chatId = chatId;
  }

  /** Read the newest page, and follow from there. */
  async open(): Promise<void> {
    document.addEventListener("visibilitychange", this.#onVisibility);
    addEventListener("online", this.#onOnline);
    await this.#load();
  }

  close(): void {
    this.#isClosed = true;
    document.removeEventListener("visibilitychange", this.#onVisibility);
    removeEventListener("online", this.#onOnline);
    clearTimeout(this.#hiding);
    clearTimeout(this.#settling);
    clearTimeout(this.#reopening);
    clearTimeout(this.#telling);
    liveLine.update((was) => (was?.chatId === this.chatId ? null : was));
    this.#connection?.close();
  }

  /** Read the page before the oldest message. */
  loadOlder(): Promise<void> {
    this.#loading ??= this.#readOlder().finally(() => {
      this.#loading = null;
    });
    return this.#loading;
  }

  /** Read a page of what is missing after a linked message, from the side on which the reader is. */
  fillGap(side: "older" | "newer"): Promise<void> {
    this.#filling ??= this.#readGap(side).finally(() => {
      this.#filling = null;
    });
    return this.#filling;
  }

  /** Have a message of the history, with those around it. */
  async reach(messageId: number): Promise<void> {
    const { messages } = this.view.get().chat;
    if (messages.some((each) => each.id === messageId)) return;
    const page = await this.#page({ around_id: messageId });
    if (this.#isClosed) return;
    this.#change((view) => ({
      ...view,
      chat: withAround(view.chat, page.messages, page.has_more, page.has_newer),
    }));
  }

  /** Show a message that the server stored in the history or in the queue, before the stream tells of it. */
  stored(message: Message | null, queued: QueuedMessage | null): void {
    if (message) this.#change((view) => ({ ...view, chat: { ...view.chat, messages: upserted(view.chat.messages, message) } }));
    // One that the stream has told of is there, or was sent since.
    if (queued && !this.#queuedIds.has(queued.id)) {
      this.#change((view) => ({ ...view, chat: { ...view.chat, queue: [...view.chat.queue, queued] } }));
    }
  }

  retry(): void {
    this.#change((view) => ({ ...view, problem: null }));
    void this.#load();
  }

  async #load(): Promise<void> {
    try {
      const path = { chat_id: this.chatId };
      const [page, chat] = await Promise.all([
        this.#page({}),
        answered(api.GET("/api/v1/chats/{chat_id}", { params: { path } })),
      ]);
      if (this.#isClosed) return;
      queryClient.setQueryData(["chat", this.chatId], chat);
      this.#noteQueue(page.queued_messages);
      this.#change((view) => ({
        ...view,
        isLoaded: true,
        problem: null,
        chat: {
          ...EMPTY,
          messages: page.messages.toSorted((a, b) => a.id - b.id),
          hasOlder: page.has_more,
          queue: page.queued_messages,
          status: chat.status,
          placeInLine: chat.place_in_line,
          error: chat.last_error,
          retry: chat.retry,
          required: chat.required_action,
        },
      }));
      this.#connect(page);
    } catch (problem) {
      if (!this.#isClosed) this.#change((view) => ({ ...view, problem }));
    }
  }

  #connect(page: ListMessagesResponse): void {
    const newest = page.messages.reduce((last, each) => Math.max(last, each.id), 0);
    this.#cursor = (page as { cursor?: string | null }).cursor ?? null;
    this.#begin = newest ? `after_id=${newest}` : "";
    this.#connection?.close();
    this.#connection = this.#connected();
  }

  #connected(): Connection {
    return connect<ChatEvent>({
      address: (cursor) => {
        const place = cursor ? `cursor=${encodeURIComponent(cursor)}` : this.#begin;
        const { query } = this.outputs;
        const asked = [place, query && `processes=${query}`].filter(Boolean).join("&");
        return `/api/v1/chats/${this.chatId}/events${asked && `?${asked}`}`;
      },
      cursor: this.#cursor,
      onEvents: (events) => {
        for (const { cursor } of events) if (cursor) this.#cursor = cursor;
        for (const { event } of events) if (event.type === "queue_update") this.#noteQueue(event.queued_messages);
        this.#pending.push(...this.outputs.take(events.map(({ event }) => event)));
        if (events.some(({ event }) => event.type === "resync")) return this.#resync();
        this.#schedule();
      },
      onLink: (link, problem) => {
        const { status } = this.view.get().chat;
        const isBusy = status === "running" || status === "interrupting";
        this.#change((view) => ({
          ...view,
          link,
          isInterrupted: link !== "open" && (view.isInterrupted || (link === "waiting" && isBusy)),
          problem: problem ?? view.problem,
        }));
      },
    });
  }

  #noteQueue(queue: readonly QueuedMessage[]): void {
    for (const { id } of queue) this.#queuedIds.add(id);
  }

  /** Open the stream again, where it is and with other processes; several changes are one. */
  #reopen(): void {
    clearTimeout(this.#reopening);
    this.#reopening = setTimeout(() => {
      if (this.#isClosed || !this.#connection) return;
      this.#connection.close();
      this.#connection = this.#connected();
    });
  }

  /** The stream cannot go on from where it was: begin anew. */
  #resync(): void {
    this.#pending = [];
    this.#cursor = null;
    this.#connection?.close();
    void this.#load();
  }

  /** Show what arrived with the next frame, all of it in one update. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    const flush = (): void => {
      if (!this.#scheduled) return;
      this.#scheduled = false;
      clearTimeout(late);
      this.#flush();
    };
    // Frames stop in hidden tabs.
    const late = setTimeout(flush, 100);
    frames.take(flush);
  }

  #flush(): void {
    const events = this.#pending;
    this.#pending = [];
    if (this.#isClosed || events.length === 0) return;
    this.#change((view) => ({ ...view, chat: applyAll(view.chat, events) }));
    this.#tellLine();
    clearTimeout(this.#settling);
    if (this.view.get().chat.replacement) {
      this.#settling = setTimeout(
        () => this.#change((view) => ({ ...view, chat: settle(view.chat) })),
        SETTLED_MS,
      );
    }
  }

  /** Tell the list the last words of the answer, now and then. */
  #tellLine(): void {
    if (this.#telling) return;
    this.#telling = setTimeout(() => {
      this.#telling = 0;
      const line = lastWords(this.view.get().chat.tail);
      liveLine.set(line ? { chatId: this.chatId, line } : null);
    }, LINE_MS);
  }

  async #readOlder(): Promise<void> {
    const first = this.view.get().chat.messages[0]?.id;
    if (!first || !this.view.get().chat.hasOlder) return;
    const page = await this.#page({ before_id: first });
    // An answer for messages that are not the first ones any more belongs nowhere.
    if (this.#isClosed || this.view.get().chat.messages[0]?.id !== first) return;
    this.#change((view) => ({ ...view, chat: withOlder(view.chat, page.messages, page.has_more) }));
  }

  async #readGap(side: "older" | "newer"): Promise<void> {
    const { chat } = this.view.get();
    const end = chat.messages[afterGap(chat)]?.id;
    if (chat.gapAfter === null || !end) return;
    const page = await this.#page(side === "older" ? { after_id: chat.gapAfter } : { before_id: end });
    // An answer for a gap that is not there any more belongs nowhere.
    if (this.#isClosed || this.view.get().chat.gapAfter !== chat.gapAfter) return;
    this.#change((view) => ({
      ...view,
      chat: withGapFilled(view.chat, page.messages, side, page.has_more),
    }));
  }

  #page(bounds: Bounds): Promise<ListMessagesResponse> {
    return answered(
      api.GET("/api/v1/chats/{chat_id}/messages", {
        params: { path: { chat_id: this.chatId }, query: { limit: PAGE, ...bounds } },
      }),
    );
  }

  #onVisibility = (): void => {
    clearTimeout(this.#hiding);
    if (!document.hidden) {
      if (!this.#connection && this.view.get().isLoaded) this.#connection = this.#connected();
      return;
    }
    this.#hiding = setTimeout(() => {
      if (!this.#cursor) return;
      this.#connection?.close();
      this.#connection = null;
    }, HIDDEN_MS);
  };

  #onOnline = (): void => {
    const { isLoaded, problem } = this.view.get();
    if (!isLoaded && problem) this.retry();
    else this.#connection?.hurry();
  };

  #change(change: (view: ChatView) => ChatView): void {
    this.view.update(change);
  }
}

/** Follow a chat while a component is there. */
export function useChat(chatId: string): [ChatStore, ChatView] {
  const [store, setStore] = useState(() => new ChatStore(chatId));
  useEffect(() => {
    const opened = new ChatStore(chatId);
    setStore(opened);
    void opened.open();
    const leave = onStored((id, message, queued) => id === chatId && opened.stored(message, queued));
    return () => {
      leave();
      opened.close();
    };
  }, [chatId]);
  return [store, useSyncExternalStore(store.view.subscribe, store.view.get)];
}
