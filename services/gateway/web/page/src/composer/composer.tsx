/** Where people write: drafts, files, model, mode, commands, and the key that sends. */
import "./composer.css";
import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { COMPOSE } from "../shell/keys.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { bytes, plural } from "../ui/format.ts";
import { Icon } from "../ui/icon.tsx";
import { complain } from "../ui/toasts.tsx";
import { countHidden, Visible } from "../ui/visible.tsx";
import { changeDraft, type Draft, type DraftFile, forgetDraft, NO_DRAFT, onDraftChanged, readDraft, withRefused, writeDraft } from "./drafts.ts";
import type { InputPart } from "../api/types.ts";
import type { Selection } from "../mcp/selection.ts";
import { MENTION, type Prompt, promptCall, promptsFor, promptText, type Resource, resourcesFor } from "./mentions.ts";
import { onReference, type Reference, referenceName } from "./references.ts";
import { useServerReferences } from "./server-references.ts";
import { isLong, upload } from "./uploads.ts";

export interface Command {
  name: string;
  hint: string;
  run: () => void;
}

/** What the menu above the text offers. */
interface Offer {
  label: string;
  hint: string;
  choose: () => void;
}

interface Props {
  /** Under which the draft is kept. */
  place: string;
  placeholder: string;
  isBusy: boolean;
  /** Earlier prompts, the newest last. */
  earlier: readonly string[];
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
  const [uploads, setUploads] = useState(0);
  const [isSending, setSending] = useState(false);
  const [cycle, setCycle] = useState<number | null>(null);
  const [marked, setMarked] = useState(0);
  /** The text whose offers were closed. */
  const [closed, setClosed] = useState<string | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const isShown = useRef(true);
  const hidden = countHidden(draft.text);
  const { prompts, resources } = useServerReferences(props.selection, draft.text);
  const offered: Offer[] = draft.text === closed ? [] : [
    ...commandsFor(draft.text, props.commands).map((each) => ({ label: `/${each.name}`, hint: each.hint, choose: () => choose(each) })),
    ...promptsFor(draft.text, prompts).map((each) => ({ label: `/${each.name}`, hint: each.hint, choose: () => choosePrompt(each) })),
    ...resourcesFor(draft.text, resources).map((each) => ({ label: `@${each.name}`, hint: each.hint, choose: () => void mention(each) })),
  ];
  const offersId = useId();
  const chosen = offered[marked] ? marked : 0;
  const isEmpty = draft.text.trim() === "" && draft.files.length === 0 && draft.references.length === 0;
  const canSend = !isSending && uploads === 0 && !isEmpty;

