import { expect, test } from "vitest";
import { type Attempt, encodedCanvas, PICTURE_BYTES_MAX, shrunk } from "./shrink.ts";

function file(type: string, size: number, name = "photo.png"): File {
  return new File([new Uint8Array(size)], name, { type });
}

/** Encode so that a picture has so many bytes at each attempt. */
function encoding(sizes: readonly number[], type = "image/webp") {
  const tried: Attempt[] = [];
  const encode = async (_file: File, attempt: Attempt): Promise<Blob> => {
    tried.push(attempt);
    return new Blob([new Uint8Array(sizes[tried.length - 1] ?? 0)], { type });
  };
  return { tried, encode };
}

const LARGE = PICTURE_BYTES_MAX + 1;

test("a large picture is encoded until it is small enough", async () => {
  const { tried, encode } = encoding([LARGE, LARGE, 900]);
  const made = await shrunk(file("image/png", LARGE), encode);
  expect([made.name, made.type, made.size]).toEqual(["photo.webp", "image/webp", 900]);
  expect(tried.map((each) => each.side)).toEqual([8000, 8000, 4096]);
});

test("small pictures, pictures that move and other files stay as they are", async () => {
  const { tried, encode } = encoding([]);
  for (const each of [file("image/png", PICTURE_BYTES_MAX), file("image/gif", LARGE, "a.gif"), file("application/pdf", LARGE, "a.pdf")]) {
    expect(await shrunk(each, encode)).toBe(each);
  }
  expect(tried).toEqual([]);
});

test("what cannot be made smaller is left to the server", async () => {
  const large = file("image/jpeg", LARGE, "a.jpg");
  expect(await shrunk(large, encoding([LARGE, LARGE, LARGE, LARGE, LARGE]).encode)).toBe(large);
  expect(await shrunk(large, () => Promise.reject(new Error("no picture")))).toBe(large);
});

test("where there is no WebP a photograph stays a JPEG, and other pictures become PNG", async () => {
  const asked: (ImageEncodeOptions | undefined)[] = [];
  const canvas = (types: readonly string[]) => ({
    convertToBlob: async (options?: ImageEncodeOptions) => {
      asked.push(options);
      return new Blob([], { type: types.includes(options?.type ?? "") ? options!.type! : "image/png" });
    },
  });
  const without = canvas(["image/png", "image/jpeg"]);
  expect((await encodedCanvas(without, "image/jpeg", 0.8)).type).toBe("image/jpeg");
  expect(asked).toEqual([{ type: "image/webp", quality: 0.8 }, { type: "image/jpeg", quality: 0.8 }]);
  expect((await encodedCanvas(without, "image/png", 0.8)).type).toBe("image/png");
  expect((await encodedCanvas(canvas(["image/webp"]), "image/jpeg", 0.8)).type).toBe("image/webp");
});
