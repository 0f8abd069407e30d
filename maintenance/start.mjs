// `npm start`: sets up what is missing, then serves the environment and its console until it is stopped.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { join } from 'node:path';
import { explain, projectEnvironment, root } from './setup/commands.mjs';
import { ensureNode } from './setup/node.mjs';
import { ensureBuilt, ensurePackages } from './setup/packages.mjs';

let node;
try {
  await ensurePackages();
  node = await ensureNode();
  await ensureBuilt('console');
} catch (error) {
  console.error(explain(error));
  process.exit(1);
}

const main = join(root, 'packages', 'servegym', 'src', 'main.ts');
const server = spawn(node, [main, 'serve', ...process.argv.slice(2)], {
  stdio: 'inherit',
  env: projectEnvironment(),
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => server.kill(signal));
server.on('error', (error) => {
  console.error(error.message);
  process.exitCode = 1;
});
server.on('exit', (code, signal) => {
  process.exitCode = signal ? 128 + constants.signals[signal] : code;
});
