import { readFileSync } from 'node:fs';

/** The environments that have a Space, and the port on which each listens. */
export const SPACES = { llmserve: 7860, inferencegym: 7860, benchmark: 8000 } as const;
export type SpaceName = keyof typeof SPACES;

/** Where the source of ServeGym lies in the folder that is pushed to a Space. */
export const SPACE_SOURCE = 'servegym';

/** `deploy/Dockerfile` as a Space has it: its own environment and port, and the source in a folder beside it. */
export function spaceDockerfile(space: SpaceName): string {
  const port = SPACES[space];
  const [head, ...rest] = readFileSync(new URL('../Dockerfile', import.meta.url), 'utf8').split(
    'ARG SOURCE=.\n',
  );
  if (!head || rest.length !== 1) throw new Error('Expected `ARG SOURCE=.` once in deploy/Dockerfile');
  const body = rest[0]!
    .replace('ENV SERVEGYM_ENV=llmserve', `ENV SERVEGYM_ENV=${space}`)
    .replace('ENV PORT=7860', `ENV PORT=${port}`)
    .replace('EXPOSE 7860', `EXPOSE ${port}`);
  return `# Made from deploy/Dockerfile by deploy/spaces/build-space.ts, which also puts the source beside it.
ARG SOURCE=${SPACE_SOURCE}
${body}`;
}
