/** A chat: its messages, what runs in it, and the composer. */
import "./chat.css";
import "../panel/panel.css";
import { useQuery } from "@tanstack/react-query";
import { type CSSProperties, lazy, memo, Suspense, useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { useLocation } from "wouter";
import { waitsForAgents } from "../agents/status.ts";
import { answered, api } from "../api/client.ts";
import { chat as chatQuery, me, queryClient } from "../api/queries.ts";
import type { Chat, ChatStatus, InputPart, Message, QueuedMessage, RequiredAction } from "../api/types.ts";
import { useOwnAccess } from "../break-glass/queries.ts";
import { type Command, Composer } from "../composer/composer.tsx";
import { type ModelChoice, ModelPicker } from "../models/picker.tsx";
import { outbox, post } from "../outbox/outbox.ts";
import { ServerPicker, ServersToConnect } from "../mcp/picker.tsx";
import type { Selection } from "../mcp/selection.ts";
import { ServersNotice } from "../mcp/servers-notice.tsx";
import { panelExpanded, panelOpen, showPanel } from "../panel/tabs/panel-state.ts";
import { RaceNotice } from "../races/notice.tsx";
import { ChatMenu } from "../sidebar/chat-menu.tsx";
import { StateScreen } from "../shell/screen-head.tsx";
import { sideShown, toggleSide } from "../shell/side-state.ts";
import { upsert } from "../stream/feed.ts";
import { type ChatStore, type ChatView, useChat } from "../stream/chat-store.ts";
import { OutputsContext } from "../stream/process-outputs.ts";
import { MessagesContext } from "../timeline/messages-context.ts";
import { Timeline } from "../timeline/timeline.tsx";
import { textOf } from "../timeline/user-message.tsx";
import { announce } from "../ui/announce.tsx";
import { readingWords } from "../sharing/reading-words.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { money, plural } from "../ui/format.ts";
import { Icon } from "../ui/icon.tsx";
import { usePane } from "../ui/splitter.tsx";
import { Failure, Notice } from "../ui/states.tsx";
import { complain, say } from "../ui/toasts.tsx";
import { Visible } from "../ui/visible.tsx";
import { useChatUsage } from "../usage/queries.ts";
import { changeChat } from "./chat-changes.ts";
import { ContextRing } from "./context-ring.tsx";
import { DriftNotice } from "./drift-notice.tsx";
import { FallbackDialog, FallbackItem } from "./fallback/dialog.tsx";
import { placeholderOf } from "./placeholder.ts";
import { Queue } from "./queue.tsx";
import { withText } from "./queue-order.ts";
import { useEdits } from "./edits.ts";
import { RevertDialog, usePreview } from "./reverts/dialog.tsx";
import { TodoSection } from "../todos/list.tsx";
import { useTurnAgain } from "../turns/turn-again.ts";

const Panel = lazy(() => import("../panel/panel.tsx"));

export default function ChatScreen({ chatId }: { chatId: string }) {
  const [store, view] = useChat(chatId);
  const who = useQuery(me).data;
  const chat = useQuery({ ...chatQuery(chatId), enabled: false }).data;
  const [editing, setEditing] = useState<Message | null>(null);
  const [reverting, setReverting] = useState<Message | null>(null);
  const [undoable, setUndoable] = useState<Undoable | null>(null);
  const isPanelOpen = useSyncExternalStore(panelOpen.subscribe, panelOpen.get);
  const isExpanded = useSyncExternalStore(panelExpanded.subscribe, panelExpanded.get);
  const pane = usePane("parley.panel.width");
  const isMine = chat !== undefined && who !== undefined && chat.owner_id === who.id;
  const access = useOwnAccess(chat, who);
  const { status, queue, messages, required, gapAfter, hasOlder } = view.chat;
  const leaveEdit = useCallback(() => setEditing(null), []);
  const turnAgain = useTurnAgain(chatId, useCallback((revertId: string) => setUndoable({ revertId, kind: "again" }), []));
  useAnnouncements(view);
  useReadMark(chat, view, isMine);
  useTitle(chat?.title);

  if (view.problem && !view.isLoaded) {
    return (
      <StateScreen>
        <Failure error={view.problem} what="chat" level={1} onRetry={() => store.retry()} />
      </StateScreen>
    );
  }
  return (
    <OutputsContext value={store.outputs}>
      <div
        className={`chat-with-panel${isPanelOpen && chat ? " has-panel" : ""}${isPanelOpen && isExpanded ? " is-expanded" : ""}`}
        style={pane.width ? ({ "--panel-width": `${pane.width}px` } as CSSProperties) : undefined}
      >
        <main className="chat">
          <Bar chat={chat} isMine={isMine} status={status} messages={messages} isPanelOpen={isPanelOpen} />
          <Timeline store={store} view={view} userId={who?.id} isMine={isMine && !chat.archived} onEdit={setEditing} onRevert={setReverting} onAgain={turnAgain} />
          <div className="chat-foot">
            {chat && isMine && <RaceNotice chat={chat} />}
            {chat && isMine && <DriftNotice chat={chat} />}
            {chat && isMine && !chat.archived && <ServersNotice key={chat.id} chat={chat} status={status} messages={messages} />}
            <TodoSection chatId={chatId} messages={messages} gapAfter={gapAfter} hasOlder={hasOlder} />
            {undoable && <UndoNotice chatId={chatId} undoable={undoable} status={status} onDone={() => setUndoable(null)} />}
            {chat && isMine && !chat.archived && (
              <ChatComposer
                key={editing?.id ?? "new"}
                chat={chat}
                store={store}
                status={status}
                queue={queue}
                required={required}
                editing={editing}
                onEdited={leaveEdit}
                onUndoable={setUndoable}
              />
            )}
            {chat && who && !isMine && <ReadOnly icon={access ? "shield" : "users"} text={readingWords(chat, access)} />}
            {chat?.archived && isMine && <Archived chat={chat} />}
          </div>
          {reverting && (
            <RevertDialog chatId={chatId} message={reverting} messages={messages} onClose={() => setReverting(null)} onReverted={(revertId) => setUndoable({ revertId, kind: "revert" })} />
          )}
        </main>
        {isPanelOpen && chat && (
          <MessagesContext value={messages}>
            <Suspense>
              <Panel chat={chat} pane={pane} onClose={closePanel} />
            </Suspense>
          </MessagesContext>
        )}
      </div>
    </OutputsContext>
  );
}

function closePanel(): void {
  showPanel(false);
}

interface BarProps {
  chat: Chat | undefined;
  isMine: boolean;
  status: ChatStatus | null;
  messages: readonly Message[];
  isPanelOpen: boolean;
}

// What is around the messages stays as it is while an answer comes.
const Bar = memo(function Bar({ chat, isMine, status, messages, isPanelOpen }: BarProps) {
  return (
    <header className="bar">
      <IconButton className="only-phone" icon="back" label="Back to the chats" onClick={() => sideShown.set(true)} />
      <OpenSide />
      <h1 className="bar-title">
        <Visible>{chat?.title || (chat ? "Untitled" : "\u00a0")}</Visible>
      </h1>
      <div className="bar-facts">
        {chat?.mode && <span className="badge is-accent">{chat.mode === "plan" ? "plan mode" : chat.mode}</span>}
        {chat?.archived && <span className="badge">archived</span>}
        {chat && <Cost chat={chat} status={status} />}
        <ContextRing messages={messages} modelId={chat?.model_id ?? null} />
        {chat && isMine && <ChatMenu chat={chat} isOpen />}
        <IconButton icon="panel" label="Workspace of the chat" aria-expanded={isPanelOpen} onClick={() => showPanel(!isPanelOpen)} />
      </div>
    </header>
  );
});

function OpenSide() {
  return <IconButton className="open-side" icon="menu" label="Show the list of chats" onClick={toggleSide} />;
}

function Cost({ chat, status }: { chat: Chat; status: ChatStatus | null }) {
  const { id: chatId } = chat;
  const { data } = useChatUsage(chat);
  useEffect(() => {
    if (status === "waiting" || status === "error") void queryClient.invalidateQueries({ queryKey: ["chat-usage", chatId] });
  }, [chatId, status]);
  if (!data || data.totals.priced_calls === 0) return null;
  return <span title="Cost of this chat and the chats below it">{money(data.totals.cost_micros)}</span>;
}

interface ComposerProps {
  chat: Chat;
  store: ChatStore;
  status: ChatStatus | null;
  queue: readonly QueuedMessage[];
  required: RequiredAction | null;
  editing: Message | null;
  onEdited: () => void;
  onUndoable: (undoable: Undoable | null) => void;
}

const ChatComposer = memo(function ChatComposer(props: ComposerProps) {
  const { chat, store, status, queue, required, editing, onEdited, onUndoable } = props;
  const [choice, setChoice] = useState<ModelChoice>({ modelId: chat.model_id, effort: chat.reasoning_effort });
  const [restores, setRestores] = useState(true);
  const [isChoosingFallback, setChoosingFallback] = useState(false);
  const [chosen, setChosen] = useState<Selection>(null);
  const selection = chosen ?? (chat.uses_default_mcp_servers ? null : chat.mcp_server_ids);
  const waiting = useSyncExternalStore(outbox.subscribe, outbox.get).filter((each) => each.chatId === chat.id);
  const isBusy = status === "running" || status === "interrupting";
  const path = { chat_id: chat.id };
  const commands = useCommands(chat);
  const edits = useEdits(editing?.id);
  // Made when it is asked for: all messages are gone through.
  const earlier = useCallback(
    () => store.view.get().chat.messages.filter((each) => each.role === "user").map((each) => textOf(each.content)).filter(Boolean),
    [store],
  );

  async function send(content: InputPart[], busy: "queue" | "interrupt"): Promise<void> {
    if (editing) return edit(content, editing);
    onUndoable(null);
    const sent = await post({ chatId: chat.id, content, busy, modelId: choice.modelId, effort: choice.effort, mcpServerIds: chosen });
    if (sent.kind === "stored") {
      announce(sent.isQueued ? "Queued" : "Sent");
    } else announce("Waits for the connection");
  }

  async function edit(written: InputPart[], message: Message): Promise<void> {
    // The files that the message has stay with it.
    const content = [...written, ...withText(message.content, "")];
    const body = { content, restore_files: restores };
    const params = { path: { ...path, message_id: message.id }, header: { "Idempotency-Key": edits.keyOf(body) } };
    const done = await edits.stored(() => answered(api.PATCH("/api/v1/chats/{chat_id}/messages/{message_id}", { params, body })));
    if (!done) return;
    const dropped = done.answer.dropped_queued_messages.length;
    if (dropped) say(`${plural(dropped, "queued message was", "queued messages were")} dropped.`);
    onUndoable({ revertId: done.answer.revert_id, kind: "edit" });
    if (done.isWanted) onEdited();
    else say("The edit was stored before it was given up.");
  }

  async function interrupt(): Promise<void> {
    if (!isBusy && status !== "requires_action") return;
    try {
      await answered(api.POST("/api/v1/chats/{chat_id}/interrupt", { params: { path }, body: {} }));
    } catch (error) {
      complain(error);
    }
  }

  async function promoteFirst(): Promise<void> {
    const first = queue[0];
    if (!first) return;
    try {
      const queued = { ...path, queued_message_id: first.id };
      await answered(api.POST("/api/v1/chats/{chat_id}/queue/{queued_message_id}/promote", { params: { path: queued }, body: {} }));
    } catch (error) {
      complain(error);
    }
  }

  return (
    <>
      <ServersToConnect selection={selection} />
      <Queue chatId={chat.id} queue={queue} outgoing={waiting} />
      <Composer
        place={chat.id}
        chatId={chat.id}
        placeholder={placeholderOf(status, required)}
        isBusy={isBusy}
        earlier={earlier}
        commands={commands}
        selection={selection}
        editing={
          editing
            ? {
                text: textOf(editing.content),
                note: <EditNote chatId={chat.id} message={editing} restores={restores} isWaiting={edits.isWaiting} onRestores={setRestores} />,
                onCancel: () => {
                  edits.giveUp();
                  onEdited();
                },
              }
            : undefined
        }
        options={
          <>
            <PlanToggle chat={chat} />
            <ModelPicker choice={choice} onChoose={setChoice}>
              <FallbackItem chat={chat} onOpen={() => setChoosingFallback(true)} />
            </ModelPicker>
            <ServerPicker selection={selection} onChoose={setChosen} />
          </>
        }
        onSend={send}
        onInterrupt={() => void interrupt()}
        onEmptySend={() => void promoteFirst()}
      />
      {isChoosingFallback && <FallbackDialog chat={chat} onClose={() => setChoosingFallback(false)} />}
    </>
  );
});

interface EditNoteProps {
  chatId: string;
  message: Message;
  restores: boolean;
  isWaiting: boolean;
  onRestores: (restores: boolean) => void;
}

function EditNote({ chatId, message, restores, isWaiting, onRestores }: EditNoteProps) {
  const preview = usePreview(chatId, message.id).data;
  const attached = withText(message.content, "").length;
  const files = preview?.files?.paths.length ?? 0;
  const later = preview ? Math.max(0, preview.deleted_messages - 1) : null;
  return (
    <>
      Editing.{" "}
      {later === null ? "The messages after it will be deleted." : later > 0 ? `${plural(later, "message")} after it will be deleted.` : ""}{" "}
      {files > 0 && (
        <label>
          <input type="checkbox" checked={restores} onChange={(event) => onRestores(event.target.checked)} /> Put {plural(files, "file")} back
        </label>
      )}
      {attached > 0 && `${plural(attached, "attached file stays", "attached files stay")} with it. `}
      {isWaiting && <span className="badge is-warn" role="status">not stored yet</span>}
    </>
  );
}

function PlanToggle({ chat }: { chat: Chat }) {
  const isOn = chat.mode === "plan";
  async function toggle(): Promise<void> {
    try {
      await changeChat(chat, { mode: isOn ? null : "plan" });
    } catch (error) {
      complain(error);
    }
  }
  return (
    <Button className="toggle" look="quiet" small icon="plan" aria-pressed={isOn} title="In plan mode nothing is changed" onClick={() => void toggle()}>
      Plan
    </Button>
  );
}

function useCommands(chat: Chat): Command[] {
  const [, navigate] = useLocation();
  const path = { chat_id: chat.id };
  return [
    {
      name: "compact",
      hint: "Summarize the history now",
      run: () =>
        void answered(api.POST("/api/v1/chats/{chat_id}/compact", { params: { path }, body: {} })).catch(complain),
    },
    { name: "new", hint: "Begin a new chat", run: () => navigate("/") },
    { name: "export", hint: "Download this chat", run: () => location.assign(`/api/v1/chats/${chat.id}/export?format=md`) },
    { name: "waiting", hint: "See what waits for you", run: () => navigate("/waiting") },
  ];
}

function ReadOnly({ icon, text, children }: { icon: "users" | "archive" | "shield"; text: string; children?: React.ReactNode }) {
  return (
    <div className="read-only">
      <Icon name={icon} />
      {text}
      {children}
    </div>
  );
}

function Archived({ chat }: { chat: Chat }) {
  async function unarchive(): Promise<void> {
    try {
      await answered(api.POST("/api/v1/chats/{chat_id}/unarchive", { params: { path: { chat_id: chat.id } }, body: {} }));
      queryClient.setQueryData(["chat", chat.id], { ...chat, archived: false });
      void queryClient.invalidateQueries({ queryKey: ["chats"] });
    } catch (error) {
      complain(error);
    }
  }
  return (
    <ReadOnly icon="archive" text="This chat is archived.">
      <Button small onClick={() => void unarchive()}>Take it back</Button>
    </ReadOnly>
  );
}

/** What can be undone until a further message is sent. */
interface Undoable {
  revertId: string;
  kind: "revert" | "edit" | "again";
}

const UNDO_WORDS: Record<Undoable["kind"], string> = {
  revert: "You went back to an earlier message.",
  edit: "You edited a message. Undo deletes it with its answer, and what was there comes back.",
  again: "The turn ran again. Undo deletes this answer, and what was there comes back.",
};

interface UndoNoticeProps {
  chatId: string;
  undoable: Undoable;
  status: ChatStatus | null;
  onDone: () => void;
}

function UndoNotice({ chatId, undoable, status, onDone }: UndoNoticeProps) {
  async function undo(): Promise<void> {
    try {
      const path = { chat_id: chatId, revert_id: undoable.revertId };
      await answered(api.POST("/api/v1/chats/{chat_id}/reverts/{revert_id}/undo", { params: { path }, body: {} }));
      onDone();
    } catch (error) {
      complain(error);
    }
  }
  // The turn that runs anew ends first.
  if (undoable.kind !== "revert" && status !== "waiting" && status !== "error") return null;
  return (
    <Notice
      icon="undo"
      actions={
        <>
          <Button small onClick={() => void undo()}>Undo</Button>
          <IconButton icon="close" label="Dismiss" onClick={onDone} />
        </>
      }
    >
      {UNDO_WORDS[undoable.kind]}
    </Notice>
  );
}

const ANNOUNCED: Record<string, string> = {
  running: "The agent is working.",
  waiting: "The agent has answered.",
  requires_action: "The agent waits for you.",
  error: "The turn failed.",
};

/** Say when turns begin and end; never what is being written. */
function useAnnouncements(view: ChatView): void {
  const before = useRef<string | null>(null);
  const { status } = view.chat;
  const isForAgents = waitsForAgents(view.chat.required);
  useEffect(() => {
    if (before.current && status && status !== before.current) {
      announce(isForAgents ? "The agent waits for its agents." : (ANNOUNCED[status] ?? ""));
    }
    before.current = status;
  }, [status, isForAgents]);
}

/** Tell the server how far the owner has read. */
function useReadMark(chat: Chat | undefined, view: ChatView, isMine: boolean): void {
  const newest = view.chat.messages.at(-1)?.id ?? 0;
  const { status } = view.chat;
  const isUnread = chat?.has_unread ?? false;
  useEffect(() => {
    if (!chat || !isMine || !isUnread || !newest || document.hidden || status === "running") return;
    const body = { last_message_id: newest };
    answered(api.PUT("/api/v1/chats/{chat_id}/read", { params: { path: { chat_id: chat.id } }, body })).then(
      () => upsert({ ...chat, has_unread: false }),
      () => {},
    );
  }, [chat, isMine, isUnread, newest, status]);
}

function useTitle(title: string | undefined): void {
  useEffect(() => {
    document.title = title ? `${title} · Parley` : "Parley";
    return () => {
      document.title = "Parley";
    };
  }, [title]);
}
