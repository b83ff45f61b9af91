/** Where people write: drafts, files, model, mode, commands, and the key that sends. */
import "./composer.css";
import { type ReactNode, useEffect, useId, useRef, useState, useSyncExternalStore } from "react";
import { Problem, ShownAtFields } from "../api/problem.ts";
import { COMPOSE } from "../shell/keys.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { plural } from "../ui/format.ts";
import { Icon } from "../ui/icon.tsx";
import { complain } from "../ui/toasts.tsx";
import { countHidden } from "../ui/visible.tsx";
import { Files, References } from "./attachments.tsx";
import { changeDraft, type Draft, forgetDraft, NO_DRAFT, onDraftChanged, readDraft, withRefused, writeDraft } from "./drafts.ts";
import type { InputPart } from "../api/types.ts";
import type { Selection } from "../mcp/selection.ts";
import { MENTION, type Prompt, promptCall, promptsFor, promptText, type Resource, resourcesFor } from "./mentions.ts";
import { withReturned } from "../uploads/failed.ts";
import { comboboxOf, type Offer, OfferList } from "./offers.tsx";
import { useUploads } from "../uploads/pending.ts";
import { onReference, type Reference } from "./references.ts";
import { meaningOfEnter, sendKey } from "./send-key.ts";
import { useServerReferences } from "./server-references.ts";
import { skillsFor, withSkill } from "../skills/mentions.ts";
import { useSkills } from "../skills/offered.ts";
import { isLong } from "../uploads/upload.ts";
import { readLimitsAgain } from "../usage/queries.ts";
import { useWorkspaceReferences } from "./workspace-references.ts";

export interface Command {
  name: string;
  hint: string;
  run: () => void;
}

interface Props {
  /** Under which the draft is kept. */
  place: string;
  /** The chat whose skills are offered; null before there is one. */
  chatId: string | null;
  placeholder: string;
  isBusy: boolean;
  /** Earlier prompts, the newest last. */
  earlier: () => readonly string[];
  commands: readonly Command[];
  /** The MCP servers whose prompts and resources are offered. */
  selection: Selection;
  /** Texts and buttons left of the send button. */
  options: ReactNode;
  /** What is edited, in place of a new message. */
  editing?: { text: string; note: ReactNode; onCancel: () => void } | undefined;
  /** Keep the stored draft until it was sent, where no outbox keeps the message. */
  keepsDraft?: boolean;
  onSend: (content: InputPart[], behaviour: "queue" | "interrupt") => Promise<void>;
  onInterrupt?: (() => void) | undefined;
  onEmptySend?: (() => void) | undefined;
}

const isPhone = matchMedia("(pointer: coarse)");

