/** The installation's keys of a provider, in the order in which they are tried. */
import { useEffect, useState } from "react";
import { answered, api, unchangedSince } from "../../api/client.ts";
import { queryClient } from "../../api/queries.ts";
import type { components } from "../../api/schema.d.ts";
import { movedTo } from "../../chat/queue-order.ts";
import { ConfirmButton } from "../../forms/confirm.tsx";
import { TextField } from "../../forms/fields.tsx";
import { Form, useSaving } from "../../forms/form.tsx";
import { InOrder } from "../../settings/in-order.ts";
import { announce } from "../../ui/announce.tsx";
import { IconButton } from "../../ui/button.tsx";
import { complain } from "../../ui/toasts.tsx";
import { providers, refreshProviders } from "../queries.ts";

type Provider = components["schemas"]["Provider"];
type Key = Provider["keys"][number];
type Check = components["schemas"]["CheckProviderResponse"];
type KeyCheck = Check["keys"][number];

const DRAGGED = "application/x-parley-provider-key";
const changes = new InOrder();

/** Store an order over the newest version of the provider that was read. */
async function storeOrder(provider: Provider, keys: readonly Key[]): Promise<void> {
  const known = queryClient.getQueryData(providers.queryKey)?.items.find((each) => each.id === provider.id);
  const header = unchangedSince(known ?? provider);
  const params = { path: { provider_id: provider.id }, header };
  const body = { key_ids: keys.map((each) => each.id) };
  const stored = await answered(api.PUT("/api/v1/providers/{provider_id}/key-order", { params, body }));
  queryClient.setQueryData(providers.queryKey, (list) =>
    list && { ...list, items: list.items.map((each) => (each.id === stored.id ? stored : each)) },
  );
}

interface Props {
  provider: Provider;
  check: Check | undefined;
  /** A key was stored that was not checked yet. */
  onAdded: () => Promise<void>;
}

export function ProviderKeys({ provider, check, onAdded }: Props) {
  // What was moved here is shown at once; what the server says takes its place.
  const [shown, setShown] = useState(provider.keys);
  useEffect(() => setShown(provider.keys), [provider.keys]);
  // The one without an id says what a provider without keys answers.
  const keyless = check?.keys.find((each) => !each.key_id && !each.works)?.problem;
  const checks = new Map((check?.keys ?? []).map((each) => [each.key_id, each]));
  const isGiven = provider.from_environment;

  async function move(id: string, place: number): Promise<void> {
    if (place < 1 || place > shown.length || shown[place - 1]?.id === id) return;
    const next = movedTo(shown, id, place);
    setShown(next);
    announce(`Key number ${place} of ${shown.length}`);
    try {
      await changes.run(() => storeOrder(provider, next));
    } catch (error) {
      setShown(provider.keys);
      announce("The order of the keys was not changed");
      complain(error);
      await refreshProviders();
    }
  }

  return (
    <>
      <ol className="key-list" aria-label={`Keys of ${provider.display_name}`}>
        {shown.map((each, index) => (
          <Row
            key={each.id}
            stored={each}
            found={checks.get(each.id)}
            place={index + 1}
            total={shown.length}
            isGiven={isGiven}
            onMove={(id, place) => void move(id, place)}
          />
        ))}
      </ol>
      {keyless && <p className="field-problem">{keyless}</p>}
      {!isGiven && <NewKey provider={provider} onAdded={onAdded} />}
    </>
  );
}

interface RowProps {
  stored: Key;
  found: KeyCheck | undefined;
  place: number;
  total: number;
  isGiven: boolean;
  onMove: (id: string, place: number) => void;
}

function Row({ stored, found, place, total, isGiven, onMove }: RowProps) {
  const isMovable = !isGiven && total > 1;
  const hint = stored.hint || `key ${place}`;
  return (
    <li
      draggable={isMovable}
      onDragStart={(event) => event.dataTransfer.setData(DRAGGED, stored.id)}
      onDragOver={(event) => {
        if (event.dataTransfer.types.includes(DRAGGED)) event.preventDefault();
      }}
      onDrop={(event) => {
        const id = event.dataTransfer.getData(DRAGGED);
        if (!id) return;
        event.preventDefault();
        onMove(id, place);
      }}
      onKeyDown={(event) => {
        if (!isMovable || !event.altKey || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
        event.preventDefault();
        onMove(stored.id, place + (event.key === "ArrowUp" ? -1 : 1));
      }}
    >
      <span>
        {stored.hint ? <>Ends with <code>{stored.hint}</code></> : `Key ${place}`}
      </span>
      {found && <span className={`badge ${found.works ? "is-accent" : "is-bad"}`}>{found.works ? "Works" : "Does not work"}</span>}
      {isMovable && (
        <>
          {/* Not `disabled` at the ends: a key that was moved there would lose the focus. */}
          <IconButton
            icon="arrowUp"
            label={`Try ${hint} earlier`}
            aria-disabled={place === 1}
            onClick={() => onMove(stored.id, place - 1)}
          />
          <IconButton
            icon="arrowDown"
            label={`Try ${hint} later`}
            aria-disabled={place === total}
            onClick={() => onMove(stored.id, place + 1)}
          />
        </>
      )}
      {!isGiven && (
        <ConfirmButton
          label="Forget"
          title="Forget this key?"
          text="The next key of the list is used, if there is one."
          onConfirm={async () => {
            const params = { path: { key_id: stored.id } };
            await answered(api.DELETE("/api/v1/provider-keys/{key_id}", { params }));
            await refreshProviders();
          }}
        />
      )}
      {found?.problem && <p className="field-problem">{found.problem}</p>}
    </li>
  );
}

function NewKey({ provider, onAdded }: Pick<Props, "provider" | "onAdded">) {
  const [key, setKey] = useState("");
  const saving = useSaving();

  async function add(): Promise<void> {
    await answered(api.POST("/api/v1/provider-keys", { body: { provider_id: provider.id, key: key.trim() } }));
    setKey("");
    await refreshProviders();
    void onAdded();
  }

  return (
    <Form
      saving={saving}
      label="Add a key"
      disabled={!key.trim()}
      onSubmit={() => void saving.save(add, "The key is stored.")}
    >
      <TextField
        label={provider.keys.length ? "Another key" : "Key"}
        type="password"
        value={key}
        onChange={setKey}
        problem={saving.of("/key")}
        hint={provider.keys.length ? "Keys are tried in this order; Alt and the arrow keys move one." : ""}
      />
    </Form>
  );
}
