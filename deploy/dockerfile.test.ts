import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { commandOf, copyOf, readStages, variablesOf } from './dockerfile-steps.ts';

const root = resolve(import.meta.dirname, '..');
const stages = readStages(readFileSync(join(import.meta.dirname, 'Dockerfile'), 'utf8'));
const last = stages.at(-1)!;

describe('the Dockerfile', () => {
  it('copies what is there, and from stages that come before', () => {
    const ignored = readFileSync(join(root, '.dockerignore'), 'utf8').split('\n');
    for (const [index, stage] of stages.entries()) {
      for (const instruction of stage.instructions.filter(({ name }) => name === 'COPY')) {
        const { from, sources } = copyOf(instruction);
        if (from)
          assert.ok(
            stages.slice(0, index).some(({ alias }) => alias === from),
            from,
          );
        else
          for (const source of sources) {
            assert.ok(existsSync(join(root, source)), source);
            assert.ok(!ignored.includes(source.replace('./', '')), `${source} is in .dockerignore`);
          }
      }
    }
  });

  it('starts the server as a user without rights, in a folder that is there, and keeps sessions where it may write', () => {
    const folder = last.instructions.findLast(({ name }) => name === 'WORKDIR')?.rest;
    const [node, program, ...args] = commandOf(last);
    assert.deepEqual([node, args], ['node', ['serve']]);
    assert.ok(existsSync(join(root, program!)));
    assert.equal(folder, '/servegym');
    assert.match(last.instructions.find(({ name }) => name === 'USER')!.rest, /^[1-9]\d*:[1-9]\d*$/);
    const { SERVEGYM_STORE, SERVEGYM_ENV, PORT, HOST, SERVEGYM_ALLOWED_HOSTS } = variablesOf(last);
    assert.deepEqual([HOST, SERVEGYM_ALLOWED_HOSTS], ['0.0.0.0', '*']);
    assert.match(SERVEGYM_STORE!, /^\/tmp\//);
    assert.equal(SERVEGYM_ENV, 'llmserve');
    assert.ok(last.instructions.some(({ name, rest }) => name === 'EXPOSE' && rest === PORT));
  });

  it('has the version of Node that the project is developed on', () => {
    const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const [major] = devDependencies['@types/node'].split('.');
    assert.ok(stages.length > 1);
    for (const { base } of stages.slice(0, -1)) assert.equal(base, `node:${major}-bookworm-slim`);
  });
});
