import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { ForeignSchema } from './sample-value.ts';

/** What is wrong with a value by a JSON Schema of a server; `null` when nothing is. */
export type SchemaCheck = (value: unknown) => string | null;

/** Longest schema that is compiled, characters of JSON. */
const LONGEST_SCHEMA = 1_000_000;

/** Compiles a JSON Schema (draft 2020-12) of a server. @throws Error saying why it is no schema. */
export function schemaCheck(schema: ForeignSchema): SchemaCheck {
  if (JSON.stringify(schema).length > LONGEST_SCHEMA) {
    throw new Error(`the schema is longer than ${LONGEST_SCHEMA} characters`);
  }
  // Servers add keywords of their own, as `discriminator`, and formats, which only describe.
  const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false });
  const validate: ValidateFunction = ajv.compile(schema);
  return (value) => (validate(value) ? null : ajv.errorsText(validate.errors, { dataVar: '' }));
}
