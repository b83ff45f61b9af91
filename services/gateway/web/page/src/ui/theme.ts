/** Light, dark or what the system says; kept in this browser. */
import { readStored, writeStored } from "./stores/stored.ts";

export type Theme = "system" | "light" | "dark";

const KEY = "parley.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

export function theme(): Theme {
  const stored = readStored(KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
}

export function setTheme(next: Theme): void {
  writeStored(KEY, next === "system" ? null : next);
  applyTheme();
}

export function applyTheme(): void {
  const chosen = theme();
  const isDark = chosen === "dark" || (chosen === "system" && dark.matches);
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
}

dark.addEventListener("change", applyTheme);
addEventListener("storage", applyTheme);
