import { computed, signal } from '@preact/signals';
import { descriptionsOf, knobsOf, NO_ABILITIES, type ServerAbilities } from '../api/action-schema.ts';
import type { Client } from '../api/client.ts';
import type { EnvironmentInfo, Fields, PolicyInfo, SchemaBody, Task } from '../api/wire.ts';
import { observed } from './frame.ts';
import { BY_HAND, Run } from './run.ts';

/** Windows a second. */
export const SPEEDS = [1, 2, 8, 24, 60] as const;

/** Without a known length the charts span at least this many windows. */
const FEWEST_CHARTED = 30;

/** Something that went wrong, and the way on. */
interface Problem {
  readonly message: string;
  readonly remedy: string;
  readonly mend: () => void;
}

/** An episode that came from a link or a file. */
interface OpenedFile {
  /** It came out as its digest has it; `null` where it has none. */
  readonly verified: boolean | null;
  /** The version that it was recorded on, and the one that plays it now. */
  readonly recorded?: string;
  readonly played: string;
  readonly windows: number;
  /** The run that shows it. It may play on after the recorded windows. */
  readonly run: Run;
}

/** Everything the page shows. The parts that change it share these signals; components read them in `ConsoleState`. */
export type PageSignals = ReturnType<typeof createPageSignals>;

export function createPageSignals(client: Client) {
  const schemas = signal<SchemaBody>();
  const tasks = signal<readonly Task[]>([]);
  const task = signal<string>();
  const chosenTask = computed(() => tasks.value.find(({ id }) => String(id) === task.value));
  const runs = signal<readonly Run[]>([new Run(client, 0, BY_HAND)]);
  const run = signal(runs.value[0]);
  const position = signal<number | null>(null);
  const pointedAt = signal<number | null>(null);

  const newest = computed(() => Math.max(0, ...runs.value.map(({ played }) => played.value - 1)));
  const windows = computed(() =>
    [chosenTask.value?.windows, chosenTask.value?.episode_length].find(
      (one): one is number => typeof one === 'number' && one > 0,
    ),
  );
  const shownIndex = computed(() => Math.min(pointedAt.value ?? position.value ?? Infinity, newest.value));
  const driver = computed(() => run.value.driver.value);
  const frames = computed(() => run.value.frames.value);
  const shown = computed(() => run.value.frameAt(shownIndex.value));
  return {
    environment: signal<EnvironmentInfo>(),
    schemas,
    tasks,
    policies: signal<readonly PolicyInfo[]>([]),
    abilities: signal<ServerAbilities>(NO_ABILITIES),
    knobs: computed(() => (schemas.value ? knobsOf(schemas.value.action) : [])),
    /** Definitions of the observation's fields, from its schema. */
    definitions: computed(() => (schemas.value ? descriptionsOf(schemas.value.observation) : {})),

    task,
    chosenTask,
    seed: signal(1),
    /** Options of the reset beside task and seed; those that are absent are left to the server. */
    options: signal<Fields>({}),
    /** Windows a second. */
    speed: signal<number>(8),
    opened: signal<OpenedFile>(),
    /** Changes when another episode takes the page, so that answers to an older one are told apart. */
    episode: signal(0),

    /** The episodes side by side: one to `RUN_PLACES`, all on the same task, seed and options. */
    runs,
    /** The run whose server, knobs and decisions are shown. */
    run,
    /** No window follows on any run. */
    areOver: computed(() => runs.value.every(({ isOver }) => isOver.value)),
    /** Changes when the frames of any run start anew, or runs come and go. */
    epoch: computed(() => runs.value.map((one) => `${one.id}:${one.epoch.value}`).join()),
    /** The newest window of any run. */
    newest,
    /** Windows of the whole episode, where the task or the server says so. */
    windows,
    /** Windows that the charts span without a zoom. */
    charted: computed(() => Math.max(windows.value ?? FEWEST_CHARTED, newest.value)),
    /** First and last window that the charts show; `null`: all. */
    zoomed: signal<readonly [number, number] | null>(null),
    /** The window that the page has been wound back to; `null`: the newest. */
    position,
    /** The window under the pointer in a chart. */
    pointedAt,
    /** The window that the page shows. */
    shownIndex,

    // Of the run in focus: who drives it, its windows, the newest one, the shown one, its grade.
    driver,
    frames,
    latest: computed(() => run.value.latest.value),
    shown,
    grade: computed(() => run.value.grade.value),
    /** The environment is an LLM server, by what it observes. */
    isServer: computed(() => {
      const [first] = frames.value;
      return first !== undefined && observed(first, 'queue_depth') !== undefined;
    }),
    /** The environment is a fleet, by what it reports. */
    isFleet: computed(() => frames.value[0]?.telemetry.replicas !== undefined),
    /** Values of the knobs: the hand's, or those chosen in the shown window. */
    knobValues: computed(() => {
      const isLive = position.value === null && pointedAt.value === null;
      return driver.value === BY_HAND && isLive
        ? run.value.handValues.value
        : (shown.value?.action ?? run.value.handValues.value);
    }),

    /** The run that was added and is catching up with the others. */
    joining: signal<Run>(),
    playing: signal(false),
    problem: signal<Problem>(),
    /** The server wants a token. */
    needsToken: signal(false),
  };
}

/** Watches the episode on the page. The answer tells whether it is still there. */
export function watchEpisode({ episode }: PageSignals): () => boolean {
  const watched = episode.peek();
  return () => episode.peek() === watched;
}

/** The panels that open beside the page. */
export const PANELS = {
  share: { title: 'Share', icon: 'share' },
  readme: { title: 'Readme', icon: 'book' },
  help: { title: 'Keys and terms', icon: 'help' },
} as const;
export type PanelName = keyof typeof PANELS;

/** The panel that is open. */
export const openPanel = signal<PanelName | undefined>(undefined);

/** The page has its layout, or a problem to show. Nothing plays before: nobody would see it. */
export const isSettled = signal(false);
