/** Share a chat: people are found by name, groups are one's own; readers only read. */
import "./sharing.css";
import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { answered, api } from "../api/client.ts";
import { me, people, queryClient } from "../api/queries.ts";
import type { components } from "../api/schema.d.ts";
import type { Chat } from "../api/types.ts";
import { TextField } from "../forms/fields.tsx";
import { useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { announce } from "../ui/announce.tsx";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import { Visible } from "../ui/visible.tsx";
import { has, inputsOf, type Reader, readersOf, withoutReader, withReader } from "./readers.ts";

type UserName = components["schemas"]["UserName"];

const ownGroups = queryOptions({
  queryKey: ["me", "groups"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/me/groups", { signal })),
});

function shares(chatId: string) {
  return queryOptions({
    queryKey: ["chat", chatId, "shares"],
    queryFn: async ({ signal }) =>
      readersOf((await answered(api.GET("/api/v1/chats/{chat_id}/shares", { params: { path: { chat_id: chatId } }, signal }))).shares),
    staleTime: 0,
  });
}

function found(q: string) {
  return queryOptions({
    queryKey: ["people", "found", q],
    enabled: q !== "",
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => answered(api.GET("/api/v1/people", { params: { query: { q, limit: 8 } }, signal })),
  });
}

function nameOf(user: UserName | undefined): string {
  return user ? user.display_name || user.login : "A user";
}

export function SharingDialog({ chat, onClose }: { chat: Chat; onClose: () => void }) {
  const [words, setWords] = useState("");
  const field = useRef<HTMLInputElement>(null);
  const saving = useSaving();
  const stored = useQuery(shares(chat.id));
  const own = useQuery(me).data?.id;
  const groups = useQuery(ownGroups).data?.items ?? [];
  const readers = stored.data ?? [];
  const names = useQuery(people(readers.filter((each) => each.kind === "user").map((each) => each.id))).data?.items ?? [];
  const query = words.trim();
  const offered = (useQuery(found(query)).data?.items ?? []).filter(
    (each) => query && each.id !== own && !has(readers, { kind: "user", id: each.id }),
  );
  const fitting = groups.filter(
    (each) => !has(readers, { kind: "group", id: each.id }) && each.name.toLowerCase().includes(query.toLowerCase()),
  );

  const isBusy = saving.isBusy || stored.data === undefined;

  /** Change the readers as they are by now: the whole list is stored, and it may have changed elsewhere. */
  async function share(change: (readers: readonly Reader[]) => readonly Reader[], done: string): Promise<void> {
    const isDone = await saving.save(async () => {
      const present = await queryClient.fetchQuery({ ...shares(chat.id), staleTime: 0 });
      const params = { path: { chat_id: chat.id } };
      const body = { shares: inputsOf(change(present)) };
      const kept = await answered(api.PUT("/api/v1/chats/{chat_id}/shares", { params, body }));
      queryClient.setQueryData(shares(chat.id).queryKey, readersOf(kept.shares));
    });
    // The button that was pressed is gone, or was disabled meanwhile.
    field.current?.focus();
    if (!isDone) return;
    setWords("");
    announce(done);
  }

  function labelOf(reader: Reader): string {
    if (reader.kind === "user") return nameOf(names.find((each) => each.id === reader.id));
    return groups.find((each) => each.id === reader.id)?.name ?? "A group";
  }

  return (
    <Dialog title="Share the chat" onClose={onClose}>
      <p className="field-hint">Readers see its messages and follow its turns. You alone write, answer and stop.</p>
      <TextField ref={field} label="Name of a person or a group" value={words} onChange={setWords} problem={saving.problem || undefined} placeholder="Anna" />
      <ul className="readers" aria-label="Found">
        {offered.map((each) => (
          <Offer key={each.id} icon="user" name={nameOf(each)} hint={each.login} isBusy={isBusy} onAdd={() => void share((present) => withReader(present, { kind: "user", id: each.id }), `Shared with ${nameOf(each)}.`)} />
        ))}
        {fitting.map((each) => (
          <Offer key={each.id} icon="users" name={each.name} hint="your group" isBusy={isBusy} onAdd={() => void share((present) => withReader(present, { kind: "group", id: each.id }), `Shared with ${each.name}.`)} />
        ))}
      </ul>
      <h3 className="readers-title">Shared with</h3>
      <Loaded query={stored} what="list of readers">
        {(data) => (
          <ul className="readers" aria-label="Shared with">
            {data.length === 0 && <li className="field-hint">Only you can read it.</li>}
            {data.map((each) => (
              <li key={`${each.kind}:${each.id}`}>
                <Icon name={each.kind === "user" ? "user" : "users"} />
                <span className="reader-name"><Visible>{labelOf(each)}</Visible></span>
                <Button small disabled={isBusy} aria-label={`Remove ${labelOf(each)}`} onClick={() => void share((present) => withoutReader(present, each), `No longer shared with ${labelOf(each)}.`)}>
                  Remove
                </Button>
              </li>
            ))}
          </ul>
        )}
      </Loaded>
      <div className="dialog-actions">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}

interface OfferProps {
  icon: "user" | "users";
  name: string;
  hint: string;
  isBusy: boolean;
  onAdd: () => void;
}

function Offer({ icon, name, hint, isBusy, onAdd }: OfferProps) {
  return (
    <li>
      <Icon name={icon} />
      <span className="reader-name"><Visible>{name}</Visible> <span className="field-hint"><Visible>{hint}</Visible></span></span>
      <Button small disabled={isBusy} aria-label={`Add ${name}`} onClick={onAdd}>
        Add
      </Button>
    </li>
  );
}
