// `npm run mutation`: StrykerJS changes the code of an area, one thing at a time, and tells which changes no test finds.
// `AREA=tune npm run mutation`; `FILES=packages/openenv/src/sessions/session.ts` narrows it to some of its files.
const LEARNING = 'packages/agents/src/learning';
const OPERATORS = 'packages/operators/src';
const ENVIRONMENTS = 'packages/environments/src';
const OPENENV = 'packages/openenv/src';

/** Code whose faults would go unnoticed for long, and the tests that should find them. */
const AREAS = {
  ppo: {
    mutate: ['ppo', 'actor-critic', 'running-normalizer'].map((file) => `${LEARNING}/${file}.ts`),
    tests: [`${LEARNING}/*.test.ts`],
  },
  tune: { mutate: [`${OPERATORS}/{search,tune}/*.ts`], tests: [`${OPERATORS}/{search,tune}/*.test.ts`] },
  graders: {
    mutate: [`${ENVIRONMENTS}/grading.ts`, `${ENVIRONMENTS}/*/*{grader,reward,anchors}.ts`],
    tests: [`${ENVIRONMENTS}/*.test.ts`, `${ENVIRONMENTS}/*/*.test.ts`],
  },
  sessions: {
    mutate: [`${OPENENV}/sessions/*.ts`],
    tests: [`${OPENENV}/{sessions,server}/*.test.ts`],
  },
  protocol: {
    mutate: [`${OPENENV}/{protocol,server}/*.ts`],
    tests: [`${OPENENV}/{protocol,server}/*.test.ts`],
  },
  seasons: { mutate: [`${OPENENV}/boards/*.ts`], tests: [`${OPENENV}/boards/*.test.ts`] },
};

const area = AREAS[process.env.AREA ?? 'graders'];
if (!area)
  throw new Error(`Expected AREA to be one of ${Object.keys(AREAS).join(', ')}, got ${process.env.AREA}`);

export default {
  mutate: process.env.FILES?.split(',') ?? [...area.mutate, '!**/*.{test,fixture}.ts'],
  // Packages import each other through links in node_modules, which lead out of a sandbox.
  inPlace: true,
  testRunner: 'tap',
  tap: { testFiles: area.tests, nodeArgs: ['--test-reporter=tap', '-r', '{{hookFile}}', '{{testFile}}'] },
  concurrency: 2,
  reporters: ['clear-text', 'progress-append-only'],
  clearTextReporter: { logTests: false, reportTests: false },
  disableTypeChecks: '{packages}/**/*.ts',
  tempDirName: 'dist/mutation',
};
