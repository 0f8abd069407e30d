// TypeDoc 0.28 reads TypeScript up to version 6, and the project is on 7; so the declarations come from the sources.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Class, parseSync, type Span } from 'oxc-parser';
import { block, prose } from './markdown.ts';

/** Longer values of constants are left out, characters. */
const LONGEST_VALUE = 300;

/** Exports of the entries of a package, by specifier and file, each with its doc comment and its declaration. */
export function typescriptPage(
  name: string,
  description: string,
  entries: readonly (readonly [specifier: string, file: string])[],
): string {
  const parts = [`# TypeScript: ${name}`, prose(description)];
  for (const [specifier, file] of entries) {
    parts.push(`## ${specifier}`);
    const names = readModule(file).module.staticExports.flatMap(({ entries }) =>
      entries.map(({ exportName }) => exportName.name!),
    );
    for (const exported of [...new Set(names)].sort((a, b) => a.localeCompare(b))) {
      const found = declarationOf(file, exported);
      if (found) parts.push(`### ${exported}`, ...docOf(found), block('ts', signature(found)));
    }
  }
  return `${parts.join('\n\n')}\n`;
}

function readModule(path: string) {
  const text = readFileSync(path, 'utf8');
  const { program, module, comments } = parseSync(path, text);
  return { text, program, module, comments };
}

type Module = ReturnType<typeof readModule>;
type Found = NonNullable<ReturnType<typeof ownDeclaration>>;

/** The declaration of what a module exports; what it passes on is looked up where it stands. */
function declarationOf(path: string, name: string): Found | undefined {
  const source = readModule(path);
  const { staticExports, staticImports } = source.module;
  const exported = staticExports
    .flatMap(({ entries }) => entries)
    .find((each) => each.exportName.name === name);
  if (exported === undefined) return undefined;
  const local = exported.localName.name ?? name;
  const imported = staticImports
    .flatMap(({ moduleRequest, entries }) => entries.map((entry) => ({ ...entry, moduleRequest })))
    .find(({ localName }) => localName.value === local);
  const from = exported.moduleRequest?.value ?? imported?.moduleRequest.value;
  if (from === undefined) return ownDeclaration(source, local);
  const theirs = (exported.moduleRequest ? exported : imported!).importName.name ?? local;
  return from.startsWith('.') ? declarationOf(join(dirname(path), from), theirs) : undefined;
}

/** The first declaration of a name in a module; of a constant, its declarator. */
function ownDeclaration(source: Module, name: string) {
  for (const statement of source.program.body) {
    const node =
      statement.type === 'ExportNamedDeclaration' && statement.declaration
        ? statement.declaration
        : statement;
    const found = { source, statement, node, declarator: undefined };
    if (node.type === 'VariableDeclaration') {
      const declarator = node.declarations.find(({ id }) => id.type === 'Identifier' && id.name === name);
      if (declarator) return { ...found, declarator };
    } else if ('id' in node && node.id?.type === 'Identifier' && node.id.name === name) return found;
  }
  return undefined;
}

/** The doc comment that stands right before a declaration, as Markdown. */
function docOf({ source: { text, comments }, statement: { start } }: Found): string[] {
  const comment = comments.find(
    ({ type, value, end }) =>
      type === 'Block' && value.startsWith('*') && end <= start && text.slice(end, start).trim() === '',
  );
  if (comment === undefined) return [];
  const tags = comment.value
    .replace(/^\s*\* ?/gm, '')
    .replace(/\{@link (\S+?)\}/g, '`$1`')
    .trim()
    .replace(/^@(param|returns|throws)\b *(\S*)/gm, (_, tag: string, word: string) =>
      tag === 'param' ? `- \`${word}\`` : `- *${tag}* ${word}`,
    );
  return [prose(tags.replace(/\n(?=- )/, '\n\n'))];
}

/** A declaration without what runs: bodies, private members and long values. */
function signature({ source: { text }, node, declarator }: Found): string {
  const slice = ({ start }: Span, end: number) => text.slice(start, end).trim();
  if (node.type === 'ClassDeclaration') return classSignature(text, node);
  if (node.type === 'FunctionDeclaration') return slice(node, node.body?.start ?? node.end);
  if (node.type !== 'VariableDeclaration' || !declarator) return slice(node, node.end);
  const whole = slice(declarator, declarator.end);
  if (whole.length <= LONGEST_VALUE) return `${node.kind} ${whole}`;
  const { id, init } = declarator;
  const value = init?.type === 'CallExpression' ? `${slice(init.callee, init.callee.end)}(…)` : '…';
  return `${node.kind} ${slice(id, id.end)} = ${value}`;
}

function classSignature(text: string, node: Class): string {
  const members = node.body.body.flatMap((member) => {
    if (member.type !== 'MethodDefinition' && member.type !== 'PropertyDefinition') return [];
    if (member.key.type === 'PrivateIdentifier' || member.accessibility === 'private') return [];
    const value = member.type === 'MethodDefinition' ? member.value.body : member.value;
    return [text.slice(member.start, value?.start ?? member.end).replace(/\s*=\s*$/, '')];
  });
  const head = text.slice(node.start, node.body.start).trim();
  return `${head} {\n${members.map((each) => `  ${each.trim().replace(/;?$/, ';')}`).join('\n')}\n}`;
}
