/** Hooks for administrators: what each gets, whether it works, and the log of its deliveries. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import { ConfirmButton } from "../forms/confirm.tsx";
import { CheckField } from "../forms/fields.tsx";
import { useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { ShownOnce } from "../forms/shown-once.tsx";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { duration } from "../ui/format.ts";
import { Empty, Notice } from "../ui/states.tsx";
import { complain } from "../ui/toasts.tsx";
import { Visible } from "../ui/visible.tsx";
import { Deliveries, reasonOf } from "./deliveries.tsx";
import { type Body, HookForm } from "./hook-form.tsx";
import { deliveries, type Delivery, type Hook, hooks, hookVersion, refreshHooks } from "./queries.ts";

const HOOKS_MAX = 10;
/** For how long both secrets sign after one was replaced: a day. */
const OVERLAP_S = 86_400;

interface Made {
  name: string;
  secret: string;
}

export default function HooksSection() {
  const query = useQuery(hooks);
  const [isAdding, setAdding] = useState(false);
  const [made, setMade] = useState<Made>();
  const isFull = (query.data?.items.length ?? 0) >= HOOKS_MAX;
  return (
    <>
      <div className="section-part">
        <p className="field-hint">
          A hook is an HTTP consumer of your own. It gets signed events of all chats, and may refuse a message or a call,
          have a person asked first, or replace the input.
        </p>
        <div>
          <Button look="primary" icon="add" disabled={isFull} onClick={() => setAdding(true)}>
            Add a hook
          </Button>
          {isFull && <span className="field-hint"> There are {HOOKS_MAX} hooks; no more are allowed.</span>}
        </div>
        {made && (
          <ShownOnce title={`The secret that signs the requests to ${made.name}`} value={made.secret} onClose={() => setMade(undefined)} />
        )}
      </div>
      <Loaded query={query} what="list of hooks">
        {({ items }) =>
          items.length ? (
            <div className="cards">
              {items.map((each) => (
                <HookCard key={each.id} hook={each} onSecret={setMade} />
              ))}
            </div>
          ) : (
            <Empty title="No hooks">Add one above: messages and calls are not sent anywhere until then.</Empty>
          )
        }
      </Loaded>
      {isAdding && <NewHook onMade={setMade} onClose={() => setAdding(false)} />}
    </>
  );
}

function NewHook({ onMade, onClose }: { onMade: (made: Made) => void; onClose: () => void }) {
  const saving = useSaving();
  async function make(body: Body): Promise<void> {
    const { secret } = await answered(api.POST("/api/v1/hooks", { body }));
    onMade({ name: body.name, secret });
    await refreshHooks();
    onClose();
  }
  return (
    <Dialog title="Add a hook" wide onClose={onClose}>
      <HookForm saving={saving} label="Add the hook" onSubmit={(body) => void saving.save(() => make(body), "The hook is added.")} onCancel={onClose} />
    </Dialog>
  );
}

