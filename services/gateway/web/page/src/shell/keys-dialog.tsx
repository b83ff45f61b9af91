import { useSyncExternalStore } from "react";
import { sendKey } from "../composer/send-key.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { keysOf } from "./keys.ts";

export function KeysDialog({ onClose }: { onClose: () => void }) {
  const groups = keysOf(useSyncExternalStore(sendKey.subscribe, sendKey.get));
  return (
    <Dialog title="Keys" onClose={onClose}>
      {/* It has the focus first, so that the list begins at its top. */}
      <table className="keys" tabIndex={0}>
        {groups.map(({ place, keys }) => (
          <tbody key={place}>
            <tr>
              <th className="keys-place" scope="rowgroup" colSpan={2}>{place}</th>
            </tr>
            {keys.map(([key, meaning]) => (
              <tr key={key}>
                <th scope="row">
                  {key.split(" ").map((each, at) =>
                    each === "and" ? <span key={at}> and </span> : <kbd key={at} className="kbd">{each}</kbd>,
                  )}
                </th>
                <td>{meaning}</td>
              </tr>
            ))}
          </tbody>
        ))}
      </table>
      <div className="dialog-actions">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}
