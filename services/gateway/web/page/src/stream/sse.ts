/** Frames of `text/event-stream`, as they come out of pieces of text that may end anywhere. */
export interface Frame {
  id: string | null;
  data: string;
}

/** Return a function that takes the next piece and returns the frames that it completes. */
export function frameParser(): (piece: string) => Frame[] {
  let rest = "";
  return (piece) => {
    const blocks = (rest + piece.replaceAll("\r\n", "\n")).split("\n\n");
    rest = blocks.pop() ?? "";
    return blocks.map(frameOf).filter((each) => each !== null);
  };
}

function frameOf(block: string): Frame | null {
  let id: string | null = null;
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
    else if (line.startsWith("id:")) id = line.slice(3).trim();
  }
  return data.length ? { id, data: data.join("\n") } : null;
}
