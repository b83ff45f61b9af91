/** Pictures that are too large for models are made smaller before they are stored. */

/** Models take pictures of less than 5 MiB, of which some is left for what is around them. */
export const PICTURE_BYTES_MAX = 5 * 1024 * 1024 - 16 * 1024;

export interface Attempt {
  /** The longer side of the picture at most, in pixels. */
  side: number;
  quality: number;
}

/** How a picture is encoded until it is small enough: its quality goes down first, then its size. */
const ATTEMPTS: readonly Attempt[] = [
  { side: 8000, quality: 0.9 },
  { side: 8000, quality: 0.75 },
  { side: 4096, quality: 0.8 },
  { side: 2048, quality: 0.8 },
  { side: 1024, quality: 0.75 },
];

/** Pictures that move are left as they are. */
const ENCODABLE = new Set(["image/jpeg", "image/png", "image/webp"]);
const ENDINGS: Readonly<Record<string, string>> = { "image/webp": ".webp", "image/png": ".png", "image/jpeg": ".jpg" };

/** Return a file that models take; the same one if it is none, or cannot be made smaller. */
export async function shrunk(file: File, encode: (file: File, attempt: Attempt) => Promise<Blob> = encoded): Promise<File> {
  if (!ENCODABLE.has(file.type) || file.size <= PICTURE_BYTES_MAX) return file;
  try {
    for (const attempt of ATTEMPTS) {
      const made = await encode(file, attempt);
      const ending = ENDINGS[made.type];
      if (ending && made.size <= PICTURE_BYTES_MAX) return new File([made], file.name.replace(/\.\w+$/, "") + ending, { type: made.type });
    }
  } catch {
    // It is no picture, or too large for the browser: the server says what is wrong with it.
  }
  return file;
}

async function encoded(file: File, { side, quality }: Attempt): Promise<Blob> {
  const picture = await createImageBitmap(file);
  try {
    const scale = Math.min(1, side / Math.max(picture.width, picture.height));
    const canvas = new OffscreenCanvas(Math.max(1, Math.round(picture.width * scale)), Math.max(1, Math.round(picture.height * scale)));
    canvas.getContext("2d")!.drawImage(picture, 0, 0, canvas.width, canvas.height);
    return await encodedCanvas(canvas, file.type, quality);
  } finally {
    picture.close();
  }
}

/**
 * Encode a canvas as WebP. A browser that cannot do that makes a PNG, which is larger than a photograph
 * was as JPEG and has no quality to lower: what was a JPEG stays one.
 */
export async function encodedCanvas(canvas: Pick<OffscreenCanvas, "convertToBlob">, typeBefore: string, quality: number): Promise<Blob> {
  const made = await canvas.convertToBlob({ type: "image/webp", quality });
  if (made.type === "image/webp" || typeBefore !== "image/jpeg") return made;
  return canvas.convertToBlob({ type: "image/jpeg", quality });
}
