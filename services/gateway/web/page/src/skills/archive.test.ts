import { expect, test } from "vitest";
import { archiveOf, ArchiveRefused, entriesOf } from "./archive.ts";
import { SKILL_BYTES_MAX, skillContent, skillsIn } from "./skill-file.ts";

const all = (): boolean => true;
const text = (name: string): string => skillContent({ name, description: 'Says: "hello"', body: "Grüße.\n" });

interface Wrong {
  method?: number;
  flags?: number;
  count?: number;
  packed?: Uint8Array<ArrayBuffer>;
}

/** Write an archive with one file as other programs do, and wrong where a test wants it so. */
async function archive(path: string, content: Uint8Array<ArrayBuffer>, wrong: Wrong = {}): Promise<Blob> {
  const { method = 8, flags = 0, count = 1 } = wrong;
  const packed = wrong.packed ?? (method === 8 ? await deflated(content) : content);
  const name = bytes(path);
  const local = new DataView(new ArrayBuffer(30));
  local.setUint32(0, 0x04034b50, true);
  local.setUint16(26, name.length, true);
  const central = new DataView(new ArrayBuffer(46));
  central.setUint32(0, 0x02014b50, true);
  central.setUint16(8, flags, true);
  central.setUint16(10, method, true);
  central.setUint32(20, packed.length, true);
  // A size that is a lie.
  central.setUint32(24, 1, true);
  central.setUint16(28, name.length, true);
  const end = new DataView(new ArrayBuffer(22));
  end.setUint32(0, 0x06054b50, true);
  end.setUint16(10, count, true);
  end.setUint32(16, 30 + name.length + packed.length, true);
  return new Blob([local, name, packed, central, name, end]);
}

async function deflated(content: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const packed = new Blob([content]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

const bytes = (content: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(content);

test("what is written is read again, and packed files of other programs are", async () => {
  const entries = [
    { path: "review/SKILL.md", text: text("review") },
    { path: "deploy/SKILL.md", text: text("deploy") },
  ];
  expect(await entriesOf(archiveOf(entries), SKILL_BYTES_MAX, all)).toEqual(entries);
  expect(await entriesOf(archiveOf([]), SKILL_BYTES_MAX, all)).toEqual([]);
  for (const method of [0, 8]) {
    expect(await entriesOf(await archive("a/SKILL.md", bytes("hello"), { method }), SKILL_BYTES_MAX, all)).toEqual([{ path: "a/SKILL.md", text: "hello" }]);
  }
});

test("a file that unpacks to more than is allowed is refused, whatever size it states", async () => {
  const bomb = await archive("a/SKILL.md", new Uint8Array(50_000_000));
  expect(bomb.size).toBeLessThan(100_000);
  await expect(entriesOf(bomb, SKILL_BYTES_MAX, all)).rejects.toThrow("has more than 65536 bytes");
  // One that is not wanted is not unpacked at all.
  expect(await entriesOf(bomb, SKILL_BYTES_MAX, () => false)).toEqual([{ path: "a/SKILL.md", text: "" }]);
});

test.each(["../a/SKILL.md", "/etc/SKILL.md", "a/../../SKILL.md", "a\\SKILL.md", "C:/SKILL.md", "a//SKILL.md", "./SKILL.md", "a/b/c/d/e/f/g/h/SKILL.md"])("the name %s is refused", async (path) => {
  await expect(entriesOf(await archive(path, bytes("x")), SKILL_BYTES_MAX, all)).rejects.toThrow("leads out of it");
});

test("what is broken, encrypted, unknown, no text or too much is refused", async () => {
  const refused = (blob: Blob) => expect(entriesOf(blob, SKILL_BYTES_MAX, all)).rejects;
  await refused(new Blob(["no archive"])).toThrow("no ZIP archive");
  await refused(new Blob([])).toThrow("no ZIP archive");
  await refused(await archive("a", bytes("x"), { flags: 1 })).toThrow("encrypted");
  await refused(await archive("a", bytes("x"), { method: 14, packed: bytes("x") })).toThrow("not known here");
  await refused(await archive("a", bytes(""), { packed: bytes("this is not deflated") })).toThrow("broken");
  await refused(await archive("a", new Uint8Array([0xff, 0xfe]))).toThrow("not UTF-8");
  await refused(await archive("a", bytes("x"), { count: 2 })).toThrow("broken");
  await refused(await archive("a", bytes("x"), { count: 2000 })).toThrow("more than 1000 files");
  await refused((await archive("a", bytes("x"))).slice(40)).toThrow(ArchiveRefused);
});

test("skills are told from other files, and by the names of their directories", () => {
  const found = skillsIn([
    { path: "review/SKILL.md", text: text("review") },
    { path: "review/scripts/run.sh", text: "" },
    { path: "SKILL.md", text: text("deploy") },
  ]);
  expect(found.skills.map((each) => each.name)).toEqual(["review", "deploy"]);
  expect(found.skipped).toEqual(["review/scripts/run.sh"]);
  expect(() => skillsIn([{ path: "a/SKILL.md", text: "no head" }])).toThrow("no line with name:");
  expect(() => skillsIn([{ path: "a/SKILL.md", text: text("b") }])).toThrow("not that of its directory");
  expect(() => skillsIn([{ path: "SKILL.md", text: text("a") }, { path: "a/SKILL.md", text: text("a") }])).toThrow("same name");
});

test("a description is quoted so that it is read as it was", () => {
  expect(skillContent({ name: "a", description: "plain: text", body: "b" })).toBe('---\nname: a\ndescription: "plain: text"\n---\nb');
  expect(skillContent({ name: "a", description: 'says "x"', body: "b" })).toContain(`description: 'says "x"'\n`);
  expect(skillContent({ name: "a", description: `it's "x"`, body: "b" })).toContain(`description: it's "x"\n`);
  expect(skillContent({ name: "a", description: `"it's"`, body: "b" })).toContain(`description: ""it's""\n`);
});
