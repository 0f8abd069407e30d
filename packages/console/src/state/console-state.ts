import { batch, computed, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { descriptionsOf, type Knob, knobsOf } from '../api/action-schema.ts';
import { ApiError } from '../api/api-error.ts';
import type { Client } from '../api/client.ts';
import { NO_ABILITIES, readAbilities, type ServerAbilities } from '../api/server-abilities.ts';
import type {
  EnvironmentInfo,
  EpisodeFile,
  Fields,
  Grade,
  PolicyInfo,
  SchemaBody,
  Task,
} from '../api/wire.ts';
import { startValues } from '../knobs/knob-values.ts';
import type { Choices } from './choices.ts';
import type { Frame } from './frame.ts';
import { createPacer } from './pacer.ts';
import { retryDelayMs, type Sleep, sleepUntilWoken } from './retry.ts';
import { BY_HAND, createRun, RUN_PLACES, type Run } from './run.ts';

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
}

/** Everything the page shows and all that it can be told to do. */
export interface ConsoleState {
  readonly client: Client;
  readonly environment: ReadonlySignal<EnvironmentInfo | undefined>;
  readonly schemas: ReadonlySignal<SchemaBody | undefined>;
  readonly tasks: ReadonlySignal<readonly Task[]>;
  readonly policies: ReadonlySignal<readonly PolicyInfo[]>;
  readonly abilities: ReadonlySignal<ServerAbilities>;
  readonly knobs: ReadonlySignal<readonly Knob[]>;
  /** Definitions of the observation's fields, from its schema. */
  readonly definitions: ReadonlySignal<Readonly<Record<string, string>>>;

  readonly task: ReadonlySignal<string | undefined>;
  readonly chosenTask: ReadonlySignal<Task | undefined>;
  readonly seed: ReadonlySignal<number>;
  /** Options of the reset beside task and seed; those that are absent are left to the server. */
  readonly options: ReadonlySignal<Fields>;
  readonly speed: Signal<number>;
  readonly opened: ReadonlySignal<OpenedFile | undefined>;

  /** The episodes side by side: one to `RUN_PLACES`, all on the same task, seed and options. */
  readonly runs: ReadonlySignal<readonly Run[]>;
  /** The run whose server, knobs and decisions are shown. */
  readonly run: ReadonlySignal<Run>;
  /** Changes when the frames of any run start anew, or runs come and go. */
  readonly epoch: ReadonlySignal<string>;
  /** The newest window of any run. */
  readonly newest: ReadonlySignal<number>;
  /** The window that the page has been wound back to; `null`: the newest. */
  readonly position: ReadonlySignal<number | null>;
  /** The window under the pointer in a chart. */
  readonly pointedAt: Signal<number | null>;
  /** The window that the page shows. */
  readonly shownIndex: ReadonlySignal<number>;

  /** Of the run in focus: who drives it, its windows, the newest one, the shown one, its grade. */
  readonly driver: ReadonlySignal<string>;
  readonly frames: ReadonlySignal<readonly Frame[]>;
  readonly latest: ReadonlySignal<Frame | undefined>;
  readonly shown: ReadonlySignal<Frame | undefined>;
  readonly grade: ReadonlySignal<Grade | undefined>;
  /** Where the knobs stand: the hand's values, or what was chosen in the shown window. */
  readonly knobValues: ReadonlySignal<Fields>;

  readonly playing: ReadonlySignal<boolean>;
  readonly problem: ReadonlySignal<Problem | undefined>;
  /** Whether the server wants a token. */
  readonly needsToken: ReadonlySignal<boolean>;

  connect(choices: Choices, autoplay: boolean): Promise<void>;
  /** Sends the token from now on and goes on where the server asked for it. */
  enterToken(token: string): void;
  chooseTask(task: string): void;
  /** @param thenPlay whether to play at once; default: if the page plays now */
  chooseSeed(seed: number, thenPlay?: boolean): void;
  /** `undefined` leaves an option to the server. */
  chooseOption(name: string, value: unknown): void;
  chooseDriver(driver: string, run?: Run): void;
  /** Puts another policy beside the runs, on the same episode, and lets it catch up. */
  addRun(policy: string): Promise<void>;
  removeRun(run: Run): void;
  focus(run: Run): void;
  turn(knob: string, value: unknown): void;
  /** Starts the same episode again. */
  restart(): Promise<void>;
  togglePlay(): void;
  /** Plays or shows one window more, and pauses. */
  step(): Promise<void>;
  /** Shows a window; the newest and those beyond it: live again. Pauses. */
  seek(window: number): void;
  /** Drops what the run in focus has played after the shown window, and goes on from there. */
  branch(): Promise<void>;
  /** Shows an episode from its file, in place of the runs. Throws nothing: what is wrong becomes the problem. */
  openFile(file: EpisodeFile, thenPlay: boolean): Promise<void>;
  /** The options that the next reset carries. */
  resetOptions(): Fields;
  /** Shows a problem that the page itself has, until the person has read it. */
  tell(message: string): void;
  /** To be called once a displayed frame while playing. */
  tick(nowMs: number): void;
}

