import { expect, test } from "vitest";
import { fieldsOf, filled, initialValues, looksSecret, pointerOf } from "./form.ts";

const SCHEMA = {
  type: "object",
  properties: {
    name: { type: "string", title: "Your name", minLength: 2, maxLength: 4 },
    mail: { type: "string", format: "email" },
    site: { type: "string", format: "uri" },
    day: { type: "string", format: "date" },
    depth: { type: "integer", minimum: 1, maximum: 5, default: 3 },
    ratio: { type: "number" },
    is_new: { type: "boolean", default: true },
    colour: { type: "string", enum: ["r", "g"], enumNames: ["Red", "Green"], default: "g" },
    size: { type: "string", oneOf: [{ const: "s", title: "Small" }, { const: "l", title: "Large" }] },
    tags: { type: "array", items: { type: "string", enum: ["x", "y", "z"] }, minItems: 1, maxItems: 2, default: ["y"] },
  },
  required: ["name", "depth"],
};

test("a form begins with the defaults, and marks what is required", () => {
  const fields = fieldsOf(SCHEMA);
  expect(fields.map((each) => each.kind)).toEqual([
    "text", "email", "uri", "date", "integer", "number", "boolean", "choice", "choice", "choices",
  ]);
  expect(fields.filter((each) => each.isRequired).map((each) => each.label)).toEqual(["Your name", "depth"]);
  expect(initialValues(fields)).toEqual({
    name: "", mail: "", site: "", day: "", depth: "3", ratio: "", is_new: true, colour: "1", size: "", tags: ["1"],
  });
});

test("what was typed becomes values of the asked types, and empty optional fields are left out", () => {
  const fields = fieldsOf(SCHEMA);
  const values = { ...initialValues(fields), name: "Ann", ratio: "1.5", size: "0" };
  expect(filled(fields, values)).toEqual({
    content: { name: "Ann", depth: 3, ratio: 1.5, is_new: true, colour: "g", size: "s", tags: ["y"] },
    problems: {},
  });
});

test("every field that does not fit has its problem", () => {
  const fields = fieldsOf(SCHEMA);
  const values = {
    ...initialValues(fields), name: "", mail: "ann", site: "example", day: "today", depth: "1.5", ratio: "much", tags: ["0", "1", "2"],
  };
  expect(filled(fields, values).problems).toEqual({
    name: "Fill this in.",
    mail: "Write an address such as ann@example.com.",
    site: "Write a whole address such as https://example.com.",
    day: "Write a date.",
    depth: "Write a whole number.",
    ratio: "Write a number.",
    tags: "At most 2 entries.",
  });
  const bounds = (given: object) => filled(fields, { ...initialValues(fields), name: "Ann", ...given }).problems;
  expect(bounds({ name: "A", depth: "6" })).toEqual({ name: "At least 2 characters.", depth: "At most 5." });
  expect(bounds({ name: "😀😀😀😀", depth: "0" })).toEqual({ depth: "At least 1." });
});

test("a time is sent with its zone", () => {
  const fields = fieldsOf({ properties: { at: { type: "string", format: "date-time", default: "2030-01-02T03:04:00Z" } } });
  expect(filled(fields, initialValues(fields)).content).toEqual({ at: "2030-01-02T03:04:00.000Z" });
});

test("fields that ask for secrets are found", () => {
  const fields = fieldsOf({ properties: { api_key: {}, user_password: {}, pin: {}, colour: {}, spinner: {}, a: { title: "Access token" } } });
  expect(fields.filter(looksSecret).map((each) => each.name)).toEqual(["api_key", "user_password", "pin", "a"]);
});

test("a schema that is none has no fields, and names are escaped in pointers", () => {
  expect([fieldsOf(null), fieldsOf({ properties: [] })]).toEqual([[], []]);
  expect(fieldsOf({ properties: { a: { type: "constructor" } } })[0]?.kind).toBe("text");
  expect(pointerOf("a/b~c")).toBe("/content/a~1b~0c");
});
