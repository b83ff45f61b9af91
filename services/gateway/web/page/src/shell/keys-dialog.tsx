import { useSyncExternalStore } from "react";
import { sendKey } from "../composer/send-key.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { keysOf } from "./keys.ts";

export function KeysDialog({ onClose }: { onClose: () => void }) {
  const keys = keysOf(useSyncExternalStore(sendKey.subscribe, sendKey.get));
  return (
    <Dialog title="Keys" onClose={onClose}>
      <table className="keys">
        <tbody>
          {keys.map(([key, meaning]) => (
            <tr key={key}>
              <th scope="row">
                {key.split(" ").map((each) =>
                  each === "and" ? ` ${each} ` : <kbd key={each} className="kbd">{each}</kbd>,
                )}
              </th>
              <td>{meaning}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <div className="dialog-actions">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}
