import { useSyncExternalStore } from "react";
import { sendKey } from "../composer/send-key.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { keysOf } from "./keys.ts";

export function KeysDialog({ onClose }: { onClose: () => void }) {
  const groups = keysOf(useSyncExternalStore(sendKey.subscribe, sendKey.get));
  return (
    <Dialog title="Keys" onClose={onClose}>
      {groups.map(({ place, keys }) => (
        <section key={place}>
          <h3 className="keys-place">{place}</h3>
          <table className="keys">
            <tbody>
              {keys.map(([key, meaning]) => (
                <tr key={key}>
                  <th scope="row">
                    {key.split(" ").map((each, at) =>
                      each === "and" ? ` ${each} ` : <kbd key={at} className="kbd">{each}</kbd>,
                    )}
                  </th>
                  <td>{meaning}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      ))}
      <div className="dialog-actions">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}