export function createConsoleState(client: Client, sleep: Sleep = sleepUntilWoken): ConsoleState {
  const environment = signal<EnvironmentInfo>();
  const schemas = signal<SchemaBody>();
  const tasks = signal<readonly Task[]>([]);
  const policies = signal<readonly PolicyInfo[]>([]);
  const abilities = signal<ServerAbilities>(NO_ABILITIES);
  const task = signal<string>();
  const seed = signal(1);
  const options = signal<Fields>({});
  const speed = signal<number>(SPEEDS[1]);
  const opened = signal<OpenedFile>();
  const runs = signal<readonly Run[]>([createRun(client, 0, BY_HAND)]);
  const run = signal(runs.value[0]);
  const position = signal<number | null>(null);
  const pointedAt = signal<number | null>(null);
  const playing = signal(false);
  const problem = signal<Problem>();
  const needsToken = signal(false);

  let asking: Promise<void> | undefined;
  let resetting: Promise<unknown> | undefined;
  /** Counts the episodes begun, so that answers to an older one are told apart. */
  let beginning = 0;
  let afterToken: () => void = () => {};
  const pacer = createPacer();

  const knobs = computed(() => (schemas.value ? knobsOf(schemas.value.action) : []));
  const definitions = computed(() => (schemas.value ? descriptionsOf(schemas.value.observation) : {}));
  const chosenTask = computed(() => tasks.value.find(({ id }) => String(id) === task.value));
  const epoch = computed(() => runs.value.map((one) => `${one.place}:${one.epoch.value}`).join());
  const newest = computed(() => Math.max(0, ...runs.value.map(({ played }) => played.value - 1)));
  const shownIndex = computed(() => Math.min(pointedAt.value ?? position.value ?? Infinity, newest.value));
  const driver = computed(() => run.value.driver.value);
  const frames = computed(() => run.value.frames.value);
  const latest = computed(() => run.value.latest.value);
  const shown = computed(() => frames.value[Math.min(shownIndex.value, run.value.played.value - 1)]);
  const grade = computed(() => run.value.grade.value);
  const knobValues = computed(() => {
    const isLive = position.value === null && pointedAt.value === null;
    return driver.value === BY_HAND && isLive
      ? run.value.handValues.value
      : (shown.value?.action ?? run.value.handValues.value);
  });

  const resetOptions = (): Fields => ({
    ...(chosenTask.value && { task_id: chosenTask.value.id }),
    seed: seed.value,
    ...options.value,
  });
  const startingKnobs = (): Fields => startValues(knobs.value, chosenTask.value?.default_action);

  async function connect(choices: Choices, autoplay: boolean): Promise<void> {
    problem.value = undefined;
    try {
      const [info, schemaBody, taskList, policyList, description] = await Promise.all([
        client.metadata(),
        client.schema(),
        client.tasks(),
        client.policies(),
        client.description(),
      ]);
      batch(() => {
        environment.value = info;
        schemas.value = schemaBody;
        tasks.value = taskList;
        policies.value = policyList;
        abilities.value = readAbilities(description);
        task.value = pickTask(taskList, choices.task);
        seed.value = choices.seed ?? seed.value;
        options.value = knownOptions(choices.options);
        const drivers = pickDrivers(policyList, choices.policies);
        runs.value = drivers.map((name, place) => createRun(client, place, name));
        run.value = runs.value[0];
      });
    } catch (error) {
      report(error, 'Connect again', () => void connect(choices, autoplay));
      return;
    }
    await begin(autoplay && run.value.driver.value !== BY_HAND);
  }

  function knownOptions(wanted: Fields): Fields {
    const names = abilities.value.resetOptions.map(({ name }) => name);
    return Object.fromEntries(Object.entries(wanted).filter(([name]) => names.includes(name)));
  }

  /** Forgets the episode on the page. Answers whether its caller is still the one whose episode is awaited. */
  async function clear(): Promise<() => boolean> {
    const number = ++beginning;
    batch(() => {
      playing.value = false;
      problem.value = undefined;
      position.value = null;
      pointedAt.value = null;
      opened.value = undefined;
    });
    // A step still under way would otherwise play into the new episode of the same session.
    await asking;
    // Two resets of one session on their way at once could reach the server in either order.
    await resetting?.catch(() => {});
    return () => beginning === number;
  }

  async function begin(thenPlay: boolean): Promise<void> {
    const isCurrent = await clear();
    if (!isCurrent()) return;
    try {
      resetting = Promise.all(runs.value.map((one) => one.begin(resetOptions(), startingKnobs())));
      await resetting;
      if (isCurrent() && thenPlay) play();
    } catch (error) {
      if (isCurrent()) report(error, 'Try again', () => void begin(thenPlay));
    }
  }

  async function openFile(file: EpisodeFile, thenPlay: boolean): Promise<void> {
    const isCurrent = await clear();
    if (!isCurrent()) return;
    try {
      const answer = await client.openEpisode(file, 0);
      if (!isCurrent()) return;
      const { task_id, seed: recordedSeed, ...rest } = file.reset;
      batch(() => {
        task.value = pickTask(tasks.value, task_id === undefined ? undefined : String(task_id));
        seed.value = typeof recordedSeed === 'number' ? recordedSeed : 0;
        options.value = knownOptions(rest);
        const only = createRun(client, 0, BY_HAND);
        only.adopt(file.reset, answer, startingKnobs());
        runs.value = [only];
        run.value = only;
        position.value = 0;
        opened.value = {
          verified: answer.verified,
          recorded: file.environment?.version,
          played: answer.version,
          windows: answer.steps.length,
        };
      });
      await scoreFinished();
      if (isCurrent() && thenPlay) play();
    } catch (error) {
      if (isCurrent()) report(error, 'Start an episode instead', () => void begin(false));
    }
  }

  /** Plays so many windows more on every run that is not over, those that are behind first; one request at a time. */
  async function advance(windows: number): Promise<void> {
    const active = runs.value.filter(({ latest }) => latest.value && !latest.value.done);
    if (asking || active.length === 0) return;
    asking = ask(active, windows).finally(() => {
      asking = undefined;
    });
    await asking;
  }

  async function ask(active: readonly Run[], windows: number): Promise<void> {
    const number = beginning;
    const behind = Math.min(...active.map(({ played }) => played.value));
    const isByHand = active.some((one) => one.driver.value === BY_HAND);
    const target = behind + (isByHand ? 1 : windows);
    try {
      await Promise.all(
        active.map(async (one) => {
          if (one.played.value < target) await one.advance(target - one.played.value);
        }),
      );
      pacer.played(target - behind);
      await scoreFinished();
    } catch (error) {
      if (beginning === number) await interrupted(error, number);
    }
    if (runs.value.every(({ latest }) => latest.value?.done)) playing.value = false;
  }

  async function scoreFinished(): Promise<void> {
    const ungraded = runs.value.filter((one) => one.latest.value?.done && !one.grade.value);
    if (!abilities.value.grader || ungraded.length === 0) return;
    try {
      await Promise.all(ungraded.map((one) => one.score()));
    } catch (error) {
      report(error, 'Ask for the score again', () => void scoreFinished());
    }
  }

  /** A connection that broke is mended by waiting; other errors are told. */
  async function interrupted(error: unknown, number: number): Promise<void> {
    const wasPlaying = playing.value;
    playing.value = false;
    if (!(error instanceof ApiError)) throw error;
    const isForgotten = error.status === 404 && abilities.value.episodes;
    if (!error.isTemporary && !isForgotten) {
      report(error, 'Start the episode again', () => void begin(wasPlaying));
      return;
    }
    void reconnect(error, number, wasPlaying);
  }

  /** Tries until the server is there again, then goes on where the page was. */
  async function reconnect(cause: ApiError, number: number, thenPlay: boolean): Promise<void> {
    let error = cause;
    for (let attempt = 0; beginning === number; attempt++) {
      const isWoken = new Promise<void>((wake) => {
        problem.value = {
          message: `${error.message} The page tries again by itself.`,
          remedy: 'Try now',
          mend: wake,
        };
      });
      // A session that the server has forgotten is rebuilt at once; there is nothing to wait for.
      if (error.isTemporary) await sleep(retryDelayMs(attempt), isWoken);
      if (beginning !== number) return;
      try {
        await client.health();
        for (const one of runs.value) await one.recover();
        if (beginning !== number) return;
        problem.value = undefined;
        await scoreFinished();
        if (thenPlay) play();
        return;
      } catch (failure) {
        if (!(failure instanceof ApiError)) throw failure;
        if (!failure.isTemporary) {
          report(failure, 'Start the episode again', () => void begin(thenPlay));
          return;
        }
        error = failure;
      }
    }
  }

  function play(): void {
    pacer.restart();
    playing.value = true;
  }

  function report(error: unknown, remedy: string, action: () => void): void {
    if (!(error instanceof ApiError)) throw error;
    if (error.isUnauthorized) {
      afterToken = action;
      needsToken.value = true;
      return;
    }
    problem.value = {
      message: error.message,
      remedy,
      mend() {
        problem.value = undefined;
        action();
      },
    };
  }

  function seek(window: number): void {
    playing.value = false;
    position.value = window >= newest.value ? null : Math.max(0, window);
  }

  return {
    client,
    environment,
    schemas,
    tasks,
    policies,
    abilities,
    knobs,
    definitions,
    task,
    chosenTask,
    seed,
    options,
    speed,
    opened,
    runs,
    run,
    epoch,
    newest,
    position,
    pointedAt,
    shownIndex,
    driver,
    frames,
    latest,
    shown,
    grade,
    knobValues,
    playing,
    problem,
    needsToken,
    connect,
    enterToken(token) {
      client.authorize(token);
      needsToken.value = false;
      afterToken();
    },
    chooseTask(id) {
      task.value = id;
      void begin(playing.value);
    },
    chooseSeed(value, thenPlay = playing.value) {
      seed.value = value;
      void begin(thenPlay);
    },
    chooseOption(name, value) {
      const { [name]: _, ...others } = options.value;
      options.value = value === undefined ? others : { ...others, [name]: value };
      void begin(playing.value);
    },
    chooseDriver(name, of = run.value) {
      of.drive(name);
      if (name === BY_HAND) {
        run.value = of;
        playing.value = false;
      }
    },
    async addRun(policy) {
      const taken = runs.value.map(({ place }) => place);
      const place = Array.from({ length: RUN_PLACES }, (_, i) => i).find((i) => !taken.includes(i));
      if (place === undefined) return;
      const added = createRun(client, place, policy);
      const number = beginning;
      try {
        await added.begin(run.value.reset, startingKnobs());
        if (beginning !== number) return;
        runs.value = [...runs.value, added];
        while (added.played.value <= newest.value && !added.latest.value?.done) {
          await added.advance(newest.value + 1 - added.played.value);
          if (beginning !== number) return;
        }
        await scoreFinished();
      } catch (error) {
        if (beginning === number) report(error, 'Start the episodes again', () => void begin(false));
      }
    },
    removeRun(gone) {
      if (runs.value.length === 1) return;
      batch(() => {
        runs.value = runs.value.filter((one) => one !== gone);
        if (run.value === gone) run.value = runs.value[0];
      });
    },
    focus(one) {
      run.value = one;
    },
    turn(knob, value) {
      run.value.turn({ [knob]: value });
    },
    restart: () => begin(playing.value),
    togglePlay() {
      if (playing.value) playing.value = false;
      else if (position.value !== null) play();
      else if (runs.value.every(({ latest }) => latest.value?.done)) void begin(true);
      else if (latest.value) play();
    },
    async step() {
      playing.value = false;
      if (position.value !== null) {
        seek(position.value + 1);
        return;
      }
      if (asking) await asking;
      await advance(1);
    },
    seek,
    async branch() {
      const at = position.value;
      if (at === null) return;
      const number = beginning;
      playing.value = false;
      try {
        await asking;
        await run.value.branchAt(Math.min(at, run.value.played.value - 1));
        batch(() => {
          position.value = null;
          opened.value = undefined;
        });
      } catch (error) {
        if (beginning === number) report(error, 'Start the episode again', () => void begin(false));
      }
    },
    openFile,
    resetOptions,
    tell(message) {
      problem.value = {
        message,
        remedy: 'Close',
        mend() {
          problem.value = undefined;
        },
      };
    },
    tick(nowMs) {
      if (!playing.value || asking) return;
      const windows = pacer.due(nowMs, speed.value);
      if (windows === 0) return;
      if (position.value === null) {
        void advance(windows);
        return;
      }
      pacer.played(windows);
      const next = position.value + windows;
      const isNewest = next >= newest.value;
      position.value = isNewest ? null : next;
      if (isNewest && runs.value.every(({ latest }) => latest.value?.done)) playing.value = false;
    },
  };
}

/** The task asked for, or the hardest: the last one. */
function pickTask(tasks: readonly Task[], wanted: string | undefined): string | undefined {
  const ids = tasks.map(({ id }) => String(id));
  return wanted !== undefined && ids.includes(wanted) ? wanted : ids.at(-1);
}

/** Those asked for that there are; else the heuristic, else by hand. */
function pickDrivers(policies: readonly PolicyInfo[], wanted: readonly string[]): string[] {
  const names = policies.map(({ name }) => name);
  const known = wanted.filter((name) => name === BY_HAND || names.includes(name));
  if (known.length > 0) return known;
  return [['heuristic', 'baseline'].find((name) => names.includes(name)) ?? BY_HAND];
}