  useEffect(() => {
    const focus = (): void => field.current?.focus();
    addEventListener(COMPOSE, focus);
    return () => removeEventListener(COMPOSE, focus);
  }, []);
  useEffect(() => {
    if (editing) field.current?.focus();
  }, [editing]);

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
      setDraft((was) => {
        const changed = next(was);
        if (!editing) writeDraft(place, changed);
        return changed;
      });
    } else if (!editing) changeDraft(place, next);
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
    else change(NO_DRAFT);
    setCycle(null);
    try {
      await onSend(content, behaviour);
      if (props.keepsDraft) forgetDraft(place, sent);
    } catch (error) {
      // What was typed is never lost, before the sending and since.
      update((since) => withRefused(since, sent));
      complain(error);
    }
    setSending(false);
    field.current?.focus();
  }

  async function attach(files: Iterable<File>): Promise<void> {
    for (const file of files) {
      setUploads((was) => was + 1);
      try {
        const stored = await upload(file);
        update((was) => ({ ...was, files: [...was.files, stored] }));
      } catch (error) {
        complain(error);
      }
      setUploads((was) => was - 1);
    }
  }

  function showEarlier(by: number): void {
    const next = (cycle ?? props.earlier.length) + by;
    if (next < 0 || next > props.earlier.length) return;
    setCycle(next === props.earlier.length ? null : next);
    setDraft({ ...draft, text: props.earlier[next] ?? "" });
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
      await attach([await resource.read()]);
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
    } else if (event.key === "Enter" && !event.shiftKey && (isModified || !isPhone.matches)) {
      event.preventDefault();
      void submit(isModified ? "interrupt" : "queue");
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
      void attach(files);
    } else if (isLong(text) && !forcedInline.current) {
      event.preventDefault();
      void attach([new File([text], "pasted.txt", { type: "text/plain" })]);
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
        void attach(event.dataTransfer.files);
      }}
    >
      {editing && (
        <div className="composer-editing">
          <Icon name="edit" />
          <span>{editing.note}</span>
          <Button small look="quiet" onClick={editing.onCancel}>Cancel</Button>
        </div>
      )}
      <OfferList id={offersId} offers={offered} marked={chosen} />
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
            void attach([...(event.target.files ?? [])]);
            event.target.value = "";
          }}
        />
        {props.options}
        <span className="composer-space" />
        {isBusy && canSend && !editing && (
          <Button small look="quiet" title="Stop the turn and send this now (Ctrl Enter)" onClick={() => void submit("interrupt")}>
            Interrupt and send
          </Button>
        )}
        {isBusy && onInterrupt && !canSend ? (
          <button type="button" className="send-button is-stop" aria-label="Stop" title="Stop (Esc)" onClick={onInterrupt}>
            <Icon name="stop" />
          </button>
        ) : (
          <button type="submit" className="send-button" aria-label={editing ? "Save and run again" : isBusy ? "Queue" : "Send"} title={isBusy && !editing ? "Send after this turn (Enter)" : "Send (Enter)"} disabled={!canSend}>
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

function optionId(listId: string, index: number): string {
  return `${listId}-${index}`;
}

/** What says that the text has offers, and which one is marked; without offers it is a plain text field. */
function comboboxOf(listId: string, marked: number) {
  return {
    role: "combobox",
    "aria-autocomplete": "list",
    "aria-expanded": true,
    "aria-controls": listId,
    "aria-activedescendant": optionId(listId, marked),
  } as const;
}

function OfferList({ id, offers, marked }: { id: string; offers: readonly Offer[]; marked: number }) {
  if (offers.length === 0) return null;
  return (
    <ul className="composer-commands" id={id} role="listbox" aria-label="Commands">
      {offers.map((each, index) => (
        <li
          key={`${each.label} ${each.hint}`}
          id={optionId(id, index)}
          role="option"
          aria-selected={index === marked}
          onMouseDown={(event) => {
            event.preventDefault();
            each.choose();
          }}
        >
          <code><Visible>{each.label}</Visible></code> <Visible>{each.hint}</Visible>
        </li>
      ))}
    </ul>
  );
}

function partsOf(reference: Reference): InputPart[] {
  const { fileName, startLine, endLine, content, comment } = reference;
  return [
    { type: "file-reference", file_name: fileName, start_line: startLine, end_line: endLine, content },
    ...(comment ? [{ type: "text" as const, text: comment }] : []),
  ];
}

interface ReferencesProps {
  references: readonly Reference[];
  onRemove: (place: number) => void;
}

function References({ references, onRemove }: ReferencesProps) {
  if (references.length === 0) return null;
  return (
    <ul className="attachments" aria-label="Comments on lines">
      {references.map((each, place) => (
        <li key={`${place}${referenceName(each)}`} className="file-chip">
          <Icon name="chat" />
          {referenceName(each)} <span className="card-note">{each.comment.slice(0, 60)}</span>
          <IconButton icon="close" label={`Remove the comment on ${referenceName(each)}`} onClick={() => onRemove(place)} />
        </li>
      ))}
    </ul>
  );
}

interface FilesProps {
  files: readonly DraftFile[];
  uploads: number;
  onRemove: (id: string) => void;
}

function Files({ files, uploads, onRemove }: FilesProps) {
  if (files.length === 0 && uploads === 0) return null;
  return (
    <ul className="attachments" aria-label="Attached files">
      {files.map((file) => (
        <li key={file.id} className="file-chip">
          <Icon name="file" />
          {file.name} <span className="card-note">{bytes(file.sizeBytes)}</span>
          <IconButton icon="close" label={`Remove ${file.name}`} onClick={() => onRemove(file.id)} />
        </li>
      ))}
      {uploads > 0 && <li className="card-note" role="status">Storing {plural(uploads, "file")}…</li>}
    </ul>
  );
}
