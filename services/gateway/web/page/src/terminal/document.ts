/** A terminal in a frame of the page; the address names its process. */
import "@xterm/xterm/css/xterm.css";
import "../ui/styles/tokens.css";
import "./terminal.css";
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { applyTheme } from "../ui/theme.ts";
import { attach, type TerminalState } from "./attachment.ts";

const query = new URLSearchParams(location.search);
const chatId = query.get("chat_id") ?? "";
const processId = query.get("process_id") ?? "";
const isViewOnly = query.get("view_only") === "true";

applyTheme();
const place = document.getElementById("terminal")!;
const stateLine = document.getElementById("state")!;

function colours(): { background: string; foreground: string; cursor: string; selectionBackground: string } {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  return {
    background: colour("--sunken"),
    foreground: colour("--ink"),
    cursor: colour("--accent"),
    selectionBackground: colour("--accent-line"),
  };
}

const terminal = new Terminal({
  fontFamily: '"JetBrains Mono", ui-monospace, monospace',
  fontSize: 13,
  disableStdin: isViewOnly,
  cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
  minimumContrastRatio: 4.5,
  screenReaderMode: true,
  theme: colours(),
});
const fit = new FitAddon();
terminal.loadAddon(fit);
terminal.open(place);
fit.fit();

function showState(state: TerminalState): void {
  document.body.dataset.state = state.kind;
  const words = {
    connecting: "Connecting…",
    waiting: "The connection broke. Trying again…",
    open: isViewOnly ? "You are looking only." : "",
    ended: "",
  };
  stateLine.textContent = state.kind === "ended" ? state.words : words[state.kind];
  if (state.kind === "ended") terminal.options.disableStdin = true;
}

const attachment = attach({
  path: `/api/v1/chats/${encodeURIComponent(chatId)}/processes/${encodeURIComponent(processId)}/terminal`,
  isViewOnly,
  size: () => ({ rows: terminal.rows, columns: terminal.cols }),
  onOutput: (data) => terminal.write(data),
  onState: showState,
});
const encoder = new TextEncoder();
terminal.onData((data) => attachment.write(encoder.encode(data)));
terminal.onBinary((data) => attachment.write(Uint8Array.from(data, (each) => each.charCodeAt(0))));
terminal.onResize(({ rows, cols }) => attachment.resize(rows, cols));
new ResizeObserver(() => fit.fit()).observe(place);
new MutationObserver(() => {
  terminal.options.theme = colours();
}).observe(document.documentElement, { attributeFilter: ["data-theme"] });
if (!isViewOnly) terminal.focus();