function HookCard({ hook, onSecret }: { hook: Hook; onSecret: (made: Made) => void }) {
  const [open, setOpen] = useState<"edit" | "log">();
  const [test, setTest] = useState<Delivery | "running">();
  const params = { path: { hook_id: hook.id } };

  async function ask(): Promise<void> {
    setTest("running");
    try {
      setTest(await answered(api.POST("/api/v1/hooks/{hook_id}/test", { params })));
      await queryClient.invalidateQueries({ queryKey: deliveries(hook.id).queryKey });
    } catch (error) {
      setTest(undefined);
      complain(error);
    }
  }

  async function enable(isEnabled: boolean): Promise<void> {
    try {
      const header = { "If-Match": (await queryClient.fetchQuery(hookVersion(hook.id))).etag };
      await answered(api.PATCH("/api/v1/hooks/{hook_id}", { params: { ...params, header }, body: { disabled: !isEnabled } }));
    } catch (error) {
      complain(error);
    }
    await refreshHooks();
  }

  return (
    <section className="card" aria-label={hook.name}>
      <header className="card-head">
        <h3 className="section-part-title"><Visible>{hook.name}</Visible></h3>
        <span className="badge">{hook.fail_policy === "open" ? "fails open" : "fails closed"}</span>
        {hook.disabled && <span className="badge is-warn">disabled</span>}
      </header>
      <p className="field-hint"><Visible>{hook.url}</Visible></p>
      <p className="badges">
        {hook.events.map((each) => <span key={each} className="badge">{each}</span>)}
        {hook.tools.map((each) => <code key={each} className="badge">{each}</code>)}
      </p>
      {hook.previous_secret_until && (
        <p className="field-hint">Requests are signed with the previous secret as well until {new Date(hook.previous_secret_until).toLocaleString()}.</p>
      )}
      <CheckField label="Enabled" checked={!hook.disabled} onChange={(isOn) => void enable(isOn)} />
      {test === "running" && <p className="field-hint" role="status">The hook is being asked…</p>}
      {test && test !== "running" && <TestResult delivery={test} />}
      <div className="table-actions">
        <Button small onClick={() => setOpen("edit")}>Edit</Button>
        <Button small disabled={test === "running"} onClick={() => void ask()}>Test</Button>
        <Button small onClick={() => setOpen("log")}>Deliveries</Button>
        <ConfirmButton
          label="New secret"
          title={`Replace the secret of ${hook.name}?`}
          text="For a day requests are signed with both secrets, so that its consumer can be changed over."
          done="The secret is replaced."
          onConfirm={async () => {
            const { secret } = await answered(api.POST("/api/v1/hooks/{hook_id}/rotate-secret", { params, body: { overlap_s: OVERLAP_S } }));
            onSecret({ name: hook.name, secret });
            await refreshHooks();
          }}
        />
        <ConfirmButton
          label="Delete"
          title={`Delete ${hook.name}?`}
          text="It gets no events any more, and its log and its secret are deleted."
          done="The hook is deleted."
          onConfirm={async () => {
            await answered(api.DELETE("/api/v1/hooks/{hook_id}", { params }));
            await refreshHooks();
          }}
        />
      </div>
      {open === "edit" && <EditHook hookId={hook.id} name={hook.name} onClose={() => setOpen(undefined)} />}
      {open === "log" && (
        <Dialog title={`Deliveries to ${hook.name}`} wide onClose={() => setOpen(undefined)}>
          <Deliveries hookId={hook.id} />
          <div className="dialog-actions">
            <Button onClick={() => setOpen(undefined)}>Close</Button>
          </div>
        </Dialog>
      )}
    </section>
  );
}

function TestResult({ delivery }: { delivery: Delivery }) {
  const isBad = delivery.outcome === "failed";
  return (
    <div role="status">
      <Notice kind={isBad ? "bad" : "plain"} icon={isBad ? "warn" : "check"} title={isBad ? "The test failed" : `It answered: ${delivery.outcome ?? ""}`}>
        {isBad ? <Visible>{reasonOf(delivery)}</Visible> : `HTTP ${delivery.http_status} after ${duration(delivery.duration_ms)}`}
      </Notice>
    </div>
  );
}

/** The form of the version that was read when it was opened: a later one is not overwritten unseen. */
function EditHook({ hookId, name, onClose }: { hookId: string; name: string; onClose: () => void }) {
  const query = useQuery(hookVersion(hookId));
  const saving = useSaving();
  async function save(body: Body, etag: string): Promise<void> {
    const params = { path: { hook_id: hookId }, header: { "If-Match": etag } };
    await answered(api.PATCH("/api/v1/hooks/{hook_id}", { params, body: { ...body, disabled: body.disabled ?? false } }));
    await refreshHooks();
    onClose();
  }
  return (
    <Dialog title={`Edit ${name}`} wide onClose={onClose}>
      <Loaded query={query} what="hook">
        {({ hook, etag }) => (
          <HookForm
            hook={hook}
            saving={saving}
            label="Save"
            onSubmit={(body) => void saving.save(() => save(body, etag), "The hook is changed.")}
            onCancel={onClose}
          />
        )}
      </Loaded>
    </Dialog>
  );
}
