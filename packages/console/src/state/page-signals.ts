import { computed, signal } from '@preact/signals';
import { descriptionsOf, knobsOf } from '../api/action-schema.ts';
import type { Client } from '../api/client.ts';
import { NO_ABILITIES, type ServerAbilities } from '../api/server-abilities.ts';
import type { EnvironmentInfo, Fields, PolicyInfo, SchemaBody, Task } from '../api/wire.ts';
import { BY_HAND, createRun, type Run } from './run.ts';

/** Windows a second. */
export const SPEEDS = [2, 8, 24, 60] as const;

/** Something that went wrong, and the way on. */
export interface Problem {
  readonly message: string;
  readonly remedy: string;
  readonly mend: () => void;
}

/** An episode that came from a link, a file or the leaderboard. */
export interface OpenedFile {
  /** Whether it came out as its digest has it; `null` where it has none. */
  readonly verified: boolean | null;
  /** The version that it was recorded on, and the one that plays it now. */
  readonly recorded?: string;
  readonly played: string;
  readonly windows: number;
  /** The run that shows it. It may play on after the recorded windows. */
  readonly run: Run;
}

/** What the page shows, as the parts that change it share it; `ConsoleState` tells what each means. */
export type PageSignals = ReturnType<typeof createPageSignals>;

export function createPageSignals(client: Client) {
  const schemas = signal<SchemaBody>();
  const tasks = signal<readonly Task[]>([]);
  const task = signal<string>();
  const runs = signal<readonly Run[]>([createRun(client, 0, BY_HAND)]);
  const run = signal(runs.value[0]);
  const position = signal<number | null>(null);
  const pointedAt = signal<number | null>(null);

  const newest = computed(() => Math.max(0, ...runs.value.map(({ played }) => played.value - 1)));
  const shownIndex = computed(() => Math.min(pointedAt.value ?? position.value ?? Infinity, newest.value));
  const driver = computed(() => run.value.driver.value);
  const frames = computed(() => run.value.frames.value);
  const shown = computed(() => frames.value[Math.min(shownIndex.value, run.value.played.value - 1)]);
  return {
    environment: signal<EnvironmentInfo>(),
    schemas,
    tasks,
    policies: signal<readonly PolicyInfo[]>([]),
    abilities: signal<ServerAbilities>(NO_ABILITIES),
    knobs: computed(() => (schemas.value ? knobsOf(schemas.value.action) : [])),
    definitions: computed(() => (schemas.value ? descriptionsOf(schemas.value.observation) : {})),
    task,
    chosenTask: computed(() => tasks.value.find(({ id }) => String(id) === task.value)),
    seed: signal(1),
    options: signal<Fields>({}),
    speed: signal<number>(SPEEDS[1]),
    opened: signal<OpenedFile>(),
    runs,
    run,
    areOver: computed(() => runs.value.every(({ isOver }) => isOver.value)),
    epoch: computed(() => runs.value.map((one) => `${one.id}:${one.epoch.value}`).join()),
    newest,
    position,
    pointedAt,
    shownIndex,
    driver,
    frames,
    latest: computed(() => run.value.latest.value),
    shown,
    grade: computed(() => run.value.grade.value),
    knobValues: computed(() => {
      const isLive = position.value === null && pointedAt.value === null;
      return driver.value === BY_HAND && isLive
        ? run.value.handValues.value
        : (shown.value?.action ?? run.value.handValues.value);
    }),
    joining: signal<Run>(),
    playing: signal(false),
    problem: signal<Problem>(),
    needsToken: signal(false),
  };
}
