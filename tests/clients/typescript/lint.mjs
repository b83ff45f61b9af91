// Lints an OpenAPI document by the recommended rules of Redocly; fails if there is anything to say.
import { createConfig, lint } from "@redocly/openapi-core";

const config = await createConfig({
  extends: ["recommended"],
  rules: {
    "no-invalid-schema-examples": "error",
    "operation-operationId": "error",
    "operation-description": "error",
    "operation-singular-tag": "error",
    "path-segment-plural": "off",
    "tag-description": "error",
    "no-unused-components": "error",
  },
});
const problems = await lint({ ref: process.argv[2], config });
for (const { ruleId, location, message } of problems) {
  console.error(`${ruleId} ${location[0]?.pointer}: ${message}`);
}
process.exitCode = problems.length > 0 ? 1 : 0;
