import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { KEYS } from "./keys.ts";

export function KeysDialog({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <table className="keys">
        <tbody>
          {KEYS.map(([key, meaning]) => (
            <tr key={key}>
              <th scope="row">
                {key.split(" ").map((each) => (
                  <kbd key={each} className="kbd">
                    {each}
                  </kbd>
                ))}
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