export function Composer(props: Props) {
  const { place, editing, isBusy, onSend, onInterrupt } = props;
  const [draft, setDraft] = useState<Draft>(() => (editing ? { ...NO_DRAFT, text: editing.text } : readDraft(place)));
  const latest = useRef(draft);
  latest.current = draft;
  const isShown = useRef(true);
  const uploads = useUploads({
    isShown,
    onStored: (stored) => update((was) => ({ ...was, files: [...was.files, stored] })),
    onReturned: takeBack,
    onLeft: (text) => changeDraft(place, (was) => withReturned(was, text)),
  });
  const [isSending, setSending] = useState(false);
  const [cycle, setCycle] = useState<number | null>(null);
  const [marked, setMarked] = useState(0);
  /** The text whose offers were closed. */
  const [closed, setClosed] = useState<string | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const hidden = countHidden(draft.text);
  const sends = useSyncExternalStore(sendKey.subscribe, sendKey.get);
  const ofServers = useServerReferences(props.selection, draft.text);
  const ofWorkspace = useWorkspaceReferences(props.chatId, draft.text);
  const prompts = [...ofServers.prompts, ...ofWorkspace.prompts];
  const resources = [...ofServers.resources, ...ofWorkspace.resources];
  const { skills, isLoading } = useSkills(props.chatId, draft.text);
  const fitting = skillsFor(draft.text, skills).map((each): Offer => ({
    group: each.isOfWorkspace ? "Skills of the workspace" : "Your skills",
    label: `/${each.name}`,
    hint: each.description,
    choose: () => change({ ...draft, text: withSkill(draft.text, each) }),
  }));
  const offered: Offer[] = draft.text === closed ? [] : [
    ...commandsFor(draft.text, props.commands).map((each) => ({ group: "Commands", label: `/${each.name}`, hint: each.hint, choose: () => choose(each) })),
    ...fitting.toSorted((a, b) => b.group.localeCompare(a.group)),
    ...promptsFor(draft.text, prompts).map((each) => ({ group: "Prompts", label: `/${each.name}`, hint: each.hint, choose: () => choosePrompt(each) })),
    ...resourcesFor(draft.text, resources).map((each) => ({ group: "Resources", label: `@${each.name}`, hint: each.hint, choose: () => void mention(each) })),
  ];
  const offersId = useId();
  const chosen = offered[marked] ? marked : 0;
  const isEmpty = draft.text.trim() === "" && draft.files.length === 0 && draft.references.length === 0;
  const canSend = !isSending && !uploads.isBusy && !isEmpty;

  useEffect(() => {
    const focus = (): void => field.current?.focus();
    addEventListener(COMPOSE, focus);
    return () => removeEventListener(COMPOSE, focus);
  }, []);
  const isEditing = editing !== undefined;
  useEffect(() => {
    const area = field.current;
    if (isEditing) area?.focus();
    if (area && document.activeElement === area) area.setSelectionRange(area.value.length, area.value.length);
  }, [isEditing]);

  useEffect(() => {
    if (editing) return;
    return onReference((reference) => {
      setDraft((was) => {
        const next = { ...was, references: [...was.references, reference] };
        writeDraft(place, next);
        return next;
      });
      field.current?.focus();
    });
  }, [editing, place]);
  useEffect(() => {
    isShown.current = true;
    return () => {
      isShown.current = false;
    };
  }, []);
  useEffect(() => (editing ? undefined : onDraftChanged(place, setDraft)), [editing, place]);

  function change(next: Draft): void {
    setDraft(next);
    setMarked(0);
    setClosed((was) => (was === next.text ? was : null));
    if (!editing) writeDraft(place, next);
  }

  /** Change what is written by now, after something was waited for. */
  function update(next: (was: Draft) => Draft): void {
    if (isShown.current) {
      // Stored at once: the page may be left before it is rendered again.
      latest.current = next(latest.current);
      setDraft(latest.current);
      if (!editing) writeDraft(place, latest.current);
    } else if (!editing) changeDraft(place, next);
  }

  /** Take a pasted text back; that of an edit that was left goes into the draft of the chat. */
  function takeBack(text: string): void {
    const returned = (was: Draft): Draft => withReturned(was, text);
    if (editing && !isShown.current) changeDraft(place, returned);
    else update(returned);
  }

  async function submit(behaviour: "queue" | "interrupt"): Promise<void> {
    if (!canSend) {
      if (isEmpty) props.onEmptySend?.();
      return;
    }
    const called = promptCall(draft.text, prompts);
    if (called) return fill(called.prompt, called.given);
    const sent = draft;
    const content: InputPart[] = [
      ...sent.references.flatMap(partsOf),
      ...(sent.text.trim() ? [{ type: "text" as const, text: sent.text.trim() }] : []),
      ...sent.files.map((file) => ({ type: "file" as const, file_id: file.id })),
    ];
    setSending(true);
    if (props.keepsDraft) setDraft(NO_DRAFT);
    // No outbox keeps an edit: its text stays until it is stored.
    else if (!editing) change(NO_DRAFT);
    setCycle(null);
    try {
      await onSend(content, behaviour);
      if (props.keepsDraft) forgetDraft(place, sent);
    } catch (error) {
      // What was typed is never lost, before the sending and since.
      update((since) => withRefused(since, sent));
      if (error instanceof Problem && error.code === "USAGE_LIMIT") readLimitsAgain();
      if (!(error instanceof ShownAtFields)) complain(error);
    }
    setSending(false);
    field.current?.focus();
  }

  function showEarlier(by: number): void {
    const earlier = props.earlier();
    const next = (cycle ?? earlier.length) + by;
    if (next < 0 || next > earlier.length) return;
    setCycle(next === earlier.length ? null : next);
    setDraft({ ...draft, text: earlier[next] ?? "" });
  }

  function choose(command: Command): void {
    change({ ...draft, text: "" });
    command.run();
  }

  function choosePrompt(prompt: Prompt): void {
    if (prompt.arguments.length) change({ ...draft, text: promptText(prompt) });
    else void fill(prompt, {});
  }

  /** Replace what is typed by the text of a prompt, to be read and sent. */
  async function fill(prompt: Prompt, given: Record<string, string>): Promise<void> {
    const called = draft.text;
    try {
      const text = await prompt.fill(given);
      // What was typed meanwhile is kept.
      update((was) => (was.text === called ? { ...was, text } : was));
    } catch (error) {
      complain(error);
    }
  }

  /** Attach a resource in place of what is typed. */
  async function mention(resource: Resource): Promise<void> {
    change({ ...draft, text: draft.text.replace(MENTION, "$1") });
    try {
      uploads.add([await resource.read()]);
    } catch (error) {
      complain(error);
    }
  }

  function onKey(event: React.KeyboardEvent): void {
    if (event.nativeEvent.isComposing) return;
    const isModified = event.ctrlKey || event.metaKey;
    if (offered.length && ["ArrowDown", "ArrowUp", "Tab", "Enter"].includes(event.key) && !event.shiftKey) {
      event.preventDefault();
      if (event.key === "ArrowDown") setMarked((chosen + 1) % offered.length);
      else if (event.key === "ArrowUp") setMarked((chosen - 1 + offered.length) % offered.length);
      else offered[chosen]!.choose();
    } else if (event.key === "Enter") {
      const meaning = meaningOfEnter(sends, { isShift: event.shiftKey, isModified, isPhone: isPhone.matches });
      if (meaning === "line") return;
      event.preventDefault();
      void submit(meaning === "interrupt" ? "interrupt" : "queue");
    } else if (event.key === "Escape") {
      event.preventDefault();
      if (offered.length) setClosed(draft.text);
      else if (editing) editing.onCancel();
      else if (cycle !== null) {
        setCycle(null);
        change(NO_DRAFT);
      } else onInterrupt?.();
    } else if (event.key === "ArrowUp" && !editing && (draft.text === "" || cycle !== null)) {
      event.preventDefault();
      showEarlier(-1);
    } else if (event.key === "ArrowDown" && cycle !== null) {
      event.preventDefault();
      showEarlier(1);
    }
  }

  function onPaste(event: React.ClipboardEvent): void {
    const files = [...event.clipboardData.files];
    const text = event.clipboardData.getData("text/plain");
    if (files.length) {
      event.preventDefault();
      uploads.add(files);
    } else if (isLong(text) && !forcedInline.current) {
      event.preventDefault();
      uploads.addText(text);
    }
    forcedInline.current = false;
  }
  const forcedInline = useRef(false);

  return (
    <form
      className="composer"
      aria-label={editing ? "Edit the message" : "New message"}
      onSubmit={(event) => {
        event.preventDefault();
        void submit("queue");
      }}
      onDragOver={(event) => {
        if (event.dataTransfer.types.includes("Files")) event.preventDefault();
      }}
      onDrop={(event) => {
        if (!event.dataTransfer.files.length) return;
        event.preventDefault();
        uploads.add(event.dataTransfer.files);
      }}
    >
      {editing && (
        <div className="composer-editing">
          <Icon name="edit" />
          <span>{editing.note}</span>
          <Button small look="quiet" onClick={editing.onCancel}>Cancel</Button>
        </div>
      )}
      <OfferList id={offersId} offers={offered} marked={chosen} isLoading={isLoading} />
      <References
        references={draft.references}
        onRemove={(place) => change({ ...draft, references: draft.references.toSpliced(place, 1) })}
      />
      <Files files={draft.files} uploads={uploads} onRemove={(id) => change({ ...draft, files: draft.files.filter((each) => each.id !== id) })} />
      <div className="composer-grow" data-text={draft.text}>
        <textarea
          ref={field}
          value={draft.text}
          placeholder={props.placeholder}
          aria-label={props.placeholder}
          {...(offered.length ? comboboxOf(offersId, chosen) : {})}
          rows={1}
          readOnly={isSending && editing !== undefined}
          dir="auto"
          autoFocus={!isPhone.matches}
          onChange={(event) => {
            setCycle(null);
            change({ ...draft, text: event.target.value });
          }}
          onKeyDown={(event) => {
            if (event.key.toLowerCase() === "v" && event.shiftKey && (event.ctrlKey || event.metaKey)) forcedInline.current = true;
            onKey(event);
          }}
          onPaste={onPaste}
        />
      </div>
      {hidden > 0 && <p className="composer-warning">{plural(hidden, "character is", "characters are")} in the text that cannot be seen.</p>}
      <div className="composer-foot">
        <IconButton icon="attach" label="Attach files" onClick={() => picker.current?.click()} />
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          onChange={(event) => {
            uploads.add([...(event.target.files ?? [])]);
            event.target.value = "";
          }}
        />
        {props.options}
        <span className="composer-space" />
        {isBusy && canSend && !editing && (
          <Button small look="quiet" title={`Stop the turn and send this now (${sends === "enter" ? "Ctrl Enter" : "Ctrl Shift Enter"})`} onClick={() => void submit("interrupt")}>
            Interrupt and send
          </Button>
        )}
        {isBusy && onInterrupt && !canSend ? (
          <button type="button" className="send-button is-stop" aria-label="Stop" title="Stop (Esc)" onClick={onInterrupt}>
            <Icon name="stop" />
          </button>
        ) : (
          <button type="submit" className="send-button" aria-label={editing ? "Save and run again" : isBusy ? "Queue" : "Send"} title={`${isBusy && !editing ? "Send after this turn" : "Send"} (${sends === "enter" ? "Enter" : "Ctrl Enter"})`} disabled={!canSend}>
            <Icon name="send" />
          </button>
        )}
      </div>
    </form>
  );
}

function commandsFor(text: string, commands: readonly Command[]): Command[] {
  const typed = /^\/([a-z]*)$/.exec(text)?.[1];
  return typed === undefined ? [] : commands.filter((each) => each.name.startsWith(typed));
}

function partsOf(reference: Reference): InputPart[] {
  const { fileName, startLine, endLine, content, comment } = reference;
  return [
    { type: "file-reference", file_name: fileName, start_line: startLine, end_line: endLine, content },
    ...(comment ? [{ type: "text" as const, text: comment }] : []),
  ];
}
