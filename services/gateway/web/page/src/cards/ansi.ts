/** Output of terminals: colours as classes, a carriage return begins its line again. */
export interface Span {
  text: string;
  classes: string;
}

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const ESCAPE = /\u001b\[([0-9;:]*)m|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b\[[0-?]*[ -/]*[@-~]|\u001b[@-_]/g;

interface Style {
  colour: string;
  isBold: boolean;
  isDim: boolean;
}

const PLAIN: Style = { colour: "", isBold: false, isDim: false };

/** Split output into spans with the same style. */
export function spansOf(output: string): Span[] {
  const text = overwritten(output);
  const spans: Span[] = [];
  let style = PLAIN;
  let at = 0;
  const push = (piece: string): void => {
    const clean = piece.replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, "");
    if (clean) spans.push({ text: clean, classes: classesOf(style) });
  };
  for (const found of text.matchAll(ESCAPE)) {
    push(text.slice(at, found.index));
    if (found[1] !== undefined) style = styled(style, found[1]);
    at = found.index + found[0].length;
  }
  push(text.slice(at));
  return spans;
}

/** Leave out what a carriage return wrote over, as progress bars do. */
function overwritten(output: string): string {
  if (!output.includes("\r")) return output;
  return output
    .replaceAll("\r\n", "\n")
    .split("\n")
    .map((line) => line.slice(line.replace(/\r+$/, "").lastIndexOf("\r") + 1).replace(/\r+$/, ""))
    .join("\n");
}

function styled(style: Style, codes: string): Style {
  const numbers = codes.split(/[;:]/).map(Number);
  let next = style;
  for (let index = 0; index < numbers.length; index += 1) {
    const code = numbers[index] ?? 0;
    if (code === 0) next = PLAIN;
    else if (code === 1) next = { ...next, isBold: true };
    else if (code === 2) next = { ...next, isDim: true };
    else if (code === 22) next = { ...next, isBold: false, isDim: false };
    else if (code >= 30 && code <= 37) next = { ...next, colour: NAMES[code - 30] ?? "" };
    else if (code >= 90 && code <= 97) next = { ...next, colour: NAMES[code - 90] ?? "" };
    else if (code === 39) next = { ...next, colour: "" };
    else if (code === 38 || code === 48) {
      // Of palettes the first sixteen are known; other colours stay plain.
      const isPalette = numbers[index + 1] === 5;
      const colour = NAMES[(numbers[index + 2] ?? 0) % 8] ?? "";
      if (code === 38 && isPalette && (numbers[index + 2] ?? 99) < 16) next = { ...next, colour };
      index += isPalette ? 2 : 4;
    }
  }
  return next;
}

function classesOf(style: Style): string {
  return [style.colour && `ansi-${style.colour}`, style.isBold && "ansi-bold", style.isDim && "ansi-dim"]
    .filter(Boolean)
    .join(" ");
}
