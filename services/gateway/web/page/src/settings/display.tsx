/** How the page looks, and which key sends, in this browser. */
import { useState, useSyncExternalStore } from "react";
import { type SendKey, sendKey, setSendKey } from "../composer/send-key.ts";
import { setTheme, type Theme, theme } from "../ui/theme.ts";

const THEMES: readonly (readonly [Theme, string])[] = [
  ["system", "As the system"],
  ["light", "Light"],
  ["dark", "Dark"],
];

const SEND_KEYS: readonly (readonly [SendKey, string])[] = [
  ["enter", "Enter; Shift Enter begins a line"],
  ["ctrl-enter", "Ctrl Enter or Cmd Enter; Enter begins a line"],
];

export default function DisplaySection() {
  return (
    <>
      <div className="section-part">
        <Colours />
      </div>
      <div className="section-part">
        <Sending />
      </div>
    </>
  );
}

function Sending() {
  const chosen = useSyncExternalStore(sendKey.subscribe, sendKey.get);
  return (
    <fieldset className="choices">
      <legend className="field-label">Key that sends a message, in this browser</legend>
      {SEND_KEYS.map(([value, label]) => (
        <label key={value} className="choice">
          <input type="radio" name="send-key" checked={chosen === value} onChange={() => setSendKey(value)} />
          {label}
        </label>
      ))}
    </fieldset>
  );
}

function Colours() {
  const [chosen, setChosen] = useState<Theme>(theme);
  return (
    <fieldset className="choices">
      <legend className="field-label">Colours, in this browser</legend>
      {THEMES.map(([value, label]) => (
        <label key={value} className="choice">
          <input
            type="radio"
            name="theme"
            checked={chosen === value}
            onChange={() => {
              setTheme(value);
              setChosen(value);
            }}
          />
          {label}
        </label>
      ))}
    </fieldset>
  );
}
