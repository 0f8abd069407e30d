// TypeDoc 0.28 reads TypeScript up to version 6, and the project is on 7; so the declarations come from the sources.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Class, type Directive, parseSync, type Statement } from 'oxc-parser';
import { block, prose } from './markdown.ts';

type Declaration = Exclude<Directive | Statement, Directive>;

interface Module {
  readonly path: string;
  readonly text: string;
  readonly statements: readonly (Directive | Statement)[];
  /** Doc comments by the offset behind them. */
  readonly comments: readonly { readonly value: string; readonly start: number; readonly end: number }[];
}

export interface Entry {
  /** As programs import it: `@servegym/openenv/client`. */
  readonly specifier: string;
  /** Path of its source. */
  readonly file: string;
}

/** Exports of the entries of a package, each with its doc comment and its declaration. */
export function typescriptPage(name: string, description: string, entries: readonly Entry[]): string {
  const parts = [`# TypeScript: ${name}`, prose(description)];
  for (const { specifier, file } of entries) {
    const found = [...exportsOf(file)].sort(([a], [b]) => a.localeCompare(b));
    parts.push(`## ${specifier}`);
    for (const [exported, { module, statement }] of found)
      parts.push(
        `### ${exported}`,
        ...docOf(module, statement.start),
        block('ts', signature(module, innerDeclaration(statement), exported)),
      );
  }
  return `${parts.join('\n\n')}\n`;
}

interface Found {
  readonly module: Module;
  /** With its `export`, where it has one. */
  readonly statement: Directive | Statement;
}

const modules = new Map<string, Module>();

function readModule(path: string): Module {
  let module = modules.get(path);
  if (module === undefined) {
    const text = readFileSync(path, 'utf8');
    const { program, comments } = parseSync(path, text);
    const docs = comments.filter(({ type, value }) => type === 'Block' && value.startsWith('*'));
    module = { path, text, statements: program.body, comments: docs };
    modules.set(path, module);
  }
  return module;
}

/** Declarations of what a module exports, by name; what it passes on is looked up where it stands. */
function exportsOf(path: string): Map<string, Found> {
  const module = readModule(path);
  const found = new Map<string, Found>();
  for (const statement of module.statements) {
    if (statement.type !== 'ExportNamedDeclaration') continue;
    if (statement.declaration) {
      for (const name of declaredNames(statement.declaration))
        if (!found.has(name)) found.set(name, { module, statement });
      continue;
    }
    for (const { local, exported } of statement.specifiers) {
      const [from, to] = [nameOf(local), nameOf(exported)];
      const source = statement.source?.value;
      const target = source?.startsWith('.')
        ? exportsOf(join(dirname(path), source)).get(from)
        : ownOrImported(module, from);
      if (target) found.set(to, target);
    }
  }
  return found;
}

/** A declaration of the module itself, or of the module that it imports it from. */
function ownOrImported(module: Module, name: string): Found | undefined {
  for (const statement of module.statements) {
    if (statement.type === 'ImportDeclaration' && statement.source.value.startsWith('.')) {
      const specifier = statement.specifiers.find(({ local }) => local.name === name);
      if (specifier?.type === 'ImportSpecifier')
        return exportsOf(join(dirname(module.path), statement.source.value)).get(nameOf(specifier.imported));
    }
    const declaration = innerDeclaration(statement);
    if (declaredNames(declaration).includes(name)) return { module, statement };
  }
  return undefined;
}

const nameOf = (name: { readonly name: string } | { readonly value: string }) =>
  'name' in name ? name.name : name.value;

function innerDeclaration(statement: Directive | Statement): Declaration {
  return (
    statement.type === 'ExportNamedDeclaration' && statement.declaration ? statement.declaration : statement
  ) as Declaration;
}

function declaredNames(node: Declaration): string[] {
  switch (node.type) {
    case 'VariableDeclaration':
      return node.declarations.flatMap(({ id }) => (id.type === 'Identifier' ? [id.name] : []));
    case 'FunctionDeclaration':
    case 'TSDeclareFunction':
    case 'ClassDeclaration':
      return node.id ? [node.id.name] : [];
    case 'TSInterfaceDeclaration':
    case 'TSTypeAliasDeclaration':
      return [node.id.name];
    default:
      return [];
  }
}

/** The doc comment that ends before `start`, as Markdown. */
function docOf(module: Module, start: number): string[] {
  const comment = module.comments.find(
    ({ end }) => end <= start && module.text.slice(end, start).trim() === '',
  );
  if (comment === undefined) return [];
  const text = comment.value.replace(/^\s*\* ?/gm, '').replace(/\{@link (\S+?)\}/g, '`$1`');
  const tags = text
    .trim()
    .replace(/^@(param|returns|throws)\b *(\S*)/gm, (_, tag: string, word: string) =>
      tag === 'param' ? `- \`${word}\`` : `- *${tag}* ${word}`,
    );
  return [prose(tags.replace(/\n(?=- )/, '\n\n'))];
}

/** A declaration without what runs: bodies, private members and long values. */
function signature(module: Module, node: Declaration, name: string): string {
  const slice = (start: number, end: number) => module.text.slice(start, end).trim();
  switch (node.type) {
    case 'FunctionDeclaration':
      return slice(node.start, node.body?.start ?? node.end);
    case 'ClassDeclaration':
      return classSignature(module, node);
    case 'VariableDeclaration': {
      const declarator = node.declarations.find(({ id }) => id.type === 'Identifier' && id.name === name);
      if (!declarator) return slice(node.start, node.end);
      const whole = slice(declarator.start, declarator.end);
      if (whole.length <= 300) return `${node.kind} ${whole}`;
      const head = slice(declarator.id.start, declarator.id.end);
      const call = declarator.init?.type === 'CallExpression' ? declarator.init.callee : undefined;
      return `${node.kind} ${head}${call ? ` = ${slice(call.start, call.end)}(…)` : ' = …'}`;
    }
    default:
      return slice(node.start, node.end);
  }
}

function classSignature({ text }: Module, node: Class): string {
  const members = node.body.body.flatMap((member) => {
    if (member.type !== 'MethodDefinition' && member.type !== 'PropertyDefinition') return [];
    if (
      member.key.type === 'PrivateIdentifier' ||
      ('accessibility' in member && member.accessibility === 'private')
    )
      return [];
    if (member.type === 'MethodDefinition')
      return [text.slice(member.start, member.value.body?.start ?? member.end)];
    return [text.slice(member.start, member.value?.start ?? member.end).replace(/\s*=\s*$/, '')];
  });
  const head = text.slice(node.start, node.body.start).trim();
  return `${head} {\n${members.map((each) => `  ${each.trim().replace(/;?$/, ';')}`).join('\n')}\n}`;
}
