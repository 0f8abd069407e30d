// `npm run docs:servers`: simulates each model on each GPU that has a profile, and writes a page for it, a list of all pages,
// and `models.json`. Arguments are the models to simulate; default: all, in about half a minute.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { listProfiles } from '@servegym/profiles';
import { generatedServers } from '../../docs/.vitepress/pages.ts';
import { serverList, serverPage } from './server-pages.ts';
import { apiEntry, type Server, simulatedServer } from './simulated-server.ts';

const chosen = process.argv.slice(2);
const profiles = listProfiles().filter(({ model }) => chosen.length === 0 || chosen.includes(model.name));
const byPair = Map.groupBy(profiles, ({ model, gpu }) => `${model.name} ${gpu.name}`);
const servers = [...byPair.values()]
  .map(simulatedServer)
  .filter((server): server is Server => server !== null);
servers.sort((a, b) => a.path.localeCompare(b.path));

rmSync(generatedServers, { recursive: true, force: true });
const write = (name: string, text: string) => {
  mkdirSync(dirname(join(generatedServers, name)), { recursive: true });
  writeFileSync(join(generatedServers, name), text);
};
for (const server of servers) write(`${server.path}.md`, serverPage(server, servers));
write('index.md', serverList(servers));
write('models.json', JSON.stringify(servers.map(apiEntry)));
