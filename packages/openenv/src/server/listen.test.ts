import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { connect } from '../client/connect.ts';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import type { LooseJson } from '../fixtures/raw-socket.ts';
import { createServer } from './create-server.ts';

const other = { ...counterEnvironment, id: 'other', name: 'other' };
const third = { ...counterEnvironment, id: 'third', name: 'third' };

/** A port with the counter at its root, and others below it. */
async function startThree(t: TestContext) {
  const root = createServer(counterEnvironment);
  const below = createServer(other);
  root.mount('/other', below);
  root.mount('/third', createServer(third));
  const listening = await root.listen({ port: 0, host: '127.0.0.1' });
  t.after(() => listening.close());
  return { root, below, listening, url: listening.url };
}

const get = async (url: string): Promise<LooseJson> => (await fetch(url)).json();

describe('environments on one port', () => {
  it('answer below their paths, each for itself', async (t) => {
    const { url } = await startThree(t);
    assert.equal((await get(`${url}/metadata`)).name, counterEnvironment.name);
    assert.equal((await get(`${url}/other/metadata?x=1`)).name, 'other');
    const reset = await fetch(`${url}/other/reset`, { method: 'POST' });
    const { session_id } = (await reset.json()) as { session_id: string };
    assert.equal((await fetch(`${url}/other/state?session_id=${session_id}`)).status, 200);
    assert.equal((await fetch(`${url}/state?session_id=${session_id}`)).status, 404);
    assert.equal((await fetch(`${url}/nobody/metadata`)).status, 404);
    assert.equal((await fetch(`${url}/otherwise/metadata`)).status, 404);
    assert.equal((await get(`${url}/health`)).active_sessions, 0);
    assert.equal((await get(`${url}/other/health`)).active_sessions, 1);
  });

  it('are played over WebSockets below their paths', async (t) => {
    const { root, below, url } = await startThree(t);
    const client = await connect(`${url}/other`);
    await client.reset({ seed: 1 });
    assert.deepEqual([root.sessions.size, below.sessions.size], [0, 1]);
    await client.close();
    await assert.rejects(connect(`${url}/nobody`));
  });

  it('are listed with paths that hold behind a proxy', async (t) => {
    const { url } = await startThree(t);
    const paths = async (root: string) =>
      (await get(`${root}environments`)).environments.map(({ id, path }: { id: string; path: string }) => [
        id,
        new URL(path, root).href,
      ]);
    const expected = [
      [counterEnvironment.id, `${url}/`],
      ['other', `${url}/other/`],
      ['third', `${url}/third/`],
    ];
    for (const root of [`${url}/`, `${url}/other/`, `${url}/third/`])
      assert.deepEqual(await paths(root), expected);
  });

  it('lead from their path to the slash behind it', async (t) => {
    const { url } = await startThree(t);
    for (const [asked, location] of [
      ['/other', 'other/'],
      ['/other?a=1', 'other/?a=1'],
    ]) {
      const answer = await fetch(url + asked, { redirect: 'manual' });
      assert.deepEqual([answer.status, answer.headers.get('location')], [307, location]);
    }
  });

  it('close and drain together', async (t) => {
    const { below, listening, url } = await startThree(t);
    const client = await connect(`${url}/other`);
    await client.reset();
    const drained = listening.drain({ graceMs: 60_000 });
    assert.throws(() => below.sessions.open(), /drain|shutting/i);
    await client.close();
    await drained;
    assert.equal(below.sessions.size, 0);
    await assert.rejects(fetch(`${url}/other/health`));
  });

  it('need paths and ports of their own', async (t) => {
    const { root, below } = await startThree(t);
    const fresh = createServer(third);
    t.after(() => fresh.close());
    for (const path of ['/other', 'name', '/', '/a/b', '/a?b', '']) {
      assert.throws(() => root.mount(path, fresh), TypeError, path);
    }
    assert.throws(() => fresh.mount('/again', below), TypeError);
    assert.throws(() => fresh.mount('/self', fresh), TypeError);
    assert.throws(() => fresh.mount('/root', root), TypeError);
  });
});
