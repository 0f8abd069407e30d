import { block, code, prose, table } from './markdown.ts';

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
}

interface Content {
  readonly description?: string;
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>;
}

interface Operation {
  readonly tags?: readonly string[];
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: readonly {
    readonly in: string;
    readonly name: string;
    readonly required?: boolean;
    readonly schema: Schema;
    readonly description?: string;
  }[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content>>;
}

export interface OpenApi {
  readonly info: { readonly title: string; readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

/** The routes of an environment, by tag, from its OpenAPI document. */
export function httpPage(name: string, address: string, document: OpenApi): string {
  const routes = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const tags = Map.groupBy(routes, ({ operation }) => operation.tags?.[0] ?? 'Other');
  const parts = [
    `# HTTP: ${name}`,
    prose(document.info.description),
    `\`servegym serve\` has this environment at \`${address}\`. The same as OpenAPI 3.1: \`GET ${address}openapi.json\`; to try it: \`${address}docs\`.`,
    ...[...tags].flatMap(([tag, ofTag]) => [
      `## ${tag}`,
      ...ofTag.flatMap(({ path, method, operation }) => [
        `### ${method.toUpperCase()} ${path}`,
        ...operationSections(operation, document),
      ]),
    ]),
  ];
  return `${parts.join('\n\n')}\n`;
}

function operationSections(operation: Operation, document: OpenApi): string[] {
  const { summary, description, parameters = [], requestBody, responses } = operation;
  const [status, answer] = Object.entries(responses)[0] ?? ['', {}];
  const described = (title: string, { content }: Content) => {
    const schema = content?.['application/json']?.schema;
    const shown = schema ? fields(schema, document) : [];
    return shown.length > 0 ? [title, ...shown] : [];
  };
  return [
    prose([summary, description].filter(Boolean).join('. ')),
    ...table(
      ['parameter', 'in', 'type', 'meaning'],
      parameters.map((each) => [
        code(each.name) + (each.required ? ' (required)' : ''),
        each.in,
        code(typeText(each.schema)),
        each.description ?? each.schema.description ?? '',
      ]),
    ),
    ...described('Body:', requestBody ?? {}),
    ...described(`Answer (${status}):`, answer),
    ...table(
      ['status', 'meaning'],
      Object.entries(responses).map(([each, { description }]) => [each, description ?? '']),
    ),
  ];
}

/** Table of the fields of an object; for any other value, its type. */
function fields(schema: Schema, document: OpenApi): string[] {
  const rows = fieldRows(schema, document, '', 2);
  if (rows.length > 0) return table(['field', 'type', 'meaning'], rows);
  const type = typeText(resolve(schema, document));
  return type === 'any' ? [] : [block('text', type)];
}

/** Rows of the fields, each with those of the object in it: `action.batch_cap`. */
function fieldRows(schema: Schema, document: OpenApi, prefix: string, levels: number): string[][] {
  const { properties = {}, required = [] } = objectIn(schema, document);
  return Object.entries(properties).flatMap(([name, each]) => {
    const value = resolve(each, document);
    const standard = value.default === undefined ? '' : ` Default: ${code(JSON.stringify(value.default))}`;
    const row = [
      code(prefix + name) + (required.includes(name) ? ' (required)' : ''),
      code(typeText(value)),
      `${each.description ?? value.description ?? ''}${standard}`,
    ];
    return [row, ...(levels > 1 ? fieldRows(value, document, `${prefix}${name}.`, levels - 1) : [])];
  });
}

/** The schema itself, or the object among its alternatives. */
function objectIn(schema: Schema, document: OpenApi): Schema {
  const found = resolve(schema, document);
  const either = (found.anyOf ?? found.oneOf)?.map((each) => resolve(each, document));
  return either?.find(({ properties }) => properties) ?? found;
}

function resolve(schema: Schema, document: OpenApi): Schema {
  const name = schema.$ref?.split('/').at(-1);
  return name === undefined ? schema : resolve(document.components.schemas[name]!, document);
}

/** A type in a few characters: `integer 1 to 512`, `"FP16" or "INT8"`, `number[]`. */
function typeText(schema: Schema): string {
  const choices = schema.enum ?? (schema.const === undefined ? undefined : [schema.const]);
  if (choices) return choices.map((each) => JSON.stringify(each)).join(' or ');
  if (schema.$ref) return schema.$ref.split('/').at(-1)!;
  const either = schema.anyOf ?? schema.oneOf;
  if (either) return [...new Set(either.flatMap((each) => typeText(each).split(' or ')))].join(' or ');
  if (schema.items) return `${typeText(schema.items)}[]`;
  const type = typeof schema.type === 'string' ? schema.type : (schema.type?.join(' or ') ?? 'any');
  return `${type}${rangeText(schema)}`;
}

function rangeText({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: Schema): string {
  const shown = (limit: number | undefined) =>
    limit === undefined || Math.abs(limit) >= Number.MAX_SAFE_INTEGER ? undefined : limit;
  const [least, above, most, below] = [minimum, exclusiveMinimum, maximum, exclusiveMaximum].map(shown);
  if (least !== undefined && most !== undefined) return ` ${least} to ${most}`;
  const limits = [
    least === undefined ? '' : `from ${least}`,
    above === undefined ? '' : `above ${above}`,
    most === undefined ? '' : `up to ${most}`,
    below === undefined ? '' : `below ${below}`,
  ].filter(Boolean);
  return limits.length > 0 ? ` ${limits.join(', ')}` : '';
}
