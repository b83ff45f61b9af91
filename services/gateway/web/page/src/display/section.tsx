/** How the page looks and sounds, and which key sends, in this browser. */
import { useState, useSyncExternalStore } from "react";
import { type SendKey, sendKey, setSendKey } from "../composer/send-key.ts";
import { chime, playOnce, setChime } from "../shell/chime.ts";
import { type DisplayMode, setDisplayMode, type Shown, useDisplayMode } from "./modes.ts";
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

const PARTS: readonly (readonly [Shown, string])[] = [
  ["thinking", "What the model thought"],
  ["output", "Output of commands"],
  ["changes", "Changes of files"],
];

const MODES: readonly (readonly [DisplayMode, string])[] = [
  ["auto", "As it fits"],
  ["open", "Always open"],
  ["closed", "Always closed"],
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
      <div className="section-part">
        {PARTS.map(([kind, label]) => (
          <Opening key={kind} kind={kind} label={label} />
        ))}
      </div>
      <div className="section-part">
        <Sounds />
      </div>
    </>
  );
}

function Opening({ kind, label }: { kind: Shown; label: string }) {
  const chosen = useDisplayMode(kind);
  return (
    <fieldset className="choices">
      <legend className="field-label">{label}, in this browser</legend>
      {MODES.map(([mode, words]) => (
        <label key={mode} className="choice">
          <input type="radio" name={`display-${kind}`} checked={chosen === mode} onChange={() => setDisplayMode(kind, mode)} />
          {words}
        </label>
      ))}
    </fieldset>
  );
}

function Sounds() {
  const isOn = useSyncExternalStore(chime.subscribe, chime.get);
  function choose(next: boolean): void {
    setChime(next);
    // Heard once, so that it is known; the browser also asks for a click before it plays.
    if (next) void playOnce();
  }
  return (
    <fieldset className="choices">
      <legend className="field-label">Sounds, in this browser</legend>
      <label className="choice">
        <input type="checkbox" name="chime" checked={isOn} onChange={(event) => choose(event.target.checked)} />
        A chime when a turn of one of my chats has ended
      </label>
    </fieldset>
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
