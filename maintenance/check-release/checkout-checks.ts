import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { SPACES } from '../../deploy/spaces/write-space.ts';
import { type Finding, leftOut, passed, type ReleaseCheck } from './release-check.ts';

const run = promisify(execFile);
/** Files of a built Space. */
const SPACE_FILES = [
  'README.md',
  'openenv.yaml',
  'pyproject.toml',
  '__init__.py',
  'client.py',
  'models.py',
  'Dockerfile',
  'inference.py',
  'server/app.py',
  'validation/runtime.json',
];
/** Hugging Face and OpenEnv read these from the front matter. */
const FRONT_MATTER = ['title', 'sdk', 'app_port', 'base_path'];
/** An image that takes longer to be built hangs, ms. */
const BUILD_TIMEOUT_MS = 15 * 60_000;

/** Checks of the folders that go elsewhere: the Spaces and the image. */
export function checkoutChecks({ skipDocker }: { readonly skipDocker: boolean }): ReleaseCheck[] {
  const root = resolve(import.meta.dirname, '../..');
  const spaces = join(root, 'deploy', 'spaces');
  return [
    {
      id: 'spaces.complete',
      description: 'Each Space has the files and the front matter that Hugging Face and OpenEnv ask for',
      run: () => completeSpaces(spaces),
    },
    {
      id: 'spaces.validate',
      description: '`openenv validate` passes on each Space',
      run: () => validateSpaces(spaces),
    },
    {
      id: 'image',
      description: 'The image builds, starts as an unprivileged user, is healthy, and stops on SIGTERM',
      run: async () => (skipDocker ? leftOut('--skip-docker') : rehearseImage(root)),
    },
  ];
}

/** Builds each Space into a folder that is gone afterwards, and checks it there. */
async function eachSpace(
  spaces: string,
  check: (folder: string, name: string) => Promise<Finding | undefined>,
): Promise<Finding> {
  const names = Object.keys(SPACES);
  const folder = mkdtempSync(join(tmpdir(), 'servegym-spaces-'));
  try {
    for (const name of names) {
      await run(process.execPath, [join(spaces, 'build-space.ts'), name, join(folder, name)]);
      const finding = await check(join(folder, name), name);
      if (finding !== undefined) return finding;
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  return passed(names.join(', '));
}

function completeSpaces(spaces: string): Promise<Finding> {
  return eachSpace(spaces, async (folder, name) => {
    const missing = SPACE_FILES.filter((file) => !existsSync(join(folder, file)));
    if (missing.length > 0) throw new Error(`${name} lacks ${missing.join(', ')}`);
    const [, head = ''] = readFileSync(join(folder, 'README.md'), 'utf8').split('---\n');
    const absent = FRONT_MATTER.filter((key) => !new RegExp(`^${key}: `, 'm').test(head));
    if (absent.length > 0) throw new Error(`the front matter of ${name} lacks ${absent.join(', ')}`);
    return undefined;
  });
}

function validateSpaces(spaces: string): Promise<Finding> {
  const python = process.env.SERVEGYM_PYTHON;
  const [program, ...before] = python ? [python, '-m', 'openenv.cli'] : ['openenv'];
  return eachSpace(spaces, async (folder, name) => {
    try {
      await run(program!, [...before, 'validate', folder, '--level', 'static', '--skip-build']);
      return undefined;
    } catch (error) {
      const {
        code,
        stdout = '',
        stderr = '',
      } = error as { code?: unknown; stdout?: string; stderr?: string };
      if (code === 'ENOENT') return leftOut('there is no `openenv` on the PATH: pip install openenv');
      throw new Error(`${name}: ${stdout}${stderr}`.trim(), { cause: error });
    }
  });
}

/** With Docker where there is one, else the same steps in a folder. */
async function rehearseImage(root: string): Promise<Finding> {
  const dockerfile = join(root, 'deploy', 'Dockerfile');
  const hasDocker = await run('docker', ['info']).then(
    () => true,
    () => false,
  );
  if (hasDocker) {
    await run('docker', ['build', '-f', dockerfile, '-t', 'servegym:check', root], {
      timeout: BUILD_TIMEOUT_MS,
    });
    const { stdout } = await run('docker', ['image', 'inspect', '-f', '{{.Size}}', 'servegym:check']);
    return passed(`built, ${Math.round(Number(stdout) / 1e6)} MB`);
  }
  const script = join(root, 'deploy', 'rehearse-container.ts');
  const { stdout } = await run(process.execPath, [script, '--json'], { timeout: BUILD_TIMEOUT_MS });
  const { application_mb, node_mb, healthy_ms } = JSON.parse(stdout);
  return passed(
    `no Docker here, so its steps were done in a folder: ${application_mb} MB and ${node_mb} MB of Node, healthy in ${healthy_ms} ms`,
  );
}
