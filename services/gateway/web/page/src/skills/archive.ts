/** ZIP archives of small texts: written without compression, and read within bounds. */

export interface ArchiveEntry {
  path: string;
  text: string;
}

/** An archive that is not read; the message says why. */
export class ArchiveRefused extends Error {}

export const ARCHIVE_BYTES_MAX = 16 * 1024 * 1024;
const ENTRIES_MAX = 1000;
const PATH_PARTS_MAX = 8;
const END = 0x06054b50;
const END_BYTES = 22;
const COMMENT_BYTES_MAX = 0xffff;
const CENTRAL = 0x02014b50;
const CENTRAL_BYTES = 46;
const LOCAL = 0x04034b50;
const LOCAL_BYTES = 30;
const STORED = 0;
const DEFLATED = 8;
const ENCRYPTED = 1;
const UTF8 = 0x0800;
/** Bytes of the numbers before a file, in the directory, and at the end. */
const LOCAL_WIDTHS = "42222244422";
const CENTRAL_WIDTHS = "42222224442222244";
const END_WIDTHS = "42222442";
/** The first of January 1980, the earliest day that there is. */
const DAY = 0x21;

/** Write texts into an archive. */
export function archiveOf(entries: readonly ArchiveEntry[]): Blob {
  const encoder = new TextEncoder();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const directory: Uint8Array<ArrayBuffer>[] = [];
  let offset = 0;
  for (const { path, text } of entries) {
    const name = encoder.encode(path);
    const content = encoder.encode(text);
    const facts = [UTF8, STORED, 0, DAY, crc32(content), content.length, content.length, name.length, 0];
    const local = record([LOCAL, 20, ...facts], LOCAL_WIDTHS, name);
    directory.push(record([CENTRAL, 20, 20, ...facts, 0, 0, 0, 0, offset], CENTRAL_WIDTHS, name));
    parts.push(local, content);
    offset += local.length + content.length;
  }
  const size = directory.reduce((sum, each) => sum + each.length, 0);
  const end = record([END, 0, 0, entries.length, entries.length, size, offset, 0], END_WIDTHS, new Uint8Array());
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
}

/** Write numbers of two and four bytes, and a name after them. */
function record(numbers: readonly number[], widths: string, name: Uint8Array): Uint8Array<ArrayBuffer> {
  const length = [...widths].reduce((sum, each) => sum + Number(each), 0);
  const made = new Uint8Array(length + name.length);
  const view = new DataView(made.buffer);
  let at = 0;
  numbers.forEach((number, place) => {
    if (widths[place] === "4") view.setUint32(at, number, true);
    else view.setUint16(at, number, true);
    at += Number(widths[place]);
  });
  made.set(name, at);
  return made;
}

function crc32(content: Uint8Array): number {
  let sum = 0xffffffff;
  for (const byte of content) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return (sum ^ 0xffffffff) >>> 0;
}

/**
 * Read the files of an archive as texts; those that `isWanted` refuses are listed with an empty text.
 *
 * Sizes that the archive states are not trusted: of no file more than `bytesMax` bytes are unpacked.
 * Throws `ArchiveRefused`.
 */
export async function entriesOf(archive: Blob, bytesMax: number, isWanted: (path: string) => boolean): Promise<ArchiveEntry[]> {
  if (archive.size > ARCHIVE_BYTES_MAX) throw new ArchiveRefused("The archive has more than 16 MiB.");
  const view = new DataView(await archive.arrayBuffer());
  const entries: ArchiveEntry[] = [];
  for (const entry of listed(view)) {
    if (entry.path.endsWith("/")) continue;
    entries.push({ path: entry.path, text: isWanted(entry.path) ? await textOf(view, entry, bytesMax) : "" });
  }
  return entries;
}

interface Listed {
  path: string;
  method: number;
  packedBytes: number;
  offset: number;
}

function listed(view: DataView): Listed[] {
  const end = endOf(view);
  const count = view.getUint16(end + 10, true);
  let at = view.getUint32(end + 16, true);
  if (count > ENTRIES_MAX) throw new ArchiveRefused(`The archive has more than ${ENTRIES_MAX} files.`);
  return Array.from({ length: count }, () => {
    if (at + CENTRAL_BYTES > view.byteLength || view.getUint32(at, true) !== CENTRAL) throw broken();
    const [name, extra, comment] = [28, 30, 32].map((place) => view.getUint16(at + place, true)) as [number, number, number];
    if (view.getUint16(at + 8, true) & ENCRYPTED) throw new ArchiveRefused("The archive is encrypted.");
    const path = checkedPath(decoded(bytesAt(view, at + CENTRAL_BYTES, name)));
    const entry = { path, method: view.getUint16(at + 10, true), packedBytes: view.getUint32(at + 20, true), offset: view.getUint32(at + 42, true) };
    at += CENTRAL_BYTES + name + extra + comment;
    return entry;
  });
}

function endOf(view: DataView): number {
  const first = Math.max(0, view.byteLength - END_BYTES - COMMENT_BYTES_MAX);
  for (let at = view.byteLength - END_BYTES; at >= first; at -= 1) {
    if (view.getUint32(at, true) === END) return at;
  }
  throw new ArchiveRefused("The file is no ZIP archive.");
}

/** Nothing is written anywhere, but an archive with such names was made to do harm. */
function checkedPath(path: string): string {
  const parts = path.replace(/\/$/, "").split("/");
  const isInside = parts.length <= PATH_PARTS_MAX && parts.every((each) => each !== "" && each !== "." && each !== ".." && !/[\\:\0]/.test(each));
  if (!isInside) throw new ArchiveRefused("The archive has a file whose name leads out of it.");
  return path;
}

async function textOf(view: DataView, entry: Listed, bytesMax: number): Promise<string> {
  const { offset, packedBytes, method, path } = entry;
  if (offset + LOCAL_BYTES > view.byteLength || view.getUint32(offset, true) !== LOCAL) throw broken();
  const start = offset + LOCAL_BYTES + view.getUint16(offset + 26, true) + view.getUint16(offset + 28, true);
  const packed = bytesAt(view, start, packedBytes);
  const tooLong = new ArchiveRefused(`${path} has more than ${bytesMax} bytes.`);
  if (method === DEFLATED) return decoded(await inflated(packed, bytesMax, tooLong));
  if (method !== STORED) throw new ArchiveRefused(`${path} is packed in a way that is not known here.`);
  if (packed.length > bytesMax) throw tooLong;
  return decoded(packed);
}

async function inflated(packed: Uint8Array<ArrayBuffer>, bytesMax: number, tooLong: ArchiveRefused): Promise<Uint8Array> {
  const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const unpacked = new Uint8Array(bytesMax);
  let length = 0;
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return unpacked.subarray(0, length);
      if (length + value.length > bytesMax) throw tooLong;
      unpacked.set(value, length);
      length += value.length;
    }
  } catch (error) {
    await reader.cancel().catch(() => {});
    throw error instanceof ArchiveRefused ? error : broken();
  }
}

function bytesAt(view: DataView, start: number, length: number): Uint8Array<ArrayBuffer> {
  if (start + length > view.byteLength) throw broken();
  return new Uint8Array(view.buffer as ArrayBuffer, start, length);
}

function decoded(content: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    throw new ArchiveRefused("The archive has a name or a text that is not UTF-8.");
  }
}

function broken(): ArchiveRefused {
  return new ArchiveRefused("The archive is broken.");
}
