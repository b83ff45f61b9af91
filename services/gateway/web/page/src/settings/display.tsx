/** How the page looks in this browser. */
import { useState } from "react";
import { setTheme, type Theme, theme } from "../ui/theme.ts";

const THEMES: readonly (readonly [Theme, string])[] = [
  ["system", "As the system"],
  ["light", "Light"],
  ["dark", "Dark"],
];

export default function DisplaySection() {
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
