/** Notifications of one's chats while no page is open: on this device, and on which others. */
import { useQuery } from "@tanstack/react-query";
import { ConfirmButton } from "../forms/confirm.tsx";
import { useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { Table } from "../forms/table.tsx";
import { Button } from "../ui/button.tsx";
import { ago } from "../ui/format.ts";
import { type Standing, standing } from "./device.ts";
import { kept, remove, sendTest, subscriptions, turnOn } from "./own.ts";

const HINTS: Readonly<Record<Standing, string>> = {
  insecure: "Browsers notify for pages with HTTPS only. Open this page at its https:// address, or ask who operates it for one.",
  unsupported:
    "This browser cannot notify while the page is closed. On an iPhone or iPad, add the page to the home screen first and open it there.",
  denied: "Notifications of this site are blocked. Allow them in the settings of the browser, then reload this page.",
  unsubscribed: "You are told when a chat ends its turn, fails, or asks you something, also while this page is closed.",
  subscribed: "You are told when a chat ends its turn, fails, or asks you something, also while this page is closed.",
};

export default function NotificationsSection() {
  const now = Date.now();
  const list = useQuery(subscriptions);
  const own = kept();
  // A subscription that another person made in this browser, or that was removed elsewhere, is none.
  const isListed = list.data?.push_subscriptions.some((each) => each.id === own?.id) ?? false;
  const device = useQuery({ queryKey: ["push-device", own?.id ?? ""], queryFn: standing, staleTime: 0 });
  return (
    <>
      <div className="section-part">
        <Loaded query={device} what="state of this browser">
          {(state) => <ThisDevice state={state} id={isListed && state === "subscribed" ? own?.id : undefined} />}
        </Loaded>
      </div>
      <div className="section-part">
        <Loaded query={list} what="list of devices">
          {(data) => (
            <Table
              label="Devices"
              rows={data.push_subscriptions}
              keyOf={(row) => row.id}
              empty={{ title: "No devices", text: "Turn notifications on above, on each device that should be notified." }}
              columns={[
                {
                  title: "Device",
                  cell: (row) => (
                    <>
                      <span className="cell-main">{row.name || "Unknown"}</span>
                      <span className="cell-side">by way of {row.host}</span>
                    </>
                  ),
                },
                { title: "Added", cell: (row) => ago(row.created_at, now) },
                {
                  title: "Last sent",
                  cell: (row) => (
                    <>
                      <span className="cell-main">{row.last_sent_at ? ago(row.last_sent_at, now) : "never"}</span>
                      {row.last_error && <span className="cell-side">The last one failed: {row.last_error}</span>}
                    </>
                  ),
                },
                {
                  title: "",
                  cell: (row) => (
                    <div className="table-actions">
                      <TestButton id={row.id} />
                      <ConfirmButton
                        label="Remove"
                        title="Remove this device?"
                        text="It is no longer notified."
                        done="The device is no longer notified."
                        onConfirm={() => remove(row.id)}
                      />
                    </div>
                  ),
                },
              ]}
            />
          )}
        </Loaded>
      </div>
    </>
  );
}

function ThisDevice({ state, id }: { state: Standing; id: string | undefined }) {
  const saving = useSaving();
  const canChoose = state === "unsubscribed" || state === "subscribed";
  return (
    <fieldset className="choices">
      <legend className="field-label">Notifications on this device</legend>
      {canChoose && (
        <label className="choice">
          <input
            type="checkbox"
            name="notifications"
            checked={id !== undefined}
            disabled={saving.isBusy}
            onChange={() =>
              void saving.save(
                () => (id === undefined ? turnOn() : remove(id)),
                id === undefined ? "This device is notified." : "This device is no longer notified.",
              )
            }
          />
          Notify me on this device
        </label>
      )}
      <p className="field-hint">{HINTS[state]}</p>
      {saving.problem && (
        <p className="field-problem" role="alert">
          {saving.problem}
        </p>
      )}
    </fieldset>
  );
}

function TestButton({ id }: { id: string }) {
  const saving = useSaving();
  return (
    <>
      <Button small disabled={saving.isBusy} onClick={() => void saving.save(() => sendTest(id), "A test was sent.")}>
        Send a test
      </Button>
      {saving.problem && (
        <p className="field-problem" role="alert">
          {saving.problem}
        </p>
      )}
    </>
  );
}
